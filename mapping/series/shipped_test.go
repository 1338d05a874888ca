package series

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mapping/rules"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest/catalogue"
)

// catalogues are what MPI libraries have, as far as it is known.
func catalogues(t *testing.T) []*catalogue.Catalogue {
	t.Helper()
	list, err := catalogue.Read(filepath.Join("..", "testdata", "catalogues"))
	require.NoError(t, err)
	return list
}

func TestCataloguesAreOfKnownLibraries(t *testing.T) {
	for _, c := range catalogues(t) {
		lib := mapping.ParseLibrary(c.Version)
		assert.Equal(t, c.Library, lib.Name, c.Name)
		if c.Library == "" {
			continue // the agent's own
		}
		assert.NotEmpty(t, lib.Version, c.Name)
		_, of, _ := strings.Cut(c.Name, "-")
		assert.True(t, strings.HasPrefix(lib.Version, strings.TrimSuffix(of, "-debian")), "%s is not of version %s",
			c.Name, lib.Version)
	}
}

// matching says whether a rule is one for a variable: alone, as a rule that drops, it does.
func matching(t *testing.T, r rules.Rule) func(lib mapping.Library, v mpit.Variable) bool {
	t.Helper()
	drop := true
	m := newMapper(t, rules.Rule{Match: r.Match, Drop: &drop})
	return func(lib mapping.Library, v mpit.Variable) bool {
		_, reason, ok := m.Metric(lib, v)
		return !ok && reason == mapping.ReasonRule
	}
}

// A rule that no known variable needs is a mistake, or is for a library that nobody here has looked at.
func TestEachShippedRuleIsForAKnownVariable(t *testing.T) {
	known := catalogues(t)
	for _, r := range rules.Defaults() {
		found, matches := false, matching(t, r)
		for _, c := range known {
			if !slices.Contains(r.Match.Library, c.Library) && (len(r.Match.Library) > 0 || c.Library != "") {
				continue
			}
			found = found || slices.ContainsFunc(c.MPIT(),
				func(v mpit.Variable) bool { return matches(mapping.ParseLibrary(c.Version), v) })
		}
		assert.True(t, found, "%s: no catalogue has a variable for %+v", r.Source.File, r.Match)
	}
}

// untouched are variables that need no rule, though they are known: their class is right, their name good, and there
// is no unit to say.
var untouched = map[string][]string{
	"openmpi": {
		"osc_rdma_*_retry_count", "coll_monitoring_*_count", "btl_usnic_devices", "btl_usnic_pml_*", "btl_ugni_*",
		"pml_monitoring_flush", // a string
	},
	"mvapich": {
		"rdma_ud_retransmissions", "*_recvs_rendezvous", "mv2_reg_cache_*",
	},
}

// Whoever adds a variable to a catalogue has to say what becomes of it.
func TestEachKnownVariableHasARuleOrNeedsNone(t *testing.T) {
	drop := true
	var list []rules.Rule
	for _, r := range rules.Defaults() {
		list = append(list, rules.Rule{Match: r.Match, Drop: &drop})
	}
	m := newMapper(t, list...)
	needed := map[string]bool{}
	for _, c := range catalogues(t) {
		of := c.Library
		if c.Like != "" {
			of, _, _ = strings.Cut(c.Like, "-")
		}
		for _, v := range c.MPIT() {
			if _, reason, _ := m.Metric(mapping.ParseLibrary(c.Version), v); reason == mapping.ReasonRule {
				continue
			}
			at := slices.IndexFunc(untouched[of], func(p string) bool {
				ok,
					_ := filepath.Match(p, v.Name)
				return ok
			})
			if assert.GreaterOrEqual(t, at, 0, "%s: %s of class %s has no rule, and nobody says that it needs none",
				c.Name, v.Name, v.Class) {
				needed[untouched[of][at]] = true
			}
		}
	}
	for _, patterns := range untouched {
		for _, p := range patterns {
			assert.True(t, needed[p], "%s: all of these have rules", p)
		}
	}
}

