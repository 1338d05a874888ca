package mpit_test

import (
	"context"
	"io"
	"math"
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

// tooled is a rank for tools: a variable of each kind of behaviour, two communicators, control variables.
func tooled() mpittest.Config {
	comm := func(name string, class mpit.Class) mpit.Variable {
		return mpit.Variable{Name: name, Class: class, Datatype: mpit.DatatypeUnsignedLong, DatatypeBytes: 8,
			Bind: mpit.BindComm}
	}
	readonly, atomic := comm("readonly", mpit.ClassLevel), comm("atomic", mpit.ClassCounter)
	readonly.ReadOnly, readonly.Continuous, atomic.Atomic = true, true, true
	cfg := mpittest.Config{
		Hello: mpit.Hello{WriteAllowed: true},
		Variables: []mpit.Variable{
			readonly,
			comm("count", mpit.ClassCounter),
			atomic,
			comm("deepest", mpit.ClassHighWatermark),
			{Name: "time", Class: mpit.ClassTimer, Datatype: mpit.DatatypeDouble, DatatypeBytes: 8},
			{Name: "denied", Class: mpit.ClassLevel, Datatype: mpit.DatatypeInt, State: mpit.VariableDenied},
			{Name: "count", Class: mpit.ClassLevel, Datatype: mpit.DatatypeInt, DatatypeBytes: 4},
		},
		Objects: []mpit.Object{{Kind: mpit.BindComm, Name: "world", Size: 2},
			{Kind: mpit.BindComm, Name: "halo", Size: 2}, {Kind: mpit.BindWin}},
		Elements: map[string]int{"atomic": mpittest.PerPeer},
		ControlVariables: []mpit.ControlVariable{
			{Name: "limit", Scope: mpit.ScopeLocal, Datatype: mpit.DatatypeInt, HasValue: true,
				Values: []uint64{4096}},
			{Index: 1, Name: "transport", Scope: mpit.ScopeAllEq, Datatype: mpit.DatatypeChar, HasValue: true,
				Text: "tcp"},
			{Index: 2, Name: "version", Scope: mpit.ScopeConstant, Datatype: mpit.DatatypeInt, HasValue: true,
				Values: []uint64{3}},
			{Index: 3, Name: "algorithm", Scope: mpit.ScopeLocal, Datatype: mpit.DatatypeInt, Bind: mpit.BindComm,
				Objects: []mpit.ObjectValue{
					{Object: 1, HasValue: true, Values: []uint64{7}},
					{Object: 2, Code: mpit.ErrNotAccessible},
				}},
		},
		Categories: []mpit.Category{{Name: "all"}, {Index: 1, Name: "queues"}},
	}
	for i := range cfg.Variables {
		cfg.Variables[i].Index = 10 * i // as a library numbers them
	}
	return cfg
}

// pvarSession returns a session in a rank of tooled, and what finds its variables.
func pvarSession(t *testing.T, cfg mpittest.Config) (*mpit.PvarSession, *mpit.Session, *mpittest.Rank) {
	t.Helper()
	s, r := session(t, cfg)
	p, err := s.CreatePvarSession(testContext(t))
	require.NoError(t, err)
	return p, s, r
}

// handle allocates a handle by the variable's name and class.
func handle(t *testing.T, p *mpit.PvarSession, s *mpit.Session, name string, class mpit.Class,
	object uint32) *mpit.PvarHandle {
	t.Helper()
	v, ok := read(t, s).Variables.Find(name, class)
	require.True(t, ok)
	h, err := p.AllocHandle(testContext(t), v.ID, object)
	require.NoError(t, err)
	return h
}

func reads(t *testing.T, h *mpit.PvarHandle, want ...uint64) {
	t.Helper()
	got, err := h.Read(testContext(t))
	require.NoError(t, err)
	assert.Equal(t, want, got)
}

// A handle counts while it runs, from zero, whatever the library has counted before and other handles do.
func TestHandleOfACounter(t *testing.T) {
	ctx := testContext(t)
	p, s, r := pvarSession(t, tooled())
	add := func(n int) { require.NoError(t, r.Add("count", mpit.ClassCounter, 2, n)) }
	add(100)
	h, other := handle(t, p, s, "count", mpit.ClassCounter, 2), handle(t, p, s, "count", mpit.ClassCounter, 2)
	assert.Equal(t, 1, h.Count())
	assert.Equal(t, uint32(1), h.Variable())
	assert.Equal(t, uint32(2), h.Object())
	add(10)
	reads(t, h, 0)
	require.NoError(t, h.Start(ctx))
	add(3)
	reads(t, h, 3)
	require.NoError(t, h.Stop(ctx))
	add(50)
	reads(t, h, 3)
	require.NoError(t, h.Start(ctx))
	add(4)
	reads(t, h, 7)
	require.NoError(t, h.Write(ctx, []uint64{1000}))
	add(1)
	reads(t, h, 1001)
	require.NoError(t, h.Reset(ctx))
	reads(t, h, 0)
	reads(t, other, 0)
	assert.Equal(t, []uint64{168}, values(t, read(t, s), "count", 2), "samples come from another session")
}

func TestHandleOfAWatermark(t *testing.T) {
	ctx := testContext(t)
	p, s, r := pvarSession(t, tooled())
	set := func(n int) { require.NoError(t, r.Set("deepest", mpit.ClassHighWatermark, 1, n)) }
	set(9)
	h := handle(t, p, s, "deepest", mpit.ClassHighWatermark, 1)
	set(5)
	require.NoError(t, h.Start(ctx))
	set(7)
	set(2)
	reads(t, h, 7)
	require.NoError(t, h.Reset(ctx))
	reads(t, h, 2)
}

func TestHandleOfATimer(t *testing.T) {
	p, s, r := pvarSession(t, tooled())
	require.NoError(t, r.Add("time", mpit.ClassTimer, 0, 100.0))
	h := handle(t, p, s, "time", mpit.ClassTimer, 0)
	require.NoError(t, h.Start(testContext(t)))
	require.NoError(t, r.Add("time", mpit.ClassTimer, 0, 1.5))
	reads(t, h, math.Float64bits(1.5))
}

func TestReadReset(t *testing.T) {
	ctx := testContext(t)
	p, s, r := pvarSession(t, tooled())
	h := handle(t, p, s, "atomic", mpit.ClassCounter, 1)
	assert.Equal(t, 2, h.Count(), "an element for each peer")
	require.NoError(t, h.Start(ctx))
	require.NoError(t, r.Add("atomic", mpit.ClassCounter, 1, 3, 4))
	got, err := h.ReadReset(ctx)
	require.NoError(t, err)
	assert.Equal(t, []uint64{3, 4}, got)
	reads(t, h, 0, 0)
}

// What is asked of all handles concerns those of one session that it can be done with.
func TestAllHandles(t *testing.T) {
	ctx := testContext(t)
	p, s, r := pvarSession(t, tooled())
	second, err := s.CreatePvarSession(ctx)
	require.NoError(t, err)
	count, level := handle(t, p, s, "count", mpit.ClassCounter, 1), handle(t, p, s, "readonly", mpit.ClassLevel, 1)
	other := handle(t, second, s, "count", mpit.ClassCounter, 1)
	require.NoError(t, p.StartAll(ctx))
	require.NoError(t, r.Add("count", mpit.ClassCounter, 1, 5))
	require.NoError(t, r.Set("readonly", mpit.ClassLevel, 1, 6))
	reads(t, count, 5)
	reads(t, level, 6)
	reads(t, other, 0)
	require.NoError(t, p.StopAll(ctx))
	require.NoError(t, r.Add("count", mpit.ClassCounter, 1, 5))
	require.NoError(t, r.Set("readonly", mpit.ClassLevel, 1, 8))
	reads(t, count, 5)
	reads(t, level, 8)
	require.NoError(t, p.ResetAll(ctx))
	reads(t, count, 0)
	reads(t, level, 8)
}

// The return codes of MPI_T are Go errors.
func TestRefusedOperations(t *testing.T) {
	ctx := testContext(t)
	closed := tooled()
	closed.Hello.WriteAllowed = false
	p, s, _ := pvarSession(t, tooled())
	closedP, closedS, _ := pvarSession(t, closed)
	level, count := handle(t, p, s, "readonly", mpit.ClassLevel, 1), handle(t, p, s, "count", mpit.ClassCounter, 1)
	closedCount := handle(t, closedP, closedS, "count", mpit.ClassCounter, 1)
	alloc := func(variable, object uint32) func() error {
		return func() error {
			_, err := p.AllocHandle(ctx, variable, object)
			return err
		}
	}
	number := mpit.CvarValue{Values: []uint64{1}}
	for name, c := range map[string]struct {
		do   func() error
		want mpit.ReturnCode
	}{
		"starting what is continuous": {func() error { return level.Start(ctx) }, mpit.ErrPvarNoStartStop},
		"stopping what is continuous": {func() error { return level.Stop(ctx) }, mpit.ErrPvarNoStartStop},
		"resetting what is readonly":  {func() error { return level.Reset(ctx) }, mpit.ErrPvarNoWrite},
		"writing what is readonly": {func() error { return level.Write(ctx, []uint64{1}) },
			mpit.ErrPvarNoWrite},
		"readreset of what is readonly": {func() error { _, err := level.ReadReset(ctx); return err },
			mpit.ErrPvarNoWrite},
		"readreset of what isn't atomic": {func() error { _, err := count.ReadReset(ctx); return err },
			mpit.ErrPvarNoAtomic},
		"writing too many elements": {func() error { return count.Write(ctx, []uint64{1, 2}) },
			mpit.ErrInvalid},
		"writing where it isn't allowed": {func() error { return closedCount.Write(ctx, []uint64{1}) },
			mpit.ErrNotAccessible},
		"an unknown variable":           {alloc(99, 0), mpit.ErrInvalidIndex},
		"an unknown object":             {alloc(1, 99), mpit.ErrInvalidHandle},
		"an object of another kind":     {alloc(1, 3), mpit.ErrInvalidHandle},
		"no object where there must be": {alloc(1, 0), mpit.ErrInvalidHandle},
		"a denied variable":             {alloc(5, 0), mpit.ErrNotAccessible},
		"a name of no performance variable": {func() error {
			_, _, _,
				err := s.PvarIndex(ctx, "count", mpit.ClassSize)
			return err
		}, mpit.ErrInvalidName},
		"a name of no control variable": {func() error { _, err := s.CvarIndex(ctx, "x"); return err },
			mpit.ErrInvalidName},
		"a name of no category": {func() error { _, err := s.CategoryIndex(ctx, ""); return err },
			mpit.ErrInvalidName},
		"reading no control variable": {func() error { _, err := s.ReadCvar(ctx, 4, 0); return err },
			mpit.ErrInvalidIndex},
		"reading without an object": {func() error { _, err := s.ReadCvar(ctx, 3, 0); return err },
			mpit.ErrInvalidHandle},
		"reading what can't be read": {func() error { _, err := s.ReadCvar(ctx, 3, 2); return err },
			mpit.ErrNotAccessible},
		"writing what is constant": {func() error { return s.WriteCvar(ctx, 2, 0, number) },
			mpit.ErrCvarSetNever},
		"writing a text as a number": {func() error { return s.WriteCvar(ctx, 1, 0, number) }, mpit.ErrInvalid},
		"writing a variable, not allowed": {func() error { return closedS.WriteCvar(ctx, 0, 0, number) },
			mpit.ErrNotAccessible},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.do()
			assert.ErrorIs(t, err, c.want)
			var refused *mpit.RefusedError
			require.ErrorAs(t, err, &refused)
			assert.Equal(t, c.want, refused.Code)
		})
	}
	assert.EqualError(t, level.Start(ctx), "mpit: start: MPI_T_ERR_PVAR_NO_STARTSTOP: the variable is continuous")
	assert.NoError(t, s.Err())
	assert.NoError(t, closedS.Err())
}

