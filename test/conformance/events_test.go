package conformance

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/test/fixture"
)

const eventPrefix = "mpit_event_"

// eventCategory is the agent's own, of its variables that count events.
const eventCategory = "mpit_events"

// countsEvents says that a variable is the agent's own.
func countsEvents(v *mpit.Variable) bool {
	return strings.HasPrefix(v.Name, eventPrefix) || v.Name == "mpit_events_dropped"
}

// 15.3.8: event types are variables that count, opened with `exec --events`.
func events() section {
	features := []feature{
		{"event types with their descriptions", eventTypes},
		{"sources of events", eventSources},
		{"nothing is registered unless asked for", unregistered},
		{"dropped events", droppedEvents},
	}
	features = append(features, each([]string{"none", "restricted", "thread", "signal"},
		func(promise string) string { return "callbacks in a context that wants: " + promise }, promised)...)
	features = append(features, each(fixture.Binds,
		func(b mpit.Bind) string { return "events bound to " + code(b) }, eventsOn)...)
	features = append(features, feature{"elements and time of an event", func(*testing.T, *subject) outcome {
		return notSupported("Events are counted: they come in the middle of the program's calls, and nobody keeps each " +
			"of them.")
	}})
	for i := range features {
		features[i].check = ifOffered(features[i].check)
	}
	return section{"15.3.8 Events", features}
}

// ifOffered makes a check only where the library has events.
func ifOffered(c check) check {
	return func(t *testing.T, s *subject) outcome {
		if !s.hasEvents(t) {
			return notOffered
		}
		return c(t, s)
	}
}

// hasEvents says whether the library has types of events: those that the program is told of.
func (s *subject) hasEvents(t *testing.T) bool {
	if s.fixture() {
		return true
	}
	count := s.Do(t, "tool-events")
	return count != "none" && count != "0"
}

// eventful is a rank whose library has events, which are counted if that is asked for.
func (s *subject) eventful(t *testing.T, exec ...string) *rank {
	t.Helper()
	return s.start(t, fixture.WithEvents(), fixture.Options{Exec: exec})
}

func (r *rank) eventTypes(t *testing.T) []mpit.Variable {
	var types []mpit.Variable
	for _, v := range r.sample(t).Variables.ByID {
		if strings.HasPrefix(v.Name, eventPrefix) {
			types = append(types, v)
		}
	}
	return types
}

func eventTypes(t *testing.T, s *subject) outcome {
	r := s.eventful(t)
	types := r.eventTypes(t)
	if s.fixture() {
		var listed []fixture.EventType
		for _, v := range types {
			listed = append(listed, fixture.EventType{Name: strings.TrimPrefix(v.Name, eventPrefix),
				Description: v.Description, Bind: v.Bind})
		}
		assert.Equal(t, fixture.WithEvents().Events, listed)
	} else {
		assert.Equal(t, s.Do(t, "tool-events"), strconv.Itoa(len(types)))
	}
	s.end(t, r.Program)
	return works
}

func eventSources(t *testing.T, s *subject) outcome {
	r := s.eventful(t)
	categories, _, err := r.session.Categories(within(t))
	require.NoError(t, err)
	var about string
	for _, c := range categories {
		if c.Name == eventCategory {
			about = c.Description
		}
	}
	assert.Contains(t, about, "; sources: ")
	if s.fixture() {
		assert.Contains(t, about, "clock (Ticks.; ordered, 1000000 ticks a second), chaos (In any order.; unordered, 1")
	}
	s.end(t, r.Program)
	return works
}

func unregistered(t *testing.T, s *subject) outcome {
	r := s.eventful(t)
	for _, v := range r.eventTypes(t) {
		assert.Equal(t, mpit.VariableOnRequest, v.State, v.Name)
	}
	if s.fixture() {
		assert.Zero(t, r.Stats(t).Calls["MPI_T_event_handle_alloc"])
	}
	s.end(t, r.Program)
	return works
}

func droppedEvents(t *testing.T, s *subject) outcome {
	if !s.fixture() {
		return cannotTest("Nothing makes the library drop one.")
	}
	r := s.eventful(t, "--events")
	r.Do(t, "drop on.none - none 5")
	dropped := r.variable(t, "mpit_events_dropped", mpit.ClassCounter)
	assert.Equal(t, []float64{5}, values(t, r.sample(t), dropped, 0))
	s.end(t, r.Program)
	return works
}

func promised(promise string) check {
	return func(t *testing.T, s *subject) outcome {
		if !s.fixture() {
			return cannotTest("The library alone knows from where it reports.")
		}
		r := s.eventful(t, "--events")
		r.Do(t, "raise on.none - %s 3", promise)
		v := r.variable(t, eventPrefix+"on.none", mpit.ClassCounter)
		assert.Equal(t, []float64{3}, values(t, r.sample(t), v, 0))
		s.end(t, r.Program)
		return works
	}
}

func eventsOn(bind mpit.Bind) check {
	return func(t *testing.T, s *subject) outcome {
		if !s.fixture() {
			return cannotTest("test/e2e has the library's own events.")
		}
		if bind == mpit.BindMessage {
			return notSupported(noMessages)
		}
		r := s.eventful(t, "--events")
		name := "-"
		var object uint32
		if bind != mpit.BindNone {
			name = "object"
			create(t, r.Program, bind, name)
			object = r.newest(t, bind).ID
		}
		v := r.variable(t, eventPrefix+"on."+bindWord(bind), mpit.ClassCounter)
		assert.Equal(t, []float64{0}, values(t, r.sample(t), v, object))
		r.Do(t, "raise on.%s %s none 7", bindWord(bind), name)
		assert.Equal(t, []float64{7}, values(t, r.sample(t), v, object))
		if bind != mpit.BindNone {
			r.Free(t, name) // with a registration on it that would be a violation
		}
		s.end(t, r.Program)
		return works
	}
}
