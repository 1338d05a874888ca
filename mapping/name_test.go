package mapping

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/model"
	"github.com/prometheus/otlptranslator"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// fataler is *testing.T and *rapid.T.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// checkMetric holds of every family, wherever its name comes from.
func checkMetric(t fataler, m *Metric) {
	t.Helper()
	if !model.LegacyValidation.IsValidMetricName(m.Name) {
		t.Fatalf("%q is no name for Prometheus", m.Name)
	}
	if reservedName(m.Name) || !strings.HasPrefix(m.Name, "mpit_") {
		t.Fatalf("%q is reserved", m.Name)
	}
	kind := map[Kind]dto.MetricType{
		KindGauge: dto.MetricType_GAUGE, KindCounter: dto.MetricType_COUNTER, KindUntyped: dto.MetricType_UNTYPED, KindHistogram: dto.MetricType_HISTOGRAM,
	}[m.Kind]
	problems, err := promlint.NewWithMetricFamilies([]*dto.MetricFamily{{Name: &m.Name, Help: &m.Help, Type: &kind}}).Lint()
	if err != nil || len(problems) > 0 {
		t.Fatalf("promlint of %+v: %v %v", m, problems, err)
	}
	if m.Help == "" || strings.ContainsAny(m.Help, "\n\x00") || len(m.Help) > 1600 {
		t.Fatalf("HELP %q", m.Help)
	}
	otel := otlptranslator.Metric{Name: m.OTelName, Unit: m.Unit}
	switch {
	case m.OTelKind == OTelHistogram:
		otel.Type = otlptranslator.MetricTypeHistogram
	case m.OTelKind == OTelGauge:
		otel.Type = otlptranslator.MetricTypeGauge
	case m.Monotonic:
		otel.Type = otlptranslator.MetricTypeMonotonicCounter
	default:
		otel.Type = otlptranslator.MetricTypeNonMonotonicCounter
	}
	namer := otlptranslator.NewMetricNamer("", otlptranslator.UnderscoreEscapingWithSuffixes)
	name, err := namer.Build(otel)
	if err != nil || name != m.Name {
		t.Fatalf("OpenTelemetry's %s, unit %q, becomes %q instead of %q (%v)", m.OTelName, m.Unit, name, m.Name, err)
	}
	if len(m.Name) > 220 || len(m.OTelName) > 255 {
		t.Fatalf("%q, %q: too long", m.Name, m.OTelName)
	}
}

func newMapper(t fataler, rules ...Rule) *Mapper {
	t.Helper()
	if rules == nil {
		rules = []Rule{}
	}
	m, err := New(Config{Rules: rules})
	if err != nil {
		t.Fatalf("%v", err)
	}
	return m
}

func TestNamesOfEachClass(t *testing.T) {
	for _, c := range []struct {
		name     string
		class    mpit.Class
		datatype mpit.Datatype
		want     string
		otel     string
		kind     Kind
	}{
		{"foo", mpit.ClassState, mpit.DatatypeInt, "mpit_foo_state", "mpit.foo.state", KindGauge},
		{"foo", mpit.ClassLevel, mpit.DatatypeInt, "mpit_foo_level", "mpit.foo.level", KindGauge},
		{"foo", mpit.ClassSize, mpit.DatatypeInt, "mpit_foo_size", "mpit.foo.size", KindGauge},
		{"foo", mpit.ClassPercentage, mpit.DatatypeDouble, "mpit_foo_ratio", "mpit.foo.ratio", KindGauge},
		{"foo", mpit.ClassHighWatermark, mpit.DatatypeInt, "mpit_foo_highwatermark", "mpit.foo.highwatermark", KindGauge},
		{"foo", mpit.ClassLowWatermark, mpit.DatatypeInt, "mpit_foo_lowwatermark", "mpit.foo.lowwatermark", KindGauge},
		{"foo", mpit.ClassCounter, mpit.DatatypeInt, "mpit_foo_total", "mpit.foo.total", KindCounter},
		{"foo", mpit.ClassAggregate, mpit.DatatypeInt, "mpit_foo_aggregate_total", "mpit.foo.aggregate", KindCounter},
		{"foo", mpit.ClassTimer, mpit.DatatypeDouble, "mpit_foo_time_seconds", "mpit.foo.time", KindHistogram},
		{"foo", mpit.ClassTimer, mpit.DatatypeUnsignedLong, "mpit_foo_time_total", "mpit.foo.time.total", KindCounter},
		{"foo", mpit.ClassGeneric, mpit.DatatypeInt, "mpit_foo_generic", "mpit.foo.generic", KindUntyped},
		{"foo", mpit.ClassUnknown, mpit.DatatypeInt, "mpit_foo_generic", "mpit.foo.generic", KindUntyped},
		{"2level_count", mpit.ClassCounter, mpit.DatatypeInt, "mpit_2level_count_total", "mpit.2level_count.total", KindCounter},
		{"foo_bytes", mpit.ClassCounter, mpit.DatatypeInt, "mpit_foo_bytes_total", "mpit.foo_bytes.total", KindCounter},
		{"foo_bytes", mpit.ClassLevel, mpit.DatatypeInt, "mpit_foo_bytes_level", "mpit.foo_bytes.level", KindGauge},
		{"foo_count", mpit.ClassLevel, mpit.DatatypeInt, "mpit_foo_count_level", "mpit.foo_count.level", KindGauge},
		{"foo_size", mpit.ClassLevel, mpit.DatatypeInt, "mpit_foo_size_level", "mpit.foo_size.level", KindGauge},
		{"objects", mpit.ClassLevel, mpit.DatatypeInt, "mpit_objects_level", "mpit.objects.level", KindGauge},
	} {
		t.Run(c.want, func(t *testing.T) {
			m, reason, ok := newMapper(t).Metric(Library{}, mpit.Variable{Name: c.name, Class: c.class, Datatype: c.datatype})
			require.True(t, ok, reason)
			assert.Equal(t, c.want, m.Name)
			assert.Equal(t, c.otel, m.OTelName)
			assert.Equal(t, c.kind, m.Kind)
			checkMetric(t, m)
		})
	}
}

