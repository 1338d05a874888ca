package top

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/exporter/job"
)

var update = flag.Bool("update", false, "write the golden files")

// does is what a rank does in each second.
type does struct {
	allreduce, waitall, isend float64 // shares of its time; the rest is useful
	long                      *api.LongCall
	running                   float64
	state, end                string // "": up
}

// played is a job that does the same all the time.
type played struct {
	id, program string
	size        int // of its world; 0: as many as there are
	ranks       []does
	bare        bool // no call is measured
}

var began = time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC)

// at is what its exporter says after so many seconds.
func (j *played) at(second float64) api.ValueList {
	list := api.ValueList{Time: began.Add(time.Duration(second * float64(time.Second)))}
	now := second
	for i, d := range j.ranks {
		second, running := now, 0.0
		if d.end != "" {
			second = min(now, 412)
		}
		if d.long != nil {
			running = d.running - (424 - now)
		}
		status := api.RankStatus{JobID: j.id, World: "1", User: "ada", Rank: i, State: "up", PID: 1000 + i, UID: 1000,
			Host: "node7", Library: "openmpi", LibraryVersion: "4.1.4", Executable: "/home/ada/" + j.program,
			WorldSize: max(j.size, len(j.ranks)), Started: &began, End: api.End{EndReason: d.end}}
		if d.state != "" {
			status.State = d.state
		}
		of := api.RankValues{Rank: status}
		if !j.bare {
			of.Rank.Calls = &api.Calls{Long: d.long, Running: running, State: api.StateSeconds{
				api.Outside: second * (1 - d.allreduce - d.waitall - d.isend), api.Send: second * d.isend,
				api.Wait: second * d.waitall, api.Collective: second * d.allreduce}}
			if d.long == nil {
				of.Variables = append(of.Variables, calls("MPI_Allreduce", "residual", second*d.allreduce, second*100),
					calls("MPI_Waitall", "", second*d.waitall, second*100), calls("MPI_Isend", "grid", second*d.isend, second*400))
			}
		}
		list.Ranks = append(list.Ranks, of)
	}
	return list
}

func calls(function, comm string, seconds, count float64) api.VariableValues {
	labels := map[string]string{"function": function}
	if comm != "" {
		labels["comm"] = comm
	}
	return api.VariableValues{Metric: "mpit_call_time_seconds", Kind: "histogram", Unit: "s", Series: []api.SeriesValue{
		{Labels: labels, Sum: fmt.Sprint(seconds), Count: fmt.Sprint(count)}}}
}

// report is on two seconds of it.
func (j *played) report(t *testing.T) *job.Report {
	t.Helper()
	now, before := job.Of([]api.ValueList{j.at(424)}, nil), job.Of([]api.ValueList{j.at(422)}, nil)
	require.Len(t, now, 1)
	return now[0].Since(before[0].Totals()).WithRanks(30) // as the exporter answers
}

// several are so many that do the same.
func several(n int, d does) (all []does) {
	for range n {
		all = append(all, d)
	}
	return all
}

var (
	even    = does{allreduce: 0.03, waitall: 0.04, isend: 0.01}
	waiting = does{allreduce: 0.65, waitall: 0.03, isend: 0.001}
	slow    = does{allreduce: 0.002, waitall: 0.03, isend: 0.001}

	healthy    = played{id: "4711", program: "stencil", ranks: several(4, even)}
	imbalanced = played{id: "4712", program: "stencil", ranks: []does{waiting, waiting, slow, waiting}}
	barrier    = api.LongCall{Function: "MPI_Barrier", Kind: "comm", Object: "halo"}
	receive    = api.LongCall{Function: "MPI_Recv", Kind: "comm", Object: "MPI_COMM_WORLD", Module: "/home/ada/ring",
		Offset: 0x12ab}
	hung = played{id: "4713", program: "ring", ranks: append(several(3, does{allreduce: 1, long: &barrier, running: 371}),
		does{waitall: 1, long: &receive, running: 372})}
	killed = played{id: "4714", program: "stencil", ranks: []does{
		{allreduce: 1, long: &api.LongCall{Function: "MPI_Allreduce", Kind: "comm", Object: "residual"}, running: 12},
		{allreduce: 1, long: &api.LongCall{Function: "MPI_Allreduce", Kind: "comm", Object: "residual"}, running: 12},
		{allreduce: 0.05, state: "ended", end: "lost"},
		{allreduce: 1, long: &api.LongCall{Function: "MPI_Allreduce", Kind: "comm", Object: "residual"}, running: 12},
	}}
	large = played{id: "4715", program: "stencil", size: 256, ranks: func() []does {
		all := several(128, does{allreduce: 0.84, waitall: 0.04})
		for i := 64; i < 128; i++ {
			all[i] = does{allreduce: 0.5 + float64(i%8)/190, waitall: 0.1}
		}
		all[2] = does{waitall: 0.02}
		return all
	}()}
	bare = played{id: "4716", program: "solver", ranks: several(2, does{}), bare: true}
)

// golden compares a text with testdata's, or writes it.
func golden(t *testing.T, name, text string) {
	t.Helper()
	file := filepath.Join("testdata", name+".txt")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, string(want), text, "go test ./cmd/mpit-exporter/internal/top -update writes it")
}

func text(lines []Line) string {
	var b strings.Builder
	_ = Plain(&b, lines)
	return b.String()
}

// sizes of a terminal: the smallest that people use, a usual one, and a large one.
var sizes = [][2]int{{80, 24}, {120, 40}, {200, 60}}

