package report

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
)

var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// rankOf is a rank after 100 s: so many of them useful, 1 in sends, the others in an allreduce.
func rankOf(rank int, node string, useful float64) api.RankValues {
	ended := began.Add(100 * time.Second)
	inside := 100 - useful
	series := func(function, comm string, calls, seconds float64) api.SeriesValue {
		return api.SeriesValue{Labels: map[string]string{"function": function, "comm": comm},
			Count: strconv.FormatFloat(calls, 'f', -1, 64), Sum: strconv.FormatFloat(seconds, 'f', -1, 64)}
	}
	return api.RankValues{
		Rank: api.RankStatus{JobID: "17", World: "0", User: "ada", Rank: rank, State: "ended", EndReason: "finalize",
			Host: node, Executable: "/home/ada/solver", Library: "openmpi", LibraryVersion: "5.0.7", WorldSize: 4,
			JobName: "heat <3>", Started: &began, Ended: &ended,
			Calls: &api.Calls{Inside: inside, Observed: 100, Kind: api.KindSeconds{Send: 1, Collective: inside - 1}}},
		Variables: []api.VariableValues{
			{Metric: "mpit_call_time_seconds", Kind: "histogram", Distribution: true, Series: []api.SeriesValue{
				series("MPI_Allreduce", "residual", 1000, inside-1), series("MPI_Send", "halo", 500, 1)}},
			{Metric: "mpit_call_bytes_total", Kind: "counter", Series: []api.SeriesValue{{Labels: map[string]string{
				"function": "MPI_Send", "comm": "halo", "direction": "sent"}, Value: "1024000"}}},
			{Metric: "mpit_call_size_bytes", Kind: "histogram", Series: []api.SeriesValue{{Labels: map[string]string{
				"function": "MPI_Send", "comm": "halo"}, Buckets: map[string]string{"1024": "400", "4096": "99",
				"+Inf": "1"}}}},
			{Metric: "mpit_call_peer_bytes_total", Kind: "counter", Series: []api.SeriesValue{{Labels: map[string]string{
				"peer": strconv.Itoa((rank + 1) % 4)}, Value: "1024000"}, {Labels: map[string]string{"peer": "9"}, Value: "0"}}},
			{Metric: "mpit_call_peer_messages_total", Kind: "counter", Series: []api.SeriesValue{{Labels: map[string]string{
				"peer": strconv.Itoa((rank + 1) % 4)}, Value: "500"}}},
			{Metric: "mpit_unexpected_recvq_length", Class: "LEVEL", Kind: "gauge", Unit: "{message}",
				Series: []api.SeriesValue{{Value: strconv.Itoa(10 * rank)}}},
			{Metric: "mpit_posted_recvq_length", Class: "LEVEL", Kind: "gauge", Series: []api.SeriesValue{{Value: "0"}}},
			{Metric: "mpit_odd", Class: "LEVEL", Kind: "gauge", Series: []api.SeriesValue{{Value: "NaN"}}},
		},
	}
}

// late is a job on two nodes: rank 2 computes most of the time, and the others wait for it.
func late() []api.ValueList {
	at := began.Add(101 * time.Second)
	return []api.ValueList{
		{Time: at, Ranks: []api.RankValues{rankOf(0, "node1", 30), rankOf(1, "node1", 31)}},
		{Time: at.Add(time.Second), Ranks: []api.RankValues{rankOf(2, "node2", 98), rankOf(3, "node2", 30)}},
	}
}

