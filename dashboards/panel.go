package dashboards

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/mpit-exporter/mpit-exporter/dashboards/internal/grafana"
)

// panel is a panel that is being described. Its methods change it and return it.
type panel struct{ grafana.Panel }

func newPanel(kind, title, description, unit string, w, h int) *panel {
	source := prometheus
	return &panel{grafana.Panel{
		Type: kind, Title: title, Description: description, GridPos: grafana.GridPos{W: w, H: h},
		PluginVersion: grafana.PluginVersion,
		Datasource:    &source,
		FieldConfig: &grafana.FieldConfig{
			Defaults: grafana.Field{
				Unit: unit, Color: grafana.Color{Mode: "palette-classic"}, Mappings: []grafana.Mapping{},
				Links:      []grafana.DataLink{},
				Thresholds: steps(step{color: "green"}),
			},
			Overrides: []grafana.Override{},
		},
	}}
}

// step is the color that holds from a value on; of the first one the value says nothing.
type step struct {
	color string
	from  float64
}

func steps(list ...step) grafana.Thresholds {
	t := grafana.Thresholds{Mode: "absolute"}
	for i, s := range list {
		threshold := grafana.Threshold{Color: s.color}
		if i > 0 {
			threshold.Value = &s.from
		}
		t.Steps = append(t.Steps, threshold)
	}
	return t
}

// bad is red from a value on.
func bad(from float64) grafana.Thresholds {
	return steps(step{color: "text"}, step{palette["hung"], from})
}

// graph is values over time, as lines.
func graph(title, description, unit string) *panel {
	p := newPanel("timeseries", title, description, unit, 12, 8)
	zero := 0.0
	p.FieldConfig.Defaults.Custom = &grafana.GraphField{
		AxisSoftMin: &zero, DrawStyle: "line", LineInterpolation: "linear", LineWidth: 1, ShowPoints: "auto",
		Stacking: grafana.Stacking{Group: "A", Mode: "none"}, ThresholdsStyle: grafana.ThresholdsStyle{Mode: "off"},
		ScaleDistribution: grafana.ScaleDistribution{Type: "linear"},
	}
	p.Options = &grafana.GraphOptions{
		Legend:  grafana.Legend{Calcs: []string{}, DisplayMode: "list", Placement: "bottom", ShowLegend: true},
		Tooltip: grafana.Tooltip{Mode: "multi", Sort: "desc"},
	}
	return p
}

// many is a graph of up to ten series whose names aren't known beforehand: the legend beside it has room for all.
func many(title, description, unit string) *panel {
	p := graph(title, description, unit).size(12, 9)
	p.MaxDataPoints = enoughPoints
	if o, is := p.Options.(*grafana.GraphOptions); is {
		o.Legend = grafana.Legend{
			Calcs: []string{"mean"}, DisplayMode: "table", Placement: "right", ShowLegend: true, SortBy: "Mean", SortDesc: true,
		}
	}
	return p
}

func (p *panel) graphField() *grafana.GraphField {
	f, ok := p.FieldConfig.Defaults.Custom.(*grafana.GraphField)
	if !ok {
		panic("dashboards: " + p.Title + " is no graph")
	}
	return f
}

// axis shows these values at least: without it, an axis on which all is 0 goes up to 100.
func (p *panel) axis(from, to float64) *panel {
	f := p.graphField()
	f.AxisSoftMin, f.AxisSoftMax = &from, &to
	return p
}

// logarithmic makes a graph's axis logarithmic; what is 0 is not seen there. Bytes are counted in powers of two.
func (p *panel) logarithmic() *panel {
	f := p.graphField()
	f.AxisSoftMin, f.ScaleDistribution = nil, grafana.ScaleDistribution{Type: "log", Log: 10}
	if p.FieldConfig.Defaults.Unit == "bytes" {
		f.ScaleDistribution.Log = 2
	}
	return p
}

// series is the colors of series whose names say whether they are good.
type series map[string]string

