// Package grafana is the part of Grafana's dashboard schema that our dashboards use, as types that encoding/json
// writes. The names are the schema's (kind dashboard, schema version 41; @grafana/schema has it as TypeScript). What
// a panel type has in options and in fieldConfig.defaults.custom stands in panels.go.
package grafana

// SchemaVersion is that of Grafana 12.1, which docker-compose.yml runs; newer ones migrate it.
const SchemaVersion = 41

// PluginVersion says from which version on the panels' options need no migration.
const PluginVersion = "12.1.1"

// Dashboard is one file.
type Dashboard struct {
	UID           string      `json:"uid"` // fixed: links name it
	Title         string      `json:"title"`
	Description   string      `json:"description"`
	Tags          []string    `json:"tags"`
	Editable      bool        `json:"editable"`
	GraphTooltip  int         `json:"graphTooltip"` // Shared…
	Time          TimeRange   `json:"time"`
	TimePicker    TimePicker  `json:"timepicker"`
	Timezone      string      `json:"timezone"`
	Refresh       string      `json:"refresh"`
	SchemaVersion int         `json:"schemaVersion"`
	Links         []Link      `json:"links"`
	Templating    Templating  `json:"templating"`
	Annotations   Annotations `json:"annotations"`
	Panels        []Panel     `json:"panels"`
}

// SharedTooltip shows the crosshair and the tooltip in all panels at once.
const SharedTooltip = 2

// TimeRange is what the dashboard shows first.
type TimeRange struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// TimePicker has the intervals that refresh can be set to.
type TimePicker struct {
	RefreshIntervals []string `json:"refresh_intervals"`
}

// Link is a link to other dashboards, at the top.
type Link struct {
	Type        string   `json:"type"` // dashboards: those with the tags
	Title       string   `json:"title"`
	Icon        string   `json:"icon"`
	Tooltip     string   `json:"tooltip"`
	Tags        []string `json:"tags"`
	AsDropdown  bool     `json:"asDropdown"`
	IncludeVars bool     `json:"includeVars"`
	KeepTime    bool     `json:"keepTime"`
	TargetBlank bool     `json:"targetBlank"`
}

// Templating has the dashboard's variables, in the order in which they depend on each other.
type Templating struct {
	List []Variable `json:"list"`
}

// Variable is one of type datasource or query.
type Variable struct {
	Type        string      `json:"type"`
	Name        string      `json:"name"`
	Label       string      `json:"label"`
	Description string      `json:"description"`
	Datasource  *Datasource `json:"datasource,omitempty"`
	Query       any         `json:"query"` // a plugin's id, or a VariableQuery
	Regex       string      `json:"regex"`
	Refresh     int         `json:"refresh"`
	Sort        int         `json:"sort"`
	Multi       bool        `json:"multi"`
	IncludeAll  bool        `json:"includeAll"`
	AllValue    string      `json:"allValue,omitempty"`
	Current     *Option     `json:"current,omitempty"`
	Hide        int         `json:"hide"`
}

// HiddenVariable is one that the dashboard's queries use and its reader doesn't choose.
const HiddenVariable = 2

// When a variable's values are asked for, and how they are sorted.
const (
	RefreshOnLoad      = 1
	RefreshOnTimeRange = 2
	SortAlphabetical   = 1
	SortNumerical      = 3
	SortNatural        = 7
)

// Option is a value that is chosen.
type Option struct {
	Text  any `json:"text"` // a string, or several for a variable with Multi
	Value any `json:"value"`
}

// VariableQuery asks Prometheus for a variable's values.
type VariableQuery struct {
	Type  int    `json:"qryType"`
	Query string `json:"query"`
	RefID string `json:"refId"`
}

// LabelValues is the type of a query that has the form label_values(selector, label).
const LabelValues = 1

// VariableRefID is the refId of variables' queries.
const VariableRefID = "PrometheusVariableQueryEditor-VariableQuery"

// Datasource says whom a panel or a variable asks.
type Datasource struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

// Annotations has the dashboard's annotations.
type Annotations struct {
	List []Annotation `json:"list"`
}

// Annotation marks moments in all graphs: one is Grafana's own, which every dashboard has.
type Annotation struct {
	BuiltIn     int        `json:"builtIn,omitempty"`
	Datasource  Datasource `json:"datasource"`
	Enable      bool       `json:"enable"`
	Hide        bool       `json:"hide"`
	IconColor   string     `json:"iconColor"`
	Name        string     `json:"name"`
	Type        string     `json:"type,omitempty"`
	Expr        string     `json:"expr,omitempty"` // of Prometheus: as long as it has series
	TitleFormat string     `json:"titleFormat,omitempty"`
}
