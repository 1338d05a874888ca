package series

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mapping/rules"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/otlptranslator"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// fataler is *testing.T and *rapid.T.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

func dtoType(k mapping.Kind) dto.MetricType {
	return map[mapping.Kind]dto.MetricType{
		mapping.KindGauge: dto.MetricType_GAUGE, mapping.KindCounter: dto.MetricType_COUNTER,
		mapping.KindUntyped: dto.MetricType_UNTYPED, mapping.KindHistogram: dto.MetricType_HISTOGRAM,
	}[k]
}

// checkMetric holds of every family, wherever its name comes from.
func checkMetric(t fataler, m *mapping.Metric) {
	t.Helper()
	if !model.LegacyValidation.IsValidMetricName(m.Name) {
		t.Fatalf("%q is no name for Prometheus", m.Name)
	}
	if !strings.HasPrefix(m.Name, "mpit_") {
		t.Fatalf("%q is reserved", m.Name)
	}
	kind := dtoType(m.Kind)
	problems, err := promlint.NewWithMetricFamilies([]*dto.MetricFamily{{Name: &m.Name, Help: &m.Help,
		Type: &kind}}).Lint()
	if err != nil || len(problems) > 0 {
		t.Fatalf("promlint of %+v: %v %v", m, problems, err)
	}
	if m.Help == "" || strings.ContainsAny(m.Help, "\n\x00") || len(m.Help) > 1600 {
		t.Fatalf("HELP %q", m.Help)
	}
	otel := otlptranslator.Metric{Name: m.OTelName, Unit: m.Unit}
	switch {
	case m.OTelKind == mapping.OTelHistogram:
		otel.Type = otlptranslator.MetricTypeHistogram
	case m.OTelKind == mapping.OTelGauge:
		otel.Type = otlptranslator.MetricTypeGauge
	case m.Kind == mapping.KindCounter:
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

func newMapper(t fataler, list ...rules.Rule) *variables.Mapper {
	t.Helper()
	if list == nil {
		list = []rules.Rule{}
	}
	m, err := variables.New(variables.Config{Rules: list})
	if err != nil {
		t.Fatalf("%v", err)
	}
	return m
}

// shipped has the rules that are shipped, for tests that only ask it; to read and compile them takes a while.
var shipped = sync.OnceValue(func() *variables.Mapper {
	m, err := variables.New(variables.Config{Rules: rules.Defaults()})
	if err != nil {
		panic(err)
	}
	return m
})

func TestNamesOfEachClass(t *testing.T) {
	for _, c := range []struct {
		name     string
		class    mpit.Class
		datatype mpit.Datatype
		want     string
		otel     string
		kind     mapping.Kind
	}{
		{"foo", mpit.ClassState, mpit.DatatypeInt, "mpit_foo_state", "mpit.foo.state", mapping.KindGauge},
		{"foo", mpit.ClassLevel, mpit.DatatypeInt, "mpit_foo_level", "mpit.foo.level", mapping.KindGauge},
		{"foo", mpit.ClassSize, mpit.DatatypeInt, "mpit_foo_size", "mpit.foo.size", mapping.KindGauge},
		{"foo", mpit.ClassPercentage, mpit.DatatypeDouble, "mpit_foo_ratio", "mpit.foo.ratio", mapping.KindGauge},
		{"foo", mpit.ClassHighWatermark, mpit.DatatypeInt, "mpit_foo_highwatermark", "mpit.foo.highwatermark",
			mapping.KindGauge},
		{"foo", mpit.ClassLowWatermark, mpit.DatatypeInt, "mpit_foo_lowwatermark", "mpit.foo.lowwatermark",
			mapping.KindGauge},
		{"foo", mpit.ClassCounter, mpit.DatatypeInt, "mpit_foo_total", "mpit.foo.total", mapping.KindCounter},
		{"foo", mpit.ClassAggregate, mpit.DatatypeInt, "mpit_foo_aggregate_total", "mpit.foo.aggregate",
			mapping.KindCounter},
		{"foo", mpit.ClassTimer, mpit.DatatypeDouble, "mpit_foo_time_seconds", "mpit.foo.time", mapping.KindHistogram},
		{"foo", mpit.ClassTimer, mpit.DatatypeUnsignedLong, "mpit_foo_time_total", "mpit.foo.time.total",
			mapping.KindCounter},
		{"foo", mpit.ClassGeneric, mpit.DatatypeInt, "mpit_foo_generic", "mpit.foo.generic", mapping.KindUntyped},
		{"foo", mpit.ClassUnknown, mpit.DatatypeInt, "mpit_foo_generic", "mpit.foo.generic", mapping.KindUntyped},
		{"2level_count", mpit.ClassCounter, mpit.DatatypeInt, "mpit_2level_count_total", "mpit.2level_count.total",
			mapping.KindCounter},
		{"foo_bytes", mpit.ClassCounter, mpit.DatatypeInt, "mpit_foo_bytes_total", "mpit.foo_bytes.total",
			mapping.KindCounter},
		{"foo_bytes", mpit.ClassLevel, mpit.DatatypeInt, "mpit_foo_bytes_level", "mpit.foo_bytes.level",
			mapping.KindGauge},
		{"foo_count", mpit.ClassLevel, mpit.DatatypeInt, "mpit_foo_count_level", "mpit.foo_count.level",
			mapping.KindGauge},
		{"foo_size", mpit.ClassLevel, mpit.DatatypeInt, "mpit_foo_size_level", "mpit.foo_size.level",
			mapping.KindGauge},
		{"objects", mpit.ClassLevel, mpit.DatatypeInt, "mpit_objects_level", "mpit.objects.level", mapping.KindGauge},
	} {
		t.Run(c.want, func(t *testing.T) {
			m, reason, ok := newMapper(t).Metric(mapping.Library{},
				mpit.Variable{Name: c.name, Class: c.class, Datatype: c.datatype})
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
		{"in OpenMetrics it is a percentage's", "foo_ratio", mpit.ClassCounter, "mpit_foo_ratio_x#_total"},
		{"in OpenMetrics it is another's with a unit", "foo_level_bytes", mpit.ClassCounter,
			"mpit_foo_level_bytes_x#_total"},
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
		{"reserved in OpenMetrics", "objects", mpit.ClassCounter, "mpit_objects_x#_total"},
		{"looks escaped", "foo_xabcdefgh", mpit.ClassLevel, "mpit_foo_level_x#"},
	} {
		t.Run(c.why, func(t *testing.T) {
			m, reason, ok := newMapper(t).Metric(mapping.Library{},
				mpit.Variable{Name: c.name, Class: c.class, Datatype: mpit.DatatypeDouble})
			require.True(t, ok, reason)
			before, after, _ := strings.Cut(c.want, "#")
			assert.Regexp(t, "^"+before+"[a-z2-7]{8}"+after+"$", m.Name)
			assert.Contains(t, m.Help, fmt.Sprintf("MPI_T variable %s, class", c.name))
			checkMetric(t, m)
		})
	}
}

// A total says in OpenTelemetry, too, what it is a total of: not mpit.call.total, of bytes.
func TestNamesOfTotals(t *testing.T) {
	for _, c := range []struct{ name, unit, want, otel string }{
		{"call_bytes", "By", "mpit_call_bytes_total", "mpit.call.bytes.total"},
		{"bytes_sent", "By", "mpit_sent_bytes_total", "mpit.sent.bytes.total"},
		{"sent", "By", "mpit_sent_bytes_total", "mpit.sent.bytes.total"},
		{"calls", "{call}", "mpit_calls_total", "mpit.calls.total"},
	} {
		m, reason, ok := newMapper(t, rules.Rule{
			Match: rules.Match{Name: "foo"}, Name: c.name, Unit: c.unit,
		}).Metric(mapping.Library{}, mpit.Variable{Name: "foo", Class: mpit.ClassAggregate,
			Datatype: mpit.DatatypeUnsignedLong})
		require.True(t, ok, reason)
		assert.Equal(t, [2]string{c.want, c.otel}, [2]string{m.Name, m.OTelName})
		checkMetric(t, m)
	}
}

// variableNames draws names that provoke clashes: of words that names are made of, names that others have on the
// page, anything that MPI allows, which is any bytes but NUL.
func variableNames() *rapid.Generator[string] {
	words := []string{
		"a", "foo", "mem", "x", "9", "level", "size", "state", "time", "generic", "aggregate", "highwatermark",
		"lowwatermark", "ratio", "bytes",
		"seconds", "joules", "total", "count", "sum", "bucket", "created", "info", "gsum", "gcount", "counter",
		"gauge", "histogram", "untyped",
		"summary", "ms", "b", "bits", "microseconds", "exporter", "rank", "node", "extreme", "objects", "process",
		"xabcdefgh", "", "FOO", "mpit",
	}
	of := func(g *rapid.Generator[string], separators ...string) *rapid.Generator[string] {
		return rapid.Custom(func(t *rapid.T) string {
			return strings.Join(rapid.SliceOfN(g, 1, 4).Draw(t, "words"),
				rapid.SampledFrom(separators).Draw(t, "separator"))
		})
	}
	plain := of(rapid.SampledFrom(words), "_", "_", "_", ".", "__")
	// What another variable's family is called, in any of the schemes: with its hash, if it has been escaped.
	taken := rapid.Custom(func(t *rapid.T) string {
		v := mpit.Variable{Name: plain.Draw(t, "whose"), Class: mpit.Class(rapid.IntRange(0, 9).Draw(t, "class")),
			Datatype: mpit.DatatypeDouble}
		m, _, ok := newMapper(t).Metric(mapping.Library{}, v)
		if !ok {
			t.Fatalf("%+v becomes nothing", v)
		}
		name := rapid.SampledFrom(append(mapping.OwnedNames(m.Name, m.Kind), m.OTelName,
			strings.ReplaceAll(m.OTelName, ".", "_"))).Draw(t, "as")
		return name[len(mapping.Prefix):] // mpit. is as long
	})
	return rapid.OneOf(
		plain,
		of(rapid.OneOf(rapid.SampledFrom(words), taken), "_"),
		rapid.StringMatching(`[a-z0-9_.:-]{0,12}`),
		rapid.String(),
		rapid.Map(rapid.SliceOfN(rapid.ByteRange(1, 255), 0, 12), func(b []byte) string { return string(b) }),
	)
}

// legalVariables draws variables of different name or class, as MPI-4.1 allows them, each of which becomes something.
func legalVariables(t *rapid.T) []mpit.Variable {
	var all []mpit.Variable
	for _, name := range rapid.SliceOfNDistinct(variableNames(), 1, 12, rapid.ID).Draw(t, "names") {
		name = strings.ReplaceAll(name, "\x00", "")
		for class := range mpit.Class(10) {
			for _, d := range []mpit.Datatype{mpit.DatatypeInt, mpit.DatatypeDouble} {
				all = append(all, mpit.Variable{Name: name, Class: class, Datatype: d, DatatypeBytes: 8})
			}
		}
	}
	return all
}

// Any two names or classes are two families: on /metrics, in OpenMetrics, with all their samples, and in OpenTelemetry.
func TestNamesNeverClash(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMapper(t)
		type holder struct {
			key    nameAndClass
			family string
		}
		owners, otel := map[string]holder{}, map[string]holder{}
		claim := func(names map[string]holder, name string, who holder) {
			if other, ok := names[name]; ok && other != who {
				t.Fatalf("%v and %v are both %s", other, who, name)
			}
			names[name] = who
		}
		for _, v := range legalVariables(t) {
			got, reason, ok := m.Metric(mapping.Library{}, v)
			if !ok {
				t.Fatalf("%+v: %s", v, reason)
			}
			checkMetric(t, got)
			// A timer's two forms, in seconds and without a unit, are two families, too.
			who := holder{keyOf(&v), got.Name}
			for _, name := range append(mapping.OwnedNames(got.Name, got.Kind), got.Name) {
				claim(owners, name, who)
			}
			claim(otel, got.OTelName, who)
		}
	})
}

// A name depends on the variable and the rules alone: not on who asks, nor on what else there is, nor on who came
// first.
func TestNamesAreStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var list []rules.Rule
		if rapid.Bool().Draw(t, "rules") {
			list = []rules.Rule{{Match: rules.Match{Name: "*_size"}, Unit: "By"},
				{Match: rules.Match{Name: "f*"}, Class: "level", Name: "nice_$1"}}
		}
		m := newMapper(t, list...)
		r := NewRank(m, variables.Process{})
		r.Update(newAgent(rapid.Permutation(legalVariables(t)).Draw(t, "order")...).sample())
		for _, v := range r.byID {
			if v.Metric == nil {
				// of each two datatypes of one variable, one is too many for a rank; and rules make variables share a name
				continue
			}
			alone, reason, ok := newMapper(t, list...).Metric(mapping.Library{}, *v.of.Info)
			if !ok {
				t.Fatalf("%+v: %s", v.of.Info, reason)
			}
			if alone.Name != v.Metric.Name || alone.OTelName != v.Metric.OTelName {
				t.Fatalf("%+v is %s, and alone %s", v.of.Info, v.Metric.Name, alone.Name)
			}
		}
	})
}

