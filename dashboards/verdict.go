package dashboards

import (
	"fmt"

	"github.com/mpit-exporter/mpit-exporter/dashboards/internal/grafana"
	verdict "github.com/mpit-exporter/mpit-exporter/exporter/job"
)

// palette is that of the live page, where colours mean the same.
var palette = map[string]string{
	"useful": "#2c6fb5", "collective": "#2f9e8f", "wait": "#93cfc5", "poll": "#c9b458", "send": "#8d98a5",
	"file": "#7a5195", "finalize": "#c98f7a", "ended": "#d9dde2", "late": "#e07b00", "hung": "#c3312b",
}

// colourOf is a state's colour; many have none.
func colourOf(s verdict.State) string {
	if s.Colour == "" {
		return "transparent"
	}
	return palette[s.Colour]
}

// stateColours are for series that have the names of states.
func stateColours() series {
	colours := series{}
	for _, s := range verdict.States() {
		colours[s.Word] = colourOf(s)
		if s.Colour == "" {
			colours[s.Word] = palette["ended"]
		}
	}
	return colours
}

// inOrder puts a number in front of the label state, so that a table can be sorted by it; stateWords takes it away.
func inOrder(expr string) string {
	for i, s := range verdict.States() {
		expr = fmt.Sprintf(`label_replace(%s, "state", "%02d %s", "state", "%[3]s")`, expr, i, s.Word)
	}
	return expr
}

func stateWords() map[string]grafana.MappingText {
	words := map[string]grafana.MappingText{}
	for i, s := range verdict.States() {
		words[fmt.Sprintf("%02d %s", i, s.Word)] = grafana.MappingText{Text: s.Word, Color: colourOf(s), Index: i}
	}
	return words
}

// verdictOf is the last verdict on each world within the time range, in its labels. Where there is none (on several
// nodes, without a judge), it is known that ranks ended without MPI_Finalize, and that they wait, by a rule of alerts/.
func verdictOf(matchers string) string {
	says := func(state, expr string) string {
		return `or on (` + job + `) label_replace(` + countBy(job, expr) + `, "state", "` + state + `", "", "")`
	}
	return "topk by (" + job + ") (1, " + maxBy(job+", state, rank, node",
		"max_over_time(timestamp("+selector("mpit_job_verdict_info",
			matchers+`, state!="`+verdict.Unknown+`"`)+")[$__range:$__interval])") + ")\n" +
		says(verdict.Crashed, last(selector("mpit_rank_end_info", matchers+`, reason!="finalize"`))) + "\n" +
		says(verdict.Waits, selector("mpit_job:trouble", matchers+`, alert="MPIJobWaitsForRank"`)) + "\n" +
		says(verdict.Unknown, last(selector("mpit_rank_up", matchers+`, rank="0"`)))
}

const verdictMeans = "The last one within the time range (docs/verdict.md). Of a job on several nodes, without " +
	"mpit-exporter judge, it says whether ranks ended without MPI_Finalize, or have waited for 5 minutes."

// runbook leads from an alert's name to what to do.
func runbook(name string) *grafana.DataLink {
	return &grafana.DataLink{Title: "Runbook",
		URL: "https://github.com/mpit-exporter/mpit-exporter/blob/main/docs/runbooks/" + name + ".md"}
}
