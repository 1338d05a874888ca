package conformance

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/test/fixture"
	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// 15.2.4: MPI_Pcontrol.
func pcontrol() section {
	return section{"15.2.4 MPI_Pcontrol", []feature{
		{"0, then 1: what was counted in between never appears", paused},
		{"0, then 1: nor on `/metrics`", pausedOnPage},
		{"2: a sample is taken at once and kept", kept},
		{"other levels are counted and shown", levels},
	}}
}

// observable is a variable that the checks can move by hand: it returns how.
func (s *subject) observable(t *testing.T, r *rank) (v mpit.Variable, object uint32, move func(n int)) {
	t.Helper()
	if s.fixture() {
		counter := fixture.Bound(mpit.ClassCounter, mpit.BindNone)
		return r.variable(t, counter.Name, counter.Class), 0, func(n int) { r.Add(t, counter, "-", float64(n)) }
	}
	v = r.variable(t, "coll_monitoring_a2a_count", mpit.ClassCounter)
	return v, r.object(t, mpit.BindComm, "MPI_COMM_WORLD").ID, func(n int) { r.Do(t, "barrier world %d", n) }
}

// shown is what a reader makes of a handle: its value less what is excluded.
func shown(t *testing.T, sample mpit.Sample, v mpit.Variable, object uint32) float64 {
	t.Helper()
	h := handle(t, sample, v.ID, object)
	value := values(t, sample, v, object)[0]
	if h.Excluded != nil {
		value -= float64(int64(h.Excluded[0]))
	}
	return value
}

func paused(t *testing.T, s *subject) outcome {
	if len(s.truth.Pvars) == 0 {
		return notOffered
	}
	r := s.start(t, s.library, fixture.Options{})
	v, object, move := s.observable(t, r)
	begin := shown(t, r.sample(t), v, object)
	move(3)
	require.InDelta(t, begin+3, shown(t, r.sample(t), v, object), 0)
	r.Do(t, "pcontrol 0")
	move(10)
	sample := r.sample(t)
	assert.Equal(t, mpit.SamplePaused, sample.Status)
	assert.InDelta(t, begin+3, shown(t, sample, v, object), 0, "switched off")
	r.Do(t, "pcontrol 1")
	sample = r.sample(t)
	assert.Equal(t, mpit.SampleFresh, sample.Status)
	assert.InDelta(t, begin+3, shown(t, sample, v, object), 0, "switched on again")
	move(4)
	assert.InDelta(t, begin+7, shown(t, r.sample(t), v, object), 0)
	assert.Positive(t, r.sample(t).Stats.PausedTime)
	s.end(t, r.Program)
	return works
}

func pausedOnPage(t *testing.T, s *subject) outcome {
	if len(s.truth.Pvars) == 0 {
		return notOffered
	}
	p := s.page
	metric, labels, move := "mpit_coll_monitoring_a2a_count_total", p.Labels().With("comm", "MPI_COMM_WORLD"), func(n int) { p.Do(t, "barrier world %d", n) }
	if s.fixture() {
		counter := fixture.Bound(mpit.ClassAggregate, mpit.BindNone)
		metric, labels, move = fixture.Metric(counter), p.Labels(), func(n int) { p.Add(t, counter, "-", float64(n)) }
	}
	first, err := p.exporter.Scrape(t).One(metric, labels)
	require.NoError(t, err)
	expect := func(what string, gained, level float64) {
		t.Helper()
		p.exporter.Await(t, what, every(func(page *harness.Scrape) error { return page.Expect(metric, labels, first.Value+gained) },
			func(page *harness.Scrape) error { return page.Expect("mpit_pcontrol_level", p.Labels(), level) }))
	}
	p.Do(t, "pcontrol 0")
	move(10)
	expect("nothing while switched off", 0, 0)
	p.Do(t, "pcontrol 1")
	move(4)
	expect("what was counted since", 4, 1)
	return works
}