// Whatever variables a library has, a page of them is read back by Prometheus' own parser, and in OpenMetrics by a
// strict one.
func TestParsersReadAllNamesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMapper(t)
		seen := map[string]bool{}
		var page []*dto.MetricFamily
		for _, v := range legalVariables(t) {
			got, _, _ := m.Metric(mapping.Library{}, v)
			if !seen[got.Name] {
				seen[got.Name] = true
				page = append(page, familyOf(got))
			}
		}
		var text, open strings.Builder
		for _, f := range page {
			if _, err := expfmt.MetricFamilyToText(&text, f); err != nil {
				t.Fatalf("%v", err)
			}
			if _, err := expfmt.MetricFamilyToOpenMetrics(&open, f, expfmt.WithCreatedLines()); err != nil {
				t.Fatalf("%v", err)
			}
		}
		parser := expfmt.NewTextParser(model.LegacyValidation)
		families, err := parser.TextToMetricFamilies(strings.NewReader(text.String()))
		if err != nil || len(families) != len(page) {
			t.Fatalf("%d families of %d: %v\n%s", len(families), len(page), err, text.String())
		}
		for _, f := range page {
			if back := families[f.GetName()]; back == nil || back.GetType() != f.GetType() ||
				back.GetHelp() != f.GetHelp() || len(back.Metric) != 1 {
				t.Fatalf("%v is read back as %v", f, back)
			}
		}
		if n, err := readOpenMetrics(open.String()); err != nil || n != len(page) {
			t.Fatalf("%d families of %d: %v\n%s", n, len(page), err, open.String())
		}
	})
}

