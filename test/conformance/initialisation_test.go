package conformance

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/test/fixture"
)

const alwaysMultiple = "The library always provides MPI_THREAD_MULTIPLE to MPI_T."

// 15.3.4: MPI_T may begin before MPI does, more than once, and with less than MPI_THREAD_MULTIPLE.
func initialisation() section {
	return section{"15.3.4 Initialisation and finalisation", []feature{
		{"the program has called MPI_T_init_thread before MPI_Init", earlyTool},
		{"the program and the agent use MPI_T at the same time", func(t *testing.T, s *subject) outcome {
			// The list in s.truth came from the program, s.variables and s.controls from the agent.
			s.Do(t, "tool-list")
			s.sample(t)
			return works
		}},
		{"MPI_T_init_thread provides `MPI_THREAD_SINGLE`", toolLevel("single")},
		{"MPI_T_init_thread provides `MPI_THREAD_FUNNELED`", toolLevel("funneled")},
		{"MPI_T_init_thread provides `MPI_THREAD_SERIALIZED`", toolLevel("serialized")},
		{"MPI_T_init_thread provides `MPI_THREAD_MULTIPLE`", func(t *testing.T, s *subject) outcome {
			assert.False(t, s.session.Hello().Passive)
			assert.Equal(t, mpit.SampleFresh, s.sample(t).Status)
			return works
		}},
	}}
}

func earlyTool(t *testing.T, s *subject) outcome {
	r := s.startBare(t, s.library, fixture.Options{})
	assert.Equal(t, "single", r.Do(t, "tool-init single"), "what the program asked for")
	s.begin(t, r.Program)
	r.accept(t)
	assert.Equal(t, mpit.SampleFresh, r.sample(t).Status)
	assert.False(t, r.session.Hello().Passive, "the agent's need is not the program's")
	s.end(t, r.Program)
	return works
}

// toolLevel: the agent's thread calls nothing of MPI_T; samples are those of the program's calls.
func toolLevel(level string) check {
	return func(t *testing.T, s *subject) outcome {
		if !s.fixture() {
			assert.False(t, s.session.Hello().Passive)
			return outcome{word: notOffered.word, reason: alwaysMultiple}
		}
		library := everything()
		library.ToolLevel = level
		r := s.start(t, library, fixture.Options{})
		assert.True(t, r.session.Hello().Passive)
		v := fixture.Bound(mpit.ClassLevel, mpit.BindNone)
		r.Set(t, v, "-", 77)
		r.Do(t, "comm-dup world passing")
		sample := r.sample(t)
		assert.Equal(t, mpit.SamplePassive, sample.Status)
		assert.Equal(t, []float64{77}, values(t, sample, r.variable(t, v.Name, v.Class), 0))
		assert.Empty(t, r.Stats(t).Foreign, "calls in the agent's thread")
		s.end(t, r.Program)
		return works
	}
}