// What top shows is in testdata, for each job and size.
func TestScreens(t *testing.T) {
	for name, j := range map[string]*played{"healthy": &healthy, "imbalanced": &imbalanced, "hung": &hung,
		"killed": &killed,
		"large":  &large} {
		t.Run(name, func(t *testing.T) {
			r := j.report(t)
			for i := range r.Ranks {
				if r.Ranks[i].Long != nil && r.Ranks[i].Long.Object == "halo" {
					r.Ranks[i].Place = "exchange (ring.c:42)"
				}
			}
			var all strings.Builder
			v := View{Reports: []*job.Report{r}}
			for _, size := range sizes {
				screen := text(v.Screen(size[0], size[1]))
				assert.LessOrEqual(t, strings.Count(screen, "\n"), size[1])
				for line := range strings.Lines(screen) {
					assert.LessOrEqual(t, utf8.RuneCountInString(line)-1, size[0], line)
				}
				fmt.Fprintf(&all, "==== %d columns, %d lines ====\n%s", size[0], size[1], screen)
			}
			golden(t, name, all.String()+"==== not in a terminal ====\n"+text(v.Plain()))
		})
	}
}

// Of several jobs, that which is picked is shown whole.
func TestSeveralJobs(t *testing.T) {
	var v View
	for _, j := range []*played{&hung, &killed, &imbalanced, &large, &healthy, &bare} {
		v.Reports = append(v.Reports, j.report(t))
	}
	first := text(v.Screen(80, 24))
	v.Picked = 4
	golden(t, "jobs", first+"==== and with the fifth picked ====\n"+text(v.Screen(80, 24)))
	v.Picked = 5
	assert.Contains(t, text(v.Screen(80, 24)), "> 4716 ", "however far down it is")
}

// For each kind of job the first 200 characters hold its state, where and which rank, spaces aside.
func TestFirstGlance(t *testing.T) {
	for _, test := range []struct {
		job  played
		want []string
	}{
		{healthy, []string{"HEALTHY", "92 % useful"}},
		{imbalanced, []string{"LATE RANK", "MPI_Allreduce on residual", "for rank 2 on node7"}},
		{large, []string{"LATE RANK", "MPI_Allreduce on residual", "for rank 2 on node7"}},
		{hung, []string{"WAITING", "2 different calls"}},
		{killed, []string{"CRASHED", "rank 2 on node7", "MPI_Finalize"}},
		{bare, []string{"UNKNOWN", "no MPI call has been measured"}},
		{played{id: "4717", program: "solver", ranks: append(several(3, does{allreduce: 1, long: &barrier, running: 371}),
			does{})}, []string{"WAITING", "3 of 4 ranks have been in MPI_Barrier on halo"}},
		{played{id: strings.Repeat("4718-a-long-name-of-a-job", 6), program: "stencil", ranks: imbalanced.ranks},
			[]string{"LATE RANK", "MPI_Allreduce on residual", "for rank 2 on node7"}},
	} {
		for _, size := range sizes {
			v := View{Reports: []*job.Report{test.job.report(t)}}
			glance := []rune(strings.Join(strings.Fields(text(v.Screen(size[0], size[1]))), " "))
			for _, want := range test.want {
				assert.Contains(t, string(glance[:min(len(glance), 200)]), want, "%s at %d columns", test.job.id, size[0])
			}
		}
	}
}

// Lines that the picked job leaves free are the others'.
func TestManyJobs(t *testing.T) {
	var v View
	for i := range 10 {
		j := imbalanced
		j.id = fmt.Sprint(4700 + i)
		v.Reports = append(v.Reports, j.report(t))
	}
	screen := text(v.Screen(120, 40))
	for i := range 10 {
		assert.Contains(t, screen, fmt.Sprintf(" %d  ", 4700+i))
	}
}

// What is wrong has a colour, and what a rank says can't give it another one.
func TestTones(t *testing.T) {
	tones := func(j played) map[string]Tone {
		all := map[string]Tone{}
		for _, line := range (&View{Reports: []*job.Report{j.report(t)}}).Screen(120, 40) {
			for _, piece := range line {
				all[piece.Text] = piece.Tone
				assert.NotContains(t, piece.Text, "\x1b")
			}
		}
		return all
	}
	assert.Equal(t, Good, tones(healthy)["HEALTHY"])
	assert.Equal(t, Poor, tones(imbalanced)["LATE RANK"])
	assert.Equal(t, Poor, tones(imbalanced)["2"], "the late one")
	assert.Equal(t, Poor, tones(hung)["WAITING"])
	assert.Equal(t, Bad, tones(killed)["CRASHED"])
	assert.Equal(t, Bad, tones(killed)["lost"])
	hostile := hung
	hostile.program = "\x1b[31mapp"
	hostile.ranks = []does{{long: &api.LongCall{Function: "MPI_\x1b[2JSend", Object: "\x1b]0;x\x07"}, running: 20}}
	assert.NotEmpty(t, tones(hostile))
}

// A screen may be too small for anything.
func TestSmallScreens(t *testing.T) {
	v := View{}
	for range 20 {
		v.Reports = append(v.Reports, imbalanced.report(t), large.report(t))
	}
	for lines := range 30 {
		for _, columns := range []int{1, 5, 20, 80} {
			v.Picked = lines
			screen := text(v.Screen(columns, lines))
			assert.LessOrEqual(t, strings.Count(screen, "\n"), lines)
		}
	}
	assert.Contains(t, text((&View{}).Screen(80, 24)), "mpit-exporter exec")
	for line := range strings.Lines(text(Help())) {
		assert.LessOrEqual(t, utf8.RuneCountInString(line), 81, line)
	}
}
