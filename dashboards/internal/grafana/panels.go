package grafana

// Panel is a panel, or a row of panels. Of a row that is collapsed the panels stand in it, of one that is not behind
// it.
type Panel struct {
	ID              int              `json:"id"`
	Type            string           `json:"type"`
	Title           string           `json:"title"`
	Description     string           `json:"description,omitempty"`
	GridPos         GridPos          `json:"gridPos"`
	Collapsed       *bool            `json:"collapsed,omitempty"`
	Panels          *[]Panel         `json:"panels,omitempty"`
	PluginVersion   string           `json:"pluginVersion,omitempty"`
	Datasource      *Datasource      `json:"datasource,omitempty"`
	MaxDataPoints   int              `json:"maxDataPoints,omitempty"`
	Targets         []Target         `json:"targets,omitempty"`
	Transformations []Transformation `json:"transformations,omitempty"`
	FieldConfig     *FieldConfig     `json:"fieldConfig,omitempty"`
	Options         any              `json:"options,omitempty"`
}

// Columns is the width of the grid.
const Columns = 24

// GridPos is a place on the grid, in grid units.
type GridPos struct {
	H int `json:"h"`
	W int `json:"w"`
	X int `json:"x"`
	Y int `json:"y"`
}

// Target is one query to Prometheus.
type Target struct {
	RefID        string     `json:"refId"`
	Datasource   Datasource `json:"datasource"`
	EditorMode   string     `json:"editorMode"`
	Expr         string     `json:"expr"`
	Format       string     `json:"format"` // time_series, table, heatmap
	Instant      bool       `json:"instant"`
	Range        bool       `json:"range"`
	LegendFormat string     `json:"legendFormat"`
}

// Transformation changes what the queries gave before it is shown.
type Transformation struct {
	ID      string `json:"id"`
	Options any    `json:"options"`
}

// Organize are the options of the transformation organize: which columns there are, their order and names.
type Organize struct {
	ExcludeByName map[string]bool   `json:"excludeByName"`
	IndexByName   map[string]int    `json:"indexByName"`
	RenameByName  map[string]string `json:"renameByName"`
}

// Sort are the options of the transformation sortBy.
type Sort struct {
	Fields struct{}    `json:"fields"`
	Sort   []SortField `json:"sort"`
}

// SortField is a field by which rows are sorted.
type SortField struct {
	Field string `json:"field"`
	Desc  bool   `json:"desc"`
}

// Matrix are the options of the transformation groupingToMatrix: what the rows, the columns and the cells are.
type Matrix struct {
	RowField    string `json:"rowField"`
	ColumnField string `json:"columnField"`
	ValueField  string `json:"valueField"`
}

// FieldConfig says how values are shown.
type FieldConfig struct {
	Defaults  Field      `json:"defaults"`
	Overrides []Override `json:"overrides"`
}

// Field is how the values of a field are shown.
type Field struct {
	Unit       string     `json:"unit"`
	Decimals   *int       `json:"decimals,omitempty"`
	Min        *float64   `json:"min,omitempty"`
	Max        *float64   `json:"max,omitempty"`
	NoValue    string     `json:"noValue,omitempty"`
	Color      Color      `json:"color"`
	Mappings   []Mapping  `json:"mappings"`
	Thresholds Thresholds `json:"thresholds"`
	Links      []DataLink `json:"links"`
	Custom     any        `json:"custom,omitempty"` // GraphField, TableField, HeatmapField
}

// Color says where a series has its color from.
type Color struct {
	Mode       string `json:"mode"`
	FixedColor string `json:"fixedColor,omitempty"`
}

// Mapping shows single values as words.
type Mapping struct {
	Type    string                 `json:"type"` // value
	Options map[string]MappingText `json:"options"`
}

// MappingText is what a value is shown as.
type MappingText struct {
	Text  string `json:"text"`
	Color string `json:"color,omitempty"`
	Index int    `json:"index"`
}

// Thresholds have the color that holds from a value on; the first one's value is nil.
type Thresholds struct {
	Mode  string      `json:"mode"`
	Steps []Threshold `json:"steps"`
}

