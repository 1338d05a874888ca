package conformance

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/test/fixture"
)

const (
	neverStopped = "Open MPI's monitoring would stop for everybody, the exporter included: the agent refuses with " +
		"MPI_T_ERR_PVAR_NO_STARTSTOP."
	noneWritable = "The only variables that aren't readonly, `osc_rdma_*_retry_count`, crash: the agent denies them."
)

// 15.3.7: sessions and handles of a tool's own, through package mpit.
func tools() section {
	return section{"15.3.7 Performance variables: sessions and handles of a tool", []feature{
		{"sessions are isolated from one another and from the exporter's", isolated},
		{"handle alloc, read and free on an object of each kind", handlesOfEachKind},
		{"the handle of a freed object is invalid", orphaned},
		{"start", started},
		{"start: refused for a continuous variable", noStartStop},
		{"stop", stopped},
		{"read", readTool},
		{"write", written},
		{"write: refused where the job doesn't allow it", writeWithoutLeave},
		{"reset", reset},
		{"write and reset: refused for a readonly variable", noWrite},
		{"readreset", readReset},
		{"readreset: refused where it isn't atomic", noAtomic},
		{"start all handles, stop all, reset all", allHandles},
	}}
}

// flagged is the fixture's counter with the given flags.
func (s *subject) flagged(readonly, continuous, atomic bool) fixture.Variable {
	for _, v := range s.library.Named("flags_") {
		if v.Class == mpit.ClassCounter && v.ReadOnly == readonly && v.Continuous == continuous &&
			v.Atomic == atomic && !v.FlagsAreTwo {
			return v
		}
	}
	panic("no such counter")
}

// opened makes a session, which is freed when the returned function is called.
func (r *rank) opened(t *testing.T) (*mpit.PvarSession, func()) {
	t.Helper()
	ps, err := r.session.CreatePvarSession(within(t))
	require.NoError(t, err)
	return ps, func() { require.NoError(t, ps.Free(within(t))) }
}

func alloc(t *testing.T, ps *mpit.PvarSession, v mpit.Variable, object uint32) *mpit.PvarHandle {
	t.Helper()
	h, err := ps.AllocHandle(within(t), v.ID, object)
	require.NoError(t, err, v.Name)
	return h
}

// shows is what a tool's handle reads.
func shows(t *testing.T, h *mpit.PvarHandle, v mpit.Variable) []float64 {
	t.Helper()
	words, err := h.Read(within(t))
	require.NoError(t, err, v.Name)
	return floats(v.Datatype, words)
}

func isolated(t *testing.T, s *subject) outcome {
	if len(s.truth.Pvars) == 0 {
		return notOffered
	}
	if !s.fixture() {
		one, freeOne := s.opened(t)
		two, freeTwo := s.opened(t)
		world := s.object(t, mpit.BindComm, "MPI_COMM_WORLD").ID
		v := s.variable(t, "pml_ob1_unexpected_msgq_length", mpit.ClassSize)
		a, b := alloc(t, one, v, world), alloc(t, two, v, world)
		s.Do(t, "unexpected world 4 10")
		assert.Equal(t, []float64{4}, shows(t, a, v))
		freeOne()
		assert.Equal(t, []float64{4}, shows(t, b, v))
		assert.Equal(t, []float64{4}, values(t, s.sample(t), v, world))
		freeTwo()
		assert.Equal(t, []float64{4}, values(t, s.sample(t), v, world))
		s.Do(t, "receive world 10")
		return works
	}
	counter := s.flagged(false, false, true)
	v := s.variable(t, counter.Name, counter.Class)
	one, freeOne := s.opened(t)
	two, freeTwo := s.opened(t)
	a, b := alloc(t, one, v, 0), alloc(t, two, v, 0)
	exporters := values(t, s.sample(t), v, 0)[0]
	expect := func(forA, forB, gained float64) {
		t.Helper()
		assert.Equal(t, []float64{forA}, shows(t, a, v), "the first session")
		assert.Equal(t, []float64{forB}, shows(t, b, v), "the second session")
		assert.Equal(t, []float64{exporters + gained}, values(t, s.sample(t), v, 0), "the exporter's")
	}
	require.NoError(t, a.Start(within(t)))
	require.NoError(t, b.Start(within(t)))
	s.Add(t, counter, "-", 5)
	expect(5, 5, 5)
	require.NoError(t, a.Stop(within(t)))
	s.Add(t, counter, "-", 3)
	expect(5, 8, 8)
	require.NoError(t, b.Reset(within(t)))
	s.Add(t, counter, "-", 2)
	expect(5, 2, 10)
	require.NoError(t, a.Write(within(t), []uint64{100}))
	expect(100, 2, 10)
	freeOne()
	assert.Equal(t, []float64{2}, shows(t, b, v), "a session outlives another")
	freeTwo()
	assert.Equal(t, []float64{exporters + 10}, values(t, s.sample(t), v, 0))
	return works
}

