package conformance

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/test/fixture"
	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

const (
	onDemandAlone = "The library can't be made to do that; the fixture can."
	noVariables   = "The library has no performance variable."
)

// 15.3.7: performance variables are listed and read, whatever becomes of them.
func performanceVariables() section {
	return section{"15.3.7 Performance variables: description and values", []feature{
		{"listed, with all properties", variablesListed},
		{"readonly", listed(func(v trueVariable) bool { return v.ReadOnly },
			func(p pair) bool { return p.agent.ReadOnly })},
		{"continuous", listed(func(v trueVariable) bool { return v.Continuous },
			func(p pair) bool { return p.agent.Continuous })},
		{"atomic", listed(func(v trueVariable) bool { return v.Atomic }, func(p pair) bool { return p.agent.Atomic })},
		{"flags in every combination, read right", allFlags},
		{"index of a name and class", variableIndex},
		{"the same name in another class", sharedName},
		{"several elements, one value each", arrayElements},
		{"arrays follow the size of their object", arraySizes},
		{"appear later", laterVariables},
		{"a freed object's counts remain", remainsCount},
		{"a counter of 32 bits wraps", wraps("wraps_32", fixture.Unsigned)},
	}}
}

func variablesListed(t *testing.T, s *subject) outcome {
	found := notOffered
	for _, p := range s.pairs(t) {
		if p.control {
			continue
		}
		found = works
		assert.True(t, string(p.truth.Name) == p.agent.Name, "%.100q %.100q", p.truth.Name, p.agent.Name)
		assert.True(t, string(p.truth.Description) == p.agent.Description, "%.100q", p.agent.Name)
		assert.Equal(t, p.truth.Class, p.agent.Class, "%.100q", p.agent.Name)
		assert.Equal(t, p.truth.Verbosity, p.agent.Verbosity, "%.100q", p.agent.Name)
		assert.Equal(t, p.truth.Datatype, p.agent.Datatype, "%.100q", p.agent.Name)
		assert.Equal(t, p.truth.Bind, p.agent.Bind, "%.100q", p.agent.Name)
	}
	return found
}

func allFlags(t *testing.T, s *subject) outcome {
	if !s.offers(func(v trueVariable) bool { return v.ReadOnly && v.Continuous && v.Atomic }) {
		return notOffered
	}
	variables := s.library.Named("flags_")
	require.Len(t, variables, 90)
	for _, v := range variables {
		agent := s.variable(t, v.Name, v.Class)
		assert.Equal(t, []bool{v.ReadOnly, v.Continuous, v.Atomic},
			[]bool{agent.ReadOnly, agent.Continuous, agent.Atomic}, v.Name)
		s.Set(t, v, "-", changed(v.Class)[1])
	}
	sample := s.sample(t)
	for _, v := range variables {
		agent, _ := sample.Variables.Find(v.Name, v.Class)
		assert.Equal(t, s.Values(v, "-"), values(t, sample, agent, 0), v.Name)
	}
	return works
}

func variableIndex(t *testing.T, s *subject) outcome {
	_, _, _, err := s.session.PvarIndex(within(t), "no such variable", mpit.ClassLevel)
	require.ErrorIs(t, err, mpit.ErrInvalidName)
	found := notOffered
	for _, v := range s.truth.Pvars {
		if !asciiOnly(string(v.Name)) || len(v.Name) > 10000 {
			continue
		}
		found = works
		index, id, known, err := s.session.PvarIndex(within(t), string(v.Name), v.Class)
		require.NoError(t, err, "%.100q", v.Name)
		assert.Equal(t, v.Index, index, "%.100q", v.Name)
		if assert.True(t, known, "%.100q", v.Name) {
			assert.Equal(t, index, s.variables[id].Index)
		}
	}
	return found
}

func sharedName(t *testing.T, s *subject) outcome {
	names := map[latin1]int{}
	twice := false
	for _, v := range s.truth.Pvars {
		names[v.Name]++
		twice = twice || names[v.Name] > 1
	}
	if !twice {
		return notOffered
	}
	p := s.page
	var checks []func(*harness.Scrape) error
	for i, v := range p.Library.Named("shared") {
		if v.Class != mpit.ClassState && v.Class != mpit.ClassPercentage {
			p.Set(t, v, "-", float64(300+i))
		}
		checks = append(checks, p.Shows(v, "-"))
	}
	require.Len(t, checks, len(fixture.Classes))
	p.exporter.Await(t, "all of one name", every(checks...))
	return works
}

func arrayElements(t *testing.T, s *subject) outcome {
	if !s.fixture() {
		return s.realArrays(t)
	}
	for _, name := range []string{"array_seven", "array_long"} {
		v := s.library.Named(name)[0]
		list := make([]float64, v.Count)
		for i := range list {
			list[i] = float64(10 * (i + 1))
		}
		if len(list) > 1000 { // the script's line has an end
			list = list[:1000]
		}
		s.Set(t, v, "-", list...)
		got := values(t, s.sample(t), s.variable(t, v.Name, v.Class), 0)
		assert.Equal(t, s.Values(v, "-"), got, name)
		assert.Len(t, got, v.Count)
	}
	return works
}

