package exporter

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// callsOf are the figures of calls under way on a page, and the labels of the long one.
func callsOf(page map[string]float64) (figures map[string]float64, long string) {
	figures = map[string]float64{}
	for name, value := range page {
		family, labels, _ := strings.Cut(name, "{")
		switch {
		case family == "mpit_call_running_info":
			long += labels
		case family == "mpit_rank_seconds_total":
			_, state, _ := strings.Cut(labels, `state="`)
			state, _, _ = strings.Cut(state, `"`)
			figures[state] = value
		case strings.HasPrefix(family, "mpit_call_message"), strings.HasPrefix(family, "mpit_call_collective"):
			// sums, see below
		case strings.HasPrefix(family, "mpit_call_"):
			figures[strings.TrimPrefix(family, "mpit_call_")] = value
		}
	}
	return figures, long
}

// TestCommsOfAnEarlierConnection: numbers that have been told since stand.
func TestCommsOfAnEarlierConnection(t *testing.T) {
	e, s := startTold(t, Config{}), counting()
	s.UnderWay = &mpit.UnderWay{}
	s.Layout.Objects = []mpit.Object{{ID: 3, Kind: mpit.BindComm, Name: "halo", Size: 2}}
	for _, at := range []time.Duration{2, 1} {
		s.Monotonic, s.Comms = at*time.Second, []mpit.Comm{{Object: 3, Identity: 7, Begun: uint64(at), Counted: true}}
		e.take(s)
		require.Len(t, e.Ranks()[0].Calls.Comms, 1)
		assert.Equal(t, uint64(2), *e.Ranks()[0].Calls.Comms[0].Number)
	}
}

