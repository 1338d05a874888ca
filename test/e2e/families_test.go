package e2e

import (
	"fmt"
	"slices"
	"testing"

	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/test/fixture"
	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// A library has variables x_<function>_calls, _bytes and _time; with the rules that docs/rules.md gives as an example
// they are three families with a label function, and the histograms have the counts of the calls.
func TestFunctionsBecomeOneFamily(t *testing.T) {
	t.Parallel()
	exporter := suite.Exporter(t, "--timer-interval=50ms", ruleFile(t, `
rules:
  - match: {regexp: 'x_(?P<function>[a-z]+)_(?P<what>calls|bytes)', class: counter}
    name: x_${what}
  - match: {regexp: 'x_(?P<function>[a-z]+)_time', class: timer}
    name: x_time
    companion: x_${function}_calls
    buckets: [0.001, 0.1]
`))
	functions := []string{"bcast", "reduce", "allreduce"}
	library := &fixture.Library{}
	variable := func(name string, class mpit.Class, of fixture.Type) fixture.Variable {
		v := fixture.Variable{Name: name, Class: class, Type: of}
		library.Variables = append(library.Variables, v)
		return v
	}
	var calls, bytes, times []fixture.Variable
	for _, f := range functions {
		calls = append(calls, variable("x_"+f+"_calls", mpit.ClassCounter, fixture.UnsignedLongLong))
		bytes = append(bytes, variable("x_"+f+"_bytes", mpit.ClassCounter, fixture.UnsignedLongLong))
		times = append(times, variable("x_"+f+"_time", mpit.ClassTimer, fixture.Double))
	}
	p := fixture.Start(t, fixture.Plain(suite), library, fixture.Options{Socket: exporter.Socket})
	p.Init(t)
	shown := func(n float64) check {
		var checks []check
		for i, f := range functions {
			of, number := p.Labels().With("function", f), n*float64(i+1)
			checks = append(checks,
				expect("mpit_x_calls_total", of, number), expect("mpit_x_bytes_total", of, 1000*number),
				// Each call took a 64th of a second, so all are between the two bounds.
				expect("mpit_x_time_seconds", of, number/64), events("mpit_x_time_seconds", of, 0, number),
				absent("mpit_x_"+f+"_calls_total", p.Labels()), absent("mpit_x_"+f+"_time_seconds", p.Labels()))
		}
		return all(append(checks, three("mpit_x_calls_total", p.Labels()), healthy)...)
	}
	exporter.Await(t, "the families", shown(0))
	for _, n := range []float64{10, 25} {
		for i := range functions {
			number := n * float64(i+1)
			p.Set(t, calls[i], "-", number)
			p.Set(t, bytes[i], "-", 1000*number)
			p.Set(t, times[i], "-", number/64)
		}
		exporter.Await(t, "what was counted", shown(n))
	}
	p.Finish(t)
	exporter.Await(t, "the ended rank", shown(25))
}

// events: the histogram has so many below its first bound, and so many in all, none of them above its second bound.
func events(name string, labels harness.Labels, below, number float64) check {
	return func(s *harness.Scrape) error {
		series, err := s.One(name, labels)
		if err != nil {
			return err
		}
		h := series.Metric.GetHistogram()
		have := []float64{float64(h.GetSampleCount())}
		for _, b := range h.GetBucket() {
			have = append(have, float64(b.GetCumulativeCount()))
		}
		if want := []float64{number, below, number}; len(have) < 3 || !slices.Equal(want, have[:3]) {
			return fmt.Errorf("count and buckets of %s%v are %v, not %v", name, labels, have, want)
		}
		return nil
	}
}

// three: so many series and no more.
func three(name string, labels harness.Labels) check {
	return func(s *harness.Scrape) error {
		if found := s.Select(name, labels); len(found) != 3 {
			return fmt.Errorf("%d series of %s, not three: %v", len(found), name, found)
		}
		return nil
	}
}