func kept(t *testing.T, s *subject) outcome {
	r := s.start(t, s.library, fixture.Options{})
	require.Nil(t, r.sample(t).Kept)
	if len(s.truth.Pvars) == 0 {
		r.Do(t, "pcontrol 2")
		sample := r.sample(t)
		assert.Equal(t, uint64(1), sample.Stats.KeptSamples)
		s.end(t, r.Program)
		return notOffered
	}
	v, object, move := s.observable(t, r)
	begin := shown(t, r.sample(t), v, object)
	for n := 1; n <= 2; n++ {
		move(5)
		r.Do(t, "pcontrol 2")
		move(1)
		sample := r.sample(t)
		require.NotNil(t, sample.Kept)
		assert.Equal(t, uint64(n), sample.Kept.Number)
		assert.Equal(t, uint64(n), sample.Stats.KeptSamples)
		count := 0
		for _, k := range sample.Kept.List {
			if k.Variable == v.ID && k.Object == object {
				count++
				assert.InDelta(t, begin+float64(6*n-1), v.Datatype.Float64(k.Values[0]), 0, "at that moment")
			}
		}
		assert.Equal(t, 1, count, "the variable among what was kept")
		assert.InDelta(t, begin+float64(6*n), shown(t, sample, v, object), 0, "now")
	}
	s.end(t, r.Program)
	return works
}

func levels(t *testing.T, s *subject) outcome {
	assert.Equal(t, 1, s.sample(t).Stats.PcontrolLevel)
	calls := s.sample(t).Stats.PcontrolCalls
	for i, level := range []int{3, 17, -5, 1} {
		s.Do(t, "pcontrol %d", level)
		stats := s.sample(t).Stats
		assert.Equal(t, level, stats.PcontrolLevel)
		assert.Equal(t, calls+uint64(i)+1, stats.PcontrolCalls)
		s.page.Do(t, "pcontrol %d", level)
		s.page.exporter.Await(t, "the level", func(p *harness.Scrape) error {
			return p.Expect("mpit_pcontrol_level", s.page.Labels(), float64(level))
		})
	}
	if s.fixture() {
		assert.Positive(t, s.Stats(t).Pcontrols, "the library hears of it, too")
	}
	return works
}

// 11.3 of MPI-4: programs that use sessions, and not MPI_Init.
func sessionsModel() section {
	return section{"11.3 MPI-4 sessions instead of MPI_Init", []feature{{"a program of sessions alone is observed", sessionsAlone}}}
}

func sessionsAlone(t *testing.T, s *subject) outcome {
	r := s.startBare(t, s.library, fixture.Options{})
	if _, err := r.Try(t, "session-init s"); err != nil {
		require.Equal(t, "none", s.Do(t, "tool-events"), "the library is older than MPI-4")
		return notOffered
	}
	r.accept(t)
	hello := r.session.Hello()
	assert.True(t, hello.SessionsOnly)
	if s.fixture() {
		assert.Equal(t, []int{1, fixture.World}, []int{hello.Rank, hello.Size})
	} else {
		assert.Equal(t, []int{0, 1}, []int{hello.Rank, hello.Size})
	}
	r.Do(t, "session-group s g mpi://WORLD")
	r.Make(t, "c", hello.Size, "comm-from-group g c")
	r.Name(t, "c", "of a session")
	var o mpit.Object
	harness.Await(t, "the communicator", func(ctx context.Context) error {
		sample, err := r.session.Read(ctx)
		if err != nil {
			return err
		}
		if sample.Layout != nil {
			for _, candidate := range sample.Layout.Objects {
				if candidate.Kind == mpit.BindComm && candidate.Name == "of a session" {
					o = candidate
					return nil
				}
			}
		}
		return fmt.Errorf("%+v", sample.Layout)
	})
	assert.Equal(t, []int{hello.Size, hello.Rank}, []int{o.Size, o.Rank})
	if s.fixture() {
		v := fixture.Bound(mpit.ClassLevel, mpit.BindComm)
		r.Set(t, v, "c", 31)
		assert.Equal(t, []float64{31}, values(t, r.sample(t), r.variable(t, v.Name, v.Class), o.ID))
	}
	r.Do(t, "free c")
	r.Do(t, "free g")
	r.Do(t, "free s")
	if s.fixture() {
		r.ExpectNoViolations(t)
	}
	r.End(t, "exit 0", 0)
	return works
}
