// Package jobtest has answers of exporters for tests of reports.
package jobtest

import (
	"strconv"
	"time"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
)

// Began is when the job began.
var Began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// RankOf is a rank after 100 s: so many of them useful, 1 in sends, the others in an allreduce.
func RankOf(rank int, node string, useful float64) api.RankValues {
	ended := Began.Add(100 * time.Second)
	inside := 100 - useful
	series := func(function, comm string, calls, seconds float64) api.SeriesValue {
		return api.SeriesValue{Labels: map[string]string{"function": function, "comm": comm},
			Count: strconv.FormatFloat(calls, 'f', -1, 64), Sum: strconv.FormatFloat(seconds, 'f', -1, 64)}
	}
	return api.RankValues{
		Rank: api.RankStatus{JobID: "17", World: "0", User: "ada", Rank: rank, State: "ended",
			Host: node, Executable: "/home/ada/solver", Library: "openmpi", LibraryVersion: "5.0.7", WorldSize: 4,
			Batch: api.Batch{JobName: "heat <3>"}, Started: &Began,
			End:   api.End{EndReason: "finalize", Ended: &ended},
			Calls: &api.Calls{State: api.StateSeconds{api.Outside: useful, api.Send: 1, api.Collective: inside - 1}}},
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

// Late is a job on two nodes: rank 2 computes most of the time, and the others wait for it.
func Late() []api.ValueList {
	at := Began.Add(101 * time.Second)
	return []api.ValueList{
		{Time: at, Ranks: []api.RankValues{RankOf(0, "node1", 30), RankOf(1, "node1", 31)}},
		{Time: at.Add(time.Second), Ranks: []api.RankValues{RankOf(2, "node2", 98), RankOf(3, "node2", 30)}},
	}
}
