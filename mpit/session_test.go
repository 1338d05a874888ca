package mpit_test

import (
	"bytes"
	"context"
	"io"
	"math"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/internal/wire"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

func read(t testing.TB, s *mpit.Session) mpit.Sample {
	t.Helper()
	sample, err := s.Read(testContext(t))
	require.NoError(t, err)
	return sample
}

// values returns the elements of a variable on an object.
func values(t testing.TB, s mpit.Sample, name string, object uint32) []uint64 {
	t.Helper()
	for i := range s.Layout.Handles {
		h := &s.Layout.Handles[i]
		if h.Object == object && s.Variables.ByID[h.Variable].Name == name {
			return s.Of(h)
		}
	}
	t.Fatalf("no handle of %q on object %d", name, object)
	return nil
}

func signed(words ...int64) []uint64 {
	var list []uint64
	for _, w := range words {
		list = append(list, uint64(w))
	}
	return list
}

func TestHandshake(t *testing.T) {
	s, _ := session(t, small())
	hello := small().Hello
	hello.ProtocolVersion = wire.Version
	got := s.Hello()
	assert.True(t, hello.InitTime.Equal(got.InitTime))
	got.InitTime = hello.InitTime
	assert.Equal(t, hello, got)
	assert.Equal(t, mpit.Peer{PID: int32(os.Getpid()), UID: uint32(os.Getuid()), GID: uint32(os.Getgid())}, s.Peer())
	assert.NoError(t, s.Err())
	_, ok := s.Final()
	assert.False(t, ok)
}

func TestSample(t *testing.T) {
	cfg := small()
	s, r := session(t, cfg)
	r.SetStats(mpit.AgentStats{GateWaits: 3, GateWaitTime: time.Millisecond, GateWaitMax: time.Microsecond,
		CPUTime: time.Second})
	sample := read(t, s)
	assert.Equal(t, mpit.SampleFresh, sample.Status)
	assert.Equal(t, mpit.EndNone, sample.End)
	assert.True(t, cfg.Clock().Equal(sample.Time))
	assert.Equal(t, time.Minute, sample.Monotonic)
	assert.Equal(t, mpit.AgentStats{
		Samples: 1, GateWaits: 3, GateWaitTime: time.Millisecond, GateWaitMax: time.Microsecond,
		CPUTime: time.Second, ObjectsAlive: 2,
		PcontrolLevel: 1, CategoryStamp: 1,
	}, sample.Stats)

	require.Len(t, sample.Variables.ByID, len(cfg.Variables))
	for i, want := range cfg.Variables {
		want.ID = uint32(i)
		assert.Equal(t, want, sample.Variables.ByID[i])
	}
	require.Len(t, sample.Layout.Objects, len(cfg.Objects))
	for i, want := range cfg.Objects {
		got := sample.Layout.Objects[i]
		assert.True(t, want.Created.Equal(got.Created))
		want.ID, want.Created = uint32(i+1), got.Created
		assert.Equal(t, want, got)
	}
	assert.Equal(t, []uint64{1<<63 + 1}, values(t, sample, "messages", 0))
	assert.Equal(t, signed(1, -2, 3), values(t, sample, "queue", 1))
	assert.Equal(t, []uint64{0, 0}, values(t, sample, "queue", 2))
	assert.Equal(t, []uint64{math.Float64bits(-97.5)}, values(t, sample, "time", 2))
	assert.Equal(t, 1+3+2+1+1+1, sample.Layout.Values)
	for _, h := range sample.Layout.Handles {
		if sample.Variables.ByID[h.Variable].Name == "time" {
			assert.Equal(t, []uint64{math.Float64bits(-100)}, h.Before().First)
		} else {
			assert.Nil(t, h.Before().First)
		}
		assert.Nil(t, h.Before().Origin)
	}
	assert.Empty(t, sample.Remains.List)
}

// What does not change is sent once, and shared by all samples.
func TestSamplesShareTheCatalogue(t *testing.T) {
	s, r := session(t, small())
	first := read(t, s)
	require.NoError(t, r.Set("messages", mpit.ClassCounter, 0, 12))
	second := read(t, s)
	assert.Same(t, first.Variables, second.Variables)
	assert.Same(t, first.Layout, second.Layout)
	assert.Same(t, first.Remains, second.Remains)
	assert.Equal(t, []uint64{12}, values(t, second, "messages", 0))
	assert.Equal(t, []uint64{1<<63 + 1}, values(t, first, "messages", 0), "a sample is never changed")
}

func TestObjectsComeAndGo(t *testing.T) {
	s, r := session(t, small())
	before := read(t, s)

	comm := r.AddObject(mpit.Object{Kind: mpit.BindComm, Name: "solver", Size: 2})
	require.NoError(t, r.Set("queue", mpit.ClassLevel, comm, 5, 6))
	require.NoError(t, r.Set("time", mpit.ClassTimer, comm, -90))
	during := read(t, s)
	assert.Len(t, before.Layout.Objects, 2, "a snapshot is never changed")
	assert.Len(t, during.Layout.Objects, 3)
	assert.Greater(t, during.Layout.Generation, before.Layout.Generation)
	assert.Equal(t, []uint64{5, 6}, values(t, during, "queue", comm))
	assert.Same(t, before.Variables, during.Variables)

	require.NoError(t, r.RenameObject(comm, "renamed"))
	require.NoError(t, r.Set("time", mpit.ClassTimer, comm, -50))
	renamed := read(t, s)
	assert.Equal(t, "renamed", renamed.Layout.Objects[2].Name)
	assert.Equal(t, "solver", during.Layout.Objects[2].Name)
	require.Len(t, renamed.Remains.List, 2)

	require.NoError(t, r.FreeObject(comm))
	after := read(t, s)
	assert.Len(t, after.Layout.Objects, 2)
	remains := make(map[string]mpit.Remain)
	for _, m := range after.Remains.List {
		remains[after.Variables.ByID[m.Variable].Name+" of "+m.Name] = m
	}
	doubles := func(list ...float64) []uint64 {
		var words []uint64
		for _, f := range list {
			words = append(words, math.Float64bits(f))
		}
		return words
	}
	time := remains["time of solver"]
	assert.Equal(t, doubles(10), time.Gained, "from -100 to -90")
	assert.Equal(t, doubles(-100), time.First)
	assert.Equal(t, 1, time.Contributions)
	time = remains["time of renamed"]
	assert.Equal(t, doubles(40), time.Gained, "from -90 to -50")
	assert.Equal(t, doubles(0), time.First, "it stands under the old name")
	assert.Equal(t, doubles(-50), time.Max)
	assert.Equal(t, []uint64{5, 6}, remains["queue of solver"].Gained)
	assert.Equal(t, []uint64{0, 0}, remains["queue of renamed"].Gained)
}

func TestVariablesComeAndChange(t *testing.T) {
	s, r := session(t, small())
	before := read(t, s)
	id := r.AddVariable(mpit.Variable{Name: "late", Class: mpit.ClassCounter, Datatype: mpit.DatatypeInt,
		DatatypeBytes: 4}, 1)
	require.NoError(t, r.SetState("queue", mpit.ClassLevel, mpit.VariableReadFailed, mpit.ErrInvalid))
	require.NoError(t, r.FailRead("queue", mpit.ClassLevel, 1, mpit.ErrInvalid))
	after := read(t, s)
	assert.Len(t, before.Variables.ByID, 5)
	require.Len(t, after.Variables.ByID, 6)
	assert.Equal(t, uint32(5), id)
	assert.Equal(t, "late", after.Variables.ByID[5].Name)
	assert.Equal(t, mpit.VariableReadFailed, after.Variables.ByID[1].State)
	assert.Equal(t, mpit.ErrInvalid, after.Variables.ByID[1].Code)
	assert.Equal(t, mpit.VariableOpen, before.Variables.ByID[1].State)
	require.Len(t, after.Failed, 1)
	assert.Equal(t, mpit.ErrInvalid, after.Failed[0].Code)
	assert.Equal(t, uint64(1), after.Stats.ReadErrors)
	assert.Equal(t, []uint64{0, 0, 0}, values(t, after, "queue", 1))
	assert.Same(t, after.Variables, read(t, s).Variables)
}

func TestBusy(t *testing.T) {
	s, r := session(t, small())
	r.Busy(2)
	first := read(t, s)
	assert.Equal(t, mpit.SampleBusy, first.Status)
	assert.Nil(t, first.Values)
	assert.Nil(t, first.Layout)
	assert.Equal(t, uint64(1), first.Stats.Busy)
	assert.Zero(t, first.Stats.Samples, "out of reach")
	assert.Equal(t, mpit.SampleBusy, read(t, s).Status)
	sample := read(t, s)
	assert.Equal(t, mpit.SampleFresh, sample.Status)
	assert.Equal(t, uint64(2), sample.Stats.Busy)
	r.Busy(1)
	assert.Same(t, sample.Layout, read(t, s).Layout, "a busy answer keeps what is known")
}

func TestPassive(t *testing.T) {
	cfg := small()
	cfg.Hello.Passive = true
	s, _ := session(t, cfg)
	assert.True(t, s.Hello().Passive)
	assert.Equal(t, mpit.SamplePassive, read(t, s).Status)
}

func TestSelect(t *testing.T) {
	ctx := testContext(t)
	s, r := session(t, small())
	all := read(t, s)

	require.NoError(t, s.Select(ctx, false, map[uint32]bool{1: true}))
	sample := read(t, s)
	assert.Equal(t, 5, sample.Layout.Values)
	assert.Len(t, sample.Layout.Handles, len(all.Layout.Handles), "handles stay open")
	for _, h := range sample.Layout.Handles {
		assert.Equal(t, h.Variable == 1, h.Offset >= 0)
		assert.Equal(t, h.Variable == 1, sample.Of(&h) != nil)
	}
	assert.Equal(t, signed(1, -2, 3), values(t, sample, "queue", 1))
	r.AddVariable(mpit.Variable{Name: "late", Datatype: mpit.DatatypeInt}, 1)
	assert.Equal(t, 5, read(t, s).Layout.Values, "later variables are not read by default")

	require.NoError(t, s.Select(ctx, true, map[uint32]bool{1: false, 70: true}))
	assert.Equal(t, all.Layout.Values-5+1, read(t, s).Layout.Values)

	require.NoError(t, s.Select(ctx, true, nil))
	assert.Equal(t, all.Layout.Values+1, read(t, s).Layout.Values)

	assert.ErrorContains(t, s.Select(ctx, true, map[uint32]bool{1 << 20: true}), "variable 1048576")
	over, cancel := context.WithCancel(ctx)
	cancel()
	assert.ErrorIs(t, s.Select(over, true, nil), context.Canceled)
}

func TestOpen(t *testing.T) {
	ctx := testContext(t)
	cfg := small()
	n := uint32(len(cfg.Variables))
	sends := mpit.Variable{Name: "sends", Class: mpit.ClassCounter, Datatype: mpit.DatatypeInt,
		State: mpit.VariableOnRequest, OnRequest: true}
	each := sends
	each.Name, each.Bind = "sends_each", mpit.BindComm
	denied := sends
	denied.Name, denied.State = "denied", mpit.VariableDenied
	cfg.Variables = append(slices.Clone(cfg.Variables), sends, each, denied)
	s, r := session(t, cfg)
	before := read(t, s)
	assert.Equal(t, mpit.VariableOnRequest, before.Variables.ByID[n].State)
	assert.True(t, before.Variables.ByID[n].OnRequest)
	assert.False(t, before.Variables.ByID[0].OnRequest)
	for _, h := range before.Layout.Handles {
		assert.Less(t, h.Variable, n)
	}

	require.NoError(t, s.Open(ctx, []uint32{0, n + 1, n + 2, wire.MaxVariables - 1}))
	after := read(t, s)
	assert.Equal(t, mpit.VariableOnRequest, after.Variables.ByID[n].State, "it was not requested")
	assert.Equal(t, mpit.VariableOpen, after.Variables.ByID[n+1].State)
	assert.True(t, after.Variables.ByID[n+1].OnRequest)
	assert.Equal(t, mpit.VariableDenied, after.Variables.ByID[n+2].State)
	comms := 0
	for _, o := range after.Layout.Objects {
		if o.Kind == mpit.BindComm {
			comms++
		}
	}
	require.Positive(t, comms)
	assert.Len(t, after.Layout.Handles, len(before.Layout.Handles)+comms)

	r.AddObject(mpit.Object{Kind: mpit.BindComm, Name: "later"})
	require.NoError(t, s.Open(ctx, []uint32{n + 1})) // again
	later := read(t, s)
	opened := 0
	for _, h := range later.Layout.Handles {
		if h.Variable == n+1 {
			opened++
		}
	}
	assert.Equal(t, comms+1, opened, "objects made later as well, each once")

	assert.ErrorContains(t, s.Open(ctx, []uint32{1 << 20}), "variable 1048576")
	over, cancel := context.WithCancel(ctx)
	cancel()
	assert.ErrorIs(t, s.Open(over, nil), context.Canceled)
}

func TestControlVariablesAndCategories(t *testing.T) {
	for name, page := range map[string]int{"in one answer": 0, "one at a time": 1, "two at a time": 2} {
		t.Run(name, func(t *testing.T) {
			cfg := small()
			cfg.Page = page
			s, _ := session(t, cfg)
			cvars, err := s.ControlVariables(testContext(t))
			require.NoError(t, err)
			assert.Equal(t, cfg.ControlVariables, cvars)
			categories, _, err := s.Categories(testContext(t))
			require.NoError(t, err)
			assert.Equal(t, cfg.Categories, normal(categories))
		})
	}
	t.Run("none", func(t *testing.T) {
		s, _ := session(t, mpittest.Config{})
		cvars, err := s.ControlVariables(testContext(t))
		require.NoError(t, err)
		assert.Empty(t, cvars)
	})
}

func TestSites(t *testing.T) {
	sites := []mpit.Site{{Calls: 1}, {Function: "MPI_Send", Bind: mpit.BindComm, Object: 1, Module: "/bin/app", Offset: 77,
		Calls: 3, Inside: 9, Bytes: 1 << 40, BuildID: "c0ffee", Peer: 4},
		{Function: "MPI_Test", Of: 1}}
	s, _ := session(t, mpittest.Config{Sites: sites, Page: 2})
	got, err := s.Sites(testContext(t))
	require.NoError(t, err)
	assert.Equal(t, sites, got)
	s, _ = session(t, mpittest.Config{})
	_, err = s.Sites(testContext(t))
	var refused *mpit.RequestError
	assert.ErrorAs(t, err, &refused, "an older agent")
}

// normal turns empty lists into nil.
func normal(list []mpit.Category) []mpit.Category {
	for i := range list {
		for _, indices := range []*[]int{&list[i].Variables, &list[i].ControlVariables, &list[i].Subcategories} {
			if len(*indices) == 0 {
				*indices = nil
			}
		}
	}
	return list
}

// A page of control variables brings the enumerations that it names, whether a performance variable has them too or
// not.
func TestControlVariableEnum(t *testing.T) {
	cfg := mpittest.Everything()
	s, _ := session(t, cfg)
	before, err := s.ControlVariables(testContext(t))
	require.NoError(t, err)
	assert.Equal(t, cfg.ControlVariables, before)
	sample := read(t, s)
	after, err := s.ControlVariables(testContext(t))
	require.NoError(t, err)
	at := slices.IndexFunc(before, func(c mpit.ControlVariable) bool { return c.Name == "algorithm" })
	assert.Same(t, before[at].Enum, after[at].Enum, "sent again, kept once")
	state, ok := sample.Variables.Find("each_state_int", mpit.ClassState)
	require.True(t, ok)
	assert.Same(t, state.Enum, after[at].Enum, "one for variables of both kinds")
}

func TestEverything(t *testing.T) {
	cfg := mpittest.Everything()
	s, _ := session(t, cfg)
	sample := read(t, s)
	require.Len(t, sample.Variables.ByID, len(cfg.Variables))
	classes, binds, datatypes := map[mpit.Class]bool{}, map[mpit.Bind]bool{}, map[mpit.Datatype]bool{}
	for i, v := range sample.Variables.ByID {
		want := cfg.Variables[i]
		want.ID = uint32(i)
		assert.Equal(t, want, v)
		classes[v.Class], binds[v.Bind], datatypes[v.Datatype] = true, true, true
	}
	assert.Len(t, classes, 11)
	assert.Len(t, binds, 12)
	assert.Len(t, datatypes, 16)
	for _, v := range cfg.Values {
		want := make([]float64, 0, 4)
		for _, h := range sample.Layout.Handles {
			if variable := sample.Variables.ByID[h.Variable]; h.Object == v.Object && variable.Name == v.Name &&
				variable.Class == v.Class {
				for _, w := range sample.Of(&h) {
					want = append(want, variable.Datatype.Float64(w))
				}
			}
		}
		assert.NotEmpty(t, want, v.Name)
	}
	assert.Equal(t, []uint64{1<<53 + 1}, values(t, sample, "type_uint64", 0))
	assert.Equal(t, signed(math.MinInt64), values(t, sample, "type_int64", 0))
	assert.Equal(t, []uint64{1, 2, 3, 5, 8, 13}, values(t, sample, "message_sizes", 0))
}

// What belongs to a late request is taken when it comes, and nothing is asked twice meanwhile.
func TestLateAnswer(t *testing.T) {
	s, r := session(t, small())
	read(t, s)
	r.Stall(true)
	short, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	_, err := s.Read(short)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	pending := s.Ask()
	assert.Same(t, pending, s.Ask())
	_, err = s.ControlVariables(short)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	_, err = s.ControlVariables(short)
	require.ErrorIs(t, err, context.DeadlineExceeded)

	require.NoError(t, r.Set("messages", mpit.ClassCounter, 0, 77))
	r.Stall(false)
	await(t, "the late answer", pending.Done())
	sample, err := pending.Sample()
	require.NoError(t, err)
	assert.Equal(t, []uint64{77}, values(t, sample, "messages", 0))
	assert.Equal(t, uint64(3), read(t, s).Stats.Samples, "one before, one late, one now")
	cvars, err := s.ControlVariables(testContext(t))
	require.NoError(t, err)
	assert.Len(t, cvars, 4)
}

// Several goroutines use one session at once.
func TestConcurrentUse(t *testing.T) {
	cfg := small()
	cfg.Page = 1
	s, r := session(t, cfg)
	ctx := testContext(t)
	var users sync.WaitGroup
	for range 4 {
		users.Go(func() {
			for range 20 {
				_, err := s.Read(ctx)
				assert.NoError(t, err)
			}
		})
		users.Go(func() {
			for range 5 {
				cvars, err := s.ControlVariables(ctx)
				assert.NoError(t, err)
				assert.Len(t, cvars, 4)
				categories, _, err := s.Categories(ctx)
				assert.NoError(t, err)
				assert.Len(t, categories, 2)
			}
		})
		users.Go(func() {
			for i := range 10 {
				assert.NoError(t, s.Select(ctx, i%2 == 0, nil))
				comm := r.AddObject(mpit.Object{Kind: mpit.BindComm, Size: 1})
				assert.NoError(t, r.FreeObject(comm))
			}
		})
	}
	users.Wait()
	assert.NoError(t, s.Err())
}

// A new connection begins anew: everything is sent again, and what another exporter selected is forgotten.
func TestReconnect(t *testing.T) {
	l := listen(t)
	r := mpittest.New(small())
	s := connect(t, l, r)
	require.NoError(t, s.Select(testContext(t), false, nil))
	assert.Zero(t, read(t, s).Layout.Values)
	r.Kill()
	await(t, "the end", s.Done())
	s = connect(t, l, r)
	assert.Equal(t, 9, read(t, s).Layout.Values)
}

func TestFinish(t *testing.T) {
	l := listen(t)
	r := mpittest.New(small())
	s := connect(t, l, r)
	read(t, s)
	require.NoError(t, r.Set("messages", mpit.ClassCounter, 0, 99))
	require.NoError(t, r.Finish(testContext(t), l.Path(), mpit.EndFinalize))
	last := accept(t, l)
	await(t, "the last sample", last.Done())
	await(t, "the end of the first connection", s.Done())
	assert.Equal(t, io.EOF, s.Err())
	assert.Equal(t, io.EOF, last.Err())
	assert.True(t, last.Hello().Final)
	assert.Equal(t, s.Hello().ID, last.Hello().ID)
	sample, ok := last.Final()
	require.True(t, ok)
	assert.Equal(t, mpit.SampleFinal, sample.Status)
	assert.Equal(t, mpit.EndFinalize, sample.End)
	assert.Equal(t, []uint64{99}, values(t, sample, "messages", 0))

	_, err := s.Read(testContext(t))
	assert.Equal(t, io.EOF, err)
	_, _, err = s.Categories(testContext(t))
	assert.ErrorIs(t, err, io.EOF)
	assert.ErrorIs(t, s.Open(testContext(t), nil), io.EOF)
}

// The last sample over the connection that stands is whole, whatever has been sent before.
func TestFinishConnected(t *testing.T) {
	for _, asked := range []bool{false, true} {
		l := listen(t)
		r := mpittest.New(small())
		s := connect(t, l, r)
		if asked {
			read(t, s)
			_, ok := s.Final()
			assert.False(t, ok)
		}
		require.NoError(t, r.Set("messages", mpit.ClassCounter, 0, 99))
		require.NoError(t, r.FinishConnected(testContext(t), mpit.EndAbort, false))
		await(t, "the end", s.Done())
		assert.Equal(t, io.EOF, s.Err())
		assert.False(t, s.Hello().Final)
		sample, ok := s.Final()
		require.True(t, ok)
		assert.Equal(t, mpit.SampleFinal, sample.Status)
		assert.Equal(t, mpit.EndAbort, sample.End)
		assert.Equal(t, []uint64{99}, values(t, sample, "messages", 0))
		assert.Len(t, sample.Variables.ByID, 5)
		_, err := s.Read(testContext(t))
		assert.Equal(t, io.EOF, err)
	}
}

// A process that is shorter than it takes to be asked has its last sample all the same.
func TestFinishAtOnce(t *testing.T) {
	l := listen(t)
	r := mpittest.New(small())
	require.NoError(t, r.Finish(testContext(t), l.Path(), mpit.EndExit))
	s := accept(t, l)
	await(t, "the last sample", s.Done())
	sample, ok := s.Final()
	require.True(t, ok)
	assert.Equal(t, mpit.EndExit, sample.End)
	assert.Len(t, sample.Variables.ByID, 5)
}

func TestNothingCanBeAskedOfALastSample(t *testing.T) {
	l := listen(t)
	conn, err := net.Dial("unix", l.Path())
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	hello := dialed(t, mpittest.New(small())).hello
	hello.Payload[0] = 1
	_, err = conn.Write(encoded(hello))
	require.NoError(t, err)
	s := accept(t, l)
	_, err = s.Read(testContext(t))
	assert.ErrorIs(t, err, mpit.ErrFinal)
	_, err = s.ControlVariables(testContext(t))
	assert.ErrorIs(t, err, mpit.ErrFinal)
	assert.ErrorIs(t, s.Open(testContext(t), nil), mpit.ErrFinal)
	require.NoError(t, conn.Close())
	await(t, "the end", s.Done())
	assertReason(t, mpit.ReasonTruncated, s.Err())
	_, ok := s.Final()
	assert.False(t, ok)
}

func assertReason(t *testing.T, reason string, err error) {
	t.Helper()
	var protocol *mpit.ProtocolError
	require.ErrorAs(t, err, &protocol)
	assert.Equal(t, reason, protocol.Reason, "%v", err)
	assert.Contains(t, mpit.Reasons(), protocol.Reason)
}

func TestKill(t *testing.T) {
	s, r := session(t, small())
	r.Stall(true)
	pending := s.Ask()
	r.Kill()
	await(t, "the end", s.Done())
	assert.Equal(t, io.EOF, s.Err())
	_, err := pending.Sample()
	assert.Equal(t, io.EOF, err)
}

// A rank may die with something unread before it, which resets the connection.
func TestDeathWithAnUnreadRequest(t *testing.T) {
	l := listen(t)
	a := dialed(t, mpittest.New(small()))
	conn, err := net.Dial("unix", l.Path())
	require.NoError(t, err)
	_, err = conn.Write(encoded(a.hello))
	require.NoError(t, err)
	s := accept(t, l)
	pending := s.Ask()
	require.NoError(t, conn.Close())
	await(t, "the end", pending.Done())
	await(t, "the end", s.Done())
	assert.Equal(t, io.EOF, s.Err())
}

func TestClose(t *testing.T) {
	s, r := session(t, small())
	r.Stall(true)
	pending := s.Ask()
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	assert.Equal(t, net.ErrClosed, s.Err())
	_, err := pending.Sample()
	assert.Equal(t, net.ErrClosed, err)
	r.Stall(false)
	await(t, "the rank to notice", r.Disconnected())
}

// A rank that doesn't read (it is stopped, say) delays nobody; it loses nothing that was taken to be sent.
func TestRankThatDoesNotRead(t *testing.T) {
	s, r := session(t, small())
	r.Stall(true)
	pending := s.Ask()
	var err error
	sent := 0
	for err == nil {
		if err = selectOne(t, s, uint32(sent)); err == nil {
			sent++
		}
		require.Less(t, sent, 1000)
	}
	assert.ErrorIs(t, err, mpit.ErrCongested)
	assert.NoError(t, s.Err())
	r.Stall(false)
	await(t, "the answer", pending.Done())
	// Still congested, or not any more: both are fine, but it comes through in the end.
	require.Eventually(t, func() bool { return r.Selected(uint32(sent - 1)) }, 2*time.Minute, time.Millisecond)
	read(t, s)
}

func TestEndWhileNotReading(t *testing.T) {
	s, r := session(t, small())
	r.Stall(true)
	s.Ask()
	for selectOne(t, s, 0) == nil {
	}
	require.NoError(t, s.Close())
}

// selectOne sends a long request, which is not answered: to read one variable, and the last one there can be.
func selectOne(t *testing.T, s *mpit.Session, id uint32) error {
	t.Helper()
	return s.Select(testContext(t), false, map[uint32]bool{id: true, wire.MaxVariables - 1: true})
}

// Frames that are not known are skipped, within reason.
func TestUnknownFramesAreSkipped(t *testing.T) {
	s, r := session(t, small())
	unknown := encoded(wire.Frame{Type: 1000, Seq: 5, Payload: make([]byte, 80)}, wire.Frame{Type: 13})
	refusal := encoded(wire.Frame{Type: wire.TypeError, Seq: 99, Payload: make([]byte, 16)})
	// FINAL can be refused once.
	final := encoded(wire.Frame{Type: wire.TypeError, Seq: wire.SeqFinal, Payload: make([]byte, 16)})
	require.NoError(t, r.SendRaw(slices.Concat(unknown, refusal, final, final)))
	assert.Equal(t, mpit.SampleFresh, read(t, s).Status)
	require.NoError(t, r.SendRaw(bytes.Repeat(unknown, 600)))
	await(t, "the end", s.Done())
	assertReason(t, mpit.ReasonTooLarge, s.Err())
}

func TestBreaches(t *testing.T) {
	header := encoded(wire.Frame{Type: wire.TypeSample})
	newer := bytes.Clone(header)
	newer[6] = 200
	oversized := bytes.Clone(header)
	oversized[10] = 9 // 589,824 words, more than 4 MiB
	for name, c := range map[string]struct {
		raw    []byte
		reason string
	}{
		"nonsense":              {[]byte("HTTP/1.1 400 Bad Request\r\n\r\n"), mpit.ReasonBadMagic},
		"too long a payload":    {oversized, mpit.ReasonTooLarge},
		"a newer version":       {newer, mpit.ReasonVersion},
		"a last one that isn't": {header, mpit.ReasonMalformed},
		"an unasked answer":     {encoded(wire.Frame{Type: wire.TypeSample, Seq: 9}), mpit.ReasonMalformed},
		"a second HELLO":        {encoded(wire.Frame{Type: wire.TypeHello}), mpit.ReasonMalformed},
		"half a frame":          {header[:10], mpit.ReasonTruncated},
		"an answer to no one":   {encoded(wire.Frame{Type: wire.TypeCvars, Seq: 9}), mpit.ReasonMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			s, r := session(t, small())
			require.NoError(t, r.SendRaw(c.raw))
			if c.reason == mpit.ReasonTruncated {
				r.Kill()
			}
			await(t, "the end", s.Done())
			assertReason(t, c.reason, s.Err())
		})
	}
}

