package series

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mapping/rules"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// held makes a rank with one variable of a class, whose family it holds.
func held(t *testing.T, m *variables.Mapper, name string, class mpit.Class, datatype mpit.Datatype) *Rank {
	t.Helper()
	r := NewRank(m, variables.Process{})
	r.Update(newAgent(mpit.Variable{Name: name, Class: class, Datatype: datatype}).sample())
	return r
}

// Rules can give one name to what is not alike. The first holder keeps it; of the other the reason is counted, and
// said in words.
func TestClashesByRule(t *testing.T) {
	rename := func(variable, metric, unit string) rules.Rule {
		return rules.Rule{Match: rules.Match{Name: variable}, Name: metric, Unit: unit}
	}
	for _, c := range []struct {
		clash         string
		rules         []rules.Rule
		first, second mpit.Class
		datatype      mpit.Datatype
		why           string // "": none
	}{
		{"alike", nil, mpit.ClassLevel, mpit.ClassLevel, tInt, ""},
		{"a level and a size", nil, mpit.ClassLevel, mpit.ClassSize, tInt, ""},
		{"one unit is not known", []rules.Rule{rename("b", "same", "{call}")}, mpit.ClassCounter, mpit.ClassCounter,
			tInt, ""},
		{"a gauge and an untyped one", nil, mpit.ClassLevel, mpit.ClassGeneric, tInt,
			"in OpenMetrics, the untyped mpit_same and the gauge mpit_same would be one family"},
		{"a gauge and a counter", nil, mpit.ClassLevel, mpit.ClassCounter, tInt,
			"in OpenMetrics, the counter mpit_same_total and the gauge mpit_same would be one family"},
		{"a counter and a gauge", nil, mpit.ClassAggregate, mpit.ClassHighWatermark, tInt,
			"in OpenMetrics, the gauge mpit_same and the counter mpit_same_total would be one family"},
		{"a level and a watermark", nil, mpit.ClassLevel, mpit.ClassHighWatermark, tInt,
			"mpit_same is already made of what is another kind in OpenTelemetry: a level can't be one with a " +
				"watermark or a share"},
		{"states and numbers", nil, mpit.ClassLevel, mpit.ClassState, tInt,
			"mpit_same would be of states and of numbers"},
		{"bytes and seconds in a counter", []rules.Rule{rename("a", "same", "KiBy"), rename("b", "same", "us")},
			mpit.ClassCounter, mpit.ClassCounter, tInt,
			"mpit_same_total is already of By, and can't be of s as well"},
		{"messages and calls", []rules.Rule{rename("a", "same", "{message}"), rename("b", "same", "{call}")},
			mpit.ClassLevel, mpit.ClassLevel, tInt,
			"mpit_same is already of {message}, and can't be of {call} as well"},
		{"one name in OpenTelemetry alone", []rules.Rule{rename("a", "same", "By"), rename("b", "same", "{call}")},
			mpit.ClassLevel, mpit.ClassLevel, tInt,
			"in OpenTelemetry, mpit_same and mpit_same_bytes would both be mpit.same"},
		{"a histogram and what is one with it in OpenMetrics",
			[]rules.Rule{rename("a", "same", ""), rename("b", "same_seconds", "")}, mpit.ClassTimer,
			mpit.ClassCounter, tDouble, "in OpenMetrics, the counter mpit_same_seconds_total and the histogram " +
				"mpit_same_seconds would be one family"},
	} {
		t.Run(c.clash, func(t *testing.T) {
			m := newMapper(t, append(c.rules, rename("a", "same", ""), rename("b", "same", ""))...)
			first := held(t, m, "a", c.first, c.datatype)
			require.NotEmpty(t, first.Series())
			second := held(t, m, "b", c.second, c.datatype)
			info := second.Infos()[0]
			assert.Equal(t, c.why, info.Why)
			if c.why == "" {
				assert.Same(t, first.Series()[0].Metric, info.Metric)
				assert.Empty(t, second.Dropped())
				return
			}
			assert.Empty(t, second.Series())
			assert.Equal(t, mapping.ReasonTypeConflict, info.Reason)
			assert.Equal(t, map[mapping.Reason]uint64{mapping.ReasonTypeConflict: 1}, second.Dropped())

			first.Close()
			assert.NotEmpty(t, held(t, m, "b", c.second, c.datatype).Series(), "the name is free again")
		})
	}
}

// The unit that one holder knows is the family's, whoever came first.
func TestAUnitLearntLaterHolds(t *testing.T) {
	m := newMapper(t, rules.Rule{Match: rules.Match{Name: "b"}, Unit: "{message}"},
		rules.Rule{Match: rules.Match{Name: "c"}, Unit: "{call}"}, rules.Rule{Name: "same"})
	assert.Len(t, held(t, m, "a", mpit.ClassLevel, tInt).Series(), 1)
	assert.Len(t, held(t, m, "b", mpit.ClassLevel, tInt).Series(), 1)
	assert.Empty(t, held(t, m, "c", mpit.ClassLevel, tInt).Series(),
		"calls are no messages, although the first holder knows of neither")
}

// classNames are the classes as rules write them.
func classNames() (names []string) {
	for c := range mpit.ClassGeneric + 1 {
		names = append(names, mapping.NameOf(c))
	}
	return names
}