// colored gives series the color that they have whatever others there are.
func (p *panel) colored(prefix string, colors series) *panel {
	for _, name := range slices.Sorted(maps.Keys(colors)) {
		p.FieldConfig.Overrides = append(p.FieldConfig.Overrides, grafana.Override{
			Matcher: grafana.Matcher{ID: "byName", Options: prefix + name},
			Properties: []grafana.Property{{ID: "color",
				Value: grafana.Color{Mode: "fixed", FixedColor: colors[name]}}},
		})
	}
	return p
}

// stacked puts the series of a graph on top of each other: their sum is worth something.
func (p *panel) stacked() *panel {
	f := p.graphField()
	f.Stacking.Mode, f.FillOpacity = "normal", 30
	return p
}

// stat is one number.
func stat(title, description, unit string, thresholds grafana.Thresholds) *panel {
	p := newPanel("stat", title, description, unit, 4, 4)
	if unit == "percentunit" {
		decimals := 1
		p.FieldConfig.Defaults.Decimals = &decimals
	}
	p.FieldConfig.Defaults.Color = grafana.Color{Mode: "thresholds"}
	p.FieldConfig.Defaults.Thresholds = thresholds
	p.Options = &grafana.StatOptions{
		ColorMode: "value", GraphMode: "none", JustifyMode: "auto", Orientation: "auto",
		PercentChangeColorMode: "standard",
		ReduceOptions:          grafana.ReduceOptions{Calcs: []string{"lastNotNull"}}, TextMode: "auto",
		WideLayout: true,
	}
	return p
}

// filled is a stat whose colour is behind what it says.
func (p *panel) filled() *panel {
	if o, is := p.Options.(*grafana.StatOptions); is {
		o.ColorMode = "background"
	}
	return p
}

// between sets the values of a heat map's first and last color.
func (p *panel) between(from, to float64) *panel {
	if o, is := p.Options.(*grafana.HeatmapOptions); is {
		o.Color.Min, o.Color.Max = &from, &to
	}
	return p
}

// spread is the ranks' highest, mean and lowest of what expr says of each.
func (p *panel) spread(expr string) *panel {
	return p.query("max("+expr+")", "highest rank").query("avg("+expr+")", "mean of the ranks").
		query("min("+expr+")", "lowest rank")
}

// named shows the legend with the number, or alone.
func (p *panel) named(mode string) *panel {
	if o, is := p.Options.(*grafana.StatOptions); is {
		o.TextMode = mode
	}
	return p
}

// How a stat is named.
const (
	withValue = "value_and_name"
	nameAlone = "name"
)

// enoughPoints is how many points in time panels ask for that read many series. Of more nobody sees more.
const enoughPoints = 150

// heat has a column of cells for each point in time.
func heat(title, description, unit, scheme string) (*panel, *grafana.HeatmapOptions) {
	p := newPanel("heatmap", title, description, unit, 12, 9)
	p.MaxDataPoints = enoughPoints
	linear := grafana.ScaleDistribution{Type: "linear"}
	p.FieldConfig.Defaults.Custom = &grafana.HeatmapField{ScaleDistribution: linear}
	options := &grafana.HeatmapOptions{
		CellGap: 0, CellValues: grafana.HeatmapValues{},
		Color: grafana.HeatmapColor{
			Exponent: 0.5, Fill: "dark-orange", Mode: "scheme", Scale: "exponential", Scheme: scheme, Steps: 64,
		},
		Exemplars: grafana.HeatmapColorOf{Color: "rgba(255,0,255,0.7)"}, FilterValues: grafana.HeatmapFilter{Le: -1},
		Legend: grafana.HeatmapLegend{Show: true}, RowsFrame: grafana.HeatmapRows{Layout: "auto"}, ShowValue: "never",
		Tooltip: grafana.HeatmapTooltip{Mode: "single", ShowColorScale: true},
		YAxis:   grafana.HeatmapAxis{AxisPlacement: "left", Unit: "none"},
	}
	p.Options = options
	return p, options
}

// mostRanks is how many ranks a heat map shows: of more, several would share a line of pixels, and the last one drawn
// would hide the late one.
const mostRanks = 300

