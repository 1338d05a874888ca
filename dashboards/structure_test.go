package dashboards

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/dashboards/internal/grafana"
)

// Panel types that Grafana has, and will not turn into others at the first look as it does with graph, singlestat or
// table-old.
var panelTypes = []string{"row", "timeseries", "stat", "table", "heatmap"}

// units are Grafana's names of those that we use; one that it doesn't know is shown as it is, behind the number.
var units = []string{"none", "short", "bytes", "binBps", "mps", "cps", "ops", "reqps", "s", "dtdurations",
	"dateTimeAsIso", "percentunit", "string"}

// builtIn are variables that Grafana has itself.
var builtIn = []string{"__rate_interval", "__range", "__interval", "__url_time_range", "__value", "__data", "__field"}

var reference = regexp.MustCompile(`\$([a-z_]+)|\$\{([a-z_]+)[^}]*\}`)

// references are the variables that a text mentions.
func references(text string) []string {
	var names []string
	for _, m := range reference.FindAllStringSubmatch(text, -1) {
		names = append(names, m[1]+m[2])
	}
	return names
}

// each calls f for all panels of all dashboards, those of collapsed rows as well.
func each(t *testing.T, f func(t *testing.T, d grafana.Dashboard, p grafana.Panel)) {
	t.Helper()
	for name, d := range files() {
		t.Run(name, func(t *testing.T) {
			for _, p := range everything(d) {
				f(t, d, p)
			}
		})
	}
}

func everything(d grafana.Dashboard) []grafana.Panel {
	var list []grafana.Panel
	for _, p := range d.Panels {
		list = append(list, p)
		if p.Panels != nil {
			list = append(list, *p.Panels...)
		}
	}
	return list
}

// What is the same in all dashboards.
func TestDashboards(t *testing.T) {
	uids, titles := map[string]bool{}, map[string]bool{}
	for name, d := range files() {
		t.Run(name, func(t *testing.T) {
			assert.Regexp(t, `^mpit-[a-z]+$`, d.UID)
			assert.False(t, uids[d.UID] || titles[d.Title], "another dashboard has this uid or title")
			uids[d.UID], titles[d.Title] = true, true
			assert.NotEmpty(t, d.Description)
			assert.Contains(t, d.Tags, tag)
			assert.Equal(t, grafana.SharedTooltip, d.GraphTooltip)
			assert.Regexp(t, `^now-\d+h$`, d.Time.From)
			assert.Equal(t, "now", d.Time.To)
			assert.Contains(t, d.TimePicker.RefreshIntervals, d.Refresh)
		})
	}
}

// Every panel says what it shows, in a unit, from the data source that was chosen; numbers are unique, and refIds in
// their panel.
func TestPanels(t *testing.T) {
	seen := map[string]map[int]string{}
	each(t, func(t *testing.T, d grafana.Dashboard, p grafana.Panel) {
		if seen[d.UID] == nil {
			seen[d.UID] = map[int]string{}
		}
		assert.Empty(t, seen[d.UID][p.ID], "%s has the number of another panel", p.Title)
		seen[d.UID][p.ID] = p.Title
		assert.Contains(t, panelTypes, p.Type, p.Title)
		assert.NotEmpty(t, p.Title)
		if p.Type == "row" {
			require.NotNil(t, p.Collapsed, p.Title)
			require.NotNil(t, p.Panels, p.Title)
			assert.Equal(t, *p.Collapsed, len(*p.Panels) > 0, "%s: the panels of a row that is open stand behind it",
				p.Title)
			return
		}
		assert.Greater(t, len(p.Description), 10, "%s has no description", p.Title)
		assert.True(t, strings.HasSuffix(p.Description, ".") || strings.Contains(p.Description, "\n- "),
			"%s: no sentence: %s", p.Title, p.Description)
		assert.Equal(t, &prometheus, p.Datasource, p.Title)
		require.NotNil(t, p.FieldConfig, p.Title)
		assert.Contains(t, units, p.FieldConfig.Defaults.Unit, p.Title)
		for _, o := range p.FieldConfig.Overrides {
			for _, property := range o.Properties {
				if property.ID == "unit" {
					assert.Contains(t, units, property.Value, p.Title)
				}
			}
		}
		steps := p.FieldConfig.Defaults.Thresholds.Steps
		require.NotEmpty(t, steps, p.Title)
		for i, s := range steps {
			assert.Equal(t, i == 0, s.Value == nil, "%s: the first threshold alone has no value", p.Title)
			assert.True(t, i < 2 || *steps[i-1].Value < *s.Value, "%s: thresholds fall", p.Title)
		}
		assert.NotEmpty(t, p.Targets, p.Title)
		assert.LessOrEqual(t, len(p.Targets), 26, p.Title)
		for i, q := range p.Targets {
			assert.Equal(t, string(rune('A'+i)), q.RefID, p.Title)
			assert.Equal(t, prometheus, q.Datasource, p.Title)
			assert.NotEqual(t, q.Instant, q.Range, p.Title)
			assert.Equal(t, p.Type == "table", q.Format == "table", p.Title)
		}
	})
}

