package page

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/exporter/job"
)

// node is an exporter whose job 17 has been held up by rank 1 all the time, and whose job 18 is fine. Job 16 has
// aborted.
type node struct {
	began time.Time
	asked int
	err   error
}

func (n *node) window(context.Context) (api.ValueList, error) {
	n.asked++
	passed := time.Since(n.began).Seconds()
	list := api.ValueList{Time: time.Now()}
	add := func(job string, rank int, useful float64, end string) {
		r := api.RankStatus{JobID: job, World: "0", User: "ada", Rank: rank, State: "up", Host: "node1", WorldSize: 2,
			Started: &n.began, Calls: &api.Calls{State: api.StateSeconds{
				api.Outside: passed * useful, api.Collective: passed * (1 - useful)}}}
		if end != "" {
			r.State, r.EndReason, r.Ended = "ended", end, &n.began
		}
		list.Ranks = append(list.Ranks, api.RankValues{Rank: r})
	}
	add("16", 0, 0.9, "abort")
	add("18", 0, 0.9, "")
	add("18", 1, 0.9, "")
	add("17", 0, 0.1, "")
	add("17", 1, 1, "")
	return list, n.err
}

func get(t *testing.T, h http.Handler, path string, answer any) int {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	if answer != nil {
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), answer))
	}
	return w.Code
}

func TestJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &node{began: time.Now().Add(-time.Hour)}
		h := NewLive(n.window, nil).Handler(api.NewTurns(), slog.New(slog.DiscardHandler))
		var list JobList
		require.Equal(t, http.StatusOK, get(t, h, "/api/v1/jobs", &list))
		var order []string
		for _, j := range list.Jobs {
			order = append(order, j.Job.ID+" "+j.Verdict.State)
		}
		assert.Equal(t, []string{"17 " + job.LateRanks, "16 " + job.Crashed, "18 " + job.Healthy}, order,
			"those that need attention first")
		assert.Equal(t, map[string]int{"up": 2}, list.Jobs[0].States)
		assert.True(t, list.Jobs[0].Whole, "nothing is remembered yet")
		assert.InDelta(t, 3600, list.Jobs[0].Seconds, 1e-6)

		for _, step := range []struct {
			wait   time.Duration
			window string
			is     float64 // seconds of the answer
		}{
			{2 * time.Second, "", 3602}, // whole: less than 5 s is remembered
			{2 * time.Second, "", 3604},
			{2 * time.Second, "", 6},
			{2 * time.Second, "", 8},
			{2 * time.Second, "1s", 10}, // ten seconds, now that they are remembered
			{0, "10s", 10},
			{0, "0", 3610},
			{time.Hour, "5s", 7210}, // everything has been forgotten
		} {
			time.Sleep(step.wait)
			path := "/api/v1/jobs"
			if step.window != "" {
				path += "?window=" + step.window
			}
			require.Equal(t, http.StatusOK, get(t, h, path, &list), step)
			assert.InDelta(t, step.is, list.Jobs[0].Seconds, 1e-6, step)
		}
		synctest.Wait()
	})
}

// Many viewers cost no more than one.
func TestMomentsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &node{began: time.Now().Add(-time.Hour)}
		l := NewLive(n.window, nil)
		for range 100 {
			require.NoError(t, l.turn.Acquire(t.Context(), 1))
			_, err := l.look(t.Context(), usual)
			l.turn.Release(1)
			require.NoError(t, err)
			time.Sleep(100 * time.Millisecond)
		}
		assert.LessOrEqual(t, n.asked, int(Kept/apart)+1, "scrapes wait while values are copied")
		time.Sleep(3 * Kept)
		synctest.Wait()
		require.NoError(t, l.turn.Acquire(t.Context(), 1))
		defer l.turn.Release(1)
		assert.Zero(t, l.past.Now(), "there has been no request for long")
	})
}

func TestReport(t *testing.T) {
	n := &node{began: time.Now().Add(-time.Hour)}
	h := NewLive(n.window, nil).Handler(api.NewTurns(), slog.New(slog.DiscardHandler))
	var list struct{ Reports []job.Report }
	require.Equal(t, http.StatusOK, get(t, h, "/api/v1/report", &list))
	assert.Len(t, list.Reports, 3)
	require.Equal(t, http.StatusOK, get(t, h, "/api/v1/report?jobid=17&world=0&user=ada", &list))
	require.Len(t, list.Reports, 1)
	assert.Equal(t, 1, list.Reports[0].Verdict.Late.Rank)
}

func TestErrors(t *testing.T) {
	n := &node{began: time.Now()}
	h := NewLive(n.window, nil).Handler(api.NewTurns(), slog.New(slog.DiscardHandler))
	for path, status := range map[string]int{
		"/api/v1/jobs?window=5":       http.StatusBadRequest,
		"/api/v1/jobs?window=-5s":     http.StatusBadRequest,
		"/api/v1/jobs?window=1h":      http.StatusBadRequest,
		"/api/v1/report?jobid=nobody": http.StatusNotFound,
	} {
		var answer struct{ Error string }
		assert.Equal(t, status, get(t, h, path, &answer), path)
		assert.NotEmpty(t, answer.Error, path)
	}
	n.err = errors.New("no")
	h = NewLive(n.window, nil).Handler(api.NewTurns(), slog.New(slog.DiscardHandler)) // which remembers nothing
	assert.Equal(t, http.StatusInternalServerError, get(t, h, "/api/v1/jobs", nil))
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	l := NewLive(n.window, nil)
	require.NoError(t, l.turn.Acquire(t.Context(), 1))
	answer := httptest.NewRecorder()
	l.Handler(api.NewTurns(), slog.New(slog.DiscardHandler)).ServeHTTP(answer,
		httptest.NewRequestWithContext(canceled, http.MethodGet, "/api/v1/jobs", http.NoBody))
	assert.Equal(t, http.StatusServiceUnavailable, answer.Code)
}

