package exporter

import (
	"strings"
	"testing"

	"github.com/prometheus/otlptranslator"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/exporter/internal/board"
	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// translatedType is how a receiver of Prometheus' takes a family of that type here.
func translatedType(kind mapping.Kind, adds bool) otlptranslator.MetricType {
	switch {
	case kind == mapping.KindCounter:
		return otlptranslator.MetricTypeMonotonicCounter
	case kind == mapping.KindHistogram:
		return otlptranslator.MetricTypeHistogram
	case adds:
		return otlptranslator.MetricTypeNonMonotonicCounter
	}
	return otlptranslator.MetricTypeGauge
}

// What the exporter says of itself and of ranks has the names of /metrics, once they are translated.
func TestOwnFamiliesInOpenTelemetry(t *testing.T) {
	seen := map[string]string{}
	for _, f := range Families() {
		name, unit := f.OTel()
		assert.Equal(t, f.Name, prometheusName(t, name, unit, translatedType(f.Type, false)),
			"%s: what it counts, %q, must be in braces, such as {rank}", f.Name, f.Counts)
		assert.True(t, strings.HasPrefix(name, "mpit."), name)
		assert.Empty(t, seen[name], "%s and %s are both %s", f.Name, seen[name], name)
		seen[name] = f.Name
		assert.NotEqual(t, "1", unit, "%s: that is for ratios", name)
		if f.Type == mapping.KindCounter {
			assert.NotEmpty(t, unit, "%s: say what it counts, such as {rank}", f.Name)
		}
	}
	for family, want := range map[string]struct{ name, unit string }{
		"mpit_rank_up":                          {name: "mpit.rank.up"},
		"mpit_rank_start_time_seconds":          {name: "mpit.rank.start_time", unit: "s"},
		"mpit_rank_end_info":                    {name: "mpit.rank.end.info"},
		"mpit_process_info":                     {name: "mpit.process.info"},
		"mpit_pvar_category_info":               {name: "mpit.pvar.category.info"},
		"mpit_objects":                          {name: "mpit.objects", unit: "{object}"},
		"mpit_exporter_series":                  {name: "mpit.exporter.series", unit: "{series}"},
		"mpit_exporter_series_used":             {name: "mpit.exporter.series_used", unit: "{series}"},
		"mpit_exporter_connections":             {name: "mpit.exporter.connections", unit: "{connection}"},
		"mpit_rank_agent_gate_wait_max_seconds": {name: "mpit.rank.agent.gate_wait_max", unit: "s"},
		"mpit_exporter_rounds_total":            {name: "mpit.exporter.rounds", unit: "{round}"},
		"mpit_rank_agent_cpu_seconds_total":     {name: "mpit.rank.agent.cpu", unit: "s"},
	} {
		require.Contains(t, board.ByName(), family)
		name, unit := board.ByName()[family].OTel()
		assert.Equal(t, want, struct{ name, unit string }{name, unit}, family)
	}
}

// Every family that the shipped rules make of a known variable has its name, and a kind that goes with its type; no
// two are called the same, nor as one of the exporter's own.
func TestShippedRulesInOpenTelemetry(t *testing.T) {
	mapper := newMapper(t)
	own := map[string]string{}
	for _, f := range Families() {
		name, _ := f.OTel()
		own[name] = f.Name
	}
	found := 0
	for _, c := range catalogues(t) {
		seen := map[string]string{}
		for _, v := range c.MPIT() {
			m, _, ok := mapper.Metric(mapping.ParseLibrary(c.Version), v)
			if !ok {
				continue
			}
			found++
			kind := m.Kind
			require.Equal(t, m.Name, prometheusName(t, m.OTelName, m.Unit,
				translatedType(kind, m.OTelKind == mapping.OTelSum)), "%+v", m)
			if other := seen[m.OTelName]; other != "" {
				assert.Equal(t, other, m.Name, m.OTelName)
			}
			seen[m.OTelName] = m.Name
			assert.Empty(t, own[m.OTelName], m.OTelName)
			// What is asked of mapping.Metric here is not looked at again when points are made.
			assert.Equal(t, kind == mapping.KindHistogram, m.OTelKind == mapping.OTelHistogram, m.Name)
			assert.True(t, kind != mapping.KindCounter || m.OTelKind == mapping.OTelSum, m.Name)
		}
	}
	assert.Greater(t, found, 1000)
}