// What has been freed is known to be.
func TestUseAfterFree(t *testing.T) {
	ctx := testContext(t)
	p, s, _ := pvarSession(t, tooled())
	h, second := handle(t, p, s, "count", mpit.ClassCounter, 1), handle(t, p, s, "count", mpit.ClassCounter, 1)
	require.NoError(t, h.Free(ctx))
	for name, do := range map[string]func() error{
		"free":      func() error { return h.Free(ctx) },
		"start":     func() error { return h.Start(ctx) },
		"read":      func() error { _, err := h.Read(ctx); return err },
		"readreset": func() error { _, err := h.ReadReset(ctx); return err },
		"write":     func() error { return h.Write(ctx, nil) },
	} {
		assert.ErrorIs(t, do(), mpit.ErrInvalidHandle, name)
	}
	require.NoError(t, p.Free(ctx))
	for name, do := range map[string]func() error{
		"free":             func() error { return p.Free(ctx) },
		"start all":        func() error { return p.StartAll(ctx) },
		"alloc":            func() error { _, err := p.AllocHandle(ctx, 1, 1); return err },
		"read of a handle": func() error { _, err := second.Read(ctx); return err },
		"free of a handle": func() error { return second.Free(ctx) },
	} {
		assert.ErrorIs(t, do(), mpit.ErrInvalidSession, name)
	}
}