// An agent that doesn't know a request says so, and goes on.
func TestRefusals(t *testing.T) {
	l := listen(t)
	a := dialed(t, mpittest.New(small()))
	conn, err := net.Dial("unix", l.Path())
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	_, err = conn.Write(encoded(a.hello))
	require.NoError(t, err)
	s := accept(t, l)

	// The next requests are answered with these codes, in turn. The first is FINAL, which an agent may be too old for.
	codes := []uint64{wire.ErrorUnsupported, wire.ErrorUnsupported, wire.ErrorNotNow, wire.ErrorTooLarge,
		wire.ErrorMalformed}
	answered := make(chan error, 1)
	go func() {
		requests := wire.NewReader(conn, wire.MaxExporterPayload)
		for _, code := range codes {
			f, err := requests.Next()
			if err != nil {
				answered <- err
				return
			}
			var e wire.Encoder
			e.Begin(wire.TypeError, f.Seq)
			e.Word(code)
			e.String("no")
			e.Finish()
			if _, err := conn.Write(e.Bytes()); err != nil {
				answered <- err
				return
			}
		}
		answered <- nil
	}()
	var refused *mpit.RequestError
	_, err = s.Read(testContext(t))
	require.ErrorAs(t, err, &refused)
	assert.EqualError(t, refused, "mpit: the rank refused (unsupported): no")
	_, err = s.ControlVariables(testContext(t)) // asks again when it isn't now
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, wire.ErrorTooLarge, refused.Code)
	_, _, err = s.Categories(testContext(t))
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, wire.ErrorMalformed, refused.Code)
	require.NoError(t, <-answered)
	assert.NoError(t, s.Err())
}