// Within a library no variable costs another one its metric: whatever two of them share is a family, with labels that
// tell them apart, and nothing is left out but what is meant to be.
func TestKnownVariablesDoNotCollide(t *testing.T) {
	for _, c := range catalogues(t) {
		t.Run(c.Name, func(t *testing.T) {
			m := newMapper(t, rules.Defaults()...)
			r := NewRank(m, variables.Process{Library: mapping.ParseLibrary(c.Version)})
			defer r.Close()
			variables := c.MPIT()
			a := newAgent(variables...)
			a.objectOf(mpit.BindComm, "MPI_COMM_WORLD", 4)
			a.objectOf(mpit.BindWin, "window", 1)
			a.objectOf(mpit.BindFile, "file", 1)
			r.Update(a.sample())

			for reason := range r.Dropped() {
				assert.Contains(t, []mapping.Reason{mapping.ReasonRule, mapping.ReasonGenericString}, reason)
			}
			series := map[string]bool{}
			owners := map[string]string{} // of OpenMetrics' families: metrics
			for _, s := range r.Series() {
				key := fmt.Sprint(s.Metric.Name, s.Labels)
				assert.False(t, series[key], "%s twice", key)
				series[key] = true
				owners[strings.TrimSuffix(s.Metric.Name, "_total")] += s.Metric.Name + " "
				checkMetric(t, s.Metric)
			}
			for family, names := range owners {
				assert.Len(t, slices.Compact(strings.Fields(names)), 1, "OpenMetrics calls them all %s", family)
			}
			// A name with an escape means that a rule could do better.
			for family := range maps.Keys(owners) {
				words := strings.Split(family, "_")
				assert.False(t, slices.ContainsFunc(words, regexp.MustCompile(`^x[a-z2-7]{8}$`).MatchString),
					"%s needs a name", family)
			}
		})
	}
}

// What libraries have in common is one family wherever it comes from, of the same kind and with the same unit.
func TestLibrariesShareFamilies(t *testing.T) {
	type shape struct {
		kind mapping.Kind
		unit string
	}
	shapes, from := map[string]shape{}, map[string]string{}
	for _, c := range catalogues(t) {
		for _, v := range c.MPIT() {
			metric, _, ok := shipped().Metric(mapping.ParseLibrary(c.Version), v)
			if !ok {
				continue
			}
			s := shape{metric.Kind, metric.Unit}
			if have, ok := shapes[metric.Name]; ok {
				assert.Equal(t, have, s, "%s of %s and of %s", metric.Name, c.Name, from[metric.Name])
				continue
			}
			shapes[metric.Name], from[metric.Name] = s, c.Name
		}
	}
}

// HELP of a family that rules make of several variables is the same whichever of them comes first: it describes all of
// them, and not one.
func TestFamiliesAreDescribedAlike(t *testing.T) {
	for _, c := range catalogues(t) {
		m, help := newMapper(t, rules.Defaults()...), map[string]string{}
		for _, v := range c.MPIT() {
			v.Description = "what the library says of " + v.Name
			metric, _, ok := m.Metric(mapping.ParseLibrary(c.Version), v)
			if !ok {
				continue
			}
			have, ok := help[metric.Name]
			if help[metric.Name] = metric.Help; ok {
				assert.Equal(t, have, metric.Help, "%s of %s: with %s first", metric.Name, c.Name, v.Name)
				assert.Regexp(t, "^[A-Z].*[.] MPI_T variables .*…, one for each ", metric.Help, "a rule says what it is")
			}
		}
	}
}

// A library that counts each of its algorithms costs series for those that a program uses, and not for all of them.
func TestWhatHasNeverMovedCostsNoSeries(t *testing.T) {
	for _, c := range catalogues(t) {
		if c.Library != mapping.MVAPICH {
			continue
		}
		r := NewRank(newMapper(t, rules.Defaults()...), variables.Process{Library: mapping.ParseLibrary(c.Version)})
		a := newAgent(c.MPIT()...)
		a.objectOf(mpit.BindComm, "MPI_COMM_WORLD", 1)
		r.Update(a.sample())
		collectives := regexp.MustCompile(`^mpit_mv(2|p)_coll_`)
		for _, s := range r.Series() {
			assert.NotRegexp(t, collectives, s.Metric.Name, c.Name)
		}
		idle := r.Weight()
		for _, h := range a.handles {
			if v := a.vars[h.Variable]; strings.Contains(v.Name, "bcast") &&
				(v.Class == mpit.ClassCounter || v.Class == mpit.ClassAggregate || v.Class == mpit.ClassTimer) {
				h.values[0] = map[bool]uint64{true: word(0.5), false: 3}[v.Class == mpit.ClassTimer]
			}
		}
		r.Update(a.sample())
		assert.Greater(t, r.Weight(), idle+50, c.Name)
		r.Close()
	}
}
