package e2e

import (
	"debug/elf"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// site is a place of a program that calls MPI, as sites.c notes it; siteCount is what is known of it.
type site struct {
	function, comm string
	line           int64
}

type siteCount struct{ calls, bytes, waiting int64 }

// noted reads what a rank has left in the file done.sites.RANK.
func noted(tb testing.TB, run *harness.Run, rank int) map[site]siteCount {
	tb.Helper()
	text, err := os.ReadFile(run.File(fmt.Sprintf("done.sites.%d", rank)))
	require.NoError(tb, err)
	all := map[site]siteCount{}
	for line := range strings.Lines(string(text)) {
		var s site
		var c siteCount
		_, err := fmt.Sscan(line, &s.function, &s.comm, &s.line, &c.calls, &c.bytes)
		require.NoError(tb, err)
		all[s] = c
	}
	return all
}

// siteProfile has report write the profile of a job.
func siteProfile(tb testing.TB, exporter *harness.Exporter, run *harness.Run) *profile.Profile {
	tb.Helper()
	file := filepath.Join(tb.TempDir(), "mpi.pb.gz")
	suite.Start(tb, []string{suite.Binary(), "report", "--pprof=" + file, "--jobid=" + run.ID,
		"--url=" + exporter.URL("")}, nil).Wait(tb)
	f, err := os.Open(file)
	require.NoError(tb, err)
	defer func() { _ = f.Close() }()
	p, err := profile.Parse(f)
	require.NoError(tb, err)
	return p
}

// callSites is what the profile has of a source file by rank.
func callSites(tb testing.TB, exporter *harness.Exporter, run *harness.Run, source string) map[int]map[site]siteCount {
	tb.Helper()
	all := map[int]map[site]siteCount{}
	for _, s := range siteProfile(tb, exporter, run).Sample {
		rank, err := strconv.Atoi(s.Label["rank"][0])
		require.NoError(tb, err)
		if all[rank] == nil {
			all[rank] = map[site]siteCount{}
		}
		at := site{function: s.Location[0].Line[0].Function.Name, comm: "-"}
		if names := s.Label["communicator"]; names != nil {
			at.comm = names[0]
		}
		if len(s.Location) > 1 && len(s.Location[1].Line) > 0 {
			if line := s.Location[1].Line[0]; filepath.Base(line.Function.Filename) == source {
				at.line = line.Line
			}
		}
		c := all[rank][at]
		all[rank][at] = siteCount{c.calls + s.Value[0], c.bytes + s.Value[3], c.waiting + s.Value[2]}
		assert.LessOrEqual(tb, s.Value[2], s.Value[1])
	}
	return all
}

// assertBuildID compares the build id that the exporter has from the ranks with the one in their program.
func assertBuildID(tb testing.TB, exporter *harness.Exporter, run *harness.Run, program string) {
	tb.Helper()
	body, _ := exporter.Get(tb, "/api/v1/pprof?jobid="+run.ID, "")
	p, err := profile.ParseData(body)
	require.NoError(tb, err)
	file, err := elf.Open(program)
	require.NoError(tb, err)
	defer func() { _ = file.Close() }()
	note, err := file.Section(".note.gnu.build-id").Data()
	require.NoError(tb, err)
	require.Equal(tb, program, p.Mapping[0].File)
	assert.Equal(tb, hex.EncodeToString(note[16:]), p.Mapping[0].BuildID)
}

// assertPeers compares whom messages are for or from in the profile with what ranks of a ring do.
func assertPeers(tb testing.TB, exporter *harness.Exporter, run *harness.Run, ranks int) {
	tb.Helper()
	body, _ := exporter.Get(tb, "/api/v1/pprof?jobid="+run.ID, "")
	p, err := profile.ParseData(body)
	require.NoError(tb, err)
	messages := 0
	for _, s := range p.Sample {
		rank, err := strconv.Atoi(s.Label["rank"][0])
		require.NoError(tb, err)
		var want []string
		switch function := s.Location[0].Line[0].Function.Name; {
		case function == "MPI_Isend" && s.Label["communicator"][0] == "halo":
			want = []string{strconv.Itoa((rank + 1) % ranks)}
		case function == "MPI_Irecv" && s.Label["communicator"][0] == "halo":
			want = []string{strconv.Itoa((rank + ranks - 1) % ranks)}
		case function == "MPI_Send", function == "MPI_Recv", function == "MPI_Isend", function == "MPI_Irecv":
			want = []string{strconv.Itoa(rank)}
		case function != "MPI_Barrier":
			continue
		}
		messages += len(want)
		assert.Equal(tb, want, s.Label["peer"], "rank %d, %v", rank, s)
	}
	assert.GreaterOrEqual(tb, messages, 4*ranks)
}

// Calls and bytes of each place of the program, exactly, also of threads; and who waits at one, once a rank comes late.
func TestSites(t *testing.T) {
	t.Parallel()
	for _, mpi := range harness.Both(t) {
		for threads, mode := range map[string]string{"0": "--calls=sites", "4": "--calls=peers,sites"} {
			t.Run(mpi.Name+", threads: "+threads, func(t *testing.T) {
				exporter := suite.Exporter(t)
				run := suite.Run(t, harness.Job{MPI: mpi, Ranks: 4, Program: "sites.c",
					Args: []string{harness.HoldDir, threads}, Socket: exporter.Socket, Exec: []string{mode}})
				run.AtHold(t, "done")
				if mode == "--calls=peers,sites" {
					assertPeers(t, exporter, run, 4)
				}
				got := callSites(t, exporter, run, "sites.c")
				assertBuildID(t, exporter, run, suite.Program(t, mpi, "sites.c"))
				before := map[int]map[site]siteCount{}
				for rank := range run.Ranks {
					want := noted(t, run, rank)
					require.GreaterOrEqual(t, len(want), 20)
					before[rank] = maps.Clone(got[rank])
					for s, c := range got[rank] {
						c.waiting = 0
						got[rank][s] = c
					}
					assert.Equal(t, want, got[rank], "rank %d", rank)
				}
				run.Release(t, "done")
				run.AtHold(t, "late")
				for rank, after := range callSites(t, exporter, run, "sites.c") {
					met := 0
					for s, c := range after {
						if _, old := before[rank][s]; old {
							continue
						}
						met++
						assert.Equal(t, "MPI_Barrier", s.function)
						assert.Equal(t, int64(1), c.calls)
						assert.Equal(t, rank == 0, c.waiting == 0, "rank %d waits for rank 0 only: %v", rank, c)
					}
					assert.Equal(t, 1, met, "places that are new")
				}
				shown := suite.Start(t, []string{suite.Binary(), "report", "--jobid=" + run.ID, "--url=" + exporter.URL("")},
					nil).Wait(t)
				assert.Regexp(t, `(?s)\nPlaces where ranks wait\nWAITED .*\n +\S+ +4 +MPI_Barrier +halo +main \(sites\.c:140\)\n`,
					shown.Stdout)
				shown = suite.Start(t, []string{suite.Binary(), "top", "--count=1", "--jobid=" + run.ID,
					"--url=" + exporter.URL("")}, nil).Wait(t)
				assert.Regexp(t, `(?s)\nWAITED IN ALL .*\n +\S+ +4 +MPI_Barrier +halo +main \(sites\.c:140\)\n`, shown.Stdout)
				var page struct {
					Sites []struct{ Function, Object, Module string }
				}
				exporter.GetJSON(t, "/api/v1/sites?jobid="+run.ID, &page)
				program := suite.Program(t, mpi, "sites.c")
				assert.Contains(t, page.Sites, struct{ Function, Object, Module string }{"MPI_Barrier", "halo", program})
				run.Finish(t, "late")
			})
		}
	}
}

// callStacks returns how many calls a rank has made from each stack, as the names of its functions.
func callStacks(tb testing.TB, exporter *harness.Exporter, run *harness.Run, rank string) map[string]int64 {
	tb.Helper()
	all := map[string]int64{}
	for _, s := range siteProfile(tb, exporter, run).Sample {
		if s.Label["rank"][0] != rank {
			continue
		}
		var names []string
		for _, at := range s.Location {
			names = append(names, at.Line[0].Function.Name)
		}
		all[strings.Join(names, " ")] += s.Value[0]
	}
	return all
}

// What has called the code that calls MPI, with frames of all kinds, once each of it was seen; no call counts twice.
func TestStacks(t *testing.T) {
	t.Parallel()
	const rounds = 8
	for _, mpi := range harness.Both(t) {
		t.Run(mpi.Name, func(t *testing.T) {
			exporter := suite.Exporter(t)
			run := suite.Run(t, harness.Job{MPI: mpi, Ranks: 2, Program: "stacks.c",
				Args: []string{harness.HoldDir, strconv.Itoa(rounds)}, Socket: exporter.Socket, Exec: []string{"--calls=stacks"}})
			before := map[string]int64{}
			for i := range rounds {
				run.AtHold(t, fmt.Sprintf("round-%d", i))
				exporter.Get(t, "/metrics", "")
				before = callStacks(t, exporter, run, "1")
				run.Release(t, fmt.Sprintf("round-%d", i))
			}
			run.AtHold(t, "done")
			after, all := callStacks(t, exporter, run, "1"), int64(0)
			for stack, calls := range after {
				all += calls
				if after[stack] -= before[stack]; after[stack] == 0 {
					delete(after, stack)
				}
			}
			assert.Equal(t, map[string]int64{
				"MPI_Sendrecv exchange halo smooth step main":   3,
				"MPI_Sendrecv exchange smooth step main":        1,
				"MPI_Sendrecv exchange halo step main":          1,
				"MPI_Barrier recurse recurse recurse step main": 1,
			}, after)
			assert.Equal(t, int64((rounds+1)*6), all)
			run.Finish(t, "done")
		})
	}
}

// Behind Fortran's binding calls have the program's own lines, once the exporter has asked. Without sites there is no
// profile.
func TestSitesOfFortran(t *testing.T) {
	t.Parallel()
	for _, mpi := range harness.Both(t) {
		t.Run(mpi.Name, func(t *testing.T) {
			exporter := suite.Exporter(t)
			run := suite.Run(t, harness.Job{MPI: mpi, Ranks: 2, Program: "sites_mpifh.f",
				Args: []string{harness.HoldDir}, Socket: exporter.Socket, Exec: []string{"--calls=sites"}})
			run.AtHold(t, "first")
			exporter.Await(t, "both ranks", up(run))
			run.Release(t, "first")
			run.AtHold(t, "done")
			for rank, sites := range callSites(t, exporter, run, "sites_mpifh.f") {
				calls := map[int64]int64{}
				for s, c := range sites {
					calls[s.line] += c.calls
				}
				assert.Equal(t, map[int64]int64{0: 1, 18: 5, 21: 3}, calls, "rank %d", rank)
			}
			run.Finish(t, "done")
		})
	}
}
