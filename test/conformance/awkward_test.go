package conformance

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/test/fixture"
)

// awaitVariables: the catalogue has so many.
func awaitVariables(r *rank, n int) func(context.Context) error {
	return func(ctx context.Context) error {
		sample, err := r.session.Read(ctx)
		if err == nil && (sample.Variables == nil || len(sample.Variables.ByID) < n) {
			err = errFew
		}
		return err
	}
}

// 15.3.7: what libraries do that is no good.
func awkwardVariables() section {
	return section{"15.3.7 Performance variables: libraries that fail", []feature{
		{"MPI_T_pvar_handle_alloc fails: state and code are shown",
			failing("MPI_T_pvar_handle_alloc", mpit.VariableAllocFailed)},
		{"MPI_T_pvar_start fails: state and code are shown", failing("MPI_T_pvar_start", mpit.VariableStartFailed)},
		{"MPI_T_pvar_read fails: state and code are shown", failing("MPI_T_pvar_read", mpit.VariableReadFailed)},
		{"a read fails now and then: the others come through", failsOnce},
		{"an index whose variable is gone", deadIndices},
		{"a variable of no elements", emptyVariable},
		{"a read that takes a second", slowRead},
		{"a read that writes more than it should", overrun},
	}}
}

// elsewhere is what is said of a real library where only the fixture can be told to misbehave.
func (s *subject) elsewhere() outcome {
	if len(s.truth.Pvars) == 0 {
		return notOffered
	}
	return cannotTest(onDemandAlone)
}

func failing(function string, state mpit.VariableState) check {
	return func(t *testing.T, s *subject) outcome {
		if !s.fixture() {
			return s.elsewhere()
		}
		for _, name := range fixture.ToolCodes {
			v := s.variable(t, strings.ToLower(strings.TrimPrefix(function,
				"MPI_T_pvar_")+"_"+strings.TrimPrefix(name, "MPI_T_ERR_")), mpit.ClassLevel)
			if name == "MPI_T_ERR_PVAR_NO_STARTSTOP" && state == mpit.VariableStartFailed {
				continue // it always runs, says the library: no failure
			}
			assert.Equal(t, state, v.State, v.Name)
			assert.Equal(t, name, v.Code.String(), v.Name)
			assert.False(t, has(s.sample(t), v.ID, 0), v.Name)
		}
		return works
	}
}

func failsOnce(t *testing.T, s *subject) outcome {
	if !s.fixture() {
		return s.elsewhere()
	}
	v := fixture.Bound(mpit.ClassSize, mpit.BindNone)
	agent := s.variable(t, v.Name, v.Class)
	errors := s.sample(t).Stats.ReadErrors
	s.Do(t, "fail MPI_T_pvar_read MPI_T_ERR_MEMORY %s", v.Name)
	sample := s.sample(t)
	s.Do(t, "heal MPI_T_pvar_read")
	// The script's own failures are gone with it, and those variables had no handle anyway.
	require.Len(t, sample.Failed, 1)
	assert.Equal(t, mpit.FailedHandle{Handle: handle(t, sample, agent.ID, 0).ID, Code: mpit.ErrMemory},
		sample.Failed[0])
	assert.Greater(t, sample.Stats.ReadErrors, errors)
	assert.NotNil(t, values(t, s.sample(t), agent, 0), "and again")
	return works
}

func deadIndices(t *testing.T, s *subject) outcome {
	found := notOffered
	indices := map[int]bool{}
	last := -1
	for _, v := range s.truth.Pvars {
		indices[v.Index] = true
		last = max(last, v.Index)
	}
	for i := range last {
		if !indices[i] {
			found = works
		}
	}
	for _, v := range s.variables {
		assert.True(t, indices[v.Index] || countsEvents(&v), "%+v is not there", v)
	}
	if s.fixture() {
		v := s.library.Variable("after_the_dead", mpit.ClassLevel)
		assert.Equal(t, []float64{11}, values(t, s.sample(t), s.variable(t, v.Name, v.Class), 0))
	}
	return found
}

func emptyVariable(t *testing.T, s *subject) outcome {
	sample := s.sample(t)
	if !s.fixture() {
		// Open MPI's monitoring has none outside of MPI_COMM_WORLD.
		world := uint32(0)
		for _, v := range s.open(mpit.BindComm) {
			if strings.HasPrefix(v.Name, "osc_monitoring") {
				name, o, free := s.made(t, mpit.BindComm)
				assert.NotEmpty(t, name)
				world = s.object(t, mpit.BindComm, "MPI_COMM_WORLD").ID
				assert.True(t, has(s.sample(t), v.ID, world))
				assert.False(t, has(s.sample(t), v.ID, o.ID))
				free()
			}
		}
		if world == 0 {
			return notOffered
		}
		return works
	}
	v := s.variable(t, "array_empty", mpit.ClassLevel)
	assert.False(t, has(sample, v.ID, 0), "it has nothing to read")
	assert.Empty(t, sample.Failed)
	return works
}

// slowRead: neither the program nor other ranks notice; the value comes when it comes.
func slowRead(t *testing.T, s *subject) outcome {
	if !s.fixture() {
		return s.elsewhere()
	}
	exporter := suite.Exporter(t)
	slow := fixture.Variable{Name: "slow", Class: mpit.ClassLevel, Initial: []float64{1}}
	library := &fixture.Library{Variables: []fixture.Variable{slow, fixture.Bound(mpit.ClassCounter, mpit.BindComm)}}
	p := fixture.Start(t, s.build, library, fixture.Options{Socket: exporter.Socket})
	other := fixture.Start(t, s.build, library, fixture.Options{Socket: exporter.Socket})
	p.Init(t)
	other.Init(t)
	exporter.Await(t, "both ranks", every(p.Shows(slow, "-"), other.Shows(slow, "-")))
	p.Do(t, "slow MPI_T_pvar_read 1000 slow")
	p.Set(t, slow, "-", 2)
	other.Set(t, slow, "-", 3)
	scraped := make(chan error, 1)
	go func() {
		page, err := exporter.ScrapeContext(t.Context())
		if err == nil {
			err = other.Shows(slow, "-")(page)
		}
		scraped <- err
	}()
	p.Do(t, "churn 20") // while the read may well be under way
	require.NoError(t, <-scraped, "the other rank")
	exporter.Await(t, "the slow value", p.Shows(slow, "-"))
	p.Do(t, "heal MPI_T_pvar_read")
	p.Finish(t)
	other.Finish(t)
	return outcome{works.word, "A thread that makes or frees an object at that moment waits until the read has ended."}
}

func overrun(t *testing.T, s *subject) outcome {
	if !s.fixture() {
		return s.elsewhere()
	}
	v := s.library.Variable("overrun", mpit.ClassLevel)
	agent := s.variable(t, v.Name, v.Class)
	for _, value := range []float64{5, 6} {
		s.Set(t, v, "-", value)
		assert.Equal(t, []float64{value}, values(t, s.sample(t), agent, 0))
	}
	return works
}