func handlesOfEachKind(t *testing.T, s *subject) outcome {
	if len(s.truth.Pvars) == 0 {
		return notOffered
	}
	ps, free := s.opened(t)
	for _, bind := range fixture.Binds {
		open := s.open(bind)
		if len(open) == 0 || bind == mpit.BindMessage {
			continue
		}
		name, o, freeObject := s.made(t, bind)
		for _, v := range open {
			if !has(s.sample(t), v.ID, o.ID) {
				continue
			}
			if s.fixture() && (v.Class != mpit.ClassLevel || !strings.HasPrefix(v.Name, "bound_")) {
				continue
			}
			h := alloc(t, ps, v, o.ID)
			assert.Equal(t, v.ID, h.Variable())
			assert.Equal(t, o.ID, h.Object())
			assert.Positive(t, h.Count())
			if s.fixture() {
				s.Set(t, fixture.Bound(v.Class, bind), name, 55)
			}
			if !v.Continuous {
				require.NoError(t, h.Start(within(t)), v.Name)
			}
			got := shows(t, h, v)
			assert.Equal(t, values(t, s.sample(t), v, o.ID), got, v.Name)
			require.NoError(t, h.Free(within(t)), v.Name)
			_, err := h.Read(within(t))
			require.ErrorIs(t, err, mpit.ErrInvalidHandle)
		}
		freeObject()
	}
	free()
	return works
}

func orphaned(t *testing.T, s *subject) outcome {
	if len(s.truth.Pvars) == 0 {
		return notOffered
	}
	ps, free := s.opened(t)
	_, o, freeObject := s.made(t, mpit.BindComm)
	var v mpit.Variable
	for _, candidate := range s.open(mpit.BindComm) {
		if has(s.sample(t), candidate.ID, o.ID) {
			v = candidate
		}
	}
	h := alloc(t, ps, v, o.ID)
	if !v.Continuous {
		require.NoError(t, h.Start(within(t)))
	}
	shows(t, h, v)
	freeObject()
	_, err := h.Read(within(t))
	require.ErrorIs(t, err, mpit.ErrInvalidHandle)
	_, err = ps.AllocHandle(within(t), v.ID, o.ID)
	require.Error(t, err)
	free()
	return works
}

// counting is a handle on the fixture's counter with the flags, in a session of its own.
func (s *subject) counting(t *testing.T, readonly, continuous, atomic bool) (fixture.Variable, mpit.Variable,
	*mpit.PvarHandle, func()) {
	t.Helper()
	counter := s.flagged(readonly, continuous, atomic)
	v := s.variable(t, counter.Name, counter.Class)
	ps, free := s.opened(t)
	return counter, v, alloc(t, ps, v, 0), free
}

// first is a variable of a real library, with a handle of a tool's on MPI_COMM_WORLD; nil: it has none of the kind.
func (s *subject) first(t *testing.T, is func(mpit.Variable) bool) (mpit.Variable, *mpit.PvarHandle, func()) {
	t.Helper()
	for _, v := range s.open(mpit.BindComm) {
		world := s.object(t, mpit.BindComm, "MPI_COMM_WORLD").ID
		if is(v) && has(s.sample(t), v.ID, world) {
			ps, free := s.opened(t)
			return v, alloc(t, ps, v, world), free
		}
	}
	return mpit.Variable{}, nil, nil
}

func started(t *testing.T, s *subject) outcome {
	if !s.offers(func(v trueVariable) bool { return !v.Continuous }) {
		return notOffered
	}
	if !s.fixture() {
		v, h, free := s.first(t, func(v mpit.Variable) bool { return !v.Continuous })
		require.NotNil(t, h)
		require.NoError(t, h.Start(within(t)))
		assert.NotEmpty(t, shows(t, h, v))
		free()
		return works
	}
	counter, v, h, free := s.counting(t, false, false, true)
	s.Add(t, counter, "-", 4)
	require.NoError(t, h.Start(within(t)))
	s.Add(t, counter, "-", 6)
	assert.Equal(t, []float64{6}, shows(t, h, v), "what happened before the start is not its")
	free()
	return works
}