// A handle ends before its object does.
func TestHandleOfAnObjectThatEnds(t *testing.T) {
	ctx := testContext(t)
	p, s, r := pvarSession(t, tooled())
	h := handle(t, p, s, "count", mpit.ClassCounter, 2)
	require.NoError(t, r.FreeObject(2))
	_, err := h.Read(ctx)
	assert.ErrorIs(t, err, mpit.ErrInvalidHandle)
	require.NoError(t, p.StartAll(ctx))
	assert.NoError(t, h.Free(ctx))
}

// Sessions and handles are bounded, and end with the connection.
func TestToolsAreBounded(t *testing.T) {
	ctx := testContext(t)
	l := listen(t)
	r := mpittest.New(tooled())
	s := connect(t, l, r)
	var sessions []*mpit.PvarSession
	for range 16 {
		p, err := s.CreatePvarSession(ctx)
		require.NoError(t, err)
		sessions = append(sessions, p)
	}
	_, err := s.CreatePvarSession(ctx)
	assert.ErrorIs(t, err, mpit.ErrOutOfSessions)
	require.NoError(t, sessions[3].Free(ctx))
	_, err = s.CreatePvarSession(ctx)
	require.NoError(t, err)

	for range 4096 {
		_, err := sessions[0].AllocHandle(ctx, 4, 0)
		require.NoError(t, err)
	}
	_, err = sessions[1].AllocHandle(ctx, 4, 0)
	assert.ErrorIs(t, err, mpit.ErrOutOfHandles)
	require.NoError(t, sessions[0].Free(ctx))
	_, err = sessions[1].AllocHandle(ctx, 4, 0)
	assert.NoError(t, err, "a session's handles end with it")

	r.Kill()
	await(t, "the end", s.Done())
	assert.ErrorIs(t, sessions[1].StartAll(ctx), io.EOF)
	s = connect(t, l, r)
	for range 16 {
		_, err := s.CreatePvarSession(ctx)
		require.NoError(t, err)
	}
}

