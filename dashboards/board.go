package dashboards

import (
	"github.com/mpit-exporter/mpit-exporter/dashboards/internal/grafana"
)

// tag is that of all our dashboards; the links at the top show those that have it.
const tag = "mpit"

// prometheus is the data source that the dashboard's variable names.
var prometheus = grafana.Datasource{Type: "prometheus", UID: "${datasource}"}

// board is a dashboard before its panels have places.
type board struct {
	uid, title, description string
	from                    string // of the time range that ends now
	variables               []grafana.Variable
	marks                   []grafana.Annotation
	rows                    []row
}

// row is a heading with panels. Those of a collapsed one ask nothing until somebody opens it.
type row struct {
	title     string
	collapsed bool
	panels    []*panel
}

// grafana gives numbers and places to the panels: in a row from left to right, and in a new line where one doesn't fit.
func (b board) grafana() grafana.Dashboard {
	d := grafana.Dashboard{
		UID: b.uid, Title: b.title, Description: b.description, Tags: []string{tag, "mpi"}, Editable: true,
		GraphTooltip: grafana.SharedTooltip,
		Time:         grafana.TimeRange{From: b.from, To: "now"},
		TimePicker:   grafana.TimePicker{RefreshIntervals: []string{"10s", "30s", "1m", "5m", "15m", "1h"}},
		Timezone:     "browser", Refresh: "1m", SchemaVersion: grafana.SchemaVersion,
		Links: []grafana.Link{{
			Type: "dashboards", Title: "MPI dashboards", Icon: "external link",
			Tooltip: "The other dashboards of mpit-exporter",
			Tags:    []string{tag}, IncludeVars: true, KeepTime: true,
		}},
		Templating: grafana.Templating{List: b.variables},
		Annotations: grafana.Annotations{List: append([]grafana.Annotation{{
			BuiltIn: 1, Datasource: grafana.Datasource{Type: "grafana", UID: "-- Grafana --"}, Enable: true,
			Hide:      true,
			IconColor: "rgba(0, 211, 255, 1)", Name: "Annotations & Alerts", Type: "dashboard",
		}}, b.marks...)},
	}
	id, y := 0, 0
	for _, r := range b.rows {
		id++
		inside := []grafana.Panel{}
		heading := grafana.Panel{
			ID: id, Type: "row", Title: r.title, Collapsed: &r.collapsed, Panels: &inside,
			GridPos: grafana.GridPos{H: 1, W: grafana.Columns, Y: y},
		}
		y++
		var placed []grafana.Panel
		x, height := 0, 0
		for _, p := range r.panels {
			if x+p.GridPos.W > grafana.Columns {
				x, y, height = 0, y+height, 0
			}
			id++
			p.ID, p.GridPos.X, p.GridPos.Y = id, x, y
			x, height = x+p.GridPos.W, max(height, p.GridPos.H)
			placed = append(placed, p.Panel)
		}
		if r.collapsed {
			// What it holds begins below it, and takes no room of the rows that follow.
			y = heading.GridPos.Y + 1
			inside = append(inside, placed...)
			d.Panels = append(d.Panels, heading)
			continue
		}
		y += height
		d.Panels = append(append(d.Panels, heading), placed...)
	}
	return d
}

// mark shows in all graphs when an expression has series, by a name made of their labels.
func mark(name, colour, title, expr string) grafana.Annotation {
	return grafana.Annotation{Datasource: prometheus, Enable: true, IconColor: colour, Name: name, TitleFormat: title,
		Expr: expr}
}

// all is what a variable begins with that may have every value.
var all = &grafana.Option{Text: []string{"All"}, Value: []string{"$__all"}}

// datasource is the variable that says which Prometheus is asked.
func datasource() grafana.Variable {
	return grafana.Variable{
		Type: "datasource", Name: "datasource", Label: "Data source", Query: "prometheus",
		Refresh:     grafana.RefreshOnLoad,
		Description: "The Prometheus, or what speaks its language, that scrapes the exporters",
	}
}

// labels is a variable of a label's values in the series that a selector finds within the time range, so that those
// of jobs that have ended are among them.
func labels(name, title, description, selector, label string, sort int) grafana.Variable {
	source := prometheus
	return grafana.Variable{
		Type: "query", Name: name, Label: title, Description: description, Datasource: &source,
		Query: grafana.VariableQuery{
			Type: grafana.LabelValues, Query: "label_values(" + selector + ", " + label + ")",
			RefID: grafana.VariableRefID,
		},
		Refresh: grafana.RefreshOnTimeRange, Sort: sort,
	}
}

// anyOf lets several values of a variable be chosen, and begins with all. All is everything, also series that don't
// have the label, and never a list of every value.
func anyOf(v grafana.Variable) grafana.Variable {
	v.Multi, v.IncludeAll, v.Current, v.AllValue = true, true, all, ".*"
	return v
}

// cluster is for those whose Prometheus has several: their targets have the label.
func cluster() grafana.Variable {
	return anyOf(labels("cluster", "Cluster", "Label cluster of the targets, where there are several; All takes in "+
		"those without it", "mpit_exporter_rounds_total", "cluster", grafana.SortNatural))
}

func users() grafana.Variable {
	return anyOf(labels("user", "User", "Whose jobs are shown, by the kernel's word",
		selector("mpit_process_info", inClusters), "user", grafana.SortAlphabetical))
}

// ofJob are the variables that say which job it is.
func ofJob(more ...grafana.Variable) []grafana.Variable {
	return append([]grafana.Variable{
		datasource(), cluster(),
		labels("jobid", "MPI job", "Jobs within the time range, also those that have ended",
			selector("mpit_process_info", inClusters), "jobid", grafana.SortNatural),
		// Of several users who claim a job one, as their ranks have nothing to do with each other.
		labels("user", "User", "Whose job it is, by the kernel's word; there are several where others claim it too",
			selector("mpit_process_info", inClusters+`, jobid="$jobid"`), "user", grafana.SortAlphabetical),
		anyOf(labels("world", "World", "Which MPI_COMM_WORLD of the job: a step of Slurm, or a launch",
			selector("mpit_process_info", inClusters+`, user="$user", jobid="$jobid"`), "world", grafana.SortNatural)),
	}, more...)
}

func rank() grafana.Variable {
	return anyOf(labels("rank", "Rank", "Rank in MPI_COMM_WORLD. All takes in what rules show for several ranks "+
		"together", selector("mpit_process_info", ofOneJob), "rank", grafana.SortNumerical))
}
