package report

import (
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/report/reporttest"
	"github.com/mpit-exporter/mpit-exporter/exporter/api"
)

// What no rank can have measured doesn't keep a report from being written: JSON has no infinity.
func TestValuesBeyondMeasure(t *testing.T) {
	series := []api.SeriesValue{
		{Labels: map[string]string{"function": "MPI_Send"}, Value: "1e308", Sum: "1e308", Count: "1e308"},
		{Labels: map[string]string{"function": "MPI_Send"}, Value: "1e308", Sum: "1e308", Count: "1e308"},
	}
	list := api.ValueList{Time: reporttest.Began}
	for _, metric := range []string{"mpit_call_time_seconds", "mpit_call_bytes_total", "mpit_call_peer_bytes_total"} {
		list.Ranks = append(list.Ranks, api.RankValues{Rank: api.RankStatus{JobID: "17", State: "up"},
			Variables: []api.VariableValues{{Metric: metric, Series: series}}})
	}
	r := Of([]api.ValueList{list}, nil)
	require.Len(t, r, 1)
	assert.NoError(t, r[0].JSON(io.Discard))
	later := list
	assert.NoError(t, Of([]api.ValueList{later}, nil)[0].Since(r[0]).JSON(io.Discard))
}
