package exporter

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// told is an Exporter with one rank, which is given its samples by hand.
type told struct {
	*Exporter
	t *testing.T
	r *rank
}

func startTold(t *testing.T, cfg Config) *told {
	cfg.Mapper = newMapper(t)
	e, err := New(cfg)
	require.NoError(t, err)
	e.started = time.Unix(0, 0) // before any rank
	hello := small("1", 0).Hello
	hello.ID = mpit.RankID{1}
	g := e.lock()
	defer g.unlock()
	r := g.add(hello, mpit.Peer{}, processOf(&hello, "alice"))
	r.gone = e.now().AddDate(1, 0, 0) // not lost yet
	return &told{e, t, r}
}

// take gives the rank a sample and returns the page.
func (e *told) take(s mpit.Sample) map[string]float64 {
	e.t.Helper()
	c := e.r.contents.Lock()
	result, state := c.accept(&s)
	e.publish(c)
	e.r.contents.Unlock()
	g := e.lock()
	e.r.state = state
	g.unlock()
	e.self.Samples.WithLabelValues(result).Inc()
	families, done, err := e.Gather(e.t.Context())
	require.NoError(e.t, err)
	defer done()
	return valuesOf(families)
}

// counting is a sample with a counter and a level.
func counting() mpit.Sample {
	return mpit.Sample{
		Variables: &mpit.Variables{Generation: 1, ByID: []mpit.Variable{
			{ID: 0, Name: "calls", Class: mpit.ClassCounter, Datatype: mpit.DatatypeUnsigned, DatatypeBytes: 4},
			{ID: 1, Name: "depth", Class: mpit.ClassLevel, Datatype: mpit.DatatypeDouble, DatatypeBytes: 8},
		}},
		Layout: &mpit.Layout{Generation: 1, Values: 2, Handles: []mpit.Handle{
			{ID: 1, Variable: 0, Count: 1, Created: testTime, Offset: 0},
			{ID: 2, Variable: 1, Count: 1, Created: testTime, Offset: 1},
		}},
		Values: []uint64{10, math.Float64bits(2)},
	}
}

func TestPcontrolOnThePage(t *testing.T) {
	e := startTold(t, Config{})
	families := []string{"mpit_pcontrol_level", "mpit_pcontrol_calls_total", "mpit_pcontrol_paused_seconds_total"}
	figures := func(page map[string]float64) (list []float64) {
		for _, f := range families {
			if v, ok := page[of(f, "1", 0)]; ok {
				list = append(list, v)
			}
		}
		return list
	}
	s := counting()
	s.Stats.PcontrolLevel = 1
	assert.Empty(t, figures(e.take(s)), "a program that never calls it has no series for it")

	s.Status, s.Monotonic = mpit.SamplePaused, time.Second
	s.Stats = mpit.AgentStats{PcontrolCalls: 1, PausedTime: 1500 * time.Millisecond}
	page := e.take(s)
	assert.Equal(t, []float64{0, 1, 1.5}, figures(page))
	assert.Equal(t, 1.0, page[`mpit_exporter_ranks{state="paused"}`])
	assert.Equal(t, 1.0, page[`mpit_exporter_samples_total{result="paused"}`])
	assert.Equal(t, 1.0, page[of("mpit_rank_up", "1", 0)], "it answers")
	assert.Equal(t, 10.0, page[of("mpit_calls_total", "1", 0)])
	assert.Equal(t, 2.0, page[of("mpit_depth_level", "1", 0)], "levels stand as well")
	assert.Equal(t, "paused", e.Ranks()[0].State)

	busy := mpit.Sample{Status: mpit.SampleBusy} // from an agent that leaves things out
	assert.Equal(t, []float64{0, 1, 1.5}, figures(e.take(busy)))

	resumed := *s.Layout
	resumed.Generation, resumed.Handles = 2, append([]mpit.Handle(nil), s.Layout.Handles...)
	resumed.Handles[0].Earlier = &mpit.Earlier{Excluded: []uint64{90}}
	s.Status, s.Monotonic, s.Layout, s.Values = mpit.SampleFresh, 2*time.Second, &resumed,
		[]uint64{107, math.Float64bits(3)}
	s.Stats = mpit.AgentStats{PcontrolLevel: -7, PcontrolCalls: 3, PausedTime: 2 * time.Second}
	page = e.take(s)
	assert.Equal(t, []float64{-7, 3, 2}, figures(page), "the program's own phase")
	assert.Equal(t, 17.0, page[of("mpit_calls_total", "1", 0)])
	assert.Equal(t, 3.0, page[of("mpit_depth_level", "1", 0)])

	s.Status, s.Monotonic = mpit.SampleFinal, 3*time.Second
	e.absorbed(e.r, &s)
	g := e.lock()
	g.finish(e.r, mpit.EndFinalize, e.now())
	g.unlock()
	families = families[1:]
	last, done, err := e.Gather(t.Context())
	require.NoError(t, err)
	defer done()
	page = valuesOf(last)
	assert.Equal(t, []float64{3, 2}, figures(page))
	assert.NotContains(t, page, of("mpit_pcontrol_level", "1", 0), "a phase ends with its rank")
}

