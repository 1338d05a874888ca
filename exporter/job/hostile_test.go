package job

import (
	"encoding/json"
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/exporter/job/jobtest"
)

// What no rank can have measured doesn't keep a report from being written: JSON has no infinity.
func TestValuesBeyondMeasure(t *testing.T) {
	series := []api.SeriesValue{
		{Labels: map[string]string{"function": "MPI_Send"}, Value: "1e308", Sum: "1e308", Count: "1e308"},
		{Labels: map[string]string{"function": "MPI_Send"}, Value: "1e308", Sum: "1e308", Count: "1e308"},
	}
	list := api.ValueList{Time: jobtest.Began}
	for _, metric := range []string{"mpit_call_time_seconds", "mpit_call_bytes_total", "mpit_call_peer_bytes_total"} {
		list.Ranks = append(list.Ranks, api.RankValues{Rank: api.RankStatus{JobID: "17", State: "up"},
			Variables: []api.VariableValues{{Metric: metric, Series: series}}})
	}
	r := Of([]api.ValueList{list}, nil)
	require.Len(t, r, 1)
	_, err := json.Marshal(r[0])
	require.NoError(t, err)
	_, err = json.Marshal(Of([]api.ValueList{list}, nil)[0].Since(r[0].Totals()))
	require.NoError(t, err)
}

// Communicators that each rank has for itself, under a name of its own, don't make a report grow with the square of the
// ranks.
func TestObjectsOfEachRank(t *testing.T) {
	const ranks, objects = 500, 20
	list := api.ValueList{Time: jobtest.Began}
	for rank := range ranks {
		v := api.VariableValues{Metric: "mpit_call_time_seconds"}
		for object := range objects {
			v.Series = append(v.Series, api.SeriesValue{Count: "1", Sum: "1", Labels: map[string]string{
				"function": "MPI_Barrier", "comm": fmt.Sprintf("%d of rank %d", object, rank)}})
		}
		list.Ranks = append(list.Ranks, api.RankValues{Rank: api.RankStatus{JobID: "17", Rank: rank, State: "up"},
			Variables: []api.VariableValues{v}})
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r := Of([]api.ValueList{list}, nil)[0]
	runtime.ReadMemStats(&after)
	require.Len(t, r.Calls, ranks*objects)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(ranks*ranks*objects*8), "a number for each rank and call")
}

// A verdict on many ranks takes no memory that grows with their square, whatever they are in.
func TestManyRanks(t *testing.T) {
	const n = 10000
	for name, is := range map[string]func(rank int) Rank{
		"any source, each with a tag of its own": func(rank int) Rank {
			return rankIn(rank, message("MPI_Recv", rank)).member("halo", n, 0)
		},
		"each in another collective": func(rank int) Rank {
			return rankIn(rank, collective("MPI_Barrier", "halo", uint64(rank+1))).member("halo", n, uint64(rank+1))
		},
		"exchanges, each with a tag of its own": func(rank int) Rank {
			if rank == 0 {
				return rankIn(rank, nil).member("halo", n, 0)
			}
			return rankIn(rank, message("MPI_Sendrecv", rank, rank-1)).member("halo", n, 0)
		},
		"a chain": func(rank int) Rank {
			if rank == 0 {
				return rankIn(rank, nil)
			}
			return rankIn(rank, message("MPI_Recv", 1, rank-1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			var ranks []Rank
			for rank := range n {
				ranks = append(ranks, is(rank))
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			newGraph(pointers(ranks), nil, (*Rank).isBlocked).find()
			runtime.ReadMemStats(&after)
			assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(256<<20))
		})
	}
}