// familyOf is a family with one series.
func familyOf(m *mapping.Metric) *dto.MetricFamily {
	one, n, bound := 1.0, uint64(1), 2.0
	kind := dtoType(m.Kind)
	metric, at := &dto.Metric{}, timestamppb.New(time.Unix(1000, 0))
	switch m.Kind {
	case mapping.KindCounter:
		metric.Counter = &dto.Counter{Value: &one, CreatedTimestamp: at}
	case mapping.KindHistogram:
		metric.Histogram = &dto.Histogram{SampleSum: &one, SampleCount: &n, CreatedTimestamp: at,
			Bucket: []*dto.Bucket{{UpperBound: &bound, CumulativeCount: &n}}}
	case mapping.KindGauge:
		metric.Gauge = &dto.Gauge{Value: &one}
	default:
		metric.Untyped = &dto.Untyped{Value: &one}
	}
	return &dto.MetricFamily{Name: &m.Name, Help: &m.Help, Type: &kind, Metric: []*dto.Metric{metric}}
}

// readOpenMetrics reads what expfmt has written as the standard wants it read: each line belongs to the family before
// it, a sample has one of the endings of the family's type, and no name that a type gives to one family is another's.
// expfmt itself has no parser of OpenMetrics.
func readOpenMetrics(page string) (families int, err error) {
	endings := map[string][]string{
		"counter": {"_total", "_created"}, "histogram": {"_bucket", "_sum", "_count", "_created"}, "gauge": {""},
		"unknown": {""},
	}
	owner := map[string]string{}
	family, kind := "", ""
	for line := range strings.Lines(page) {
		word := strings.Fields(line)
		switch {
		case strings.HasPrefix(line, "# TYPE "):
			family, kind = word[2], word[3]
			families++
			if endings[kind] == nil {
				return families, fmt.Errorf("%q: no type", line)
			}
			names := []string{family}
			for _, ending := range endings[kind] {
				if ending != "" {
					names = append(names, family+ending)
				}
			}
			for _, name := range names {
				if other, ok := owner[name]; ok {
					return families, fmt.Errorf("%s and %s both have a %s", other, family, name)
				}
				owner[name] = family
			}
		case strings.HasPrefix(line, "# HELP "):
			if _, ok := owner[word[2]]; ok {
				return families, fmt.Errorf("%q: the name is taken", line)
			}
		default:
			name, _, _ := strings.Cut(word[0], "{")
			if ending, ok := strings.CutPrefix(name, family); !ok || !slices.Contains(endings[kind], ending) {
				return families, fmt.Errorf("%q in family %s, a %s", line, family, kind)
			}
		}
	}
	return families, nil
}