// Whoever waits no longer leaves nothing behind: what was made for him is freed when the answer comes.
func TestLateToolAnswers(t *testing.T) {
	ctx := testContext(t)
	p, s, r := pvarSession(t, tooled())
	r.Stall(true)
	short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	var late sync.WaitGroup
	for range 8 {
		late.Go(func() {
			_, err := s.CreatePvarSession(short)
			assert.ErrorIs(t, err, context.DeadlineExceeded)
		})
		late.Go(func() {
			_, err := p.AllocHandle(short, 1, 1)
			assert.ErrorIs(t, err, context.DeadlineExceeded)
		})
	}
	late.Wait()
	pending := s.Ask()
	r.Stall(false)
	await(t, "the reader, which nobody holds up", pending.Done())
	_, err := s.CategoryIndex(ctx, "all") // has its turn after the late ones have theirs
	require.NoError(t, err)
	for range 15 { // with p's all that there can be: none is left of those that nobody got
		_, err := s.CreatePvarSession(ctx)
		require.NoError(t, err)
	}
	for range 4096 {
		_, err := p.AllocHandle(ctx, 1, 1)
		require.NoError(t, err)
	}
	assert.NoError(t, s.Err())
}

// A request that was not sent frees nothing; one that was does, also where nobody waited for its answer.
func TestFreeThatFails(t *testing.T) {
	ctx := testContext(t)
	p, s, r := pvarSession(t, tooled())
	over, cancel := context.WithCancel(ctx)
	cancel()
	require.ErrorIs(t, p.Free(over), context.Canceled)
	require.NoError(t, p.StartAll(ctx), "it lives on")

	r.Stall(true)
	short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, p.Free(short), context.DeadlineExceeded)
	r.Stall(false)
	assert.ErrorIs(t, p.Free(ctx), mpit.ErrInvalidSession)
	for range 16 {
		_, err := s.CreatePvarSession(ctx)
		require.NoError(t, err, "it is gone")
	}
}

