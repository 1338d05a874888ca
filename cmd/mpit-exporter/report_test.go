package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/exporter/job"
	"github.com/mpit-exporter/mpit-exporter/exporter/job/jobtest"
)

// Where one job is meant and there are several, each has a line with its verdict; the one that hangs comes first.
func TestReportOfOneOfManyJobs(t *testing.T) {
	list := api.ValueList{Time: jobtest.Began.Add(time.Hour)}
	for _, job := range []string{"17", "18", "19"} {
		for rank := range 2 {
			of := jobtest.RankOf(rank, "node1", 95)
			of.Rank.JobID, of.Rank.WorldSize = job, 2
			if job != "19" {
				of.Rank.State, of.Rank.EndReason, of.Rank.Ended = "up", "", nil
			}
			if job == "18" {
				of.Rank.Calls.Running, of.Rank.Calls.Long = 480, &api.LongCall{Function: "MPI_Barrier", Kind: "comm",
					Object: "halo\x1b"}
				of.Rank.Calls.State = api.StateSeconds{api.Outside: 20, api.Collective: 480}
			}
			list.Ranks = append(list.Ranks, of)
		}
	}
	jobs := manyJobs(job.Of([]api.ValueList{list}, nil))
	var out strings.Builder
	assert.Equal(t, cli.Failure, cli.Report(&out, jobs))
	assert.Equal(t, `mpit-exporter: report: there are 3 MPI_COMM_WORLDs; choose one with --jobid, --user or --world:
  18 (--user=ada, --world=0, solver, runs): waiting: all 2 ranks have been in MPI_Barrier on halo for 8m0s
  17 (--user=ada, --world=0, solver, runs): healthy: 95 % useful
  19 (--user=ada, --world=0, solver, ended `+jobs[2].Job.Ended.Local().Format(time.DateTime)+`): healthy: 95 % useful
`, out.String())
}

// A job may have several worlds; not all are listed of very many.
func TestReportOfOneOfManyWorlds(t *testing.T) {
	var worlds manyJobs
	for n := range maxLines + 3 {
		worlds = append(worlds, &job.Report{Job: job.Job{ID: "17", World: fmt.Sprint(n), User: "ada"}})
	}
	lines := worlds.Lines()
	assert.Contains(t, lines[1], "17 (--user=ada, --world=0, ")
	assert.Len(t, lines, 1+maxLines+1)
	assert.Equal(t, "  and 3 more", lines[len(lines)-1])
	assert.Len(t, worlds[:maxLines].Lines(), 1+maxLines)
}

// An answer that doesn't end holds up no signal.
func TestReportInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		cancel()
		for err := error(nil); err == nil; {
			_, err = io.WriteString(w, "          ")
		}
	}))
	defer server.Close()
	for _, where := range []string{"--prometheus=", "--url="} {
		var out strings.Builder
		err := run(ctx, []string{"report", where + server.URL}, cli.Stdio{In: strings.NewReader(""), Out: &out, Err: &out})
		assert.EqualError(t, err, "report: interrupted", where)
		assert.Empty(t, out.String())
	}
}

// Another user's ranks claim the caller's job, and fill the answer: the caller's is shown all the same, the other one
// is named, and can be chosen.
func TestAnothersJobOfTheSameID(t *testing.T) {
	rank := func(number int, user string, uid int, program string) api.RankValues {
		of := jobtest.RankOf(number, "node1", 95)
		of.Rank.User, of.Rank.UID, of.Rank.Executable, of.Rank.WorldSize = user, uint32(uid), program, 1
		return of
	}
	own, eve := rank(0, "ada", os.Getuid(), "/home/ada/solver"), rank(0, "eve", os.Getuid()+1, "/home/eve/fake")
	for _, test := range []struct {
		name  string
		all   []api.RankValues
		flags []string
		want  string
		told  string
	}{
		{"both in the answer", []api.RankValues{eve, own}, nil, "Job 17 (heat <3>): solver\n",
			"1 MPI_COMM_WORLD of user eve left out"},
		{"hers is meant", []api.RankValues{eve, own}, []string{"--user=eve"}, "Job 17 (heat <3>): fake\n", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				list := api.ValueList{Time: jobtest.Began.Add(time.Hour), Ranks: test.all}
				if req.FormValue("user") == "eve" {
					list.Ranks = []api.RankValues{eve}
				}
				assert.NoError(t, json.NewEncoder(w).Encode(list))
			}))
			defer server.Close()
			var out, told strings.Builder
			require.NoError(t, run(t.Context(), append([]string{"report", "--jobid=17", "--url=" + server.URL}, test.flags...),
				cli.Stdio{In: strings.NewReader(""), Out: &out, Err: &told}))
			assert.Contains(t, out.String(), test.want)
			assert.NotContains(t, out.String(), "Left out")
			if assert.Contains(t, told.String(), test.told) && test.told == "" {
				assert.Empty(t, told.String())
			}
			out.Reset()
			require.NoError(t, run(t.Context(), append([]string{"list", "--url=" + server.URL}, test.flags...),
				cli.Stdio{In: strings.NewReader(""), Out: &out, Err: &told}))
			first, _, _ := strings.Cut(out.String(), "\n")
			assert.Contains(t, first, strings.TrimSuffix(test.want[strings.Index(test.want, ": ")+2:], "\n"))
		})
	}
}