func TestWhatIsKnownOfAJob(t *testing.T) {
	reports := Of(late(), nil)
	require.Len(t, reports, 1)
	r := reports[0]
	ended := began.Add(100 * time.Second)
	assert.Equal(t, Job{ID: "17", World: "0", User: "ada", Name: "heat <3>", Program: "/home/ada/solver",
		Library: "openmpi 5.0.7", WorldSize: 4, Observed: 4, Nodes: 2, Started: &began, Ended: &ended}, r.Job)
	assert.Equal(t, 100.0, r.Lasted())
	assert.Equal(t, []Call{
		{Function: "MPI_Allreduce", Kind: "comm", Object: "residual", Calls: 4000, Seconds: 207, Share: 207. / 400,
			Most: 0, MostSeconds: 69, ByRank: []float64{1, 68, 69, 69}},
		{Function: "MPI_Send", Kind: "comm", Object: "halo", Calls: 2000, Seconds: 4, Share: 0.01, Most: 0,
			MostSeconds: 1, Bytes: map[string]float64{"sent": 4096000}, ByRank: []float64{1, 1, 1, 1}},
	}, r.Calls)
	assert.Equal(t, []Sizes{{Function: "MPI_Send", Kind: "comm", Object: "halo", Calls: 2000, Buckets: []Bucket{
		{1024, 1600}, {4096, 396}, {LargestSize, 4}}}}, r.Sizes)
	assert.Equal(t, []float64{1024, 4096, LargestSize},
		[]float64{r.Sizes[0].AtMost(0.5), r.Sizes[0].AtMost(0.9), r.Sizes[0].AtMost(1)})
	assert.Equal(t, []Messages{{0, "1", 500, 1024000}, {1, "2", 500, 1024000}, {2, "3", 500, 1024000},
		{3, "0", 500, 1024000}}, r.Messages)
	var ranks []int
	for i := range r.Ranks {
		ranks = append(ranks, r.Ranks[i].Rank)
	}
	assert.Equal(t, []int{2, 1, 0, 3}, ranks, "from late to early")
	assert.InDelta(t, 0.98, r.Ranks[0].Useful(), 1e-9)
	assert.Equal(t, []Level{{Metric: "mpit_unexpected_recvq_length", Unit: "{message}", Most: 30, Rank: 3}},
		r.Levels, "what was never there says nothing")
}

// A job that runs has no end, even if some of its ranks have ended.
func TestAJobThatRuns(t *testing.T) {
	lists := late()
	status := &lists[0].Ranks[1].Rank
	status.Ended, status.State, status.EndReason = nil, "up", ""
	status.Calls.Running, status.Calls.Long = 20, &api.LongCall{Function: "MPI_Barrier"}
	r := Of(lists, nil)[0]
	assert.Nil(t, r.Job.Ended)
	assert.Equal(t, 102.0, r.Lasted())
	var text bytes.Buffer
	require.NoError(t, r.Text(&text))
	assert.Contains(t, text.String(), "runs for 1m42s")
	assert.Contains(t, text.String(), "MPI_Barrier", "a call that goes on is among the functions")
}

func TestText(t *testing.T) {
	var text bytes.Buffer
	require.NoError(t, Of(late(), nil)[0].Text(&text))
	for _, line := range []string{
		"Job 17 (heat <3>): solver",
		"user ada, world 0, 4 of 4 ranks, 2 nodes, openmpi 5.0.7, began ",
		"ended after 1m40s",
		"52 %   3m27s  4.00k  51.8ms  MPI_Allreduce  residual  0: 69.0s      -",
		"1 %    4.00s  2.00k  2.00ms  MPI_Send       halo      0: 1.00s      2.00 KiB sent",
		"2     node2  finalize  98 %    1 %   0 %   1 %         0 %",
		"30    3        mpit_unexpected_recvq_length",
		"2.00k  1.00 KiB      4.00 KiB    more       MPI_Send  halo",
		"1000 KiB  500       2.00 KiB  3     0",
	} {
		assert.Contains(t, text.String(), line)
	}
}

// Of a thousand ranks those are shown that the others wait for, and a few that wait.
func TestManyRanks(t *testing.T) {
	var list api.ValueList
	for i := range 1000 {
		list.Ranks = append(list.Ranks, rankOf(i, "node1", 50+float64(i)/100))
	}
	var text bytes.Buffer
	require.NoError(t, Of([]api.ValueList{list}, nil)[0].Text(&text))
	assert.Regexp(t, `(?m)^999 .*\n998 `, text.String())
	assert.Contains(t, text.String(), "… 975 more")
	assert.Regexp(t, `(?m)^1 .*\n0 `, text.String())
}

// Without a call profile there are neither calls nor shares.
func TestWithoutACallProfile(t *testing.T) {
	list := late()[0]
	for i := range list.Ranks {
		list.Ranks[i].Rank.Calls = nil
		list.Ranks[i].Variables = nil
	}
	r := Of([]api.ValueList{list}, nil)[0]
	assert.Empty(t, r.Calls)
	var text bytes.Buffer
	require.NoError(t, r.Text(&text))
	assert.Contains(t, text.String(), "0     node1  finalize  -", "which ranks there were, and how they ended")
	_, err := Compare(r, r)
	assert.ErrorContains(t, err, "without exec --calls")
}

