package exporter

import (
	"maps"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// own leaves out what the exporter says of itself and of its agents.
func own(page map[string]float64) map[string]float64 {
	page = maps.Clone(page)
	maps.DeleteFunc(page, func(key string, _ float64) bool {
		return strings.HasPrefix(key, Prefix) || strings.HasPrefix(key, "mpit_rank_agent_")
	})
	return page
}

// Two Exporters stand in one process and know nothing of each other; each can be part of somebody else's registry.
func TestTwoExporters(t *testing.T) {
	a, b := startNode(t, Config{}), startNode(t, Config{})
	rankA, rankB := mpittest.New(small("1", 0)), mpittest.New(small("2", 0))
	a.connect(rankA)
	b.connect(rankB)
	foreign := prometheus.NewPedanticRegistry()
	foreign.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "theirs", Help: "Theirs."}))

	t.Run("beside a registry", func(t *testing.T) {
		families, err := prometheus.Gatherers{foreign, prometheus.GathererFunc(a.Snapshot)}.Gather()
		require.NoError(t, err)
		page := valuesOf(families)
		assert.Contains(t, page, "theirs")
		assert.Equal(t, 10.0, page[of("mpit_calls_total", "1", 0)])
		assert.NotContains(t, page, of("mpit_calls_total", "2", 0))
	})
	t.Run("inside a registry", func(t *testing.T) {
		foreign.MustRegister(b.Collector())
		families, err := foreign.Gather()
		require.NoError(t, err)
		page := valuesOf(families)
		assert.Contains(t, page, "theirs")
		assert.Equal(t, own(b.scrape()), own(without(page, "theirs")))

		// What the registry was given is its own to keep.
		require.NoError(t, rankB.Set("calls", mpit.ClassCounter, 0, 20))
		assert.Equal(t, 20.0, b.scrape()[of("mpit_calls_total", "2", 0)])
		assert.Equal(t, 10.0, valuesOf(families)[of("mpit_calls_total", "2", 0)])
	})
	t.Run("behind promhttp", func(t *testing.T) {
		w := get(promhttp.HandlerForTransactional(a.Gatherer(), promhttp.HandlerOpts{}), "/metrics")
		assert.Contains(t, w.Body.String(), of("mpit_calls_total", "1", 0)+" 10\n")
		assert.Same(t, a.message("mpit_calls_total"), a.message("mpit_calls_total"), "nothing is leased")
	})
}

func without(page map[string]float64, key string) map[string]float64 {
	page = maps.Clone(page)
	delete(page, key)
	return page
}