func TestManyRanksAtOnce(t *testing.T) {
	const n = 200
	l := listen(t)
	ctx := testContext(t)
	ranks := make([]*mpittest.Rank, n)
	for i := range ranks {
		cfg := small()
		cfg.Hello.ID, cfg.Hello.Rank, cfg.Hello.Size = mpit.RankID{}, i, n
		ranks[i] = mpittest.New(cfg)
		t.Cleanup(ranks[i].Kill)
		require.NoError(t, ranks[i].Set("messages", mpit.ClassCounter, 0, i))
		require.NoError(t, ranks[i].Connect(ctx, l.Path()))
	}
	sessions := make([]*mpit.Session, n)
	for range n {
		s := accept(t, l)
		require.Nil(t, sessions[s.Hello().Rank])
		sessions[s.Hello().Rank] = s
	}
	ranks[7].Stall(true)
	for range 3 {
		pending := make([]*mpit.Pending, n)
		for i, s := range sessions {
			pending[i] = s.Ask()
		}
		for i, p := range pending {
			if i == 7 {
				continue
			}
			await(t, "a rank", p.Done())
			sample, err := p.Sample()
			require.NoError(t, err)
			assert.Equal(t, []uint64{uint64(i)}, values(t, sample, "messages", 0))
		}
		select {
		case <-pending[7].Done():
			t.Error("a rank that answers nothing has answered")
		default:
		}
	}
}