// The rank's "not now" is asked again; a rank that never can is given up.
func TestNotNow(t *testing.T) {
	t.Parallel() // it asks again and again
	ctx := testContext(t)
	s, r := session(t, tooled())
	r.NotNow(3)
	_, err := s.CreatePvarSession(ctx)
	require.NoError(t, err)
	r.NotNow(1000)
	_, err = s.CvarIndex(ctx, "limit")
	var refused *mpit.RequestError
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, uint64(4), refused.Code)
}

// More questions than may be open at once wait for their turn, while samples go on.
func TestManyToolsAtOnce(t *testing.T) {
	ctx := testContext(t)
	p, s, r := pvarSession(t, tooled())
	h := handle(t, p, s, "count", mpit.ClassCounter, 1)
	var users sync.WaitGroup
	for user := range 40 {
		users.Go(func() {
			for range 10 {
				switch user % 4 {
				case 0:
					_, err := h.Read(ctx)
					assert.NoError(t, err)
				case 1:
					own, err := p.AllocHandle(ctx, 1, 1)
					if assert.NoError(t, err) {
						assert.NoError(t, own.Start(ctx))
						assert.NoError(t, own.Free(ctx))
					}
				case 2:
					assert.NoError(t, s.WriteCvar(ctx, 0, 0, mpit.CvarValue{Values: []uint64{uint64(user)}}))
				case 3:
					_, err := s.Read(ctx)
					assert.NoError(t, err)
					assert.NoError(t, r.Add("count", mpit.ClassCounter, 1, 1))
				}
			}
		})
	}
	users.Wait()
	assert.NoError(t, s.Err())
}

// scripted returns a session with an agent that gives these answers in turn, and what is closed when it has.
func scripted(t *testing.T, answers ...func(e *wire.Encoder, f wire.Frame)) (*mpit.Session, <-chan struct{}) {
	t.Helper()
	l := listen(t)
	hello := dialed(t, mpittest.New(small())).hello
	conn := dial(t, l.Path())
	_, err := conn.Write(encoded(hello))
	require.NoError(t, err)
	s := accept(t, l)
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		requests := wire.NewReader(conn, wire.MaxExporterPayload)
		if f, err := requests.Next(); !assert.NoError(t, err) || !assert.Equal(t, wire.TypeAskFinal, f.Type) {
			return
		}
		for _, answer := range answers {
			f, err := requests.Next()
			if !assert.NoError(t, err) {
				return
			}
			var e wire.Encoder
			answer(&e, f)
			_, _ = conn.Write(e.Bytes()) // who is refused closes before all is read
		}
	}()
	return s, answered
}

