package job

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/exporter/job/jobtest"
)

// of is a rank of which 100 s were observed.
func of(rank int, node string, send, wait, collective, file float64) Rank {
	return Rank{Rank: rank, Node: node, State: "up", Time: api.StateSeconds{
		100 - send - wait - collective - file, send, wait, collective, file}}
}

// in is a rank that has been in a call for so many seconds.
func in(rank int, function, object string, seconds float64) Rank {
	r := of(rank, "node1", 0, 0, min(seconds, 100), 0)
	r.Running = seconds
	if function != "" {
		r.Long = &api.LongCall{Function: function, Object: object}
	}
	if strings.HasPrefix(function, "MPI_File_") {
		r.Time[api.File], r.Time[api.Collective] = r.Time[api.Collective], 0
	}
	return r
}

// lasting is the rank after so many seconds, all of them in collectives.
func (r Rank) lasting(seconds float64) Rank {
	r.Time = api.StateSeconds{api.Collective: seconds}
	return r
}

func killed(r Rank) Rank {
	r.State, r.End = "ended", "lost"
	return r
}

func exited(r Rank, status string) Rank {
	r = killed(r)
	r.Exit = status
	return r
}

func aborted(r Rank) Rank {
	r.State, r.End = "ended", "abort"
	return r
}

// at is a rank that has ended so long after others.
func at(r Rank, seconds float64) Rank {
	r.EndedAt = time.Date(2026, 1, 2, 3, 4, 0, int(seconds*1e9), time.UTC)
	return r
}