// TestCallsUnderWay: what the call profile says of one moment, in every kind of answer.
func TestCallsUnderWay(t *testing.T) {
	e := startTold(t, Config{})
	s := counting()
	s.Layout.Objects = []mpit.Object{{ID: 3, Kind: mpit.BindComm, Name: "halo"}, {ID: 4, Kind: mpit.BindWin}}
	figures, long := callsOf(e.take(s))
	assert.Empty(t, figures, "no call profile")
	assert.Empty(t, long)
	assert.Nil(t, e.Ranks()[0].Calls)

	shown := func(outside, running, collective float64) map[string]float64 {
		return map[string]float64{"outside": outside, "running_seconds": running, "send": 0.5, "wait": 0,
			"collective": collective, "file": 0, "poll": 0, "finalize": 0, "ended": 0}
	}
	const second = time.Second
	barrier := mpit.UnderWay{Observed: 10 * second, Running: second, Function: "MPI_Barrier",
		Bind: mpit.BindComm, Object: 3, Module: "/opt/solver", Offset: 0x12ab,
		InsideBy: [mpit.CallKinds]time.Duration{mpit.CallSend: second / 2, mpit.CallCollective: 3 * second / 2}}
	s.UnderWay, s.Monotonic = &barrier, second
	figures, long = callsOf(e.take(s))
	assert.Equal(t, shown(8, 1, 1.5), figures)
	assert.Empty(t, long, "others come and go between two scrapes")

	hanging := barrier
	hanging.Observed, hanging.Running = 25*second, 16*second
	hanging.InsideBy[mpit.CallCollective] = 33 * second / 2
	s.UnderWay, s.Monotonic, s.Status = &hanging, 2*second, mpit.SamplePassive
	figures, long = callsOf(e.take(s))
	assert.Equal(t, shown(8, 16, 16.5), figures)
	assert.Equal(t, `comm="halo",function="MPI_Barrier",jobid="1",module="/opt/solver",offset="0x12ab",rank="0",`+
		`user="alice",world="0"}`, long)
	assert.Equal(t, &api.Calls{State: api.StateSeconds{api.Outside: 8, api.Send: 0.5, api.Collective: 16.5}, Running: 16,
		Long: &api.LongCall{Function: "MPI_Barrier",
			Kind: "comm", Object: "halo", Module: "/opt/solver", Offset: 0x12ab}}, e.Ranks()[0].Calls)
	text, err := json.Marshal(e.Ranks()[0].Calls)
	require.NoError(t, err)
	assert.JSONEq(t, `{"state_seconds": {"outside": 8, "send": 0.5, "wait": 0, "collective": 16.5,
		"file": 0, "poll": 0, "finalize": 0, "ended": 0}, "running_seconds": 16, "long": {"function":
		"MPI_Barrier", "kind": "comm", "object": "halo", "module": "/opt/solver", "offset": 4779}}`, string(text))

	threads := hanging
	threads.CPU, threads.Threads = 3*second, []mpit.Thread{
		{ID: 1, Main: true, Now: 9 * second, CPU: -1, Ended: 7 * second, Peer: mpit.NoPeer, Tag: mpit.NoTag, Root: mpit.NoRoot},
		{ID: 2, Now: 9 * second, Begun: 6 * second, Ended: 5 * second, Function: "MPI_Recv", Bind: mpit.BindComm,
			Object: 3, Peer: 2, Tag: 0, Root: mpit.NoRoot},
		{ID: 3, Now: 9 * second, Begun: 6 * second, Function: "MPI_Probe", Bind: mpit.BindComm, Object: 8,
			Peer: mpit.AnySource, Tag: mpit.NoTag, Root: mpit.NoRoot},
		{ID: 4, Now: 9 * second, Begun: 6 * second, Function: "MPI_Bcast", Bind: mpit.BindComm, Object: 3,
			Peer: mpit.NoPeer, Tag: mpit.NoTag, Root: 1},
		{ID: 5, Now: 9 * second, Begun: 6 * second, Function: "MPI_Waitall", Peer: mpit.NoPeer, Peers: []int{4, 2},
			Tag: mpit.NoTag, Root: mpit.NoRoot},
		{ID: 6, Now: 9 * second, Begun: 6 * second, Function: "MPI_Wait", Of: "MPI_Ibarrier", Bind: mpit.BindComm,
			Object: 3, Number: 9, Peer: mpit.NoPeer, Tag: mpit.NoTag, Root: mpit.NoRoot},
	}
	s.UnderWay = &threads
	e.take(s)
	text, err = json.Marshal(e.Ranks()[0].Calls.Threads)
	require.NoError(t, err)
	assert.JSONEq(t, `[{"main": true, "moved_seconds": 2},
		{"moved_seconds": 3, "call": {"function": "MPI_Recv", "seconds": 3, "kind": "comm",
			"object": "halo", "peers": [2], "tag": 0}},
		{"moved_seconds": 3, "call": {"function": "MPI_Probe", "seconds": 3, "kind": "comm",
			"object": "unnamed", "any_source": true}},
		{"moved_seconds": 3, "call": {"function": "MPI_Bcast", "seconds": 3, "kind": "comm",
			"object": "halo", "root": 1}},
		{"moved_seconds": 3, "call": {"function": "MPI_Waitall", "seconds": 3, "peers": [4, 2]}},
		{"moved_seconds": 3, "call": {"function": "MPI_Wait", "seconds": 3, "of": "MPI_Ibarrier", "kind": "comm",
			"object": "halo", "number": 9}}]`, string(text))
	assert.InDelta(t, 3, *e.Ranks()[0].Calls.CPU.Seconds, 0)

	for what, c := range map[string]struct {
		u    mpit.UnderWay
		long string
	}{
		"a window without a name": {mpit.UnderWay{Running: 2 * second, Function: "MPI_Win_fence", Bind: mpit.BindWin,
			Object: 4}, `function="MPI_Win_fence",jobid="1",rank="0",user="alice",win="unnamed",world="0"}`},
		"an object that isn't tracked": {mpit.UnderWay{Running: 2 * second, Function: "MPI_Recv", Bind: mpit.BindComm},
			`comm="unnamed",function="MPI_Recv",jobid="1",rank="0",user="alice",world="0"}`},
		"another kind's number": {mpit.UnderWay{Running: 2 * second, Function: "MPI_Recv", Bind: mpit.BindComm,
			Object: 4}, `comm="unnamed",function="MPI_Recv",jobid="1",rank="0",user="alice",world="0"}`},
		"no object": {mpit.UnderWay{Running: 2 * second, Function: "MPI_Wait\x1b" + strings.Repeat("x", 1000)},
			"function=\"MPI_Wait\ufffd" + strings.Repeat("x", 256-len("MPI_Wait\ufffd")) +
				`",jobid="1",rank="0",user="alice",world="0"}`},
	} {
		s.UnderWay = &c.u
		_, long = callsOf(e.take(s))
		assert.Equal(t, c.long, long, what)
	}

	// Busy, with less than before: nothing falls.
	busy := mpit.Sample{Status: mpit.SampleBusy, UnderWay: &mpit.UnderWay{Observed: 26 * second}}
	figures, long = callsOf(e.take(busy))
	assert.Equal(t, shown(9, 0, 16.5), figures)
	assert.Empty(t, long, "it has returned")
	busy.UnderWay = nil
	figures, _ = callsOf(e.take(busy))
	assert.Equal(t, shown(9, 0, 16.5), figures, "an answer that doesn't say")

	final := s
	final.Status, final.Monotonic = mpit.SampleFinal, 3*second
	final.UnderWay = &mpit.UnderWay{Observed: 30 * second, Running: 5 * second, Function: "MPI_Recv",
		Threads: threads.Threads}
	e.absorbed(e.r, &final)
	g := e.lock()
	g.finish(e.r, mpit.EndFinalize, e.now())
	g.unlock()
	families, done, err := e.Gather(t.Context())
	require.NoError(t, err)
	defer done()
	figures, long = callsOf(valuesOf(families))
	assert.Equal(t, map[string]float64{"outside": 13, "send": 0.5, "wait": 0, "collective": 16.5, "file": 0,
		"poll": 0, "finalize": 0, "ended": 0}, figures,
		"what counts stands, an ended rank is in no call")
	assert.Empty(t, long)
	assert.Equal(t, &api.Calls{State: api.StateSeconds{api.Outside: 13, api.Send: 0.5, api.Collective: 16.5},
		CPU: &api.CPU{Seconds: new(3.0)}}, e.Ranks()[0].Calls)
}