// What cannot stand as it is has the one escape.
func TestEscapedNames(t *testing.T) {
	for _, c := range []struct {
		why, name string
		class     mpit.Class
		want      string // # stands for eight characters
	}{
		{"the word is there already", "foo_size", mpit.ClassSize, "mpit_foo_size_x#"},
		{"of a level, too", "foo_level", mpit.ClassLevel, "mpit_foo_level_x#"},
		{"it is another's", "foo_highwatermark", mpit.ClassPercentage, "mpit_foo_highwatermark_x#_ratio"},
		{"in OpenMetrics it is another's", "foo_level", mpit.ClassCounter, "mpit_foo_level_x#_total"},
		{"in OpenMetrics it is another's with a unit", "foo_level_bytes", mpit.ClassCounter, "mpit_foo_level_bytes_x#_total"},
		{"a timer's", "foo_time", mpit.ClassCounter, "mpit_foo_time_x#_total"},
		{"total is where it stands", "total_foo", mpit.ClassCounter, "mpit_foo_x#_total"},
		{"ratio, once", "foo_ratio", mpit.ClassPercentage, "mpit_foo_x#_ratio"},
		{"the kind's own name", "foo_counter", mpit.ClassCounter, "mpit_foo_x#_total"},
		{"a sample of a histogram's", "foo_seconds_count", mpit.ClassCounter, "mpit_foo_seconds_count_x#_total"},
		{"a part of another counter", "foo_created", mpit.ClassCounter, "mpit_foo_created_x#_total"},
		{"short unit", "foo_ms", mpit.ClassLevel, "mpit_foo_level_x#"},
		{"no base unit", "foo_kilobytes_used", mpit.ClassLevel, "mpit_foo_used_level_x#"},
		{"capitals", "Foo-Bar", mpit.ClassCounter, "mpit_foo_bar_x#_total"},
		{"two underscores", "foo__bar", mpit.ClassCounter, "mpit_foo_bar_x#_total"},
		{"nothing left", "ß", mpit.ClassCounter, "mpit_x#_total"},
		{"empty", "", mpit.ClassCounter, "mpit_x#_total"},
		{"the exporter's own", "exporter_rounds", mpit.ClassCounter, "mpit_rounds_x#_total"},
		{"of a whole node", "node_foo", mpit.ClassLevel, "mpit_foo_level_x#"},
		{"reserved in OpenMetrics", "objects", mpit.ClassCounter, "mpit_objects_x#_total"},
		{"reserved for a whole node", "extreme_rank", mpit.ClassCounter, "mpit_extreme_rank_x#_total"},
		{"looks escaped", "foo_xabcdefgh", mpit.ClassLevel, "mpit_foo_level_x#"},
	} {
		t.Run(c.why, func(t *testing.T) {
			m, reason, ok := newMapper(t).Metric(Library{}, mpit.Variable{Name: c.name, Class: c.class, Datatype: mpit.DatatypeDouble})
			require.True(t, ok, reason)
			before, after, _ := strings.Cut(c.want, "#")
			assert.Regexp(t, "^"+before+"[a-z2-7]{8}"+after+"$", m.Name)
			assert.Contains(t, m.Help, fmt.Sprintf("MPI_T variable %s, class", c.name))
			checkMetric(t, m)
		})
	}
}

