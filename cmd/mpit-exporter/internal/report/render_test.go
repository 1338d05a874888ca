package report

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/table"
	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/exporter/job"
	"github.com/mpit-exporter/mpit-exporter/exporter/job/jobtest"
	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// A job that runs has no end, even if some of its ranks have ended.
func TestAJobThatRuns(t *testing.T) {
	lists := jobtest.Late()
	status := &lists[0].Ranks[1].Rank
	status.Ended, status.State, status.EndReason = nil, "up", ""
	status.Calls.Running, status.Calls.Long = 20, &api.LongCall{Function: "MPI_Barrier"}
	r := job.Of(lists, nil)[0]
	assert.Nil(t, r.Job.Ended)
	assert.Equal(t, 102.0, r.Lasted())
	var text bytes.Buffer
	require.NoError(t, Text(r, &text, 0))
	assert.Contains(t, text.String(), "runs for 1m42s, as of ")
	assert.Contains(t, text.String(), "MPI_Barrier", "a call that goes on is among the functions")
}

func TestText(t *testing.T) {
	var text bytes.Buffer
	require.NoError(t, Text(job.Of(jobtest.Late(), nil)[0], &text, 0))
	for _, line := range []string{
		"Job 17 (heat <3>): solver",
		"user ada, world 0, 4 of 4 ranks, 2 nodes, openmpi 5.0.7, began ",
		"ended after 1m40s",
		" 52 %  3m27s  4.00k  51.8ms  MPI_Allreduce  residual  0: 69.0s      -",
		"  1 %  4.00s  2.00k  2.00ms  MPI_Send       halo      0: 1.00s      2.00 KiB sent",
		"late rank: 47 % useful; 51 % of the time ranks wait in MPI_Allreduce on residual probably for rank 2 on node2",
		"RANK  NODE   STATE     USEFUL  SEND  COLLECTIVE  IN MPI MOSTLY",
		"   1  node1  finalize    31 %   1 %        68 %  MPI_Allreduce 68.0s, MPI_Send 1.00s",
		"  30        3  mpit_unexpected_recvq_length",
		"2.00k      1.00 KiB    4.00 KiB       more  MPI_Send  halo",
		"1000 KiB       500  2.00 KiB     3   0",
	} {
		assert.Contains(t, text.String(), line)
	}
}

// judged is a job that is in a state, with the long names and texts that programs give.
func judged(state string) *job.Report {
	r := job.Of(jobtest.Late(), nil)[0]
	r.Verdict.State, r.Verdict.Text = state, "ranks 0-2 have waited 40s in MPI_Allreduce on a_communicator_with_a_long_name "+
		"for rank 3 on a.node.with.a.long.name.example.org, which is in read of fd 3 (a pipe)"
	r.Job.ID = strings.Repeat("job", 40)
	for i := range r.Ranks {
		r.Ranks[i].Node = "a.node.with.a.long.name.example.org"
		r.Ranks[i].Time = api.StateSeconds{10, 10, 10, 10, 10, 10, 10, 10}
		r.Ranks[i].Long, r.Ranks[i].Running = &api.LongCall{Function: "MPI_Allreduce", Object: "residual"}, 40
	}
	return r
}

// Each state has the same word, and the colour of the table, as text, page and JSON; a deadlock is red.
func TestStates(t *testing.T) {
	for _, s := range job.States() {
		r := judged(s.Word)
		var text, page, data bytes.Buffer
		require.NoError(t, Text(r, &text, 0))
		require.NoError(t, HTML(r, &page))
		require.NoError(t, JSON(r, &data))
		assert.Contains(t, text.String(), "\n"+s.Word+": ranks 0-2 have waited")
		assert.Contains(t, page.String(), "<strong>"+s.Word+"</strong>: ranks 0-2 have waited")
		assert.Contains(t, data.String(), `"state": "`+s.Word+`"`)
		colour := regexp.MustCompile(`border-inline-start: 8px solid var\(--([a-z]+)\)`).FindStringSubmatch(page.String())
		require.NotNil(t, colour, s.Word)
		want := s.Colour
		if want == "" {
			want = "line"
		}
		assert.Equal(t, want, colour[1], s.Word)
		assert.Contains(t, page.String(), "--"+want+": #", "the page has the colour")
	}
}