// full is as much as a window may have (exporter.Exporter.Window): the most different names, of users who share it.
func full(series int) func(context.Context) (api.ValueList, error) {
	at := time.Now()
	return func(context.Context) (api.ValueList, error) {
		at = at.Add(apart)
		list := api.ValueList{Time: at, LeftOut: []api.LeftOut{{User: "eve", JobID: "99", Ranks: 3}}}
		const ranks = 100
		for i := range ranks {
			r := api.RankValues{Rank: api.RankStatus{JobID: "17", User: "eve", Rank: i, State: "up", WorldSize: ranks,
				Calls: &api.Calls{State: api.StateSeconds{float64(at.Unix() % 1000)}}}}
			v := api.VariableValues{Metric: "mpit_call_time_seconds", Kind: "histogram", Distribution: true}
			for s := range series / ranks {
				v.Series = append(v.Series, api.SeriesValue{Labels: map[string]string{"function": "MPI_Send",
					"comm": fmt.Sprintf("communicator %d of rank %d", s, i)}, Count: "5", Sum: "9"})
			}
			r.Variables = []api.VariableValues{v}
			list.Ranks = append(list.Ranks, r)
		}
		return list, nil
	}
}

// Whose ranks had no room is said, also to who asks for them.
func TestLeftOut(t *testing.T) {
	h := NewLive(full(1000), nil).Handler(api.NewTurns(), slog.New(slog.DiscardHandler))
	var jobs JobList
	require.Equal(t, http.StatusOK, get(t, h, "/api/v1/jobs", &jobs))
	left := []api.LeftOut{{User: "eve", JobID: "99", Ranks: 3}}
	assert.Equal(t, left, jobs.LeftOut)
	var list struct {
		LeftOut []api.LeftOut `json:"left_out"`
	}
	require.Equal(t, http.StatusOK, get(t, h, "/api/v1/report?jobid=17", &list))
	assert.Equal(t, left, list.LeftOut)
	var answer struct{ Error string }
	assert.Equal(t, http.StatusServiceUnavailable, get(t, h, "/api/v1/report?jobid=99", &answer))
	assert.Contains(t, answer.Error, "left out")
	assert.Equal(t, http.StatusNotFound, get(t, h, "/api/v1/report?jobid=98", &answer))
}

// A viewer's answers are about that user's jobs, as if there were no others.
func TestLiveViewer(t *testing.T) {
	at := time.Now()
	window := func(context.Context) (api.ValueList, error) {
		list := api.ValueList{Time: at, LeftOut: []api.LeftOut{{UID: 2, User: "eve", JobID: "99", Ranks: 3}}}
		for i, uid := range []uint32{1, 2, 1, 2} { // job 9 is claimed by two users of one name
			list.Ranks = append(list.Ranks, api.RankValues{Rank: api.RankStatus{JobID: []string{"7", "8", "9", "9"}[i],
				UID: uid, User: []string{"ada", "eve", "twin", "twin"}[i], Rank: i, State: "up",
				Calls: &api.Calls{State: api.StateSeconds{1}}}})
		}
		return list, nil
	}
	h := NewLive(window, nil).Handler(api.NewTurns(), slog.New(slog.DiscardHandler))
	for _, test := range []struct {
		uid    uint32
		jobs   []string
		report map[string]int // status of each job's
		left   int
	}{
		{1, []string{"7"}, map[string]int{"": 200, "7": 200, "8": 404, "9": 404, "99": 404, "98": 404}, 0},
		{2, []string{"8"}, map[string]int{"": 200, "7": 404, "8": 200, "9": 404, "99": 503, "98": 404}, 1},
		{3, nil, map[string]int{"": 200, "7": 404, "8": 404, "99": 404}, 0},
	} {
		as := func(path string, answer any) int {
			req := httptest.NewRequestWithContext(api.WithViewer(t.Context(), test.uid), http.MethodGet, path, nil)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, req)
			require.NoError(t, json.Unmarshal(w.Body.Bytes(), answer))
			return w.Code
		}
		var list JobList
		require.Equal(t, http.StatusOK, as("/api/v1/jobs", &list))
		var ids []string
		for _, j := range list.Jobs {
			ids = append(ids, j.Job.ID)
		}
		assert.Equal(t, test.jobs, ids)
		assert.Len(t, list.LeftOut, test.left)
		for id, status := range test.report {
			path := "/api/v1/report"
			if id != "" {
				path += "?jobid=" + id
			}
			var answer struct{ Reports []*job.Report }
			assert.Equal(t, status, as(path, &answer), path)
			for _, r := range answer.Reports {
				assert.Contains(t, test.jobs, r.Job.ID)
			}
		}
	}
}
