package conformance

import (
	"context"
	"fmt"
	"path/filepath"
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
		{"other levels are counted and shown", levels},
	}}
}

// phases is a job of two ranks that does what test/programs/pcontrol.c says, ten allreduces in a step.
func (s *subject) phases(t *testing.T, socket string) *harness.Run {
	t.Helper()
	return suite.Run(t, harness.Job{
		MPI: s.mpi, Ranks: 2, Program: "pcontrol.c", Args: []string{"10", harness.HoldDir}, Exec: s.monitoring(),
		Socket: socket,
	})
}

// two starts a job of two ranks and returns the session of its rank 0.
func (s *subject) two(t *testing.T, program string, args ...string) (*harness.Run, *rank) {
	t.Helper()
	listener, err := mpit.Listen(filepath.Join(suite.Dir(t), "agent.sock"))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, listener.Close()) })
	run := suite.Run(t, harness.Job{
		MPI: s.mpi, Ranks: 2, Program: program, Args: append(args, harness.HoldDir), Exec: s.monitoring(),
		Socket: listener.Path(),
	})
	var first *rank
	for range 2 {
		r := &rank{listener: listener}
		r.accept(t)
		if r.session.Hello().Rank == 0 {
			first = r
		}
	}
	require.NotNil(t, first)
	return run, first
}

// allreduces is the variable that counts them, and the communicator "sums".
func (r *rank) allreduces(t *testing.T) (mpit.Variable, uint32) {
	t.Helper()
	return r.variable(t, "coll_monitoring_a2a_count", mpit.ClassCounter), r.object(t, mpit.BindComm, "sums").ID
}

// goOn releases the job from one hold point and waits for it at the next.
func goOn(t *testing.T, run *harness.Run, from, to string) {
	t.Helper()
	run.Release(t, from)
	run.AtHold(t, to)
}

// end lets it run to its end.
func endPhases(t *testing.T, run *harness.Run) {
	t.Helper()
	run.Finish(t, "on", "off", "back", "counted", "two", "level", "renamed", "again", "last")
}

// shown is what a reader makes of a handle: its value less what is excluded.
func shown(t *testing.T, sample mpit.Sample, v mpit.Variable, object uint32) float64 {
	t.Helper()
	h := handle(t, sample, v.ID, object)
	value := values(t, sample, v, object)[0]
	if before := h.Before(); before.Excluded != nil {
		value -= float64(int64(before.Excluded[0]))
	}
	return value
}

func paused(t *testing.T, s *subject) outcome {
	if len(s.truth.Pvars) == 0 {
		return notOffered
	}
	if !s.fixture() {
		run, r := s.two(t, "pcontrol.c", "10")
		run.AtHold(t, "on")
		v, object := r.allreduces(t)
		assert.InDelta(t, 10, shown(t, r.sample(t), v, object), 0)
		goOn(t, run, "on", "off")
		sample := r.sample(t)
		assert.Equal(t, mpit.SamplePaused, sample.Status)
		assert.InDelta(t, 10, shown(t, sample, v, object), 0, "switched off")
		goOn(t, run, "off", "back")
		assert.InDelta(t, 10, shown(t, r.sample(t), v, object), 0, "switched on again")
		goOn(t, run, "back", "counted")
		assert.InDelta(t, 20, shown(t, r.sample(t), v, object), 0)
		endPhases(t, run)
		return works
	}
	r := s.start(t, s.library, fixture.Options{})
	counter := fixture.Bound(mpit.ClassCounter, mpit.BindNone)
	v, object := r.variable(t, counter.Name, counter.Class), uint32(0)
	move := func(n int) { r.Add(t, counter, "-", float64(n)) }
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
	if !s.fixture() {
		exporter := suite.Exporter(t)
		run := s.phases(t, exporter.Socket)
		from := ""
		for _, step := range []struct {
			hold string
			want float64
		}{{"on", 10}, {"off", 10}, {"back", 10}, {"counted", 20}} {
			if from != "" {
				run.Release(t, from)
			}
			run.AtHold(t, step.hold)
			exporter.Await(t, step.hold, func(p *harness.Scrape) error {
				return p.Expect("mpit_coll_monitoring_a2a_count_total", run.Labels(0).With("comm", "sums"), step.want)
			})
			from = step.hold
		}
		endPhases(t, run)
		return works
	}
	p := s.page
	counter := fixture.Bound(mpit.ClassAggregate, mpit.BindNone)
	metric, labels, move := fixture.Metric(counter), p.Labels(), func(n int) { p.Add(t, counter, "-", float64(n)) }
	first, err := p.exporter.Scrape(t).One(metric, labels)
	require.NoError(t, err)
	expect := func(what string, gained, level float64) {
		t.Helper()
		p.exporter.Await(t, what, every(func(page *harness.Scrape) error {
			return page.Expect(metric, labels,
				first.Value+gained)
		},
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

func levels(t *testing.T, s *subject) outcome {
	assert.Equal(t, 1, s.sample(t).Stats.PcontrolLevel)
	calls := s.sample(t).Stats.PcontrolCalls
	for i, level := range []int{2, 17, -5, 1} {
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
	return section{"11.3 MPI-4 sessions instead of MPI_Init",
		[]feature{{"a program of sessions alone is observed", sessionsAlone}}}
}

func sessionsAlone(t *testing.T, s *subject) outcome {
	// Open MPI 5.0's monitoring crashes in MPI_Session_finalize.
	r := s.startBare(t, s.library, fixture.Options{Env: []string{monitoringOff}})
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