func TestObjectsAreDescribed(t *testing.T) {
	for _, c := range []struct {
		name   string
		object mpit.Object
		want   string
	}{
		{"a Cartesian communicator", mpit.Object{Kind: mpit.BindComm, Name: "grid", Size: 8, Rank: 3,
			Details: []mpit.Detail{
				{Key: "topology", Value: "cart"}, {Key: "dims", Value: "4,2"}, {Key: "periods", Value: "1,0"},
			}}, `dims="4,2",jobid="1",kind="comm",name="grid",object_rank="3",periods="1,0",rank="0",size="8",topology="cart",user="alice",world="0"`},
		{"an intercommunicator", mpit.Object{Kind: mpit.BindComm, Name: "coupler", Inter: true, Size: 2,
			Details: []mpit.Detail{
				{Key: "remote_size", Value: "6"}, {Key: "remote_size", Value: "7"}, {Key: "topology", Value: ""},
				{Key: "secret", Value: "x"},
			}}, `inter="true",jobid="1",kind="comm",name="coupler",object_rank="0",rank="0",remote_size="6",size="2",user="alice",world="0"`},
		{"a window", mpit.Object{Kind: mpit.BindWin, Name: "pressure", Size: 4, Rank: 1, On: 2, Details: []mpit.Detail{
			{Key: "base", Value: "0x7f00"}, {Key: "bytes", Value: "4096"}, {Key: "disp_unit", Value: "8"},
			{Key: "flavor", Value: "create"}, {Key: "model", Value: "unified"},
		}}, `bytes="4096",disp_unit="8",flavor="create",jobid="1",kind="win",model="unified",name="pressure",object_rank="1",on="row",rank="0",size="4",user="alice",world="0"`},
		{"a file on an unnamed communicator", mpit.Object{Kind: mpit.BindFile, Name: "/a", Size: -1, Rank: -1, On: 3,
			Details: []mpit.Detail{{Key: "mode", Value: "rdwr,create"}}},
			`jobid="1",kind="file",mode="rdwr,create",name="/a",on="unnamed",rank="0",user="alice",world="0"`},
		{"a file on a communicator that has gone", mpit.Object{Kind: mpit.BindFile, Name: "/a", Size: -1, Rank: -1,
			On: 9},
			`jobid="1",kind="file",name="/a",rank="0",user="alice",world="0"`},
		{"a predefined error handler", mpit.Object{Kind: mpit.BindErrhandler, Name: "mine", Predefined: true,
			Size: -1, Rank: -1, Details: []mpit.Detail{{Key: "on", Value: "win"}}},
			`errhandler_on="win",jobid="1",kind="errhandler",name="mine",predefined="true",rank="0",user="alice",world="0"`},
		{"a datatype", mpit.Object{Kind: mpit.BindDatatype, Name: "vec", Size: -1, Rank: -1, Details: []mpit.Detail{
			{Key: "bytes", Value: "24"}, {Key: "extent", Value: "32"}, {Key: "lb", Value: "0"},
			{Key: "combiner", Value: "vec\ntor"},
		}}, `bytes="24",combiner="vec\ntor",extent="32",jobid="1",kind="datatype",lb="0",name="vec",rank="0",user="alice",world="0"`},
		{"an operator", mpit.Object{Kind: mpit.BindOp, Name: "op", Size: -1, Rank: -1,
			Details: []mpit.Detail{{Key: "commutative", Value: "true"}}},
			`commutative="true",jobid="1",kind="op",name="op",rank="0",user="alice",world="0"`},
		{"a request", mpit.Object{Kind: mpit.BindRequest, Size: -1, Rank: -1, On: 2,
			Details: []mpit.Detail{{Key: "operation", Value: "send_init"}}},
			`jobid="1",kind="request",name="unnamed",on="row",operation="send_init",rank="0",user="alice",world="0"`},
		{"info", mpit.Object{Kind: mpit.BindInfo, Size: -1, Rank: -1,
			Details: []mpit.Detail{{Key: "keys", Value: "cb_nodes,striping"}}},
			`jobid="1",keys="cb_nodes,striping",kind="info",name="unnamed",rank="0",user="alice",world="0"`},
		{"a group", mpit.Object{Kind: mpit.BindGroup, Size: 3, Rank: -1},
			`jobid="1",kind="group",name="unnamed",rank="0",size="3",user="alice",world="0"`},
		{"a session", mpit.Object{Kind: mpit.BindSession, Size: -1, Rank: -1},
			`jobid="1",kind="session",name="unnamed",rank="0",user="alice",world="0"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := counting()
			c.object.ID = 1
			s.Layout.Objects = []mpit.Object{c.object, {ID: 2, Kind: mpit.BindComm, Name: "row"},
				{ID: 3, Kind: mpit.BindComm}}
			page := startTold(t, Config{}).take(s)
			assert.Contains(t, page, "mpit_object_info{"+c.want+"}")
			name := c.object.Name
			if name == "" {
				name = "unnamed"
			}
			kind := c.object.Kind.Label()
			assert.Equal(t, 1.0, page[`mpit_objects{jobid="1",kind="`+kind+`",name="`+name+`",rank="0",user="alice",world="0"}`])

			twin := c.object
			twin.ID = 4
			s.Layout.Objects = append(s.Layout.Objects, twin)
			page = startTold(t, Config{}).take(s)
			assert.Equal(t, 2.0, page[`mpit_objects{jobid="1",kind="`+kind+`",name="`+name+`",rank="0",user="alice",world="0"}`])
			for key := range page {
				assert.False(t, strings.HasPrefix(key, "mpit_object_info") &&
					strings.Contains(key, `kind="`+kind+`",name="`+name+`"`), "%s is of neither", key)
			}
		})
	}
}
