package conformance

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/test/fixture"
	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// 15.3.7: what a variable of each class becomes on /metrics.
func classes() section {
	return section{"15.3.7 Performance variables: classes on `/metrics`",
		each(fixture.Classes, func(c mpit.Class) string { return code(c) }, class)}
}

// changed are values that a variable of a class may have after its first: in between, and at the end.
func changed(class mpit.Class) [2]float64 {
	switch class {
	case mpit.ClassState:
		return [2]float64{2, 1}
	case mpit.ClassPercentage:
		return [2]float64{0.125, 0.875}
	case mpit.ClassLowWatermark:
		return [2]float64{40, 17}
	default:
		return [2]float64{1000, 1234}
	}
}

func class(class mpit.Class) check {
	return func(t *testing.T, s *subject) outcome {
		is := func(v trueVariable) bool { return v.Class == class && !v.control }
		if found := listed(is, func(p pair) bool { return !p.control && p.agent.Class == class })(t,
			s); found != works {
			return found
		}
		if !s.fixture() {
			return realClass(t, s, class)
		}
		p := s.page
		variables := map[string]fixture.Variable{"-": fixture.Bound(class, mpit.BindNone)}
		onComm := fixture.Bound(class, mpit.BindComm)
		if p.made == nil {
			p.made = []string{"left", "right"}
			for _, name := range p.made {
				p.Make(t, name, 0, "comm-dup world %s", name)
				p.Name(t, name, name+" half")
			}
		}
		for _, name := range append([]string{"world"}, p.made...) {
			variables[name] = onComm
		}
		shown := func() func(*harness.Scrape) error {
			var checks []func(*harness.Scrape) error
			for object, v := range variables {
				checks = append(checks, p.Shows(v, object))
			}
			if array, ok := arrayOn(s.library, class); ok {
				checks = append(checks, p.Shows(array, "left"))
			}
			return every(checks...)
		}
		p.exporter.Await(t, "the first values", shown())
		for step, value := range changed(class) {
			offset := 0.0
			for _, object := range []string{"-", "world", "left", "right"} {
				if class != mpit.ClassState && class != mpit.ClassPercentage {
					offset++ // no two alike
				}
				p.Set(t, variables[object], object, value+offset)
			}
			if array, ok := arrayOn(s.library, class); ok {
				if class == mpit.ClassPercentage {
					p.Set(t, array, "left", 0.25, value, 0.5, 0)
				} else {
					p.Set(t, array, "left", value+3, value+7, value+1, value+2)
				}
			}
			p.exporter.Await(t, fmt.Sprintf("the values of step %d", step), shown())
		}
		return works
	}
}

// arrayOn is the array of a class on a communicator; STATE and GENERIC have none.
func arrayOn(l *fixture.Library, class mpit.Class) (fixture.Variable, bool) {
	for _, v := range l.Named("array_comm_") {
		if v.Class == class {
			return v, true
		}
	}
	return fixture.Variable{}, false
}

func every(checks ...func(*harness.Scrape) error) func(*harness.Scrape) error {
	return func(s *harness.Scrape) error {
		var failed []error
		for _, c := range checks {
			failed = append(failed, c(s))
		}
		return errors.Join(failed...)
	}
}

// realClass: Open MPI's variables, with a program of which is known what it sends.
func realClass(t *testing.T, s *subject, class mpit.Class) outcome {
	t.Helper()
	require.Equal(t, "openmpi", s.mpi.Name, "no check for the %v of this library", class)
	switch class {
	case mpit.ClassSize: // one of those that it calls so and that are levels
		world := s.page.Labels().With("comm", "MPI_COMM_WORLD")
		for _, n := range []int{3, 5} {
			s.page.Do(t, "unexpected world %d 100", n)
			s.page.exporter.Await(t, "unexpected messages", func(p *harness.Scrape) error {
				return p.Expect("mpit_pml_ob1_unexpected_msgq_length", world, float64(n))
			})
			s.page.Do(t, "receive world 100")
			s.page.exporter.Await(t, "no unexpected messages", func(p *harness.Scrape) error {
				return p.Expect("mpit_pml_ob1_unexpected_msgq_length", world, 0)
			})
		}
		return outcome{works.word, "Declared as SIZE and shown as what it is, by the exporter's rules " +
			"(docs/mapping.md)."}
	case mpit.ClassCounter, mpit.ClassAggregate:
		name, want := "mpit_coll_monitoring_o2a_count_total", 10.0
		if class == mpit.ClassAggregate {
			name, want = "mpit_coll_monitoring_o2a_bytes_total", 10*100*1
		}
		s.traffic(t)
		s.job.exporter.Await(t, "what was sent", func(p *harness.Scrape) error {
			return p.Expect(name, s.job.Labels(0).With("comm", "ring"), want)
		})
		return works
	default:
		for _, v := range s.variables {
			if v.Class == class {
				require.Equal(t, mpit.VariableDenied, v.State, "no check for %s", v.Name)
			}
		}
		return notSupported("All that the library has of this class is denied.")
	}
}

// job is an MPI job of two ranks that has sent what it sends.
type job struct {
	*harness.Run
	exporter *harness.Exporter
}

// traffic starts one on the page's exporter: ten rounds of a hundred bytes from rank 0 to the other.
func (s *subject) traffic(t *testing.T) {
	t.Helper()
	exporter := suite.Exporter(t)
	run := suite.Run(t, harness.Job{
		MPI: s.mpi, Ranks: 2, Program: "traffic.c", Args: []string{"5", "100", harness.HoldDir},
		Exec: s.monitoring(), Socket: exporter.Socket,
	})
	run.AtHold(t, "ready")
	run.Release(t, "ready")
	run.AtHold(t, "half")
	run.Release(t, "half")
	run.AtHold(t, "done")
	s.job = &job{run, exporter}
	assert.NotNil(t, s.job)
}
