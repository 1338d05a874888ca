package exporter

import (
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/otlptranslator"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// translatedType is how a receiver of Prometheus' takes a family of that type here.
func translatedType(kind dto.MetricType, adds bool) otlptranslator.MetricType {
	switch {
	case kind == dto.MetricType_COUNTER:
		return otlptranslator.MetricTypeMonotonicCounter
	case kind == dto.MetricType_HISTOGRAM:
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
		o := otelOfOwn(f.Name, f.Type)
		assert.Equal(t, f.Name, prometheusName(t, o.name, o.unit, translatedType(f.Type, o.adds)), "%+v", o)
		assert.True(t, strings.HasPrefix(o.name, "mpit."), o.name)
		assert.Empty(t, seen[o.name], "%s and %s are both %s", f.Name, seen[o.name], o.name)
		seen[o.name] = f.Name
		assert.NotEqual(t, "1", o.unit, "%s: that is for ratios", o.name)
		if f.Type == dto.MetricType_COUNTER {
			assert.NotEmpty(t, o.unit, "%s: what is counted?", f.Name)
		}
	}
	for name := range otelCounted {
		assert.True(t, reservedNames()[name], "%s is no family", name)
	}
	for name, want := range map[string]otelFamily{
		"mpit_rank_up":                          {name: "mpit.rank.up"},
		"mpit_rank_start_time_seconds":          {name: "mpit.rank.start_time", unit: "s"},
		"mpit_rank_end_info":                    {name: "mpit.rank.end.info"},
		"mpit_process_info":                     {name: "mpit.process.info"},
		"mpit_pvar_category_info":               {name: "mpit.pvar.category.info"},
		"mpit_objects":                          {name: "mpit.objects", unit: "{object}"},
		"mpit_node_extreme_rank":                {name: "mpit.node.extreme_rank"},
		"mpit_exporter_series":                  {name: "mpit.exporter.series", unit: "{series}"},
		"mpit_exporter_series_used":             {name: "mpit.exporter.series_used", unit: "{series}"},
		"mpit_exporter_connections":             {name: "mpit.exporter.connections", unit: "{connection}"},
		"mpit_rank_agent_gate_wait_max_seconds": {name: "mpit.rank.agent.gate_wait_max", unit: "s"},
	} {
		assert.Equal(t, want, otelOfOwn(name, dto.MetricType_GAUGE))
	}
	for name, want := range map[string]otelFamily{
		"mpit_exporter_rounds_total":        {name: "mpit.exporter.rounds", unit: "{round}"},
		"mpit_rank_agent_cpu_seconds_total": {name: "mpit.rank.agent.cpu", unit: "s"},
	} {
		assert.Equal(t, want, otelOfOwn(name, dto.MetricType_COUNTER))
	}
}

// The family that says whose watermarks are is mapping's; both name it alike.
func TestNameOfExtremes(t *testing.T) {
	n, _ := togetherNode(t, Config{})
	n.mu.Lock()
	defer n.mu.Unlock()
	assert.Equal(t, otelOfOwn(mapping.ExtremeName, dto.MetricType_GAUGE), n.pages.page.byName[mapping.ExtremeName].otel)
}

// Every family that the shipped rules make of a known variable has its name, and a kind that goes with its type; no two are called
// the same, nor as one of the exporter's own.
func TestShippedRulesInOpenTelemetry(t *testing.T) {
	mapper := newMapper(t)
	own := map[string]string{}
	for _, f := range Families() {
		own[otelOfOwn(f.Name, f.Type).name] = f.Name
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
			o, kind := otelOfMetric(m), metricType(m.Kind)
			require.Equal(t, m.Name, prometheusName(t, o.name, o.unit, translatedType(kind, o.adds)), "%+v", m)
			if other := seen[o.name]; other != "" {
				assert.Equal(t, other, m.Name, o.name)
			}
			seen[o.name] = m.Name
			assert.Empty(t, own[o.name], o.name)
			// What is asked of mapping.Metric here is not looked at again when points are made.
			assert.Equal(t, kind == dto.MetricType_HISTOGRAM, m.OTelKind == mapping.OTelHistogram, m.Name)
			assert.Equal(t, kind == dto.MetricType_COUNTER || kind == dto.MetricType_HISTOGRAM, m.Monotonic, m.Name)
			assert.True(t, kind != dto.MetricType_COUNTER || m.OTelKind == mapping.OTelSum, m.Name)
		}
	}
	assert.Greater(t, found, 1000)
}