func TestVerdicts(t *testing.T) {
	polls, silent := in(1, "", "", 0), in(2, "", "", 0)
	polls.Time = api.StateSeconds{api.Poll: 100}
	silent.State = "late"
	ended := of(3, "node1", 0, 99, 0, 0)
	ended.State, ended.End = "ended", endsWell
	unmeasured := Rank{Rank: 1, Node: "node1", State: "up"}
	lost := of(1, "node1", 0, 0, 90, 0)
	lost.State, lost.End = "ended", "lost"
	brief := of(1, "a", 0, 0, 0, 0)
	brief.Time = api.StateSeconds{1}
	sizes := map[string]int{"part of a job hangs": 1000, "one of many": 1000, "one node's ranks of a larger job": 4}
	for name, c := range map[string]struct {
		ranks []Rank
		where string
		state string
		text  string
	}{
		"nothing is wrong": {
			[]Rank{of(0, "a", 1, 4, 2, 0), of(1, "a", 1, 4, 2, 0)}, "MPI_Wait", Healthy, "healthy: 93 % useful"},
		"one rank": {
			[]Rank{of(0, "a", 1, 1, 0, 0)}, "", Healthy, "healthy: 98 % useful"},
		"no call profile": {
			[]Rank{unmeasured}, "", Unknown, "nothing is known of its time: no MPI call has been measured (exec --calls)"},
		"no rank": {nil, "", Unknown, "nothing is known of its time: no MPI call has been measured (exec --calls)"},
		"a slow rank in a halo exchange": {
			[]Rank{of(0, "a", 0, 66, 0, 0), of(1, "a", 0, 66, 0, 0), of(2, "b", 0, 1, 0, 0), of(3, "b", 0, 66, 0, 0)},
			"MPI_Waitall", LateRanks, "50 % useful; 49 % of the time ranks wait in MPI_Waitall probably for rank 2 on b, " +
				"which is " +
				"outside MPI for 99 % of the time"},
		"a slow rank in collectives": {
			[]Rank{of(0, "a", 0, 0, 66, 0), of(1, "a", 0, 0, 66, 0), of(2, "b", 0, 0, 1, 0)},
			"", LateRanks, "56 % useful; 43 % of the time ranks wait probably for rank 2 on b, which is outside MPI " +
				"for 99 % of the time"},
		"a little late": {
			[]Rank{of(0, "a", 0, 24, 0, 0), of(1, "a", 0, 0, 0, 0)}, "", Healthy,
			"healthy: 88 % useful"},
		"a late receiver, whose senders can't send": {
			[]Rank{of(0, "a", 80, 0, 0, 0), of(1, "a", 80, 0, 0, 0), of(2, "a", 0, 1, 0, 0)}, "MPI_Send on world",
			LateRanks, "46 % useful; 53 % of the time ranks wait in MPI_Send on world probably for rank 2 on a, which is " +
				"outside MPI for 99 % of the time"},
		"little is useful, and one rank is a little late": {
			[]Rank{of(0, "a", 0, 68, 0, 0), of(1, "a", 0, 83, 0, 0), of(2, "a", 0, 85, 0, 0)}, "MPI_Wait", Communication,
			"21 % useful; 79 % of the time is spent in MPI, mostly in MPI_Wait, and no single rank is late"},
		"a rank that was observed for a moment": {
			[]Rank{of(0, "a", 0, 50, 0, 0), brief}, "", Communication,
			"50 % useful; 50 % of the time is spent in MPI"},
		"a rank that was killed": {
			[]Rank{of(0, "node1", 0, 0, 90, 0), lost}, "", Crashed, "rank 1 on node1 ended without MPI_Finalize (lost)"},
		"one crashed, the launcher killed the others": {[]Rank{exited(of(0, "node1", 0, 0, 90, 0), "SIGTERM"),
			exited(of(1, "node1", 0, 0, 90, 0), "SIGSEGV"), exited(of(2, "node2", 0, 0, 90, 0), "SIGKILL")}, "",
			Crashed, "3 of 3 ranks ended without MPI_Finalize, probably rank 1 on node1 (SIGSEGV) first"},
		"one crashed when another one had been killed": {[]Rank{at(exited(of(0, "node1", 0, 0, 90, 0), "SIGKILL"), 1),
			at(exited(of(1, "node1", 0, 0, 90, 0), "exit 1"), 1.5)}, "", Crashed,
			"2 of 2 ranks ended without MPI_Finalize, probably rank 0 on node1 (SIGKILL) first"},
		"one crashed, and its launcher was seen to kill first": {[]Rank{
			at(exited(of(0, "node1", 0, 0, 90, 0), "SIGKILL"), 1), at(exited(of(1, "node1", 0, 0, 90, 0), "exit 1"), 1.02)},
			"", Crashed, "2 of 2 ranks ended without MPI_Finalize, probably rank 1 on node1 (exit 1) first"},
		"one crashed, by another node's clock later": {[]Rank{at(exited(of(0, "node1", 0, 0, 90, 0), "SIGKILL"), 1),
			at(exited(of(1, "node2", 0, 0, 90, 0), "exit 1"), 5)}, "", Crashed,
			"2 of 2 ranks ended without MPI_Finalize, probably rank 1 on node2 (exit 1) first"},
		"one crashed, and when another one was killed isn't known": {[]Rank{exited(of(0, "node1", 0, 0, 90, 0), "SIGKILL"),
			at(exited(of(1, "node1", 0, 0, 90, 0), "exit 1"), 5)}, "", Crashed,
			"2 of 2 ranks ended without MPI_Finalize, probably rank 1 on node1 (exit 1) first"},
		"two crashed": {[]Rank{exited(of(0, "node1", 0, 0, 90, 0), "exit 1"),
			exited(of(1, "node1", 0, 0, 90, 0), "SIGSEGV")}, "", Crashed,
			"2 of 2 ranks ended without MPI_Finalize (SIGSEGV, exit 1); which was the first isn't known"},
		"one crashed alone": {[]Rank{exited(of(1, "node1", 0, 0, 90, 0), "exit 3"), of(0, "node1", 0, 0, 90, 0)}, "",
			Crashed, "rank 1 on node1 ended without MPI_Finalize (exit 3)"},
		"all were": {[]Rank{lost, lost}, "", Crashed,
			"2 of 2 ranks ended without MPI_Finalize (lost); which was the first isn't known"},
		"one was, and the others after it": {[]Rank{at(killed(of(0, "node1", 0, 0, 9, 0)), 2), at(lost, 1)}, "", Crashed,
			"2 of 2 ranks ended without MPI_Finalize, probably rank 1 on node1 (lost) first"},
		"one was, and the launcher killed the other": {
			[]Rank{at(killed(of(0, "node1", 0, 0, 9, 0)), 1.015), at(lost, 1)}, "", Crashed,
			"2 of 2 ranks ended without MPI_Finalize (lost); which was the first isn't known"},
		"two nodes' clocks": {[]Rank{at(killed(of(0, "node2", 0, 0, 9, 0)), 2), at(lost, 1)}, "", Crashed,
			"2 of 2 ranks ended without MPI_Finalize (lost); which was the first isn't known"},
		"one has aborted": {[]Rank{at(killed(of(0, "node1", 0, 0, 9, 0)), 1), at(aborted(lost), 2)}, "", Crashed,
			"rank 1 on node1 called MPI_Abort; 2 of 2 ranks ended without MPI_Finalize"},
		"all have aborted": {[]Rank{aborted(of(0, "node1", 0, 0, 9, 0)), aborted(lost)}, "", Crashed,
			"2 of 2 ranks ended without MPI_Finalize (abort); which was the first isn't known"},
		"one alone has aborted": {[]Rank{aborted(lost)}, "", Crashed, "rank 1 on node1 called MPI_Abort"},
		"a job that hung and was killed": {[]Rank{killed(in(0, "MPI_Barrier", "halo", 60)), killed(in(1, "", "", 0))}, "",
			Crashed,
			"2 of 2 ranks ended without MPI_Finalize (lost); which was the first isn't known; before that, 1 of 2 ranks " +
				"has been in MPI_Barrier on halo for 1m0s, probably waiting for rank 1 on node1, which is not blocked in MPI"},
		"cancelled": {[]Rank{at(exited(of(0, "node1", 0, 4, 0, 0), "SIGTERM"), 1),
			at(exited(of(1, "node2", 0, 4, 0, 0), "SIGTERM"), 2.5)}, "", Cancelled,
			"SIGTERM ended all 2 ranks; before that, healthy: 96 % useful"},
		"cancelled, as it was stuck": {[]Rank{at(exited(in(0, "MPI_Barrier", "halo", 60), "SIGTERM"), 1),
			at(exited(in(1, "", "", 0), "SIGTERM"), 1)}, "", Cancelled,
			"SIGTERM ended all 2 ranks; before that, 1 of 2 ranks has been in MPI_Barrier " +
				"on halo for 1m0s, probably waiting for rank 1 on node1, which is not blocked in MPI"},
		"some were killed outright": {[]Rank{at(exited(of(0, "node1", 0, 4, 0, 0), "SIGKILL"), 1),
			at(exited(of(1, "node1", 0, 4, 0, 0), "SIGKILL"), 1)}, "", Crashed,
			"2 of 2 ranks ended without MPI_Finalize (SIGKILL); which was the first isn't known"},
		"one was ended long before the other": {[]Rank{at(exited(of(0, "node1", 0, 4, 0, 0), "SIGTERM"), 1),
			at(exited(of(1, "node1", 0, 4, 0, 0), "SIGTERM"), 4)}, "", Crashed,
			"2 of 2 ranks ended without MPI_Finalize, probably rank 0 on node1 (SIGTERM) first"},
		"one node's ranks of a larger job": {[]Rank{at(exited(of(0, "node1", 0, 4, 0, 0), "SIGTERM"), 1),
			at(exited(of(1, "node1", 0, 4, 0, 0), "SIGTERM"), 1)}, "", Unknown,
			"SIGTERM ended all 2 ranks that are observed, of 4: cancelled, or another rank failed; " +
				"before that, healthy: 96 % useful"},
		"all are stopped": {[]Rank{silent, silent}, "", Unknown, "no rank answers, as if all were stopped"},
		"part of a job hangs": {[]Rank{in(0, "MPI_Barrier", "halo", 480), in(1, "MPI_Barrier", "halo", 482)}, "", Waits,
			"all 2 ranks that are observed, of 1000, have been in MPI_Barrier on halo for 8m0s"},
		"a slow network": {
			[]Rank{of(0, "a", 0, 80, 0, 0), of(1, "a", 79, 1, 0, 0), of(2, "a", 0, 80, 0, 0)}, "MPI_Waitall", LateRanks,
			"20 % useful; 53 % of the time ranks wait in MPI_Waitall probably for rank 1 on a, which takes long to send: " +
				"its network " +
				"is slow or that of whom it sends to, or it sends more"},
		"I/O by one rank": {
			[]Rank{of(0, "a", 0, 0, 1, 79), of(1, "a", 0, 0, 80, 0), of(2, "a", 0, 0, 80, 0)}, "MPI_Barrier on world",
			LateRanks, "20 % useful; 53 % of the time ranks wait in MPI_Barrier on world probably for rank 0 on a, which " +
				"works " +
				"on files"},
		"communication itself": {
			[]Rank{of(0, "a", 20, 20, 40, 0), of(1, "a", 20, 20, 40, 0)}, "MPI_Alltoall on world", Communication,
			"20 % useful; 80 % of the time is spent in MPI, mostly in MPI_Alltoall on world, and no rank is late"},
		"a master of three that waits by design": {
			[]Rank{of(0, "a", 0, 99, 0, 0), of(1, "a", 0, 2, 0, 0), of(2, "a", 0, 2, 0, 0), of(3, "a", 0, 2, 0, 0)}, "",
			Healthy, "healthy: 74 % useful"},
		"hung": {
			[]Rank{in(0, "MPI_Barrier", "halo", 480), in(1, "MPI_Barrier", "halo", 482), ended}, "", Waits,
			"all 2 ranks have been in MPI_Barrier on halo for 8m0s"},
		"hung in different calls": {
			[]Rank{in(0, "MPI_Recv", "halo", 480), in(1, "MPI_Barrier", "halo", 482)}, "", Waits,
			"all 2 ranks have been in 2 different calls for 8m0s"},
		"one alone": {
			[]Rank{in(0, "MPI_Recv", "halo", 480)}, "MPI_Recv on halo", Communication,
			"0 % useful; 100 % of the time is spent in MPI, mostly in MPI_Recv on halo; it has been in MPI_Recv on halo for 8m0s"},
		"one of many": {[]Rank{in(0, "MPI_Recv", "halo", 480)}, "", Waits,
			"the rank that is observed, of 1000, has been in MPI_Recv on halo for 8m0s"},
		"not yet hung": {
			[]Rank{in(0, "MPI_Barrier", "halo", 40), in(1, "MPI_Barrier", "halo", 41)}, "", Waits,
			"all 2 ranks have been in MPI_Barrier on halo for 40s"},
		"a rank that others wait for": {
			[]Rank{in(0, "MPI_Barrier", "halo", 400), in(1, "", "", 0)}, "", Waits,
			"1 of 2 ranks has been in MPI_Barrier on halo for 6m40s, probably waiting for rank 1 on node1, which is not " +
				"blocked in MPI"},
		"one that waits for another world": {
			[]Rank{in(0, "MPI_Comm_accept", "self", 400), in(1, "", "", 0)}, "", Waits,
			"1 of 2 ranks has been in MPI_Comm_accept on self for 6m40s, 1 is not"},
		"a stopped rank": {
			[]Rank{in(0, "MPI_Wait", "", 400), in(1, "MPI_Wait", "", 400), silent}, "", Waits,
			"2 of 3 ranks have been in MPI_Wait for 6m40s, 1 is not; rank 2 does not answer, as if it were stopped"},
		"two of many elsewhere": {
			append([]Rank{in(20, "MPI_Recv", "rows", 3), in(21, "", "", 0)}, many(19)...), "", Waits,
			"19 of 21 ranks have been in MPI_Barrier on halo for 5m0s, 2 are not"},
		"a rank that polls": {
			[]Rank{in(0, "MPI_Barrier", "halo", 400), polls}, "", Waits,
			"1 of 2 ranks has been in MPI_Barrier on halo for 6m40s, 1 is not"},
		"two of many in a call for long": {append(many(2), in(2, "", "", 0), in(3, "", "", 0), in(4, "", "", 0)), "",
			Communication, "60 % useful; 40 % of the time is spent in MPI, and no single rank is late"},
		"a file takes its time": {
			[]Rank{in(0, "MPI_File_write_all", "plate", 480), in(1, "MPI_File_write_all", "plate", 480)}, "",
			Communication, "0 % useful; 100 % of the time is spent in MPI; all 2 ranks have been in MPI_File_write_all on plate " +
				"for 8m0s"},
		"nothing has moved since the start": {[]Rank{in(0, "MPI_Recv", "halo", 9).lasting(9), in(1, "MPI_Recv", "halo",
			8).lasting(8)}, "", Communication,
			"0 % useful; 100 % of the time is spent in MPI; all 2 ranks have been in MPI_Recv on halo for 8s"},
	} {
		t.Run(name, func(t *testing.T) {
			r := reportOf(c.where, c.ranks...)
			r.Job.WorldSize = max(sizes[name], len(c.ranks))
			v := r.verdict()
			assert.Equal(t, c.state, v.State)
			assert.Equal(t, c.text, v.Text)
		})
	}
}

