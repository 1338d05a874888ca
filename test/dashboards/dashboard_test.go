package dashboards

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/VictoriaMetrics/metricsql"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// dashboard is what a file says that Grafana asks Prometheus.
type dashboard struct {
	UID, Title string
	Templating struct{ List []variable }
	Panels     []panel
}

type variable struct {
	Type, Name, Regex, AllValue string
	IncludeAll, Multi           bool
	Query                       json.RawMessage
}

type panel struct {
	Type, Title   string
	MaxDataPoints int
	Panels        []panel // of a collapsed row
	Targets       []target

	Transformations []struct {
		ID      string
		Options columns
	}
}

// columns are the options of the transformation that says which columns a table has.
type columns struct {
	RenameByName  map[string]string
	IndexByName   map[string]int
	ExcludeByName map[string]bool
}

func (p panel) organize(t *testing.T) columns {
	t.Helper()
	last := p.Transformations[len(p.Transformations)-1]
	require.Equal(t, "organize", last.ID, p.Title)
	return last.Options
}

type target struct {
	RefID, Expr, Format string
	Instant, Range      bool
}

// read reads all dashboards, as somebody does who imports them.
func read(t *testing.T) []dashboard {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("..", "..", "dashboards", "*.json"))
	require.NoError(t, err)
	require.Len(t, paths, 5)
	var list []dashboard
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		var d dashboard
		require.NoError(t, json.Unmarshal(text, &d), path)
		list = append(list, d)
	}
	return list
}

// all are the panels that ask something, also those of collapsed rows.
func (d dashboard) all() []panel {
	var list []panel
	for _, p := range d.Panels {
		list = append(list, p.Panels...)
		if p.Type != "row" {
			list = append(list, p)
		}
	}
	return list
}

// values takes a variable's query apart.
func (v variable) values(t *testing.T) (selector, label string) {
	t.Helper()
	var query struct{ Query string }
	require.NoError(t, json.Unmarshal(v.Query, &query), v.Name)
	m := regexp.MustCompile(`^label_values\((.+), ([a-z_]+)\)$`).FindStringSubmatch(query.Query)
	require.NotNil(t, m, "%s: no label_values(selector, label): %s", v.Name, query.Query)
	return m[1], m[2]
}

// reference is how Grafana finds variables in a query. What it knows no variable for stays, such as label_replace's $1.
var reference = regexp.MustCompile(`\$(\w+)|\$\{(\w+)(?::\w+)?\}`)

// fill puts values of variables into a query.
func fill(query string, values map[string]string) string {
	return reference.ReplaceAllStringFunc(query, func(found string) string {
		m := reference.FindStringSubmatch(found)
		if value, ok := values[m[1]+m[2]]; ok {
			return value
		}
		return found
	})
}

// parse is a query's selectors, without what moves them in time: a range would have to stand before that.
func parse(query string) ([]*parser.VectorSelector, error) {
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(query)
	if err != nil {
		return nil, fmt.Errorf("%w in %s", err, query)
	}
	var selectors []*parser.VectorSelector
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if s, ok := node.(*parser.VectorSelector); ok {
			s.StartOrEnd, s.Timestamp, s.OriginalOffset = 0, nil, 0
			selectors = append(selectors, s)
		}
		return nil
	})
	return selectors, nil
}

// Every query is PromQL once Grafana has put its values in, whatever they are, and looks at no more than the
// dashboard's variables let it.
func TestQueriesParse(t *testing.T) {
	for _, d := range read(t) {
		t.Run(d.Title, func(t *testing.T) {
			values := map[string]string{"__rate_interval": "1m0s", "__range": "1h", "__interval": "15s"}
			for _, v := range d.Templating.List {
				values[v.Name] = `a|b`
				switch v.Name {
				case "timer", "counter", "level":
					values[v.Name] = "mpit_some_family"
				}
			}
			for _, v := range d.Templating.List {
				if v.Type == "query" {
					selector, _ := v.values(t)
					_, err := parse(fill(selector, values))
					assert.NoError(t, err, v.Name)
				}
			}
			for _, p := range d.all() {
				for _, q := range p.Targets {
					selectors, err := parse(fill(q.Expr, values))
					if !assert.NoError(t, err, "%s %s", p.Title, q.RefID) {
						continue
					}
					for _, s := range selectors {
						bounded := slices.ContainsFunc(s.LabelMatchers,
							func(m *labels.Matcher) bool { return m.Name == "cluster" || m.Name == "job" })
						assert.True(t, bounded, "%s: %s looks at other clusters or scrape jobs than those that were chosen",
							p.Title, s)
						if strings.Contains(s.String(), "__name__=~") {
							// Only within one job: all names of a cluster are too much to go through.
							assert.Contains(t, s.String(), `jobid=`, "%s: %s", p.Title, s)
						}
					}
				}
			}
		})
	}
}

// What docs/dashboards.md has sed do for those that don't know functions of native histograms leaves queries that they
// understand, and whose other half is as it was.
func TestQueriesWithoutNativeHistograms(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "dashboards.md"))
	require.NoError(t, err)
	require.Contains(t, string(text), `sed -i 's/histogram_\(sum\|count\)(/abs(/g' *.json`)
	native := regexp.MustCompile(`histogram_(sum|count)\(`)
	changed := 0
	for _, d := range read(t) {
		for _, p := range d.all() {
			for _, q := range p.Targets {
				query := native.ReplaceAllString(q.Expr, "abs(")
				if query != q.Expr {
					changed++
				}
				for _, v := range d.Templating.List {
					query = fill(query, map[string]string{v.Name: "mpit_some_family"})
				}
				query = fill(query, map[string]string{"__rate_interval": "1m0s", "__range": "1h", "__interval": "15s"})
				_, err := parse(query)
				require.NoError(t, err, p.Title)
				_, err = metricsql.Parse(query)
				require.NoError(t, err, "%s %s: %s", p.Title, q.RefID, query)
				assert.NotRegexp(t, `histogram_(sum|count|avg|fraction)`, query, p.Title)
			}
		}
	}
	assert.Greater(t, changed, 30)
}