// An agent that doesn't know TOOL, and one that answers something else than it was asked.
func TestToolsOfOtherAgents(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(e *wire.Encoder, f wire.Frame)
		check  func(t *testing.T, s *mpit.Session, err error)
	}{
		"an older one": {
			func(e *wire.Encoder, f wire.Frame) {
				e.Begin(wire.TypeError, f.Seq)
				e.Word(wire.ErrorUnsupported)
				e.String("request 69")
				e.Finish()
			},
			func(t *testing.T, s *mpit.Session, err error) {
				assert.ErrorContains(t, err, "unsupported")
				assert.NoError(t, s.Err())
			},
		},
		"a broken one": {
			func(e *wire.Encoder, f wire.Frame) {
				e.Begin(wire.TypeTool, f.Seq)
				e.Word(uint64(wire.ToolReadReset))
				e.Finish()
			},
			func(t *testing.T, s *mpit.Session, err error) {
				assertReason(t, mpit.ReasonMalformed, err)
				await(t, "the end", s.Done())
			},
		},
		"one that never ends": {
			func(e *wire.Encoder, f wire.Frame) {
				for range 9 {
					e.Begin(wire.TypeEnums, f.Seq)
					e.Words(make([]uint64, wire.MaxAgentPayload/wire.WordBytes))
					e.Finish()
				}
			},
			func(t *testing.T, _ *mpit.Session, err error) { assertReason(t, mpit.ReasonTooLarge, err) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, answered := scripted(t, c.answer)
			_, err := s.CreatePvarSession(testContext(t))
			c.check(t, s, err)
			await(t, "the answer", answered)
		})
	}
}

func TestIndices(t *testing.T) {
	ctx := testContext(t)
	s, _ := session(t, tooled())
	index, variable, known, err := s.PvarIndex(ctx, "count", mpit.ClassLevel)
	require.NoError(t, err)
	assert.Equal(t, []any{60, uint32(6), true}, []any{index, variable, known}, "a name belongs to several classes")
	index, err = s.CvarIndex(ctx, "transport")
	require.NoError(t, err)
	assert.Equal(t, 1, index)
	index, err = s.CategoryIndex(ctx, "queues")
	require.NoError(t, err)
	assert.Equal(t, 1, index)

	variables := read(t, s).Variables
	v, ok := variables.Find("count", mpit.ClassLevel)
	assert.True(t, ok)
	assert.Equal(t, uint32(6), v.ID)
	v, ok = variables.ByIndex(60)
	assert.True(t, ok)
	assert.Equal(t, uint32(6), v.ID)
	_, ok = variables.Find("count", mpit.ClassTimer)
	assert.False(t, ok)
	_, ok = variables.ByIndex(1)
	assert.False(t, ok)
	_, ok = (*mpit.Variables)(nil).Find("count", mpit.ClassLevel)
	assert.False(t, ok, "a rank that has sent none")

	layout := read(t, s).Layout
	o, ok := layout.Find(mpit.BindComm, "halo")
	assert.True(t, ok)
	assert.Equal(t, uint32(2), o.ID)
	_, ok = layout.Find(mpit.BindWin, "halo")
	assert.False(t, ok)
	_, ok = (*mpit.Layout)(nil).Find(mpit.BindComm, "halo")
	assert.False(t, ok)
}

func TestControlVariablesAreReadAndWritten(t *testing.T) {
	ctx := testContext(t)
	s, r := session(t, tooled())
	for _, c := range []struct {
		index       int
		object      uint32
		before, set mpit.CvarValue
	}{
		{0, 0, mpit.CvarValue{Values: []uint64{4096}}, mpit.CvarValue{Values: []uint64{8192}}},
		{1, 0, mpit.CvarValue{Text: "tcp", IsText: true}, mpit.CvarValue{Text: "", IsText: true}},
		{3, 1, mpit.CvarValue{Values: []uint64{7}}, mpit.CvarValue{Values: []uint64{8}}},
	} {
		got, err := s.ReadCvar(ctx, c.index, c.object)
		require.NoError(t, err)
		assert.Equal(t, c.before, got)
		require.NoError(t, s.WriteCvar(ctx, c.index, c.object, c.set))
		got, err = s.ReadCvar(ctx, c.index, c.object)
		require.NoError(t, err)
		assert.Equal(t, c.set, got)
	}
	list, err := s.ControlVariables(ctx)
	require.NoError(t, err)
	assert.Equal(t, []uint64{8192}, list[0].Values)
	assert.Equal(t, []uint64{8}, list[3].Objects[0].Values)
	assert.Equal(t, list[0].Values, r.ControlVariables()[0].Values)

	r.RefuseCvar(0, mpit.ErrCvarSetNotNow)
	err = s.WriteCvar(ctx, 0, 0, mpit.CvarValue{Values: []uint64{1}})
	assert.Equal(t, &mpit.RefusedError{Operation: "cvar write", Code: mpit.ErrCvarSetNotNow}, err)
}