// Threshold is one of them.
type Threshold struct {
	Color string   `json:"color"`
	Value *float64 `json:"value"`
}

// DataLink is a link from a value.
type DataLink struct {
	Title       string `json:"title"`
	URL         string `json:"url"`
	TargetBlank bool   `json:"targetBlank"`
}

// Override changes a Field for some of the fields.
type Override struct {
	Matcher    Matcher    `json:"matcher"`
	Properties []Property `json:"properties"`
}

// Matcher says for which.
type Matcher struct {
	ID      string `json:"id"`
	Options any    `json:"options"`
}

// Property is one property of a Field.
type Property struct {
	ID    string `json:"id"`
	Value any    `json:"value"`
}

// GraphField is custom of a timeseries.
type GraphField struct {
	AxisLabel         string            `json:"axisLabel,omitempty"`
	AxisSoftMin       *float64          `json:"axisSoftMin,omitempty"`
	AxisSoftMax       *float64          `json:"axisSoftMax,omitempty"`
	DrawStyle         string            `json:"drawStyle"`
	FillOpacity       int               `json:"fillOpacity"`
	LineInterpolation string            `json:"lineInterpolation"`
	LineWidth         int               `json:"lineWidth"`
	ShowPoints        string            `json:"showPoints"`
	SpanNulls         bool              `json:"spanNulls"`
	Stacking          Stacking          `json:"stacking"`
	ThresholdsStyle   ThresholdsStyle   `json:"thresholdsStyle"`
	ScaleDistribution ScaleDistribution `json:"scaleDistribution"`
	HideFrom          HideFrom          `json:"hideFrom"`
}

// Stacking puts series on top of each other.
type Stacking struct {
	Group string `json:"group"`
	Mode  string `json:"mode"` // none, normal
}

// ThresholdsStyle says whether thresholds are lines in the graph.
type ThresholdsStyle struct {
	Mode string `json:"mode"` // off, dashed
}

// ScaleDistribution is an axis' scale.
type ScaleDistribution struct {
	Type string `json:"type"`          // linear, log
	Log  int    `json:"log,omitempty"` // the base: 2, 10
}

// HideFrom hides a series from a part of the panel.
type HideFrom struct {
	Legend  bool `json:"legend"`
	Tooltip bool `json:"tooltip"`
	Viz     bool `json:"viz"`
}

// GraphOptions are options of a timeseries.
type GraphOptions struct {
	Legend  Legend  `json:"legend"`
	Tooltip Tooltip `json:"tooltip"`
}

// Legend is a graph's legend.
type Legend struct {
	Calcs       []string `json:"calcs"`
	DisplayMode string   `json:"displayMode"` // list, table
	Placement   string   `json:"placement"`   // bottom, right
	ShowLegend  bool     `json:"showLegend"`
	SortBy      string   `json:"sortBy,omitempty"` // one of Calcs, as Grafana writes it
	SortDesc    bool     `json:"sortDesc,omitempty"`
}

// Tooltip is a graph's tooltip.
type Tooltip struct {
	Mode string `json:"mode"` // multi, single
	Sort string `json:"sort"` // desc, none
}

// StatOptions are options of a stat.
type StatOptions struct {
	ColorMode              string        `json:"colorMode"`
	GraphMode              string        `json:"graphMode"`
	JustifyMode            string        `json:"justifyMode"`
	Orientation            string        `json:"orientation"`
	PercentChangeColorMode string        `json:"percentChangeColorMode"`
	ReduceOptions          ReduceOptions `json:"reduceOptions"`
	ShowPercentChange      bool          `json:"showPercentChange"`
	TextMode               string        `json:"textMode"`
	WideLayout             bool          `json:"wideLayout"`
}

// ReduceOptions make one value of a series.
type ReduceOptions struct {
	Calcs  []string `json:"calcs"`
	Fields string   `json:"fields"`
	Values bool     `json:"values"`
}

