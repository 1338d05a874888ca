package e2e

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/test/fixture"
	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// Figures that begin at zero with another exporter have all that a rank counts once it is back, before the first scrape
// as well; and a histogram moves as one.
func TestRestartLosesNothingOnceARankIsBack(t *testing.T) {
	t.Parallel()
	narrow := fixture.Variable{Name: "narrow", Class: mpit.ClassCounter, Type: fixture.Unsigned, ProcessWide: true}
	timer := fixture.Variable{Name: "timed", Class: mpit.ClassTimer, Type: fixture.Double, ProcessWide: true}
	events := fixture.Variable{Name: timer.Name, Class: mpit.ClassCounter, ProcessWide: true}
	library := &fixture.Library{Variables: []fixture.Variable{narrow, timer, events}}
	const name = "mpit_timed_time_seconds"

	exporter := suite.Exporter(t, "--timer-interval=1h") // only the first and the last sample end an interval
	p := fixture.Start(t, fixture.Plain(suite), library, fixture.Options{Socket: exporter.Socket})
	p.Init(t)
	p.Set(t, narrow, "-", 1000)
	p.Set(t, timer, "-", 4)
	p.Set(t, events, "-", 2)
	exporter.Await(t, "the rank", all(expect("mpit_rank_up", p.Labels(), 1), expect(name, p.Labels(), 4)))
	exporter.Kill(t)
	exporter.Restart(t)
	harness.Await(t, "the rank to be back", func(context.Context) error {
		var list api.RankList
		exporter.GetJSON(t, "/api/v1/ranks", &list) // which asks no rank
		if len(list.Ranks) != 1 || list.Ranks[0].State != "up" {
			return fmt.Errorf("ranks %+v", list.Ranks)
		}
		return nil
	})
	p.Set(t, narrow, "-", 4_026_532_531)
	p.Set(t, timer, "-", 6.5)
	p.Set(t, events, "-", 3)
	exporter.Await(t, "what it has counted since", all(expect("mpit_narrow_total", p.Labels(), 4_026_531_531),
		expect(name, p.Labels(), 0), func(s *harness.Scrape) error { return observed(s, name, p.Labels(), 0) }))
	p.Finish(t)
	exporter.Await(t, "the end", all(expect("mpit_narrow_total", p.Labels(), 4_026_531_531),
		expect(name, p.Labels(), 2.5), func(s *harness.Scrape) error { return observed(s, name, p.Labels(), 1) }))
	require.Empty(t, healthy(exporter.Scrape(t)))
}

// A library that derives from MPICH has a TIMER that begins at zero and one that counts ticks, besides those that begin
// at minus the time of day: each has all that was counted before the agent first saw it.
func TestTimersOfADerivedLibrary(t *testing.T) {
	t.Parallel()
	const begin = -1_800_000_000
	timer := func(name string, of fixture.Type, at float64, later bool) fixture.Variable {
		return fixture.Variable{Name: name, Class: mpit.ClassTimer, Type: of, ProcessWide: true,
			Initial: []float64{at}, Later: later}
	}
	matching := timer("time_matching_unexpectedq", fixture.Double, begin, false)
	own, ticks := timer("own", fixture.Double, 0, true), timer("ticks", fixture.UnsignedLong, 0, true)
	library := &fixture.Library{Version: "MPICH Version: 4.0.2", Variables: []fixture.Variable{matching, own, ticks}}
	exporter := suite.Exporter(t, "--timer-interval=50ms")
	p := fixture.Start(t, fixture.Plain(suite), library, fixture.Options{Socket: exporter.Socket})
	p.Init(t)
	exporter.Await(t, "the rank", expect("mpit_rank_up", p.Labels(), 1))
	set := func(seconds, number float64) {
		p.Set(t, own, "-", seconds)
		p.Set(t, ticks, "-", number)
	}
	set(5, 5000)
	p.Do(t, "appear pvar own timer")
	p.Do(t, "appear pvar ticks timer")
	exporter.Await(t, "the time before", all(expect("mpit_own_time_seconds", p.Labels(), 5),
		expect("mpit_ticks_time_total", p.Labels(), 5000)))
	set(8, 8000)
	p.Finish(t)
	exporter.Await(t, "all of it", all(expect("mpit_own_time_seconds", p.Labels(), 8),
		expect("mpit_ticks_time_total", p.Labels(), 8000), healthy))
}