// realArrays: Open MPI's monitoring has an element for each process of MPI_COMM_WORLD. Rank 0 has put to rank 1 alone.
func (s *subject) realArrays(t *testing.T) outcome {
	t.Helper()
	// 6.0.0rc2 tells it only with its monitoring of messages, which crashes MPI_Init
	if len(s.truth.Pvars) == 0 || s.mpi.Major >= 6 {
		return notOffered
	}
	run, r := s.two(t, "traffic.c", "5", "100")
	run.AtHold(t, "ready")
	goOn(t, run, "ready", "half")
	goOn(t, run, "half", "done")
	world := r.object(t, mpit.BindComm, "MPI_COMM_WORLD")
	assert.Equal(t, 2, world.Size)
	for name, want := range map[string][]float64{"osc_monitoring_messages_sent_count": {0, 10},
		"osc_monitoring_messages_sent_size": {0, 1000}} {
		assert.Equal(t, want, values(t, r.sample(t), r.variable(t, name, mpit.ClassSize), world.ID), name)
	}
	run.Finish(t, "done")
	return works
}

// ofSize makes a communicator of the first n processes.
func ofSize(t *testing.T, p *fixture.Program, n int, name string) {
	t.Helper()
	ranks := make([]string, n)
	for i := range ranks {
		ranks[i] = fmt.Sprint(i)
	}
	p.Do(t, "comm-group world all-%s", name)
	p.Do(t, "group-incl all-%s some-%s %s", name, name, strings.Join(ranks, ","))
	p.Make(t, name, n, "comm-create world some-%s %s", name, name)
	p.Do(t, "free all-%s", name)
	p.Do(t, "free some-%s", name)
}

func arraySizes(t *testing.T, s *subject) outcome {
	if !s.fixture() {
		if len(s.truth.Pvars) == 0 {
			return notOffered
		}
		return s.realArrays(t)
	}
	for _, n := range []int{2, 3, fixture.World} {
		name := fmt.Sprintf("size%d", n)
		ofSize(t, s.Program, n, name)
		o := s.newest(t, mpit.BindComm)
		assert.Equal(t, n, o.Size)
		for _, v := range s.library.Named("array_comm_") {
			list := make([]float64, n)
			for i := range list {
				list[i] = changed(v.Class)[0] + float64(i)*0.125
			}
			if v.Class != mpit.ClassPercentage {
				for i := range list {
					list[i] = changed(v.Class)[0] + float64(i)
				}
			}
			s.Set(t, v, name, list...)
			assert.Equal(t, s.Values(v, name), values(t, s.sample(t), s.variable(t, v.Name, v.Class), o.ID),
				"%s of %d", v.Name, n)
		}
		s.Free(t, name)
	}
	return works
}

func laterVariables(t *testing.T, s *subject) outcome {
	if !s.fixture() {
		if len(s.truth.Pvars) == 0 {
			return notOffered
		}
		return cannotTest(neverLater)
	}
	r := s.start(t, s.library, fixture.Options{})
	before := len(r.sample(t).Variables.ByID)
	later := s.library.Named("later_")
	for _, v := range later {
		r.Do(t, "appear pvar %s %s", fixture.Quote(v.Name), strings.ToLower(v.Class.String()))
	}
	harness.Await(t, "what has appeared", awaitVariables(r, before+len(later)))
	for _, v := range later {
		object, id := "-", uint32(0)
		if v.Bind == mpit.BindComm {
			object, id = "world", r.object(t, mpit.BindComm, "MPI_COMM_WORLD").ID
		}
		agent := r.variable(t, v.Name, v.Class)
		r.Set(t, v, object, changed(v.Class)[1])
		assert.Equal(t, r.Values(v, object), values(t, r.sample(t), agent, id), v.Name)
	}
	s.end(t, r.Program)
	return works
}

// remainsCount: what was counted on an object that is gone stays on the page; what was there is gone.
func remainsCount(t *testing.T, s *subject) outcome {
	if !s.fixture() {
		if len(s.truth.Pvars) == 0 {
			return notOffered
		}
		s.traffic(t)
		s.job.exporter.Await(t, "what freed communicators have counted", func(p *harness.Scrape) error {
			return p.Expect("mpit_coll_monitoring_a2a_count_total", s.job.Labels(0).With("comm", "brief"), 2*5)
		})
		return works
	}
	p := s.page
	counter, level := fixture.Bound(mpit.ClassCounter, mpit.BindComm), fixture.Bound(mpit.ClassLevel, mpit.BindComm)
	counted := p.Labels().With("comm", "short-lived")
	for round := range 3 {
		p.Make(t, "brief", 0, "comm-dup world brief")
		p.Name(t, "brief", "short-lived")
		p.exporter.Await(t, "the level", p.Shows(level, "brief"))
		p.Add(t, counter, "brief", 7)
		p.Free(t, "brief")
		p.exporter.Await(t, "the count without the object", func(page *harness.Scrape) error {
			if found := page.Select(fixture.Metric(level), counted); len(found) > 0 {
				return fmt.Errorf("still there: %v", found)
			}
			return page.Expect(fixture.Metric(counter), counted, float64(7*(round+1)))
		})
	}
	return works
}

func wraps(prefix string, width fixture.Type) check {
	return func(t *testing.T, s *subject) outcome {
		if !s.fixture() {
			if !s.offers(func(v trueVariable) bool {
				return v.Datatype == width.Datatype && (v.Class == mpit.ClassCounter || v.Class == mpit.ClassAggregate)
			}) {
				return notOffered
			}
			return cannotTest("Nobody waits until its counters wrap.")
		}
		p := s.page
		for _, v := range s.library.Named(prefix) {
			p.exporter.Await(t, "the value before", p.Shows(v, "-"))
			p.Add(t, v, "-", 1<<13)
			p.exporter.Await(t, "the value after", p.Shows(v, "-"))
			p.Add(t, v, "-", 1<<13)
			p.exporter.Await(t, "the value long after", p.Shows(v, "-"))
		}
		return works
	}
}

var errFew = errors.New("too few variables")