// Labels in tables are texts, also those that look like numbers, and every value has a unit. A bar's length is its
// share of its own column's highest value, or the share that it stands for. Tables are sorted by columns that they
// have.
func TestTables(t *testing.T) {
	tables, bars := 0, 0
	each(t, func(t *testing.T, _ grafana.Dashboard, p grafana.Panel) {
		if p.Type != "table" {
			return
		}
		tables++
		matrix := slices.IndexFunc(p.Transformations,
			func(x grafana.Transformation) bool { return x.ID == "groupingToMatrix" })
		if matrix < 0 {
			assert.Equal(t, "string", p.FieldConfig.Defaults.Unit, p.Title)
		}
		properties := map[string]map[string]any{}
		for _, o := range p.FieldConfig.Overrides {
			name := fmt.Sprint(o.Matcher.Options)
			assert.Equal(t, "byName", o.Matcher.ID, p.Title)
			assert.Empty(t, properties[name], "%s: %s", p.Title, name)
			properties[name] = map[string]any{}
			for _, property := range o.Properties {
				properties[name][property.ID] = property.Value
			}
			if cell, ok := properties[name]["custom.cellOptions"].(grafana.CellOptions); ok && cell.Type == "gauge" {
				bars++
				assert.True(t, properties[name]["fieldMinMax"] == true || properties[name]["max"] == 1, "%s: %s", p.Title, name)
			}
		}
		if matrix >= 0 { // the names of its rows are the only texts
			m, ok := p.Transformations[matrix].Options.(grafana.Matrix)
			require.True(t, ok, p.Title)
			assert.Equal(t, "string", properties[m.RowField+`\`+m.ColumnField]["unit"], p.Title)
		}
		organize, ok := p.Transformations[len(p.Transformations)-1].Options.(grafana.Organize)
		require.True(t, ok, p.Title)
		columns := slices.Collect(maps.Keys(organize.IndexByName))
		for value, title := range organize.RenameByName {
			columns = append(columns, title)
			if strings.HasPrefix(value, "Value") && !organize.ExcludeByName[value] {
				assert.True(t, properties[title]["unit"] != nil || properties[title]["mappings"] != nil,
					"%s: %s has no unit", p.Title, title)
			}
		}
		options, ok := p.Options.(*grafana.TableOptions)
		require.True(t, ok, p.Title)
		for _, by := range options.SortBy {
			assert.Contains(t, columns, by.DisplayName, p.Title)
		}
	})
	assert.Greater(t, tables, 10)
	assert.Greater(t, bars, 2)
}

// Where a single query of a table has an answer, Grafana calls its column Value: whose it is, is known only of the
// query that has one wherever any has. Bytes were shown as time once.
func TestALoneValueIsNobodyElses(t *testing.T) {
	for _, rows := range []bool{false, true} {
		p := table("Calls", "By function.", column{label: "function"}, column{rows: rows, title: "Time", expr: "a",
			unit: "s"},
			column{title: "Bytes", expr: "b", unit: "bytes"})
		organize, ok := p.Transformations[len(p.Transformations)-1].Options.(grafana.Organize)
		require.True(t, ok)
		assert.Equal(t, map[bool]string{true: "Time"}[rows], organize.RenameByName["Value"])
	}
}

// What a graph has a color for is the name of one of its series. A legend names them in words: no query, and nothing
// that is only a label which a series may not have. Where there may be several series of a query, there is room for
// ten, and no more of them are asked for; a graph without a column for the legend has labels of few values alone.
func TestGraphs(t *testing.T) {
	few := []string{"kind", "reason", "result", "state", "scope", "level"}
	colored := 0
	each(t, func(t *testing.T, _ grafana.Dashboard, p grafana.Panel) {
		if p.Type != "timeseries" {
			return
		}
		options, ok := p.Options.(*grafana.GraphOptions)
		require.True(t, ok, p.Title)
		for _, q := range p.Targets {
			assert.NotEmpty(t, q.LegendFormat, "%s: the legend is the query", p.Title)
			for _, m := range legendLabel.FindAllStringSubmatch(q.LegendFormat, -1) {
				if options.Legend.Placement == "bottom" {
					assert.Contains(t, few, m[1], p.Title)
					continue
				}
				bounded := regexp.MustCompile(`topk\((\d+),`).FindStringSubmatch(q.Expr)
				if assert.NotNil(t, bounded, "%s: any number of series", p.Title) {
					assert.Contains(t, []string{"3", "10"}, bounded[1], p.Title)
				}
			}
		}
		for _, o := range p.FieldConfig.Overrides {
			if o.Matcher.ID != "byName" {
				continue
			}
			colored++
			name := fmt.Sprint(o.Matcher.Options)
			assert.True(t, slices.ContainsFunc(p.Targets, func(q grafana.Target) bool {
				form := label.ReplaceAllString(regexp.QuoteMeta(q.LegendFormat), ".+")
				return regexp.MustCompile("^" + form + "$").MatchString(name)
			}), "%s has no series %s", p.Title, name)
		}
	})
	assert.Greater(t, colored, 10)
}

// The rank that is at the top now may not be there in a minute: which series a graph shows is decided once, at its end.
func TestSameSeriesAtEachPoint(t *testing.T) {
	each(t, func(t *testing.T, _ grafana.Dashboard, p grafana.Panel) {
		for _, q := range p.Targets {
			for _, at := range regexp.MustCompile(`(top|bottom)k(?: by \([^)]*\) )?\(`).FindAllStringIndex(q.Expr, -1) {
				assert.True(t, q.Instant || strings.Contains(q.Expr[at[0]:], "@ end()"), "%s: %s", p.Title, q.Expr)
			}
		}
	})
}

// Ranks stand in heat maps from rank 0 at the top, by number, and no more of them than there is room for.
func TestHeatMaps(t *testing.T) {
	ranks := 0
	each(t, func(t *testing.T, _ grafana.Dashboard, p grafana.Panel) {
		if p.Type != "heatmap" {
			return
		}
		options, ok := p.Options.(*grafana.HeatmapOptions)
		require.True(t, ok, p.Title)
		assert.LessOrEqual(t, p.MaxDataPoints, 150, p.Title)
		for _, q := range p.Targets {
			if q.Format == "heatmap" {
				assert.Contains(t, []string{"s", "bytes"}, options.YAxis.Unit, p.Title)
				continue
			}
			ranks++
			assert.Equal(t, "{{rank}}", q.LegendFormat, "%s: Grafana sorts rows that are numbers by number", p.Title)
			assert.True(t, options.YAxis.Reverse, p.Title)
			assert.Equal(t, "none", options.YAxis.Unit, "%s: rank 1024 isn't 1.02 K", p.Title)
			assert.Regexp(t, `(top|bottom)k\(300,`, q.Expr, p.Title)
			assert.Negative(t, options.FilterValues.Le, "%s: what is 0 is seen", p.Title)
		}
	})
	assert.Greater(t, ranks, 5)
}

var legendLabel = regexp.MustCompile(`\{\{(\w+)\}\}`)

var label = regexp.MustCompile(`\\{\\{\w+\\}\\}`)

// No panel lies on another one, and none leaves the grid.
func TestPlaces(t *testing.T) {
	check := func(t *testing.T, list []grafana.Panel) {
		t.Helper()
		taken := map[[2]int]string{}
		for _, p := range list {
			g := p.GridPos
			assert.True(t, g.W > 0 && g.H > 0 && g.X >= 0 && g.X+g.W <= grafana.Columns, "%s: %+v", p.Title, g)
			for x := g.X; x < g.X+g.W; x++ {
				for y := g.Y; y < g.Y+g.H; y++ {
					if other := taken[[2]int{x, y}]; other != "" {
						t.Fatalf("%s lies on %s", p.Title, other)
					}
					taken[[2]int{x, y}] = p.Title
				}
			}
		}
	}
	for name, d := range files() {
		t.Run(name, func(t *testing.T) {
			check(t, d.Panels)
			for _, p := range d.Panels {
				if p.Panels != nil {
					check(t, *p.Panels)
				}
			}
		})
	}
}

// What a query, a title or a link mentions is a variable of the dashboard, and what a variable's query mentions
// stands before it. Links lead to dashboards that exist, and set variables that these have.
func TestVariables(t *testing.T) {
	known := map[string][]string{} // by uid
	for name, d := range files() {
		t.Run(name, func(t *testing.T) {
			names := slices.Clone(builtIn)
			for _, v := range d.Templating.List {
				assert.NotEmpty(t, v.Label, v.Name)
				assert.NotEmpty(t, v.Description, v.Name)
				assert.NotContains(t, names, v.Name)
				if v.Type == "query" {
					assert.Equal(t, &prometheus, v.Datasource, v.Name)
					assert.Equal(t, grafana.RefreshOnTimeRange, v.Refresh, "%s: jobs that have ended must be found",
						v.Name)
					assert.Subset(t, names, references(fmt.Sprint(v.Query)), v.Name)
				}
				names = append(names, v.Name)
			}
			known[d.UID] = names
			assert.Contains(t, names, "datasource")
			text, err := json.Marshal(d.Panels)
			require.NoError(t, err)
			used := references(string(text))
			assert.Subset(t, names, used)
			for _, v := range d.Templating.List {
				inVariables, err := json.Marshal(d.Templating)
				require.NoError(t, err)
				assert.True(t, slices.Contains(used, v.Name) ||
					slices.Contains(references(string(inVariables)), v.Name), "%s is used nowhere", v.Name)
			}
		})
	}
	link := regexp.MustCompile(`/d/([a-z-]+)\?([^"]*)`)
	set := regexp.MustCompile(`&var-([a-z]+)=`)
	links := 0
	each(t, func(t *testing.T, _ grafana.Dashboard, p grafana.Panel) {
		text, err := encodePanel(p)
		require.NoError(t, err)
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			links++
			require.Contains(t, known, m[1], "%s leads to no dashboard of ours", p.Title)
			for _, v := range set.FindAllStringSubmatch(m[2], -1) {
				assert.Contains(t, known[m[1]], v[1], "%s: %s", p.Title, m[0])
			}
			assert.Contains(t, m[2], "${__url_time_range}", p.Title)
		}
	})
	assert.Greater(t, links, 5)
}

func encodePanel(p grafana.Panel) (string, error) {
	p.Panels = nil
	text, err := encode(grafana.Dashboard{Panels: []grafana.Panel{p}})
	return string(text), err
}

var window = regexp.MustCompile(`\[([^\]]*)\]`)

// Rates are over $__rate_interval, which is wide enough for two scrapes whatever the zoom; what is said of the whole
// time range is over $__range, in graphs at its end alone. Nothing else is.
func TestIntervals(t *testing.T) {
	each(t, func(t *testing.T, _ grafana.Dashboard, p grafana.Panel) {
		for _, q := range p.Targets {
			text := quoted.ReplaceAllString(q.Expr, `""`)
			for _, m := range window.FindAllStringSubmatch(text, -1) {
				assert.Contains(t, []string{"$__rate_interval", "$__range", "$__range:$__interval"}, m[1], "%s: %s",
					p.Title, q.Expr)
			}
			if !q.Instant {
				assert.NotRegexp(t, `\[\$__range\](?: $|[^ ]| [^@])`, text, "%s: the time range at each point of a graph", p.Title)
			}
		}
	})
}

var quoted = regexp.MustCompile(`"[^"]*"`)