// What ranks say of themselves is text in a page and in a terminal.
func TestNothingOfARankIsObeyed(t *testing.T) {
	list := late()[0]
	list.Ranks[0].Rank.JobName = "<script>\x1b[2J</script>"
	list.Ranks[0].Variables[0].Series[0].Labels["comm"] = `</script><b onload="x">`
	r := Of([]api.ValueList{list}, nil)[0]
	var page, text bytes.Buffer
	require.NoError(t, r.HTML(&page))
	assert.NotContains(t, page.String(), "<b onload")
	assert.Contains(t, page.String(), `title="1 to 2: 1000 KiB, 500 messages"><span class="send" style="opacity:1.00"`)
	assert.NotContains(t, page.String(), "<script>\x1b")
	require.NoError(t, r.Text(&text))
	assert.NotContains(t, text.String(), "\x1b")
	read, err := Read(page.Bytes())
	require.NoError(t, err)
	assert.Equal(t, r.WithRanks(0).Calls, read.Calls)
}

// Pages and JSON are read as what was written; anything else is an error.
func TestReadWhatWasWritten(t *testing.T) {
	r := Of(late(), nil)[0]
	for name, writes := range map[string]func(b *bytes.Buffer) error{
		"page": func(b *bytes.Buffer) error { return r.HTML(b) },
		"json": func(b *bytes.Buffer) error { return r.JSON(b) },
	} {
		var text bytes.Buffer
		require.NoError(t, writes(&text))
		read, err := Read(text.Bytes())
		require.NoError(t, err, name)
		assert.Equal(t, r.WithRanks(0), read, name)
	}
	for text, want := range map[string]string{
		"":              "no report",
		"Job 17":        "no report",
		`{"format": 2}`: "a report of format 2; this version reads 1",
	} {
		_, err := Read([]byte(text))
		assert.ErrorContains(t, err, want, text)
	}
}

func FuzzRead(f *testing.F) {
	for _, writes := range []func(r *Report, b *bytes.Buffer) error{
		func(r *Report, b *bytes.Buffer) error { return r.HTML(b) },
		func(r *Report, b *bytes.Buffer) error { return r.JSON(b) },
	} {
		var text bytes.Buffer
		if err := writes(Of(late(), nil)[0], &text); err != nil {
			f.Fatal(err)
		}
		f.Add(text.Bytes())
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := Read(text)
		if err != nil {
			return
		}
		var out bytes.Buffer
		if err := r.Text(&out); err != nil {
			t.Fatal(err)
		}
		if err := r.HTML(&out); err != nil {
			t.Fatal(err)
		}
		if c, err := Compare(r, r); err == nil {
			if err := c.Text(&out); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Two runs: in the second rank 2 has no more work than the others.
func TestCompare(t *testing.T) {
	even := late()
	even[1].Ranks[0] = rankOf(2, "node2", 30)
	for i := range even {
		for j := range even[i].Ranks {
			even[i].Ranks[j].Rank.Calls.Observed = 32
			even[i].Ranks[j].Rank.Calls.Inside = 2
			even[i].Ranks[j].Variables[0].Series[0].Sum = "1"
		}
	}
	c, err := Compare(Of(late(), nil)[0], Of(even, nil)[0])
	require.NoError(t, err)
	assert.Equal(t, Change{What: "time observed", Before: 100, After: 32}, c.Observed)
	assert.Equal(t, []Change{
		{What: "MPI_Allreduce residual", Before: 51.75, After: 1, CallsBefore: 1000, CallsAfter: 1000},
		{What: outside, Before: 47.25, After: 30},
		{What: "MPI_Send halo", Before: 1, After: 1, CallsBefore: 500, CallsAfter: 500},
	}, c.Changes, "what has changed most comes first")
	var text bytes.Buffer
	require.NoError(t, c.Text(&text))
	assert.Contains(t, text.String(), "The mean rank takes 32.0s; it took 1m40s: -68.0s")
	assert.Contains(t, text.String(), "-50.8s  51.8s   1.00s  1.00k         1.00k  MPI_Allreduce residual")
}

// Two nodes write to one file, in any order; each leaves a report of all that is known then.
func TestFileOfSeveralNodes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.json")
	for i, answer := range late() {
		f, err := NewFile(path, fmt.Sprintf("node%d", i), 0o600)
		require.NoError(t, err)
		require.NoError(t, f.Write(t.Context(), answer))
		r, err := Load(t.Context(), path)
		require.NoError(t, err)
		assert.Equal(t, 2*(i+1), r.Job.Observed)
	}
	whole, err := Load(t.Context(), path)
	require.NoError(t, err)
	assert.Equal(t, Of(late(), nil)[0].WithRanks(0), whole)
	again, err := Load(t.Context(), path+".nodes")
	require.NoError(t, err)
	assert.Equal(t, whole, again, "the directory tells the same")

	// A part of another job, in the same place, is another report.
	other := late()[0]
	for i := range other.Ranks {
		other.Ranks[i].Rank.JobID = "18"
	}
	f, err := NewFile(path, "node3", 0o600)
	require.NoError(t, err)
	require.NoError(t, f.Write(t.Context(), other))
	r, err := Load(t.Context(), path)
	require.NoError(t, err)
	assert.Equal(t, "18", r.Job.ID)
	assert.Equal(t, 2, r.Job.Observed)
}

// Others may write to a shared directory: what isn't a plain file of one's own is no part, and nothing waits for it.
func TestPartsOfOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.json")
	f, err := NewFile(path, "node1", 0o640)
	require.NoError(t, err)
	require.NoError(t, f.Write(t.Context(), late()[0]))
	require.NoError(t, unix.Mkfifo(filepath.Join(f.Dir(), "pipe.json"), 0o600))
	require.NoError(t, os.Symlink(filepath.Join(f.Dir(), "node1.0.json"), filepath.Join(f.Dir(), "link.json")))
	require.NoError(t, os.WriteFile(filepath.Join(f.Dir(), "half.json"), []byte("{"), 0o600))
	require.NoError(t, f.Write(t.Context(), late()[0]))
	r, err := Load(t.Context(), path)
	require.NoError(t, err)
	assert.Equal(t, 2, r.Job.Observed)
	about, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o640), about.Mode().Perm())
}

