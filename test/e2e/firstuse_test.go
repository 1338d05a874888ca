package e2e

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/test/fixture"
	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// A TIMER that the library registers at its first use has all of its time, whether a scrape or the last sample is the
// first to see it, although it begins at minus the time of day as MPICH's do.
func TestTimerRegisteredAtFirstUse(t *testing.T) {
	t.Parallel()
	const begin = -1_800_000_000
	matching := fixture.Variable{Name: "time_matching_unexpectedq", Class: mpit.ClassTimer, Type: fixture.Double,
		ProcessWide: true, Initial: []float64{begin}}
	timer := fixture.Variable{Name: "rma_wincreate_allgather", Class: mpit.ClassTimer, Type: fixture.Double,
		ProcessWide: true, Initial: []float64{begin}, Later: true}
	events := fixture.Variable{Name: timer.Name, Class: mpit.ClassCounter, ProcessWide: true, Later: true}
	library := &fixture.Library{Version: "MPICH Version: 4.0.2",
		Variables: []fixture.Variable{matching, timer, events}}
	const name = "mpit_rma_wincreate_allgather_time_seconds"
	for _, seen := range []bool{true, false} {
		t.Run(map[bool]string{true: "a scrape sees it", false: "the last sample sees it"}[seen], func(t *testing.T) {
			exporter := suite.Exporter(t, "--timer-interval=50ms")
			p := fixture.Start(t, fixture.Plain(suite), library, fixture.Options{Socket: exporter.Socket})
			p.Init(t)
			exporter.Await(t, "the rank", expect("mpit_rank_up", p.Labels(), 1))
			counted := func(seconds, number float64) check {
				return all(expect(name, p.Labels(), seconds), func(s *harness.Scrape) error {
					return observed(s, name, p.Labels(), number)
				}, healthy)
			}
			p.Set(t, timer, "-", begin+0.25)
			p.Set(t, events, "-", 1)
			p.Do(t, "appear pvar %s timer", timer.Name)
			p.Do(t, "appear pvar %s counter", timer.Name)
			if seen {
				exporter.Await(t, "its time before", counted(0.25, 1))
				p.Set(t, timer, "-", begin+1.5)
				p.Set(t, events, "-", 2)
				p.Finish(t)
				exporter.Await(t, "all of it", counted(1.5, 2))
				return
			}
			p.Finish(t)
			exporter.Await(t, "all of it", counted(0.25, 1))
		})
	}
}

// What MPICH has of its TIMERs is what is shown, of those that it registers at first use as well. MPICH has them only
// if it was built with --enable-mpit-pvars.
func TestTimersAreTheLibrarysOwn(t *testing.T) {
	t.Parallel()
	mpi := harness.MPICH(t)
	for _, points := range [][]string{{"begun", "used", "twice"}, {"used", "twice"}, nil} {
		t.Run(strings.Join(append([]string{"scraped"}, points...), " "), func(t *testing.T) {
			exporter := suite.Exporter(t, ruleFile(t, `
rules:
  - match: {regexp: '(?P<timer>.+)', class: timer}
    name: all
`))
			run := suite.Run(t, harness.Job{MPI: mpi, Program: "timers.c", Args: []string{harness.HoldDir},
				Socket: exporter.Socket})
			for _, point := range []string{"begun", "used", "twice"} {
				run.AtHold(t, point)
				for _, p := range points {
					if p == point {
						exporter.Await(t, "a sample", up(run))
					}
				}
				if point != "twice" {
					run.Release(t, point)
				}
			}
			result := run.Finish(t, "twice")
			var lines []string
			for _, line := range strings.Split(result.Stdout, "\n") {
				if strings.HasPrefix(line, "timer ") {
					lines = append(lines, line)
				}
			}
			if len(lines) == 0 {
				t.Skip("this MPICH has no TIMERs")
			}
			var shown []check
			for _, line := range lines {
				var timer string
				var seconds, number float64
				_, err := fmt.Sscanf(line, "timer %s %g %g", &timer, &seconds, &number)
				require.NoError(t, err, line)
				if number == 0 {
					continue // what has never moved has no series
				}
				of := run.Labels(0).With("timer", timer)
				shown = append(shown, func(s *harness.Scrape) error {
					series, err := s.One("mpit_all_seconds", of)
					if err != nil {
						return err
					}
					h := series.Metric.GetHistogram()
					if math.Abs(h.GetSampleSum()-seconds) > 1e-6 || float64(h.GetSampleCount()) != number {
						return fmt.Errorf("%s: %v s of %d events shown", line, h.GetSampleSum(), h.GetSampleCount())
					}
					return nil
				})
			}
			exporter.Await(t, "the library's own figures", all(ended(run, "finalize"), all(shown...)))
		})
	}
}

// observed: the histogram has counted so many.
func observed(s *harness.Scrape, name string, labels harness.Labels, number float64) error {
	series, err := s.One(name, labels)
	if err != nil {
		return err
	}
	if have := float64(series.Metric.GetHistogram().GetSampleCount()); have != number {
		return fmt.Errorf("the count of %s%v is %v, not %v", name, labels, have, number)
	}
	return nil
}