// What no request has room for is refused here.
func TestToolRequestsAreBounded(t *testing.T) {
	ctx := testContext(t)
	p, s, _ := pvarSession(t, tooled())
	h := handle(t, p, s, "count", mpit.ClassCounter, 1)
	long := strings.Repeat("x", wire.MaxString+1)
	many := make([]uint64, 16001)
	_, err := s.CvarIndex(ctx, long)
	assert.ErrorContains(t, err, "the limit is 65536")
	_, _, _, err = s.PvarIndex(ctx, long, mpit.ClassLevel)
	assert.Error(t, err)
	assert.Error(t, s.WriteCvar(ctx, 0, 0, mpit.CvarValue{Text: long, IsText: true}))
	assert.ErrorContains(t, s.WriteCvar(ctx, 0, 0, mpit.CvarValue{Values: many}), "the limit is 16000")
	assert.Error(t, h.Write(ctx, many))

	assert.ErrorIs(t, h.Write(ctx, many[:16000]), mpit.ErrInvalid, "the rank was asked")
	assert.ErrorIs(t, s.WriteCvar(ctx, 0, 0, mpit.CvarValue{Text: long[1:], IsText: true}), mpit.ErrInvalid)
	assert.NoError(t, s.Err())
}

func TestNoToolsOnALastSample(t *testing.T) {
	l := listen(t)
	conn := dial(t, l.Path())
	hello := dialed(t, mpittest.New(small())).hello
	hello.Payload[0] = 1
	_, err := conn.Write(encoded(hello))
	require.NoError(t, err)
	s := accept(t, l)
	_, err = s.CreatePvarSession(testContext(t))
	assert.ErrorIs(t, err, mpit.ErrFinal)
}

// Categories that change between two pages are asked for again.
func TestCategoriesThatChange(t *testing.T) {
	page := func(index int, name string, stamp uint64) func(e *wire.Encoder, f wire.Frame) {
		return func(e *wire.Encoder, f wire.Frame) {
			e.Begin(wire.TypeCategories, f.Seq)
			e.Words([]uint64{2, uint64(index + 1), 1})
			e.Record(func() { e.Int(index); e.String(name) })
			e.Word(stamp)
			e.Finish()
		}
	}
	s, answered := scripted(t, page(0, "old", 1), page(1, "new", 2), page(0, "new", 2), page(1, "newer", 2))
	list, stamp, err := s.Categories(testContext(t))
	require.NoError(t, err)
	assert.Equal(t, uint64(2), stamp)
	assert.Equal(t, []mpit.Category{{Index: 0, Name: "new"}, {Index: 1, Name: "newer"}}, list)
	await(t, "the answers", answered)

	var forever []func(e *wire.Encoder, f wire.Frame)
	for stamp := range uint64(4) {
		forever = append(forever, page(0, "a", 2*stamp), page(1, "b", 2*stamp+1))
	}
	s, answered = scripted(t, forever...)
	list, stamp, err = s.Categories(testContext(t))
	require.NoError(t, err, "better than none")
	assert.Len(t, list, 2)
	assert.Equal(t, uint64(6), stamp, "not the last one that was seen: a later look finds a change")
	await(t, "the answers", answered)
}

// The stamp of samples says whether categories are still true.
func TestCategoryStamp(t *testing.T) {
	s, r := session(t, tooled())
	_, stamp, err := s.Categories(testContext(t))
	require.NoError(t, err)
	assert.NotZero(t, stamp)
	assert.Equal(t, stamp, read(t, s).Stats.CategoryStamp)
	r.SetCategories([]mpit.Category{{Name: "all"}})
	assert.NotEqual(t, stamp, read(t, s).Stats.CategoryStamp)
}
