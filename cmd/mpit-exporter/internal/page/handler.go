package page

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/exporter/job"
	"github.com/mpit-exporter/mpit-exporter/mapping"
)

const (
	// timeout is how long ranks may take to answer.
	timeout = 10 * time.Second
	// usual is the window of who names none.
	usual = 5 * time.Second
	// apartCalls is of how many functions and objects the ranks' times are told.
	apartCalls = 30
)

// Handler serves:
//
//	GET /api/v1/jobs      a JobList
//	GET /api/v1/report    a ReportList; parameters jobid, world and user choose jobs
//
// Parameter window says of how long, such as 5s; 0: of whole jobs. Errors are {"error": "…"}. A request with a viewer
// (api.WithViewer) is told of that user's jobs.
func (l *Live) Handler(turns *api.Turns, log *slog.Logger) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/jobs", l.answer(turns, log, func(now look, _ url.Values) (any, error) {
		return jobsOf(now), nil
	}))
	mux.HandleFunc("GET /api/v1/report", l.answer(turns, log, chosen))
	return mux
}

// Answers to who asks for a job that isn't here.
var (
	errNoJob   = errors.New("no job of this node has these labels")
	errLeftOut = errors.New("this user's ranks are too many for a report on all jobs of the node, and those of this job " +
		"were left out; /api/v1/values has them")
)

// chosen are the reports that are asked for.
func chosen(now look, query url.Values) (any, error) {
	list := ReportList{Reports: []*job.Report{}, LeftOut: now.left}
	for _, r := range now.jobs {
		if is(query, "jobid", r.Job.ID) && is(query, "world", r.Job.World) && is(query, "user", r.Job.User) {
			list.Reports = append(list.Reports, r.WithRanks(apartCalls))
		}
	}
	named := slices.ContainsFunc([]string{"jobid", "world", "user"}, query.Has)
	switch {
	case len(list.Reports) > 0 || !named:
		return list, nil
	case slices.ContainsFunc(now.left, func(l api.LeftOut) bool {
		return is(query, "user", l.User) && (l.JobID == "" || is(query, "jobid", l.JobID))
	}):
		return nil, errLeftOut
	}
	return nil, errNoJob
}

// is says whether a label is the one that is asked for, if any.
func is(query url.Values, name, label string) bool {
	asked := query.Get(name)
	return asked == "" || asked == label
}

// say says something of the jobs.
type say func(now look, query url.Values) (any, error)

// answer writes what is to be said when it is its turn, one answer at a time: they may be large.
func (l *Live) answer(turns *api.Turns, log *slog.Logger, of say) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		ctx, cancel := context.WithTimeout(req.Context(), timeout)
		defer cancel()
		var said any
		status := http.StatusServiceUnavailable
		leave, err := turns.Take(req)
		if err == nil {
			defer leave()
			err = l.turn.Acquire(ctx, 1)
		}
		if err == nil {
			defer l.turn.Release(1)
			said, status, err = l.find(ctx, of, req.URL.Query())
		}
		if err != nil {
			said = map[string]string{"error": err.Error()}
		}
		text, err := json.Marshal(said)
		if err != nil {
			log.Error("encoding an answer failed", "err", err)
			http.Error(w, "encoding the answer failed", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		if _, err := w.Write(append(mapping.EscapeHidden(text), '\n')); err != nil {
			log.Debug("sending an answer failed", "err", err)
		}
	}
}

// find is what is to be said, and the status of the answer.
func (l *Live) find(ctx context.Context, of say, query url.Values) (said any, status int, err error) {
	window, err := windowOf(query)
	if err != nil {
		return nil, http.StatusBadRequest, err
	}
	now, err := l.look(ctx, window)
	if err != nil {
		return nil, http.StatusInternalServerError, err
	}
	said, err = of(now.seenBy(api.Viewer(ctx)), query)
	switch {
	case errors.Is(err, errLeftOut):
		return nil, http.StatusServiceUnavailable, err
	case err != nil:
		return nil, http.StatusNotFound, err
	}
	return said, http.StatusOK, nil
}

func windowOf(query url.Values) (time.Duration, error) {
	text := query.Get("window")
	if text == "" {
		return usual, nil
	}
	window, err := time.ParseDuration(text)
	if err != nil || window < 0 || window > Kept {
		return 0, fmt.Errorf("parameter window: %q is no time from 0s to %s, such as 5s", text, Kept)
	}
	return window, nil
}
