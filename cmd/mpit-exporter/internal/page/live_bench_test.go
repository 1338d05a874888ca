package page

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
)

// BenchmarkReport is an answer on a thousand ranks that have called 40 functions, for the page, and another moment.
func BenchmarkReport(b *testing.B) {
	at := time.Now().Add(-24 * time.Hour) // each answer is new
	began := at.Add(-time.Hour)
	list := api.ValueList{Ranks: make([]api.RankValues, 1000)}
	for i := range list.Ranks {
		r := &list.Ranks[i]
		r.Rank = api.RankStatus{JobID: "17", Rank: i, State: "up", Host: "node1", WorldSize: 1000, Started: &began,
			Calls: &api.Calls{State: api.StateSeconds{api.Outside: 3240, api.Collective: 360}}}
		v := api.VariableValues{Metric: "mpit_call_time_seconds", Kind: "histogram", Distribution: true}
		for f := range 40 {
			v.Series = append(v.Series, api.SeriesValue{
				Labels: map[string]string{"function": fmt.Sprintf("MPI_Function%d", f), "comm": "world"},
				Count:  "12345", Sum: "9.0625"})
		}
		r.Variables = []api.VariableValues{v}
	}
	h := NewLive(func(context.Context) (api.ValueList, error) {
		at = at.Add(2 * time.Second)
		of := list
		of.Time = at
		return of, nil
	}, nil).Handler(api.NewTurns(), slog.New(slog.DiscardHandler))
	b.ReportAllocs()
	for b.Loop() {
		w := httptest.NewRecorder()
		req := httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/api/v1/report?jobid=17", nil)
		h.ServeHTTP(w, req)
		if w.Code != http.StatusOK {
			b.Fatal(w.Body.String())
		}
		b.ReportMetric(float64(w.Body.Len()), "B/answer")
	}
}