// BarGaugeOptions are options of a bargauge.
type BarGaugeOptions struct {
	DisplayMode   string        `json:"displayMode"`
	Legend        Legend        `json:"legend"`
	MaxVizHeight  int           `json:"maxVizHeight"`
	MinVizHeight  int           `json:"minVizHeight"`
	MinVizWidth   int           `json:"minVizWidth"`
	NamePlacement string        `json:"namePlacement"`
	Orientation   string        `json:"orientation"`
	ReduceOptions ReduceOptions `json:"reduceOptions"`
	ShowUnfilled  bool          `json:"showUnfilled"`
	Sizing        string        `json:"sizing"`
	ValueMode     string        `json:"valueMode"`
}

// TableOptions are options of a table.
type TableOptions struct {
	CellHeight string   `json:"cellHeight"`
	FrameIndex int      `json:"frameIndex"`
	ShowHeader bool     `json:"showHeader"`
	SortBy     []SortBy `json:"sortBy"`
}

// SortBy is a column by which a table is sorted.
type SortBy struct {
	DisplayName string `json:"displayName"`
	Desc        bool   `json:"desc"`
}

// TableField is custom of a table.
type TableField struct {
	Align       string      `json:"align"`
	MinWidth    int         `json:"minWidth,omitempty"` // of columns, in pixels
	CellOptions CellOptions `json:"cellOptions"`
	Filterable  bool        `json:"filterable"`
	Inspect     bool        `json:"inspect"`
}

// CellOptions say how a cell looks.
type CellOptions struct {
	Type string `json:"type"`           // auto, gauge, color-background, color-text
	Mode string `json:"mode,omitempty"` // of a gauge: basic; of a background: basic
}

// HeatmapField is custom of a heatmap.
type HeatmapField struct {
	HideFrom          HideFrom          `json:"hideFrom"`
	ScaleDistribution ScaleDistribution `json:"scaleDistribution"`
}

// HeatmapOptions are options of a heatmap.
type HeatmapOptions struct {
	Calculate    bool           `json:"calculate"`
	CellGap      int            `json:"cellGap"`
	CellValues   HeatmapValues  `json:"cellValues"`
	Color        HeatmapColor   `json:"color"`
	Exemplars    HeatmapColorOf `json:"exemplars"`
	FilterValues HeatmapFilter  `json:"filterValues"`
	Legend       HeatmapLegend  `json:"legend"`
	RowsFrame    HeatmapRows    `json:"rowsFrame"`
	ShowValue    string         `json:"showValue"`
	Tooltip      HeatmapTooltip `json:"tooltip"`
	YAxis        HeatmapAxis    `json:"yAxis"`
}

// HeatmapValues is how the cells' values are shown.
type HeatmapValues struct {
	Unit string `json:"unit"`
}

// HeatmapColor is a heat map's scale of colors.
type HeatmapColor struct {
	Exponent float64  `json:"exponent"`
	Fill     string   `json:"fill"`
	Min      *float64 `json:"min,omitempty"`
	Max      *float64 `json:"max,omitempty"`
	Mode     string   `json:"mode"`
	Reverse  bool     `json:"reverse"`
	Scale    string   `json:"scale"`
	Scheme   string   `json:"scheme"`
	Steps    int      `json:"steps"`
}

// HeatmapColorOf is the color of exemplars.
type HeatmapColorOf struct {
	Color string `json:"color"`
}

// HeatmapFilter hides cells of no more than Le.
type HeatmapFilter struct {
	Le float64 `json:"le"`
}

// HeatmapLegend shows the scale of colors.
type HeatmapLegend struct {
	Show bool `json:"show"`
}

// HeatmapRows is how the series lie in rows.
type HeatmapRows struct {
	Layout string `json:"layout"`
	Value  string `json:"value,omitempty"`
}

// HeatmapTooltip is a heat map's tooltip.
type HeatmapTooltip struct {
	Mode           string `json:"mode"`
	ShowColorScale bool   `json:"showColorScale"`
	YHistogram     bool   `json:"yHistogram"`
}

// HeatmapAxis is a heat map's axis of rows.
type HeatmapAxis struct {
	AxisLabel     string `json:"axisLabel,omitempty"`
	AxisPlacement string `json:"axisPlacement"`
	Reverse       bool   `json:"reverse"`
	Unit          string `json:"unit"`
}
