package live

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/klauspost/compress/gzhttp"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/report"
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
// Parameter window says of how long, such as 5s; 0: of whole jobs. Errors are {"error": "…"}.
func (l *Live) Handler(log *slog.Logger) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/jobs", l.answer(log, func(at time.Time, all []*report.Report, _ url.Values) (any, error) {
		return jobsOf(at, all), nil
	}))
	mux.HandleFunc("GET /api/v1/report", l.answer(log, chosen))
	return gzhttp.GzipHandler(mux)
}

// errNoJob is the answer to who asks for a job that isn't here.
var errNoJob = errors.New("no job of this node has these labels")

// chosen are the reports that are asked for.
func chosen(_ time.Time, all []*report.Report, query url.Values) (any, error) {
	list := ReportList{Reports: []*report.Report{}}
	for _, r := range all {
		if is(query, "jobid", r.Job.ID) && is(query, "world", r.Job.World) && is(query, "user", r.Job.User) {
			list.Reports = append(list.Reports, r.WithRanks(apartCalls))
		}
	}
	named := slices.ContainsFunc([]string{"jobid", "world", "user"}, query.Has)
	if len(list.Reports) == 0 && named {
		return nil, errNoJob
	}
	return list, nil
}

// is says whether a label is the one that is asked for, if any.
func is(query url.Values, name, label string) bool {
	asked := query.Get(name)
	return asked == "" || asked == label
}

// say says something of the reports of a moment.
type say func(at time.Time, all []*report.Report, query url.Values) (any, error)

// answer writes what is to be said.
func (l *Live) answer(log *slog.Logger, of say) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		ctx, cancel := context.WithTimeout(req.Context(), timeout)
		defer cancel()
		said, status, err := l.find(ctx, of, req.URL.Query())
		if err != nil {
			said = map[string]string{"error": err.Error()}
		}
		var body bytes.Buffer
		if err := json.NewEncoder(&body).Encode(said); err != nil {
			log.Error("encoding an answer failed", "err", err)
			http.Error(w, "encoding the answer failed", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		if _, err := w.Write(body.Bytes()); err != nil {
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
	at, all, err := l.look(ctx, window)
	if err != nil {
		return nil, http.StatusInternalServerError, err
	}
	if said, err = of(at, all, query); err != nil {
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