// Ranks with the call profile are counted of which the kernel doesn't say how long they had a core.
func TestRanksWithoutCPUTimes(t *testing.T) {
	n := startNode(t, Config{})
	for i, u := range []*mpit.UnderWay{nil, {Observed: time.Minute}, {Observed: time.Minute, Kernel: &mpit.Kernel{Cores: 2},
		Threads: []mpit.Thread{{ID: 1, Main: true, Now: time.Second, CPU: time.Second, Queue: 0}}}} {
		cfg := small("1", i)
		cfg.UnderWay = u
		n.connect(mpittest.New(cfg))
	}
	assert.Equal(t, 1.0, n.scrape()["mpit_exporter_ranks_without_cpu_times"])
}

// Sums of the call profile: sends and puts, and collectives that no rank leaves before all have come, on communicators
// with a name of their own.
func TestSumsOfCalls(t *testing.T) {
	cfg := small("1", 0)
	cfg.UnderWay = &mpit.UnderWay{Observed: time.Minute}
	cfg.Objects = append(cfg.Objects, mpit.Object{Kind: mpit.BindComm, Name: "halo", Size: 2, Created: testTime},
		mpit.Object{Kind: mpit.BindComm, Size: 2, Created: testTime})
	named, unnamed := uint32(len(cfg.Objects)-1), uint32(len(cfg.Objects))
	calls := func(function string, object uint32, durations ...time.Duration) {
		name := "mpit_call_time_" + function
		known := slices.ContainsFunc(cfg.Variables, func(v mpit.Variable) bool { return v.Name == name })
		if !known {
			cfg.Variables = append(cfg.Variables, mpittest.DistributionVariable(name, mpit.BindComm))
		}
		cfg.Values = append(cfg.Values, mpittest.Value{Name: name, Class: mpit.ClassTimer, Object: object,
			Values: mpittest.Distribution(durations...)})
	}
	calls("MPI_Isend", named, time.Millisecond, time.Millisecond)
	calls("MPI_Send", unnamed, time.Millisecond)
	calls("MPI_Recv", named, time.Second)
	calls("MPI_Allreduce", named, time.Second, 2*time.Second)
	calls("MPI_Allreduce", unnamed, time.Second)
	calls("MPI_Bcast", named, time.Second)
	n := startNode(t, Config{})
	r := mpittest.New(cfg)
	n.connect(r)
	sums := func() map[string]float64 {
		page := n.scrape()
		found := map[string]float64{}
		for name, value := range page {
			if family, _, _ := strings.Cut(name, "{"); strings.HasPrefix(family, "mpit_call_messages") ||
				strings.HasPrefix(family, "mpit_call_collective") {
				found[family] = value
			}
		}
		return found
	}
	assert.Equal(t, map[string]float64{"mpit_call_messages_total": 3, "mpit_call_collectives_total": 2,
		"mpit_call_collective_seconds_total": 3}, sums())
	functions := func(page map[string]float64, n *node) (listed, known int) {
		for name := range page {
			if strings.HasPrefix(name, "mpit_call_time_") {
				listed++
			}
		}
		values, err := n.Values(t.Context(), api.Selector{}, false)
		require.NoError(t, err)
		for _, v := range values.Ranks[0].Variables {
			if v.Metric == "mpit_call_time_seconds" {
				known += len(v.Series)
			}
		}
		return listed, known
	}
	listed, known := functions(n.scrape(), n)
	assert.NotZero(t, listed)
	assert.Equal(t, 10, known)

	// A light profile has the same sums, and its functions in the API alone.
	cfg.Hello.Attributes = maps.Clone(cfg.Hello.Attributes)
	cfg.Hello.Attributes["MPIT_CALLS"] = "sizes,light"
	heavy := sums()
	n = startNode(t, Config{})
	light := mpittest.New(cfg)
	n.connect(light)
	assert.Equal(t, heavy, sums())
	listed, known = functions(n.scrape(), n)
	assert.Zero(t, listed)
	assert.Equal(t, 10, known)
	assert.NotContains(t, get(n.Handler(), "/metrics").Body.String(), "# TYPE mpit_objects")
	assert.NotContains(t, get(n.Handler(), "/metrics").Body.String(), "# TYPE mpit_call_time_seconds")

	r = light
	require.NoError(t, r.Add("mpit_call_time_MPI_Isend", mpit.ClassTimer, named, mpittest.Distribution(time.Second)...))
	assert.InDelta(t, 4, sums()["mpit_call_messages_total"], 0)
}