// Whatever rules make of variables, each is shown or counted; what shares a family is alike; and no two families own
// one name.
func TestNothingIsMergedOrLostSilently(t *testing.T) {
	names := []string{"same", "same_level", "same_size", "same_seconds", "same_time", "total", "count",
		"x_node_same", "$1", "$1_level", "x_$1"}
	namesThere := []string{"a", "b", "same", "a_level", "same_level", "same_time", "a.b"}
	classes := append([]string{""}, classNames()...)
	rapid.Check(t, func(t *rapid.T) {
		rule := rapid.Custom(func(t *rapid.T) rules.Rule {
			return rules.Rule{
				Match: rules.Match{
					Library: rapid.SampledFrom([]rules.List{nil, {mapping.OpenMPI}, {mapping.MPICH}}).Draw(t,
						"library"),
					Name: rapid.SampledFrom([]string{"*", "a*", "*same*", "*_level"}).Draw(t, "match"),
				},
				Class: rapid.SampledFrom(classes).Draw(t, "class"),
				Unit: rapid.SampledFrom([]string{"", "", "By", "s", "1", "{call}", "{message}",
					mapping.NoUnit}).Draw(t, "unit"),
				Name: rapid.SampledFrom(append([]string{""}, names...)).Draw(t, "name"),
			}
		})
		list := rapid.SliceOfN(rule, 1, 4).Draw(t, "rules")
		m := newMapper(t, list...)
		var ranks []*Rank
		libraries := []mapping.Library{{Name: mapping.OpenMPI}, {Name: mapping.MPICH}, {}}
		for range rapid.IntRange(1, 4).Draw(t, "ranks") {
			lib := rapid.SampledFrom(libraries).Draw(t, "library")
			r := NewRank(m, variables.Process{Library: lib})
			ranks = append(ranks, r)
			a := newAgent()
			for range rapid.IntRange(1, 8).Draw(t, "variables") {
				a.add(mpit.Variable{
					Name:     rapid.SampledFrom(namesThere).Draw(t, "variable"),
					Class:    mpit.Class(rapid.IntRange(0, 9).Draw(t, "class")),
					Datatype: rapid.SampledFrom([]mpit.Datatype{tInt, tDouble}).Draw(t, "datatype"),
				})
			}
			r.Update(a.sample())

			reasons, wants := map[mapping.Reason]uint64{}, map[*mapping.Metric]int{}
			for i, info := range r.Infos() {
				if info.Metric == nil {
					if reasons[info.Reason]++; info.Reason == "" || info.Reason == mapping.ReasonTypeConflict &&
						info.Why == "" {
						t.Fatalf("%+v is left out, and nobody knows why", info)
					}
					continue
				}
				wants[info.Metric]++
				alone, _, ok := newMapper(t, list...).Metric(lib, *r.byID[i].of.Info)
				switch have := info.Metric; {
				case !ok || alone.Name != have.Name || alone.Kind != have.Kind || alone.OTelKind != have.OTelKind:
					t.Fatalf("%+v is among %+v, and alone %+v", info, have, alone)
				}
			}
			for reason, n := range reasons {
				if r.Dropped()[reason] < n {
					t.Fatalf("%d variables are left out for %s, of which %v are counted", n, reason, r.Dropped())
				}
			}
			shown, labels := map[*mapping.Metric]int{}, map[string]bool{}
			for _, s := range r.Series() {
				shown[s.Metric]++
				if id := s.Metric.Name + fmt.Sprint(s.Labels); labels[id] {
					t.Fatalf("%s stands twice", id)
				} else {
					labels[id] = true
				}
			}
			for metric, n := range wants {
				if shown[metric] < n {
					t.Fatalf("%d variables are %s, which has %d series", n, metric.Name, shown[metric])
				}
			}
		}

		owners, otel, units := map[string]*mapping.Metric{}, map[string]*mapping.Metric{}, map[*mapping.Metric]string{}
		for _, r := range ranks {
			for _, v := range r.all {
				if v.Metric == nil {
					continue
				}
				for _, name := range append(mapping.OwnedNames(v.Metric.Name, v.Metric.Kind), v.Metric.Name) {
					if other := owners[name]; other != nil && other != v.Metric {
						t.Fatalf("%s and %s both own %s", other.Name, v.Metric.Name, name)
					}
					owners[name] = v.Metric
				}
				if other := otel[v.Metric.OTelName]; other != nil && other != v.Metric {
					t.Fatalf("%s and %s are both %s", other.Name, v.Metric.Name, v.Metric.OTelName)
				}
				otel[v.Metric.OTelName] = v.Metric
				unit := v.Unit
				if v.Mode == mapping.ModeState {
					unit = "states"
				}
				if unit != "" {
					if known, ok := units[v.Metric]; ok && known != unit {
						t.Fatalf("%s is of %s and of %s", v.Metric.Name, known, unit)
					}
					units[v.Metric] = unit
				}
			}
		}

		for _, r := range slices.Backward(ranks) {
			r.Close()
		}
		if families, parts := m.Families(); families+parts > 0 {
			t.Fatalf("left over: %d families of %d variables", families, parts)
		}
	})
}