// heatOfRanks has a row for each rank, rank 0 at the top. which says whether those with most (topk) or with least
// (bottomk) are to be seen if there are too many; exprs make expressions of a window.
func heatOfRanks(title, description, unit, scheme, which string, exprs ...func(over string) string) *panel {
	word := map[string]string{"topk": "most", "bottomk": "least"}[which]
	p, options := heat(title, fmt.Sprintf("%s Of more than %d ranks those with %s.", description, mostRanks, word), unit,
		scheme)
	options.YAxis.AxisLabel, options.YAxis.Reverse = "rank", true
	for _, expr := range exprs {
		p.query(extreme(which, mostRanks, "rank", expr), "{{rank}}")
	}
	return p
}

// heatOfBuckets has a row for each bucket of a histogram, of durations (unit s) or sizes (bytes).
func heatOfBuckets(title, description, unit, buckets string) *panel {
	p, options := heat(title, description, "short", "Oranges")
	options.YAxis.Unit, options.FilterValues.Le = unit, 1e-9
	return p.target(bucketsOf(buckets), "heatmap", "{{le}}", false)
}

func (p *panel) size(w, h int) *panel {
	p.GridPos.W, p.GridPos.H = w, h
	return p
}

func (p *panel) target(expr, format, legend string, instant bool) *panel {
	p.Targets = append(p.Targets, grafana.Target{
		RefID: refID(len(p.Targets)), Datasource: prometheus, EditorMode: "code", Expr: expr, Format: format,
		Instant: instant, Range: !instant, LegendFormat: legend,
	})
	return p
}

func refID(n int) string { return string(rune('A' + n)) }

// query asks for values over the time range.
func (p *panel) query(expr, legend string) *panel {
	return p.target(expr, "time_series", legend, false)
}

// instant asks for values at the end of the time range.
func (p *panel) instant(expr, legend string) *panel {
	return p.target(expr, "time_series", legend, true)
}

// thresholds shows from where on values are bad; in a graph, as dashed lines.
func (p *panel) thresholds(t grafana.Thresholds) *panel {
	p.FieldConfig.Defaults.Thresholds = t
	if f, ok := p.FieldConfig.Defaults.Custom.(*grafana.GraphField); ok {
		f.ThresholdsStyle.Mode = "dashed"
	}
	return p
}

// upTo sets the largest value of the scale.
func (p *panel) upTo(v float64) *panel {
	p.FieldConfig.Defaults.Max = &v
	return p
}

// links adds a link to what is clicked at.
func (p *panel) links(title, url string) *panel {
	p.FieldConfig.Defaults.Links = append(p.FieldConfig.Defaults.Links, grafana.DataLink{Title: title, URL: url})
	return p
}

// column is a column of a table: a label, or a query's value.
type column struct {
	label  string
	title  string // of a label, its name if there is none
	expr   string // by the labels that the first query has, or some of them
	unit   string // of a value; short if there is none
	link   *grafana.DataLink
	words  map[string]grafana.MappingText
	steps  *grafana.Thresholds
	colour string // of the bar; blue if there is none
	gauge  bool   // a bar: of shares, of the whole; else of the column's highest value
	rows   bool   // the labels of this query are the rows; without any, those of the first one
	hidden bool   // the query is there for its labels alone
}