func noStartStop(t *testing.T, s *subject) outcome {
	if !s.offers(func(v trueVariable) bool { return v.Continuous }) {
		return notOffered
	}
	var h *mpit.PvarHandle
	var free func()
	if s.fixture() {
		_, _, h, free = s.counting(t, false, true, true)
	} else {
		_, h, free = s.first(t, func(v mpit.Variable) bool { return v.Continuous })
	}
	require.ErrorIs(t, h.Start(within(t)), mpit.ErrPvarNoStartStop)
	require.ErrorIs(t, h.Stop(within(t)), mpit.ErrPvarNoStartStop)
	free()
	return works
}

func stopped(t *testing.T, s *subject) outcome {
	if !s.offers(func(v trueVariable) bool { return !v.Continuous }) {
		return notOffered
	}
	if !s.fixture() {
		_, h, free := s.first(t, func(v mpit.Variable) bool { return !v.Continuous })
		require.NoError(t, h.Start(within(t)))
		err := h.Stop(within(t))
		require.ErrorIs(t, err, mpit.ErrPvarNoStartStop)
		var refused *mpit.RefusedError
		require.ErrorAs(t, err, &refused)
		assert.NotEmpty(t, refused.Why, "the agent's own refusal")
		free()
		return notSupported(neverStopped)
	}
	counter, v, h, free := s.counting(t, false, false, true)
	require.NoError(t, h.Start(within(t)))
	s.Add(t, counter, "-", 4)
	require.NoError(t, h.Stop(within(t)))
	s.Add(t, counter, "-", 6)
	assert.Equal(t, []float64{4}, shows(t, h, v))
	require.NoError(t, h.Start(within(t)))
	s.Add(t, counter, "-", 1)
	assert.Equal(t, []float64{5}, shows(t, h, v))
	free()
	return works
}

func readTool(t *testing.T, s *subject) outcome {
	if len(s.truth.Pvars) == 0 {
		return notOffered
	}
	ps, free := s.opened(t)
	if !s.fixture() {
		v := s.variable(t, "pml_ob1_unexpected_msgq_length", mpit.ClassSize)
		h := alloc(t, ps, v, s.object(t, mpit.BindComm, "MPI_COMM_WORLD").ID)
		s.Do(t, "unexpected world 2 10")
		assert.Equal(t, []float64{2}, shows(t, h, v))
		s.Do(t, "receive world 10")
		assert.Equal(t, []float64{0}, shows(t, h, v))
		free()
		return works
	}
	for _, name := range []string{"type_", "other_", "minus_", "array_seven"} {
		for _, v := range s.library.Named(name) {
			agent := s.variable(t, v.Name, v.Class)
			if agent.State != mpit.VariableOpen || !slicesContain(present, v.Class) {
				continue
			}
			h := alloc(t, ps, agent, 0)
			require.NoError(t, h.Start(within(t)))
			assert.Equal(t, s.Values(v, "-"), shows(t, h, agent), v.Name)
		}
	}
	free()
	return works
}

// writes returns what there is to say of a real library's variables that aren't readonly.
func (s *subject) writes(t *testing.T) outcome {
	t.Helper()
	if !s.offers(func(v trueVariable) bool { return !v.ReadOnly }) {
		return notOffered
	}
	for _, v := range s.variables {
		if !v.ReadOnly {
			assert.Equal(t, mpit.VariableDenied, v.State, v.Name)
		}
	}
	return notSupported(noneWritable)
}

func written(t *testing.T, s *subject) outcome {
	if !s.fixture() {
		return s.writes(t)
	}
	counter, v, h, free := s.counting(t, false, false, true)
	exporters := values(t, s.sample(t), v, 0)[0]
	require.NoError(t, h.Start(within(t)))
	require.NoError(t, h.Write(within(t), []uint64{500}))
	assert.Equal(t, []float64{500}, shows(t, h, v))
	s.Add(t, counter, "-", 1)
	assert.Equal(t, []float64{501}, shows(t, h, v))
	assert.Equal(t, []float64{exporters + 1}, values(t, s.sample(t), v, 0))
	free()
	ps, freeAll := s.opened(t)
	array := s.library.Variable("array_seven", mpit.ClassLevel)
	agent := s.variable(t, array.Name, array.Class)
	of7 := alloc(t, ps, agent, 0)
	require.NoError(t, of7.Start(within(t)))
	require.NoError(t, of7.Write(within(t), []uint64{7, 6, 5, 4, 3, 2, 1}))
	assert.Equal(t, []float64{7, 6, 5, 4, 3, 2, 1}, shows(t, of7, agent))
	freeAll()
	return works
}