// On no screen a line is too long, and no word of the verdict is lost.
func TestScreens(t *testing.T) {
	r := judged(job.Deadlock)
	after := judged(job.Healthy)
	compared, err := job.Compare(r, after)
	require.NoError(t, err)
	for _, columns := range []int{80, 120, 200} {
		for name, write := range map[string]func(b *bytes.Buffer) error{
			"report":     func(b *bytes.Buffer) error { return Text(r, b, columns) },
			"comparison": func(b *bytes.Buffer) error { return Comparison(compared, b, columns) },
		} {
			var text bytes.Buffer
			require.NoError(t, write(&text))
			for line := range strings.Lines(text.String()) {
				if !strings.Contains(line, r.Job.ID) { // one word
					assert.LessOrEqual(t, table.Width(strings.TrimSuffix(line, "\n")), columns, name)
				}
			}
			assert.Contains(t, strings.Join(strings.Fields(text.String()), " "), r.Verdict.Sentence(), name)
		}
	}
}

// A rank stands out that has three times as much as any other, and as much as matters; never in a job in which work
// is shared out, nor one of two that have much, nor if there are ranks of which nothing is known.
func TestRanksThatStandOut(t *testing.T) {
	for name, c := range map[string]struct {
		change func(r *job.Report)
		want   [][]string
	}{
		"healthy": {func(*job.Report) {}, nil},
		"a stencil, whose corners have half of the neighbours": {func(r *job.Report) {
			r.Ranks[0].Bytes["sent"], r.Ranks[1].Bytes["sent"] = 8<<20, 8<<20
			r.Ranks[2].Bytes["sent"], r.Ranks[3].Bytes["sent"] = 4<<20, 4<<20
		}, nil},
		"one rank writes the file": {func(r *job.Report) {
			r.Ranks[1].Bytes["written"], r.Ranks[1].Time[api.File] = 1<<30, 30
		}, [][]string{{"1", "bytes written", "1.00 GiB", "0: 0 B"}, {"1", "time in files", "30.0s", "0: 0s"}}},
		"two ranks do": {func(r *job.Report) { r.Ranks[0].Bytes["written"], r.Ranks[1].Bytes["written"] = 1<<30, 1<<29 }, nil},
		"a small file": {func(r *job.Report) { r.Ranks[1].Bytes["written"] = 1 << 10 }, nil},
		"all send to one": {func(r *job.Report) {
			r.Messages = []job.Messages{{From: 1, To: "0", Messages: 500}, {From: 2, To: "0", Messages: 600},
				{From: 3, To: "0", Messages: 600}, {From: 0, To: "1", Messages: 3}}
		}, [][]string{{"0", "messages received", "1.70k", "1: 3"}}},
		"to whom isn't known": {func(r *job.Report) {
			r.Messages = []job.Messages{{From: 1, To: "0", Messages: 5000}, {From: 2, To: "other", Messages: 5000}}
		}, nil},
		"ranks that aren't observed": {func(r *job.Report) { r.Ranks[1].Bytes["sent"], r.Job.WorldSize = 1<<40, 8 }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := job.Of(jobtest.Late(), nil)[0]
			slices.SortFunc(r.Ranks, func(a, b job.Rank) int { return a.Rank - b.Rank })
			c.change(r)
			var got [][]string
			for _, row := range viewOf(r).standOut().Rows {
				got = append(got, row.Cells)
			}
			assert.Equal(t, c.want, got)
		})
	}
}

// A line of a record has as many words, in the same order, whatever is known, and none is longer than 200 columns.
func TestLines(t *testing.T) {
	unknown := job.Of(jobtest.Late(), nil)[0]
	unknown.Job.ID, unknown.Ranks, unknown.Verdict = "a job", nil, job.Verdict{State: job.WrongProgram, Text: "two\nlines"}
	long := judged(job.Deadlock)
	long.Job.ID = "18"
	var text bytes.Buffer
	require.NoError(t, Lines([]*job.Report{unknown, job.Of(jobtest.Late(), nil)[0]}, &text))
	assert.Equal(t, "jobid=17 state=late-rank useful=0.47 lost_core_hours=0.058 47 % useful; 51 % of the time ranks wait in "+
		"MPI_Allreduce on residual probably for rank 2 on node2, which is outside MPI for 98 % of the time\n"+
		"jobid=a-job state=wrong-program useful=unknown lost_core_hours=unknown two lines\n", text.String())
	text.Reset()
	require.NoError(t, Lines([]*job.Report{long}, &text))
	assert.Equal(t, 200, table.Width(strings.TrimSpace(text.String())))
}