// What can't be written is known before the job begins.
func TestFileThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	for path, want := range map[string]string{
		filepath.Join(dir, "none", "report.txt"): "no such file or directory",
		dir + "/.txt":                            "",
	} {
		f, err := NewFile(path, "node1", 0o600)
		require.NoError(t, err)
		err = f.Try()
		if want == "" {
			assert.NoError(t, err)
		} else {
			assert.ErrorContains(t, err, want)
		}
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir, "a.html"), 0o700))
	f, err := NewFile(filepath.Join(dir, "a.html"), "node1", 0o600)
	require.NoError(t, err)
	assert.ErrorContains(t, f.Try(), "no regular file")
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, files, 1, "nothing is left of the trial")
}

// A job on one node leaves its report and nothing else.
func TestFileOfOneNode(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.html")
	f, err := NewFile(path, "node1", 0o600)
	require.NoError(t, err)
	all := late()
	all[0].Ranks = append(all[0].Ranks, all[1].Ranks...)
	require.NoError(t, f.Write(t.Context(), api.ValueList{}), "nothing is known yet")
	require.NoError(t, f.Write(t.Context(), all[0]))
	files, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	assert.Len(t, files, 1)

	_, err = NewFile("report.pdf", "node1", 0o600)
	assert.ErrorContains(t, err, "ends in .html, .json or .txt")
	_, err = Load(t.Context(), t.TempDir())
	assert.ErrorContains(t, err, "no part of a report of yours")
}