// reportOf is one on ranks that have spent their time in MPI in one call, such as "MPI_Barrier on halo".
func reportOf(where string, ranks ...Rank) *Report {
	r := &Report{Ranks: ranks}
	if where == "" {
		return r
	}
	c := Call{Calls: 1000, ranks: map[who]float64{}}
	c.Function, c.Object, _ = strings.Cut(where, " on ")
	if c.Object != "" {
		c.Kind = "comm"
	}
	for i := range ranks {
		c.ranks[ranks[i].who()] = ranks[i].Time.Sum() - ranks[i].Time[api.Outside]
		c.Seconds += c.ranks[ranks[i].who()]
	}
	r.Calls = []Call{c}
	return r
}

func many(n int) (ranks []Rank) {
	for i := range n {
		ranks = append(ranks, in(i, "MPI_Barrier", "halo", 300))
	}
	return ranks
}

// By construction: one node's ranks compute twice as long as the other's, and one of each node's two half of that.
func TestEfficiencies(t *testing.T) {
	e := reportOf("", of(0, "a", 0, 20, 0, 0), of(1, "a", 0, 60, 0, 0), of(2, "b", 0, 60, 0, 0),
		of(3, "b", 0, 80, 0, 0)).verdict().Efficiency
	assert.InDelta(t, 0.45, e.Parallel, 1e-9)
	assert.InDelta(t, 0.8, e.Communication, 1e-9)
	assert.InDelta(t, 0.45/0.8, e.LoadBalance, 1e-9)
	assert.InDelta(t, 0.45/0.6, e.BetweenNodes, 1e-9)
	assert.InDelta(t, 0.6/0.8, e.WithinNodes, 1e-9)
	assert.InDelta(t, e.LoadBalance, e.BetweenNodes*e.WithinNodes, 1e-9)
	assert.Equal(t, 4, e.Ranks)

	never := reportOf("", of(0, "a", 0, 100, 0, 0), of(1, "a", 0, 100, 0, 0)).verdict().Efficiency
	assert.Equal(t, Efficiency{Ranks: 2}, *never, "of nothing useful there is no balance")
}