// Of a thousand ranks those are shown that the others wait for, and a few that wait.
func TestManyRanks(t *testing.T) {
	var list api.ValueList
	for i := range 1000 {
		list.Ranks = append(list.Ranks, jobtest.RankOf(i, "node1", 50+float64(i)/100))
	}
	var text bytes.Buffer
	require.NoError(t, Text(job.Of([]api.ValueList{list}, nil)[0], &text, 0))
	assert.Regexp(t, `(?m)^ 999 .*\n 998 `, text.String())
	assert.Contains(t, text.String(), "… 975 more")
	assert.Regexp(t, `(?m)^   1 .*\n   0 `, text.String())
}

// Without a call profile there are neither calls nor shares.
func TestWithoutACallProfile(t *testing.T) {
	list := jobtest.Late()[0]
	for i := range list.Ranks {
		list.Ranks[i].Rank.Calls = nil
		list.Ranks[i].Variables = nil
	}
	r := job.Of([]api.ValueList{list}, nil)[0]
	assert.Empty(t, r.Calls)
	var text bytes.Buffer
	require.NoError(t, Text(r, &text, 0))
	assert.Contains(t, text.String(), "   0  node1  finalize       -", "which ranks there were, and how they ended")
	_, err := job.Compare(r, r)
	assert.ErrorContains(t, err, "without exec --calls")
}

// What ranks say of themselves is text in a page and in a terminal.
func TestNothingOfARankIsObeyed(t *testing.T) {
	list := jobtest.Late()[0]
	list.Ranks[0].Rank.JobName = "<script>\x1b[2J</script>"
	list.Ranks[0].Variables[0].Series[0].Labels["comm"] = "</script><b onload=\"x\">\u202egnp.exe\u200b"
	r := job.Of([]api.ValueList{list}, nil)[0]
	var page, text bytes.Buffer
	require.NoError(t, HTML(r, &page))
	assert.NotContains(t, page.String(), "<b onload")
	assert.Contains(t, page.String(), `title="1 to 2: 1000 KiB, 500 messages"><span class="send" style="opacity:1.00"`)
	assert.NotContains(t, page.String(), "<script>\x1b")
	var data bytes.Buffer
	require.NoError(t, JSON(r, &data))
	for _, all := range []string{page.String(), data.String()} {
		assert.False(t, strings.ContainsFunc(all, func(r rune) bool { return r > ' ' && mapping.Hidden(r) }), all)
	}
	require.NoError(t, Text(r, &text, 0))
	assert.NotContains(t, text.String(), "\x1b")
	read, err := job.Read(page.Bytes())
	require.NoError(t, err)
	assert.Equal(t, r.Written().Calls, read.Calls)
}

// A page brings the colours that it uses, and of each kind of time there is one.
func TestColours(t *testing.T) {
	var page bytes.Buffer
	r := job.Of(jobtest.Late(), nil)[0]
	require.NoError(t, HTML(r, &page))
	for _, used := range regexp.MustCompile(`var\((--[a-z]+)\)`).FindAllStringSubmatch(page.String(), -1) {
		assert.Contains(t, page.String(), used[1]+": #")
	}
	for _, p := range partsOf(&r.Ranks[0]) {
		assert.Contains(t, page.String(), "."+p.Name+" { background: var(")
	}
}

// Pages and JSON are read as what was written; anything else is an error.
func TestReadWhatWasWritten(t *testing.T) {
	r := job.Of(jobtest.Late(), nil)[0]
	for name, writes := range map[string]func(b *bytes.Buffer) error{
		"page": func(b *bytes.Buffer) error { return HTML(r, b) },
		"json": func(b *bytes.Buffer) error { return JSON(r, b) },
	} {
		var text bytes.Buffer
		require.NoError(t, writes(&text))
		read, err := job.Read(text.Bytes())
		require.NoError(t, err, name)
		assert.Equal(t, r.Written(), read, name)
	}
	for text, want := range map[string]string{
		"":              "no report",
		"Job 17":        "no report",
		`{"format": 1}`: "a report of format 1; this version reads 2",
	} {
		_, err := job.Read([]byte(text))
		assert.ErrorContains(t, err, want, text)
	}
}