// Strings in no known encoding become UTF-8.
func TestStringsAreUTF8(t *testing.T) {
	cfg := small()
	cfg.Objects[0].Name = "caf\xe9"
	s, _ := session(t, cfg)
	assert.Equal(t, "café", read(t, s).Layout.Objects[0].Name)
}

func TestJob(t *testing.T) {
	l := listen(t)
	ctx, cancel := context.WithCancel(testContext(t))
	defer cancel()
	job := mpittest.NewJob(3)
	for range 120 { // makes and frees a communicator
		require.NoError(t, job.Step())
	}
	ran := make(chan error, 1)
	go func() { ran <- job.Run(ctx, l.Path()) }()
	var living []*mpit.Session
	for range job.Ranks {
		s := accept(t, l)
		sample := read(t, s)
		assert.NotEmpty(t, sample.Remains.List)
		assert.True(t, strings.Contains(s.Hello().LibraryVersion, "simulated"))
		living = append(living, s)
	}
	cancel()
	for range job.Ranks {
		s := accept(t, l)
		await(t, "a last sample", s.Done())
		sample, ok := s.Final()
		require.True(t, ok)
		assert.Equal(t, mpit.EndFinalize, sample.End)
	}
	require.NoError(t, <-ran)
	for _, s := range living {
		await(t, "the end", s.Done())
	}
}