// A rank in MPI_Finalize has ended for its exporter, but waits there for the others.
func TestInFinalize(t *testing.T) {
	list := api.ValueList{Time: jobtest.Began.Add(130 * time.Second)}
	early, works := jobtest.RankOf(0, "node1", 98), jobtest.RankOf(1, "node1", 128)
	early.Rank.WorldSize, works.Rank.WorldSize = 2, 2
	early.Rank.Calls.State[api.Finalize] = 30
	works.Rank.Ended, works.Rank.State, works.Rank.EndReason = nil, "up", ""
	works.Rank.Calls.Threads = []api.Thread{{Main: true, Moved: 29}}
	list.Ranks = []api.RankValues{early, works}
	v := Of([]api.ValueList{list}, nil)[0].Verdict
	assert.Equal(t, Waits, v.State)
	assert.Equal(t, "rank 0 has waited 30s in MPI_Finalize, probably for rank 1 on node1, which has made no MPI "+
		"call for 29s",
		v.Text)

	list.Ranks[0].Rank.Calls.State[api.Ended] = 1 // its process has gone
	v = Of([]api.ValueList{list}, nil)[0].Verdict
	assert.Equal(t, Healthy, v.State, v.Text)
}

// While the launcher ends one rank after the other nothing is said of the first.
func TestEndsThatGoOn(t *testing.T) {
	first := at(exited(of(0, "node1", 0, 4, 0, 0), "SIGTERM"), 1)
	r := reportOf("", first, of(1, "node1", 0, 4, 0, 0))
	r.Job.WorldSize, r.Time = 2, first.EndedAt.Add(time.Second)
	assert.Equal(t, Healthy, r.verdict().State)
	r.Time = first.EndedAt.Add(settles)
	assert.Equal(t, Crashed, r.verdict().State)
}