// A rule may give any unit to any class: names stay clean, and the standard translation agrees.
func TestNamesWithUnits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SampledFrom([]string{"By", "KiBy", "s", "us", "1", "%", "J", "W", "V", "A", "Hz", "Cel",
			"{message}", mapping.NoUnit}).Draw(t, "unit")
		class := rapid.SampledFrom(classNames()).Draw(t, "class")
		rule := rules.Rule{Unit: unit, Class: class}
		if rapid.Bool().Draw(t, "named") {
			rule.Match.Name, rule.Name = "*", "$1"
		}
		v := mpit.Variable{Name: variableNames().Draw(t, "name"), Datatype: mpit.DatatypeDouble}
		got, reason, ok := newMapper(t, rule).Metric(mapping.Library{}, v)
		if !ok {
			t.Fatalf("%s", reason)
		}
		checkMetric(t, got)
	})
}

func FuzzNames(f *testing.F) {
	f.Add("foo_size", uint8(2))
	f.Add("\xff\x00", uint8(255))
	f.Fuzz(func(t *testing.T, name string, class uint8) {
		m, _, ok := shipped().Metric(mapping.Library{Name: mapping.OpenMPI, Version: "5.0"},
			mpit.Variable{Name: name, Description: name, Class: mpit.Class(class), Datatype: mpit.DatatypeDouble})
		if ok {
			checkMetric(t, m)
		}
	})
}