func writeWithoutLeave(t *testing.T, s *subject) outcome {
	if !s.fixture() {
		return s.writes(t)
	}
	r := s.start(t, s.library, fixture.Options{})
	counter := s.flagged(false, false, true)
	ps, free := r.opened(t)
	h := alloc(t, ps, r.variable(t, counter.Name, counter.Class), 0)
	require.ErrorIs(t, h.Write(within(t), []uint64{1}), mpit.ErrNotAccessible)
	free()
	assert.Zero(t, r.Stats(t).Calls["MPI_T_pvar_write"])
	s.end(t, r.Program)
	return works
}

func reset(t *testing.T, s *subject) outcome {
	if !s.fixture() {
		return s.writes(t)
	}
	counter, v, h, free := s.counting(t, false, false, true)
	require.NoError(t, h.Start(within(t)))
	s.Add(t, counter, "-", 9)
	require.NoError(t, h.Reset(within(t)))
	assert.Equal(t, []float64{0}, shows(t, h, v))
	s.Add(t, counter, "-", 2)
	assert.Equal(t, []float64{2}, shows(t, h, v))
	free()
	return works
}

func noWrite(t *testing.T, s *subject) outcome {
	if !s.offers(func(v trueVariable) bool { return v.ReadOnly }) {
		return notOffered
	}
	var h *mpit.PvarHandle
	var free func()
	if s.fixture() {
		_, _, h, free = s.counting(t, true, false, true)
	} else {
		_, h, free = s.first(t, func(v mpit.Variable) bool { return v.ReadOnly })
	}
	require.ErrorIs(t, h.Write(within(t), make([]uint64, h.Count())), mpit.ErrPvarNoWrite)
	require.ErrorIs(t, h.Reset(within(t)), mpit.ErrPvarNoWrite)
	free()
	return works
}

func readReset(t *testing.T, s *subject) outcome {
	if !s.offers(func(v trueVariable) bool { return v.Atomic }) {
		return notOffered
	}
	counter, v, h, free := s.counting(t, false, false, true)
	require.NoError(t, h.Start(within(t)))
	s.Add(t, counter, "-", 9)
	words, err := h.ReadReset(within(t))
	require.NoError(t, err)
	assert.Equal(t, []float64{9}, floats(v.Datatype, words))
	assert.Equal(t, []float64{0}, shows(t, h, v))
	free()
	return works
}

func noAtomic(t *testing.T, s *subject) outcome {
	if !s.offers(func(v trueVariable) bool { return !v.Atomic }) {
		return notOffered
	}
	var h *mpit.PvarHandle
	var free func()
	if s.fixture() {
		_, _, h, free = s.counting(t, false, false, false)
	} else {
		_, h, free = s.first(t, func(v mpit.Variable) bool { return !v.Atomic })
	}
	_, err := h.ReadReset(within(t))
	require.Error(t, err)
	assert.True(t, codeIn(err, mpit.ErrPvarNoAtomic, mpit.ErrPvarNoWrite), "%v", err) // Open MPI's are readonly, too
	free()
	return works
}

func allHandles(t *testing.T, s *subject) outcome {
	if len(s.truth.Pvars) == 0 {
		return notOffered
	}
	if !s.fixture() {
		_, h, free := s.first(t, func(v mpit.Variable) bool { return !v.Continuous })
		require.NotNil(t, h)
		free()
		ps, freeAll := s.opened(t)
		require.NoError(t, ps.StartAll(within(t)))
		require.NoError(t, ps.ResetAll(within(t)))
		freeAll()
		return works
	}
	ps, free := s.opened(t)
	counter, other, always := s.flagged(false, false, true), s.flagged(true, false, false),
		s.flagged(false, true, false)
	v, w, x := s.variable(t, counter.Name, counter.Class), s.variable(t, other.Name, other.Class),
		s.variable(t, always.Name, always.Class)
	a, b, c := alloc(t, ps, v, 0), alloc(t, ps, w, 0), alloc(t, ps, x, 0)
	expect := func(forA, forB, forC float64) {
		t.Helper()
		assert.Equal(t, [][]float64{{forA}, {forB}, {forC}},
			[][]float64{shows(t, a, v), shows(t, b, w), shows(t, c, x)})
	}
	count := func() {
		t.Helper()
		for _, v := range []fixture.Variable{counter, other, always} {
			s.Add(t, v, "-", 1)
		}
	}
	require.NoError(t, ps.StartAll(within(t)))
	count()
	expect(1, 1, 1)
	require.NoError(t, ps.StopAll(within(t)))
	count()
	expect(1, 1, 2) // a continuous one doesn't stop
	require.NoError(t, ps.ResetAll(within(t)))
	expect(0, 1, 0) // a readonly one stays
	free()
	return works
}
