package e2e

import (
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// Another tool that stands in front of MPI calls counts every one once, whichever of the two comes first, and the
// agent sees the objects and the end all the same.
func TestAnotherPMPITool(t *testing.T) {
	t.Parallel()
	for _, mpi := range harness.Both(t) {
		exporter := suite.Exporter(t)
		tool := suite.Library(t, mpi, "libpmpitool.c")
		orders := []struct {
			name    string
			preload string // in front of the program
			linked  bool
		}{
			{name: "agent, tool", preload: suite.Agent() + ":" + tool},
			{name: "tool, agent", preload: tool + ":" + suite.Agent()},
			{name: "agent preloaded, tool linked", preload: suite.Agent(), linked: true},
		}
		for _, order := range orders {
			t.Run(mpi.Name+"/"+order.name, func(t *testing.T) {
				run := func(preload string) (*harness.Run, string) {
					counts := filepath.Join(suite.Dir(t), "counts")
					job := harness.Job{
						MPI: mpi, Program: "calls.c", Args: []string{harness.HoldDir}, Bare: true,
						Socket: exporter.Socket,
						Env:    []string{"PMPITOOL_FILE=" + counts}, Wrap: []string{"env", "LD_PRELOAD=" + preload},
					}
					if order.linked {
						job.Link = []string{tool}
					}
					return suite.Run(t, job), counts
				}
				without := tool
				if order.linked {
					without = ""
				}
				bare, bareCounts := run(without)
				observed, counts := run(order.preload)
				observed.AtHold(t, "made")
				exporter.Await(t, "the ranks and their objects",
					all(up(observed), objects(observed, "comm", "calls", 1)))
				got := observed.Finish(t, "made")
				exporter.Await(t, "the end", all(ended(observed, "finalize"), healthy))
				assert.Equal(t, bare.Finish(t, "made"), got)
				for rank := range observed.Ranks {
					want := "begun 1 sent 7 received 0 duplicated 6 split 1 freed 7 named 1 windows 1 levels 2 last " +
						"1\n"
					if rank == 1 {
						want = "begun 1 sent 0 received 7 duplicated 6 split 1 freed 7 named 1 windows 1 levels 2 " +
							"last 1\n"
					}
					assert.Equal(t, want, read(t, fmt.Sprintf("%s.%d", bareCounts, rank)))
					assert.Equal(t, want, read(t, fmt.Sprintf("%s.%d", counts, rank)))
				}
			})
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

// Programs that use MPI_T themselves, before, during and after MPI, are answered what they are answered without the
// agent.
func TestProgramsThatUseMPIT(t *testing.T) {
	t.Parallel()
	uses := []struct {
		when string
		mpi  string // the only one, for the other one's library crashes without the agent; "": both
	}{
		{"early", "openmpi"},
		{"at_once", "mpich"}, // Debian's Open MPI fails at that without the agent, too
		{"early_kept", ""},
		{"balance", ""},
		{"within", ""},
		{"late", "mpich"},
		{"handles", ""},
		{"monitoring", "openmpi"},
	}
	for _, mpi := range harness.Both(t) {
		exporter := suite.Exporter(t)
		var ends []check
		for _, use := range uses {
			if use.mpi != "" && use.mpi != mpi.Name {
				continue
			}
			t.Run(mpi.Name+"/"+use.when, func(t *testing.T) {
				job := harness.Job{MPI: mpi, Program: "tooluser.c", Args: []string{use.when, harness.HoldDir}}
				if use.when == "monitoring" {
					if mpi.Major >= 6 {
						t.Skip("Without its monitoring of messages, which crashes MPI_Init, Open MPI 6.0.0rc2 has " +
							"no variables of collective ones where MPI_T is initialised after MPI_Init: the program " +
							"finds them with the agent only.")
					}
					job.Env = []string{"OMPI_MCA_pml_monitoring_enable=2"}
				}
				result, end := visit(t, exporter, job, "finalize", "up")
				assert.Zero(t, result.Status)
				if use.when == "monitoring" {
					assert.Contains(t, result.Stdout, "tooluser: 1 elements, 7 collectives\n")
				}
				ends = append(ends, end)
			})
		}
		exporter.Await(t, "the ends", all(append(ends, healthy)...))
	}
}

// What a program can see of the agent if it looks: MPI_T stays initialised after the program has finalized it as
// often as it had initialised it, because the agent's own session does. The standard counts (MPI-4.1 section 15.3.4),
// so other tools do the same.
func TestMPITStaysInitialised(t *testing.T) {
	t.Parallel()
	for _, mpi := range harness.Both(t) {
		t.Run(mpi.Name, func(t *testing.T) {
			job := harness.Job{MPI: mpi, Alone: true, Program: "tooluser.c", Args: []string{"ended", "-"}, Bare: true}
			bare := "then it is not initialised\n"
			if mpi.Name == "mpich" && mpi.Major >= 5 { // which initialises MPI_T itself, in MPI_Init
				bare = "then it is alive\n"
			}
			assert.Contains(t, suite.Run(t, job).Finish(t).Stdout, bare)
			job.Bare, job.Socket = false, filepath.Join(suite.Dir(t), "nobody.sock")
			assert.Contains(t, suite.Run(t, job).Finish(t).Stdout, "then it is alive\n")
		})
	}
}

// An MPI library that the program opens itself works as without the agent, whichever way its functions are looked up.
func TestOpenedLibrary(t *testing.T) {
	t.Parallel()
	program := suite.PlainProgram(t, "dlopened.c", "any", "-ldl")
	for _, mpi := range harness.Both(t) {
		library := libraryOf(t, suite.Program(t, mpi, "tour.c"))
		for _, how := range []string{"local", "global", "default"} {
			t.Run(mpi.Name+"/"+how, func(t *testing.T) {
				command := []string{program, library, how}
				bare := suite.Start(t, command, mpi.Env()).Wait(t)
				assert.Zero(t, bare.Status)
				assert.Contains(t, bare.Stdout, "dlopened: codes 0 0 0 0 0, initialized 1,")
				nobody := filepath.Join(suite.Dir(t), "nobody.sock")
				require.NoError(t, os.WriteFile(nobody, nil, 0o600)) // of an exporter that has gone: exec says nothing
				socket := "--socket=" + nobody
				for _, flags := range [][]string{{socket}, {socket, "--calls"}} {
					observed := suite.Start(t, append(suite.ExecCommand(flags...), command...), mpi.Env()).Wait(t)
					assert.Equal(t, bare, observed, flags)
				}
			})
		}
	}
}

// libraryOf finds the name under which a program asks for its MPI library.
func libraryOf(t *testing.T, program string) string {
	t.Helper()
	file, err := elf.Open(program)
	require.NoError(t, err)
	defer file.Close()
	libraries, err := file.ImportedLibraries()
	require.NoError(t, err)
	i := slices.IndexFunc(libraries, func(name string) bool { return len(name) > 6 && name[:6] == "libmpi" })
	require.GreaterOrEqual(t, i, 0, libraries)
	return libraries[i]
}