// table is a table of what instant queries say at the end of the time range. A row is what the queries say of the
// same labels.
func table(title, description string, columns ...column) *panel {
	// Without a unit of their own, labels that look like numbers would be shown as such: the job 41230 as 41.2 K.
	p := newPanel("table", title, description, "string", grafana.Columns, 9)
	p.FieldConfig.Defaults.Custom = &grafana.TableField{Align: "auto",
		CellOptions: grafana.CellOptions{Type: "auto"}, Filterable: true}
	p.FieldConfig.Defaults.NoValue = "–"
	p.Options = &grafana.TableOptions{CellHeight: "sm", ShowHeader: true, SortBy: []grafana.SortBy{}}
	organize := grafana.Organize{
		ExcludeByName: map[string]bool{"Time": true}, IndexByName: map[string]int{}, RenameByName: map[string]string{},
	}
	// The query whose labels the rows are comes first: what others say is then put into each row that it fits.
	var asked []column
	for _, c := range columns {
		switch {
		case c.rows:
			asked = append([]column{c}, asked...)
		case c.expr != "":
			asked = append(asked, c)
		}
	}
	for i, c := range asked {
		names := []string{"Value #" + refID(i)}
		switch {
		case len(asked) == 1:
			names = []string{"Value"}
		case i == 0 && c.rows:
			names = append(names, "Value") // if none of the others has an answer: this one has, where any of them has
		}
		for _, name := range names {
			organize.RenameByName[name] = c.title
			organize.IndexByName[name] = slices.IndexFunc(columns,
				func(o column) bool { return o.expr != "" && o.title == c.title })
			if c.hidden {
				organize.ExcludeByName[name] = true
			}
		}
		p.target(c.expr, "table", "", true)
	}
	values := len(asked)
	for i, c := range columns {
		if c.label != "" {
			organize.IndexByName[c.label] = i
			if c.title != "" {
				organize.RenameByName[c.label] = c.title
			}
		}
		p.override(c)
	}
	if values > 1 && !asked[0].rows {
		p.override(column{title: "Value", expr: "whichever query has an answer"})
	}
	if values > 1 {
		p.Transformations = append(p.Transformations, grafana.Transformation{ID: "merge", Options: struct{}{}})
	}
	p.Transformations = append(p.Transformations, grafana.Transformation{ID: "organize", Options: organize})
	return p
}