func FuzzRead(f *testing.F) {
	for _, writes := range []func(r *job.Report, b *bytes.Buffer) error{
		func(r *job.Report, b *bytes.Buffer) error { return HTML(r, b) },
		func(r *job.Report, b *bytes.Buffer) error { return JSON(r, b) },
	} {
		var text bytes.Buffer
		if err := writes(job.Of(jobtest.Late(), nil)[0], &text); err != nil {
			f.Fatal(err)
		}
		f.Add(text.Bytes())
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := job.Read(text)
		if err != nil {
			return
		}
		var out bytes.Buffer
		if err := Text(r, &out, 0); err != nil {
			t.Fatal(err)
		}
		if err := HTML(r, &out); err != nil {
			t.Fatal(err)
		}
		if c, err := job.Compare(r, r); err == nil {
			if err := Comparison(c, &out, 0); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Two runs: in the second rank 2 has no more work than the others.
func TestCompare(t *testing.T) {
	even := jobtest.Late()
	even[1].Ranks[0] = jobtest.RankOf(2, "node2", 30)
	for i := range even {
		for j := range even[i].Ranks {
			even[i].Ranks[j].Rank.Calls.State = api.StateSeconds{api.Outside: 30, api.Collective: 2}
			even[i].Ranks[j].Variables[0].Series[0].Sum = "1"
			even[i].Ranks[j].Rank.Ended = new(jobtest.Began.Add(32 * time.Second))
		}
	}
	c, err := job.Compare(job.Of(jobtest.Late(), nil)[0], job.Of(even, nil)[0])
	require.NoError(t, err)
	assert.Equal(t, job.Change{What: "time observed", Before: 100, After: 32}, c.Observed)
	assert.Equal(t, []job.Change{
		{What: "MPI_Allreduce residual", Before: 51.75, After: 1, CallsBefore: 1000, CallsAfter: 1000},
		{What: job.Outside, Before: 47.25, After: 30},
		{What: "MPI_Send halo", Before: 1, After: 1, CallsBefore: 500, CallsAfter: 500},
	}, c.Changes, "what has changed most comes first")
	var text bytes.Buffer
	require.NoError(t, Comparison(c, &text, 0))
	assert.Contains(t, text.String(), "Before: job 17, solver, 4 ranks: late rank: 47 % useful; 51 % of the time ranks wait")
	assert.Contains(t, text.String(), "After: job 17, solver, 4 ranks: healthy: 94 % useful\n")
	assert.Equal(t, 0, strings.Index(text.String(), "It takes 32.0s, 68.0s less than before (1m40s); the mean rank spends 50.8s less in MPI_Allreduce residual; "+
		"healthy, and was late rank; 94 % useful instead of 47 %\n"), text.String())
	assert.Contains(t, text.String(), "-50.8s   51.8s  1.00s         1.00k  1.00k  MPI_Allreduce residual")
}

// The bar below the verdict is that of the live page: nothing of a job that can't go on looks well.
func TestBarOfTheVerdict(t *testing.T) {
	for state, want := range map[string]string{
		job.Deadlock: `<span class="hung" style="width:100.00%" title="deadlock 100 %"></span></div>`,
		job.Idle:     `<span class="" style="width:100.00%" title="idle 100 %"></span></div>`,
		job.LateRanks: `<span class="useful" style="width:40.00%" title="useful 40 %"></span>` +
			`<span class="late" style="width:50.00%" title="waiting for late ranks 50 %"></span>` +
			`<span class="send" style="width:10.00%" title="communication 10 %"></span></div>`,
	} {
		var page strings.Builder
		require.NoError(t, HTML(&job.Report{Verdict: job.Verdict{State: state,
			Efficiency: &job.Efficiency{Parallel: 0.4, Communication: 0.9}}}, &page))
		assert.Contains(t, page.String(), want)
	}
}
