package exporter

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/exporter/exposition"
	"github.com/mpit-exporter/mpit-exporter/exporter/identity"
	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mapping/rules"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest/uptodate"
)

var update = flag.Bool("update", false, "write golden files and the table in docs anew")

// updating runs the tests that write something with -update, and no others.
const updating = "go test ./exporter -run 'Golden|Documented' -update"

func TestFamiliesAreSortedAndReserved(t *testing.T) {
	families := Families()
	assert.True(t, slices.IsSortedFunc(families, func(a, b exposition.Family) int { return strings.Compare(a.Name, b.Name) }))
	for i, f := range families {
		assert.True(t, Reserved(f.Name))
		assert.True(t, Reserved(strings.TrimSuffix(f.Name, "_total")+"_total"),
			"a counter of that name is the same family in OpenMetrics")
		assert.NotEmpty(t, f.Help)
		assert.False(t, i > 0 && families[i-1].Name == f.Name, "%s stands twice", f.Name)
		for _, label := range f.Labels {
			assert.NotContains(t, []string{"job", "instance"}, label, "these belong to the scraper")
		}
	}
	assert.True(t, Reserved("mpit_exporter_build_info"), "whatever begins so")
	assert.False(t, Reserved("mpit_exported"))
}

// What any series may have can't be a label that a rule gives.
func TestNoRuleGivesALabelOfAllSeries(t *testing.T) {
	labels := []string{"jobid", "world", "user", "rank", "dup", "object", "index"}
	for kind := mpit.BindComm; kind <= mpit.BindLast+1; kind++ { // the last is of kinds that nobody knows
		labels = append(labels, mapping.BindLabel(kind))
	}
	for _, l := range labels {
		_, err := variables.New(variables.Config{Rules: []rules.Rule{{Match: rules.Match{Regexp: "(?P<" + l + ">x)"}}}})
		assert.Error(t, err, l)
	}
}

// No variable of any library can take a name from the exporter.
func TestMappingRefusesReservedNames(t *testing.T) {
	mapper := newMapper(t)
	for _, f := range Families() {
		word := strings.TrimPrefix(f.Name, "mpit_")
		for _, name := range []string{word, strings.TrimSuffix(word, "_total"), strings.TrimSuffix(word, "_seconds"),
			strings.TrimSuffix(word, "_seconds_total")} {
			for class := mpit.ClassState; class <= mpit.ClassGeneric; class++ {
				v := mpit.Variable{Name: name, Class: class, Datatype: mpit.DatatypeDouble, DatatypeBytes: 8}
				if metric, _, ok := mapper.Metric(mapping.Library{}, v); ok {
					assert.False(t, Reserved(metric.Name), "%s %s becomes %s", class, name, metric.Name)
				}
			}
		}
	}
}

const (
	docBegin = "<!-- begin: written by `go test ./exporter -update` -->\n"
	docEnd   = "<!-- end -->\n"
)

// checkWritten holds a part of a page of docs, from the mark begin to docEnd, to what the code says, or writes it
// with -update.
func checkWritten(t *testing.T, page, begin, want string) {
	t.Helper()
	path := filepath.Join("..", "docs", page)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	head, rest, ok := strings.Cut(string(text), begin)
	require.True(t, ok, "%s has no line %s", path, begin)
	written, tail, ok := strings.Cut(rest, docEnd)
	require.True(t, ok, "no end mark in %s", path)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(head+begin+want+docEnd+tail), 0o644))
		return
	}
	uptodate.Check(t, path, written, want, updating)
}

// docs/metrics.md lists what the code has.
func TestMetricsAreDocumented(t *testing.T) {
	var want strings.Builder
	want.WriteString("| name | type | labels | meaning |\n|---|---|---|---|\n")
	for _, f := range Families() {
		var labels []string
		for _, l := range f.Labels {
			labels = append(labels, "`"+l+"`")
		}
		fmt.Fprintf(&want, "| `%s` | %s | %s | %s |\n", f.Name, f.Type.String(),
			strings.Join(labels, ", "), f.Help)
	}
	checkWritten(t, "metrics.md", docBegin, want.String())
}

// docs/metrics.md says which values labels may have, and no others.
func TestLabelValuesAreDocumented(t *testing.T) {
	there, documented := map[string]bool{}, map[string]bool{}
	add := func(to map[string]bool, family, label, value string) {
		to[fmt.Sprintf("%s{%s=%q}", family, label, value)] = true
	}

	n := startNode(t, Config{}) // what the exporter says of itself has all values before there is a rank
	for _, f := range decoded(t, n.Handler()) {
		for _, m := range f.Metric {
			for _, l := range m.Label {
				if !strings.HasSuffix(l.GetValue(), "_over_limit") { // the mapping's
					add(there, f.GetName(), l.GetName(), l.GetValue())
				}
			}
		}
	}
	for end := mpit.EndFinalize; end <= mpit.EndLost; end++ {
		add(there, "mpit_rank_end_info", "reason", end.String())
	}
	for _, check := range []string{identity.Verified, identity.Differs, identity.Unknown} {
		add(there, "mpit_process_info", "jobid_check", check)
	}
	sources, err := os.ReadFile(filepath.Join("identity", "environment.go"))
	require.NoError(t, err)
	for _, m := range regexp.MustCompile(`(?m)^\tsource\w+ += "(\w+)"`).FindAllSubmatch(sources, -1) {
		add(there, "mpit_process_info", "jobid_source", string(m[1]))
	}

	text, err := os.ReadFile(filepath.Join("..", "docs", "metrics.md"))
	require.NoError(t, err)
	_, table, _ := strings.Cut(string(text), "\n## Values of labels\n")
	table, _, _ = strings.Cut(table, "\n## ")
	row := regexp.MustCompile("(?m)^\\| `(\\w+)` \\| `(\\w+)` \\| (.*) \\|$")
	value, aside := regexp.MustCompile("`(\\w+)`"), regexp.MustCompile(`\([^()]*\)`)
	for _, m := range row.FindAllStringSubmatch(table, -1) {
		for aside.MatchString(m[3]) { // one in another, too
			m[3] = aside.ReplaceAllString(m[3], "")
		}
		for _, v := range value.FindAllStringSubmatch(m[3], -1) {
			add(documented, m[1], m[2], v[1])
		}
	}
	for v := range there {
		assert.True(t, documented[v], "docs/metrics.md, Values of labels, doesn't have %s", v)
	}
	for v := range documented {
		assert.True(t, there[v], "docs/metrics.md, Values of labels, has %s, which there isn't", v)
	}
}