// matrix is a table of one instant query: a row and a column for each value of two labels, cells colored by value.
func matrix(title, description, unit, expr, rows, columns string) *panel {
	p := newPanel("table", title, description, unit, grafana.Columns, 14)
	corner := rows + `\` + columns // as Grafana calls the first column
	p.FieldConfig.Defaults.Custom = &grafana.TableField{Align: "center", MinWidth: 72,
		CellOptions: grafana.CellOptions{Type: "color-background", Mode: "basic"}}
	p.FieldConfig.Defaults.Color = grafana.Color{Mode: "continuous-blues"}
	p.Options = &grafana.TableOptions{CellHeight: "sm", ShowHeader: true, SortBy: []grafana.SortBy{{DisplayName: corner}}}
	p.target(aligned(columns, expr), "table", "", true)
	p.Transformations = []grafana.Transformation{
		{ID: "sortBy", Options: grafana.Sort{Fields: struct{}{}, Sort: []grafana.SortField{{Field: columns}}}},
		{ID: "groupingToMatrix", Options: grafana.Matrix{RowField: rows, ColumnField: columns, ValueField: "Value"}},
		{ID: "organize", Options: grafana.Organize{
			ExcludeByName: map[string]bool{}, IndexByName: map[string]int{rows: 0, columns: 1, corner: 0},
			RenameByName: map[string]string{},
		}},
	}
	p.FieldConfig.Overrides = []grafana.Override{{
		Matcher: grafana.Matcher{ID: "byName", Options: corner},
		Properties: []grafana.Property{
			{ID: "unit", Value: "string"}, {ID: "custom.cellOptions", Value: grafana.CellOptions{Type: "auto"}},
			{ID: "custom.width", Value: 95},
		},
	}}
	return p
}

// without leaves labels out that queries have.
func (p *panel) without(names ...string) *panel {
	organize, ok := p.Transformations[len(p.Transformations)-1].Options.(grafana.Organize)
	if !ok {
		panic("dashboards: " + p.Title + " is no table")
	}
	for _, name := range names {
		organize.ExcludeByName[name] = true
	}
	return p
}

// sorted sorts a table, and what is the same by the next column.
func (p *panel) sorted(title string, descending bool) *panel {
	options, ok := p.Options.(*grafana.TableOptions)
	if !ok {
		panic("dashboards: " + p.Title + " is no table")
	}
	options.SortBy = append(options.SortBy, grafana.SortBy{DisplayName: title, Desc: descending})
	return p
}

// widths are those of columns, in pixels, that need less room or more than the others.
var widths = map[string]int{
	"jobid": 105, "world": 115, "rank": 60, "dup": 70, "pid": 90, "user": 85, "library": 90,
	"library_version": 140, "world_size": 105, "thread_level": 125, "size": 80, "inter": 80,
	"name": 250, "class": 115, "bind": 115, "unit": 95, "verbosity": 130, "Exporters": 115,
	"program": 130, "executable": 280, "State": 130, "Useful": 125, "Waiting": 125, "Ranks": 95, "Nodes": 80,
	"Objects": 100, "Started": 165, "Ran for": 100, "Longest queue": 135, "late rank": 95,
	"alert": 165, "function": 190, "peer": 75, "Calls": 100, "Mean call": 110, "Longest rank": 125,
	"Shortest rank": 130, "Completing requests": 180, "In collectives": 135, "Bytes sent": 115, "Bytes": 110,
	"Calls of a rank": 140, "Least": 110, "Mean": 110, "For": 95, "node": 130, "one of them": 110,
}

// override says how a table's column is shown.
func (p *panel) override(c column) {
	var properties []grafana.Property
	add := func(id string, value any) { properties = append(properties, grafana.Property{ID: id, Value: value}) }
	name := c.title
	if name == "" {
		name = c.label
	}
	switch {
	case c.unit != "":
		add("unit", c.unit)
	case c.expr != "" && !c.hidden && c.words == nil:
		add("unit", "short")
	}
	if c.unit == "percentunit" {
		add("decimals", 1)
	}
	if width := widths[name]; width > 0 && (!c.gauge || c.unit == "percentunit") {
		add("custom.width", width)
	}
	if c.link != nil {
		add("links", []grafana.DataLink{*c.link})
	}
	if c.words != nil {
		add("mappings", []grafana.Mapping{{Type: "value", Options: c.words}})
		add("custom.align", "left")
		add("custom.cellOptions", grafana.CellOptions{Type: "color-background", Mode: "basic"})
	}
	switch {
	case c.steps != nil:
		add("thresholds", *c.steps)
		add("color", grafana.Color{Mode: "thresholds"})
	case c.gauge:
		add("color", grafana.Color{Mode: "fixed", FixedColor: cmp.Or(c.colour, palette["useful"])})
	}
	switch {
	case c.gauge && c.unit == "percentunit":
		add("max", 1)
	case c.gauge:
		add("fieldMinMax", true)
	}
	switch {
	case c.gauge:
		add("min", 0)
		add("custom.cellOptions", grafana.CellOptions{Type: "gauge", Mode: "basic"})
	case c.steps != nil:
		add("custom.cellOptions", grafana.CellOptions{Type: "color-text"})
	}
	if properties == nil {
		return
	}
	p.FieldConfig.Overrides = append(p.FieldConfig.Overrides, grafana.Override{
		Matcher: grafana.Matcher{ID: "byName", Options: name}, Properties: properties,
	})
}

// ofQuery is the unit of what one query of a panel says, where it isn't that of the others.
func (p *panel) ofQuery(ref, unit string) *panel {
	p.FieldConfig.Overrides = append(p.FieldConfig.Overrides, grafana.Override{
		Matcher:    grafana.Matcher{ID: "byFrameRefID", Options: ref},
		Properties: []grafana.Property{{ID: "unit", Value: unit}},
	})
	return p
}

// to is the address of another dashboard of ours with the same data source, clusters and time range, and these
// variables beside.
func to(uid string, variables ...string) string {
	url := "/d/" + uid + "?${datasource:queryparam}&${cluster:queryparam}&${__url_time_range}"
	for i := 0; i+1 < len(variables); i += 2 {
		url += fmt.Sprintf("&var-%s=%s", variables[i], variables[i+1])
	}
	return url
}

// Values of what is clicked at, for to: of a table's cell, of a label of its row, of a label of a series.
const cell = "${__value.raw:percentencode}"

func inRow(label string) string    { return "${__data.fields." + label + ":percentencode}" }
func ofSeries(label string) string { return "${__field.labels." + label + ":percentencode}" }

// ofTheJob leads to another dashboard of the job that this one is about.
func ofTheJob(uid string, variables ...string) string {
	return to(uid, append([]string{"jobid", "${jobid:percentencode}", "user", "${user:percentencode}"}, variables...)...)
}