// What Prometheus has of a job that is over, on two nodes: classic histograms, one native, and a rank that was killed.
func TestFromPrometheus(t *testing.T) {
	const rank = `"jobid":"17","world":"0","user":"ada","job":"mpi",`
	sample := func(labels, value string) string {
		return `{"metric":{` + rank + labels + `},"value":[0,"` + value + `"]}`
	}
	of0, of1 := `"rank":"0","instance":"node1:10093","__name__":`, `"rank":"1","instance":"node2:10093","__name__":`
	lasting := []string{
		sample(of0+`"mpit_process_info","host":"node1","executable":"/home/ada/solver","library":"mpich",`+
			`"library_version":"4.2","world_size":"2","jobname":"heat"`, "1"),
		sample(of1+`"mpit_process_info","host":"node2","executable":"/home/ada/solver","library":"mpich",`+
			`"library_version":"4.2","world_size":"2","jobname":"heat"`, "1"),
		sample(of0+`"mpit_rank_start_time_seconds"`, "1767323045.5"),
		sample(of0+`"mpit_rank_end_info","reason":"finalize"`, "1"),
		sample(of0+`"mpit_rank_up"`, "0"),
		sample(of0+`"mpit_call_inside_seconds_total"`, "3"),
		sample(of0+`"mpit_call_observed_seconds_total"`, "10"),
		sample(of0+`"mpit_call_kind_seconds_total","kind":"wait"`, "2"),
		sample(of0+`"mpit_call_kind_seconds_total","kind":"new"`, "2"),
		sample(of0+`"mpit_call_time_seconds_sum","function":"MPI_Recv","comm":"halo"`, "2"),
		sample(of0+`"mpit_call_time_seconds_count","function":"MPI_Recv","comm":"halo"`, "50"),
		sample(of0+`"mpit_call_bytes_total","function":"MPI_Recv","comm":"halo","direction":"received"`, "5000"),
		sample(of1+`"mpit_unexpected_recvq_length"`, "7"),
		sample(of0+`"mpit_call_size_bytes_bucket","function":"MPI_Send","comm":"halo","le":"16"`, "5"),
		sample(of0+`"mpit_call_size_bytes_bucket","function":"MPI_Send","comm":"halo","le":"+Inf"`, "7"),
		sample(of0+`"mpit_call_size_bytes_bucket","function":"MPI_Send","comm":"halo","le":"4"`, "5"),
		`{"metric":{` + rank + of1 + `"mpit_call_size_bytes","function":"MPI_Send","comm":"halo"},` +
			`"histogram":[0,{"count":"3","sum":"30","buckets":[[0,"8","16","3"]]}]}`,
		sample(of0+`"mpit_call_peer_bytes_total","peer":"1"`, "100"),
		sample(of0+`"mpit_call_peer_messages_total","peer":"1"`, "10"),
		`{"metric":{` + rank + of1 + `"mpit_call_time_seconds","function":"MPI_Recv","comm":"halo"},` +
			`"histogram":[0,{"count":"10","sum":"1"}]}`,
	}
	current := []string{
		sample(of1+`"mpit_rank_up"`, "1"),
		sample(of1+`"mpit_call_running_seconds"`, "33"),
		sample(of1+`"mpit_call_running_info","function":"MPI_Recv","comm":"halo","module":"/home/ada/solver",`+
			`"offset":"0x10"`, "1"),
	}
	var queries []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		query := req.FormValue("query")
		queries = append(queries, query)
		of := current
		if strings.HasPrefix(query, "last_over_time") {
			of = lasting
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":"vector","result":[%s]}}`, strings.Join(of, ","))
	}))
	defer server.Close()
	at := began.Add(time.Hour)
	answers, err := FromPrometheus(t.Context(), server.URL, Which{JobID: "17", User: `a"b`}, at, time.Hour)
	require.NoError(t, err)
	for _, query := range queries {
		assert.Contains(t, query, `jobid="17", user="a\"b", rank!=""`)
	}
	reports := Of(answers, nil)
	require.Len(t, reports, 1)
	r := reports[0]
	assert.Equal(t, "mpich 4.2", r.Job.Library)
	assert.Equal(t, 2, r.Job.Nodes)
	assert.Nil(t, r.Job.Ended, "rank 1 is there")
	assert.Equal(t, []Call{{Function: "MPI_Recv", Kind: "comm", Object: "halo", Calls: 60, Seconds: 36, Share: 3.6,
		Most: 1, MostSeconds: 34, Bytes: map[string]float64{"received": 5000}}}, r.WithRanks(0).Calls)
	assert.Equal(t, []Sizes{{Function: "MPI_Send", Kind: "comm", Object: "halo", Calls: 10,
		Buckets: []Bucket{{4, 5}, {16, 3}, {LargestSize, 2}}}}, r.Sizes)
	assert.Equal(t, []Messages{{0, "1", 10, 100}}, r.Messages)
	assert.Equal(t, "mpit_unexpected_recvq_length", r.Levels[0].Metric)
	for i := range r.Ranks {
		if r.Ranks[i].Rank == 1 {
			assert.Equal(t, "up", r.Ranks[i].State)
			assert.Equal(t, 33.0, r.Ranks[i].Running)
			assert.Equal(t, &api.LongCall{Function: "MPI_Recv", Kind: "comm", Object: "halo",
				Module: "/home/ada/solver", Offset: 16}, r.Ranks[i].Long)
		} else {
			assert.Equal(t, "ended", r.Ranks[i].State)
			assert.InDelta(t, 0.8, r.Ranks[i].Busy(), 1e-9)
		}
	}
	server.Close()
	_, err = FromPrometheus(t.Context(), server.URL, Which{}, at, time.Hour)
	assert.ErrorContains(t, err, "asking Prometheus at "+server.URL)
}