// variableNames draws names that provoke clashes.
func variableNames() *rapid.Generator[string] {
	words := []string{
		"a", "foo", "mem", "x", "9", "size", "state", "time", "generic", "aggregate", "highwatermark", "lowwatermark", "ratio", "bytes", "seconds",
		"total", "count", "sum", "bucket", "created", "info", "counter", "gauge", "histogram", "untyped", "ms", "b", "bits", "microseconds",
		"exporter", "rank", "objects", "process", "xabcdefgh", "", "FOO", "joules", "gcount", "summary",
	}
	return rapid.OneOf(
		rapid.Map(rapid.SliceOfN(rapid.SampledFrom(words), 1, 4), func(w []string) string { return strings.Join(w, "_") }),
		rapid.StringMatching(`[a-z0-9_.:-]{0,12}`),
		rapid.String(),
	)
}

func TestNamesNeverClash(t *testing.T) {
	datatypes := []mpit.Datatype{mpit.DatatypeInt, mpit.DatatypeDouble}
	rapid.Check(t, func(t *rapid.T) {
		m := newMapper(t)
		seen, otel := map[string]variableKey{}, map[string]variableKey{}
		for _, name := range rapid.SliceOfN(variableNames(), 1, 30).Draw(t, "names") {
			for class := range mpit.Class(10) {
				key := variableKey{name, class}
				v := mpit.Variable{Name: name, Class: class, Datatype: datatypes[rapid.IntRange(0, 1).Draw(t, "datatype")]}
				if class == mpit.ClassTimer {
					v.Datatype = mpit.DatatypeDouble // else the two forms of one timer
				}
				got, reason, ok := m.Metric(Library{}, v)
				if !ok {
					t.Fatalf("%v: %s", key, reason)
				}
				checkMetric(t, got)
				again, _, _ := newMapper(t).Metric(Library{}, v)
				if again.Name != got.Name || again.OTelName != got.OTelName {
					t.Fatalf("%v: %s, and alone %s", key, got.Name, again.Name)
				}
				if other, ok := seen[got.Name]; ok && other != key {
					t.Fatalf("%v and %v are both %s", key, other, got.Name)
				}
				if other, ok := otel[got.OTelName]; ok && other != key {
					t.Fatalf("%v and %v are both %s", key, other, got.OTelName)
				}
				seen[got.Name], otel[got.OTelName] = key, key
			}
		}
	})
}

// A rule may give any unit to any class: names stay clean, and the standard translation agrees.
func TestNamesWithUnits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SampledFrom([]string{"By", "KiBy", "s", "us", "1", "%", "J", "W", "V", "A", "Hz", "Cel", "{message}", NoUnit}).Draw(t, "unit")
		class := rapid.SampledFrom(classNames[:]).Draw(t, "class")
		rule := Rule{Unit: unit, Class: class}
		if rapid.Bool().Draw(t, "named") {
			rule.Match.Name, rule.Name = "*", "$1"
		}
		v := mpit.Variable{Name: variableNames().Draw(t, "name"), Datatype: mpit.DatatypeDouble}
		got, reason, ok := newMapper(t, rule).Metric(Library{}, v)
		if !ok {
			t.Fatalf("%s", reason)
		}
		checkMetric(t, got)
	})
}

func TestRatiosNeverClashWithVariables(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMapper(t)
		name := variableNames().Draw(t, "name")
		for _, high := range []bool{false, true} {
			ratio, reason := m.ratioMetric(name, high)
			if reason != "" {
				t.Fatalf("%s", reason)
			}
			checkMetric(t, ratio)
			other := mpit.Variable{Name: variableNames().Draw(t, "other"), Class: mpit.Class(rapid.IntRange(0, 9).Draw(t, "class")), Datatype: mpit.DatatypeDouble}
			got, _, ok := m.Metric(Library{}, other)
			if ok && got == ratio && (other.Class != mpit.ClassPercentage || other.Name != name || high) {
				t.Fatalf("%+v has the name of the ratio of %q", other, name)
			}
		}
	})
}

func FuzzNames(f *testing.F) {
	f.Add("foo_size", uint8(2))
	f.Add("\xff\x00", uint8(255))
	f.Fuzz(func(t *testing.T, name string, class uint8) {
		m, _, ok := newMapper(t, Defaults()...).Metric(Library{OpenMPI, "5.0"}, mpit.Variable{Name: name, Description: name, Class: mpit.Class(class), Datatype: mpit.DatatypeDouble})
		if ok {
			checkMetric(t, m)
		}
	})
}
