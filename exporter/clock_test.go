package exporter

import (
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/exporter/internal/board"
	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// createdTimes are the created timestamps of all counters and histograms of ranks.
func createdTimes(t *testing.T, n *node) map[string]time.Time {
	t.Helper()
	times := map[string]time.Time{}
	for _, f := range decoded(t, n.Handler()) {
		if strings.HasPrefix(f.GetName(), board.Prefix) {
			continue
		}
		for _, m := range f.Metric {
			switch {
			case f.GetType() == dto.MetricType_COUNTER:
				times[f.GetName()+joinedLabels(m)] = m.Counter.CreatedTimestamp.AsTime()
			case f.GetType() == dto.MetricType_HISTOGRAM:
				times[f.GetName()+joinedLabels(m)] = m.Histogram.CreatedTimestamp.AsTime()
			}
		}
	}
	require.NotEmpty(t, times)
	return times
}

func joinedLabels(m *dto.Metric) string {
	var b strings.Builder
	for _, l := range m.Label {
		b.WriteString("," + l.GetName() + "=" + l.GetValue())
	}
	return b.String()
}

// The exporter's clock jumps, forth and back: nothing falls, nothing was created at another time, a rank that is
// there stays, and one that has ended is seen. A rank's own samples have the time of a clock that doesn't jump.
func TestFaultClockJumps(t *testing.T) {
	const day = 24 * time.Hour
	for name, jump := range map[string]time.Duration{
		"forth": day, "back": -day, "to before the epoch": -100 * 365 * day, "far ahead": 200 * 365 * day,
	} {
		t.Run(name, func(t *testing.T) {
			clock, ranks := newTestClock(), newTestClock()
			n := startNode(t, Config{}, func(e *Exporter) { e.now = clock.Now })
			living, ending := small("1", 0), small("1", 1)
			living.Clock, ending.Clock = ranks.Now, ranks.Now
			r, over := mpittest.New(living), mpittest.New(ending)
			n.connect(r, over)
			n.scrape()
			step := func() map[string]float64 {
				t.Helper()
				clock.advance(10 * time.Second)
				ranks.advance(10 * time.Second)
				require.NoError(t, r.Add("calls", mpit.ClassCounter, 0, 1))
				require.NoError(t, r.Add("waiting", mpit.ClassTimer, 0, 1))
				return n.scrape()
			}
			step()
			before, created := step(), createdTimes(t, n)
			n.finish(over, mpit.EndExit)

			clock.advance(jump)
			jumped := n.scrape()
			assert.Equal(t, 11.0, jumped[of("mpit_calls_total", "1", 1)],
				"it has ended, and has not been scraped since")
			for range 3 {
				after := step()
				assert.Equal(t, 1.0, after[of("mpit_rank_up", "1", 0)])
				assert.Greater(t, after[of("mpit_calls_total", "1", 0)], before[of("mpit_calls_total", "1", 0)])
				for _, series := range []string{"mpit_waiting_time_seconds_sum", "mpit_waiting_time_seconds_count"} {
					assert.GreaterOrEqual(t, after[of(series, "1", 0)], before[of(series, "1", 0)], series)
				}
				before = after
			}
			clock.advance(-jump)
			after := step()
			assert.Greater(t, after[of("mpit_calls_total", "1", 0)], before[of("mpit_calls_total", "1", 0)])
			assert.GreaterOrEqual(t, after[of("mpit_waiting_time_seconds_sum", "1", 0)],
				before[of("mpit_waiting_time_seconds_sum", "1", 0)])
			for series, at := range createdTimes(t, n) {
				assert.Equal(t, created[series], at, series)
			}
			clock.advance(DefaultRetention)
			n.scrape()
			assert.False(t, n.known(over), "its time is over, by whatever clock")
		})
	}
}

// What measures time in earnest is the monotonic clock, which does not jump at all: times that are kept to be
// compared have its reading.
func TestFaultClockIsMonotonic(t *testing.T) {
	n := startNode(t, Config{}, func(e *Exporter) { e.grace = time.Hour })
	ended, gone := mpittest.New(small("1", 0)), mpittest.New(small("1", 1))
	n.connect(ended, gone)
	n.finish(ended, mpit.EndFinalize)
	n.kill(gone)
	g := n.lock()
	defer g.unlock()
	for name, at := range map[string]time.Time{
		"an end": g.table.byID[ended.Hello().ID].ended, "a lost connection": g.table.byID[gone.Hello().ID].gone,
	} {
		assert.Contains(t, at.String(), " m=", name)
	}
}
