package exporter

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// Whatever becomes of connections and exporters, what counts on the page is what the programs counted, and never
// falls while the exporter lives. What only an exporter can know begins anew when it meets a rank.
func TestPagesNeverFall(t *testing.T) {
	path := socketPath(t)
	rapid.Check(t, func(rt *rapid.T) {
		clock := newTestClock()
		n := startNodeAt(t, path, Config{})
		defer func() { n.stop() }()
		ranks, calls, waiting := []*mpittest.Rank{}, []float64{10, 11}, []float64{1.5, 1.5}
		for i := range calls {
			cfg := small("1", i)
			cfg.Clock = clock.Now
			ranks = append(ranks, mpittest.New(cfg))
			defer ranks[i].Kill()
		}
		n.connect(ranks...)
		last := map[string]float64{}
		scrape := func(whole bool) {
			page := n.scrape()
			for i := range ranks {
				if got := page[of("mpit_calls_total", "1", i)]; got != calls[i] {
					rt.Fatalf("rank %d has counted %v calls, the page has %v", i, calls[i], got)
				}
				got := page[of("mpit_waiting_time_seconds_sum", "1", i)]
				if got > waiting[i] || whole && got != waiting[i] {
					rt.Fatalf("rank %d has waited %v s, the page has %v", i, waiting[i], got)
				}
			}
			for id, was := range last {
				if page[id] < was {
					rt.Fatalf("%s falls from %v to %v", id, was, page[id])
				}
			}
			clear(last)
			for id, x := range page {
				if strings.HasPrefix(id, "mpit_calls_total") || strings.HasPrefix(id, "mpit_waiting_time_seconds") {
					last[id] = x
				}
			}
		}
		one := func(rt *rapid.T) int { return rapid.IntRange(0, len(ranks)-1).Draw(rt, "rank") }
		count := func(rt *rapid.T) {
			i, more := one(rt), rapid.IntRange(0, 1<<20).Draw(rt, "more")
			require.NoError(rt, ranks[i].Add("calls", mpit.ClassCounter, 0, more))
			require.NoError(rt, ranks[i].Add("waiting", mpit.ClassTimer, 0, float64(more)/1024))
			calls[i], waiting[i] = calls[i]+float64(more), waiting[i]+float64(more)/1024
		}
		look := func(rt *rapid.T) {
			clock.advance(time.Duration(rapid.IntRange(1, 2000).Draw(rt, "ms")) * time.Millisecond)
			scrape(false)
		}
		rt.Repeat(map[string]func(*rapid.T){
			"count": count, "count more": count, "count again": count, "look": look, "look again": look,
			"reconnect": func(rt *rapid.T) {
				i := one(rt)
				n.kill(ranks[i])
				n.connect(ranks[i])
			},
			"restart": func(*rapid.T) {
				n.stop()
				for _, r := range ranks {
					<-r.Disconnected()
				}
				n = startNodeAt(t, path, Config{}, startedAt(testTime.Add(time.Hour)))
				n.connect(ranks...)
				for i := range ranks {
					n.wait(ranks[i], func(r *rank) bool { return r.state == stateUp })
					waiting[i] = 0
				}
				for id := range last {
					if strings.HasPrefix(id, "mpit_waiting") {
						delete(last, id)
					}
				}
			},
		})
		clock.advance(10 * time.Second) // all intervals end
		scrape(true)
	})
}
