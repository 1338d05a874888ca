package dashboards

import (
	"strings"

	"github.com/mpit-exporter/mpit-exporter/dashboards/internal/grafana"
	verdict "github.com/mpit-exporter/mpit-exporter/exporter/job"
)

// From where on things are bad, as the alerts have it.
const (
	unexpectedMany = 10000 // messages in a rank's queue
	nearLimit      = 0.9   // of what there is room for
	muchWaited     = verdict.Late
)

var neutral = steps(step{color: "text"})

// firing is the alert of each job that is most urgent, with how urgent it is.
func firing(matchers string) string {
	alerts := func(more string) string {
		return selector("ALERTS", matchers+`, alertstate="firing"`+more)
	}
	return "topk by (" + job + ") (1, max by (" + job + ", alertname) (3 * " + alerts(`, audience="operator"`) +
		" or 2 * " + alerts(`, severity="warning"`) + " or " + alerts("") + "))"
}

// ranTime is how long jobs ran within the time range: from the start of the first rank 0 to the last answer of one.
func ranTime(by, matchers string) string {
	matchers += `, rank="0"`
	return maxBy(by, "max_over_time(timestamp("+selector("mpit_rank_up", matchers)+" == 1)[$__range:$__interval])") +
		" - " + minBy(by, "min_over_time("+selector("mpit_rank_start_time_seconds", matchers)+inRange+")")
}

// basename puts the last part of the label executable into a label of its own.
func basename(expr string) string {
	return `label_replace(` + expr + `, "program", "$1", "executable", "(?:.*/)?([^/]+)")`
}

// ofChosen keeps jobs in the partitions, and with a rank 0 on the nodes, that are chosen.
func ofChosen(expr string) string {
	return "(" + expr + ")\nand on (" + job + ") last_over_time(" + chosenInfo + atTheEnd + ")"
}

const chosenInfo = "mpit_process_info{" + ofJobs + `, rank="0", partition=~"$partition", instance=~"$node"}`

func jobsTable() *panel {
	link := &grafana.DataLink{Title: "This job", URL: to(uidJob, "jobid", cell, "user", inRow("user"))}
	return table("Jobs", "Jobs within the time range; those that need attention first. Useful is its ranks' time outside "+
		"MPI in the last five minutes of its life: it needs the call profile (exec --calls). Of several alerts the most "+
		"urgent is named; program and node are those of rank 0. State: "+verdictMeans,
		column{label: "state", title: "State", words: stateWords()},
		column{label: "jobid", link: link},
		column{label: "program"},
		column{label: "jobname"},
		column{label: "user"},
		column{label: "partition"},
		column{title: "Useful", expr: ofChosen(maxBy(job, last(selector("mpit_job:parallel_efficiency:ratio5m", ofJobs)))),
			unit: "percentunit", gauge: true},
		column{label: "rank", title: "late rank"}, column{label: "node"},
		column{title: "Verdict", expr: ofChosen(inOrder(verdictOf(ofJobs))), hidden: true},
		column{label: "alertname", title: "alert", link: runbook(cell)},
		column{title: "Alert", expr: ofChosen(firing(ofJobs + `, jobid!=""`)), hidden: true},
		column{label: "world_size", title: "Ranks"},
		column{rows: true, title: "Info", hidden: true, expr: countBy(job+", program, jobname, partition, world_size",
			basename(last(chosenInfo)))},
		column{title: "Started", expr: ofChosen(minBy(job, last(selector("mpit_rank_start_time_seconds",
			ofJobs+`, rank="0"`))) + " * 1000"), unit: "dateTimeAsIso"},
		column{title: "Ran for", expr: ofChosen(ranTime(job, ofJobs)), unit: "dtdurations"},
		column{label: "world"},
		column{label: "cluster"},
	).sorted("State", false).sorted("Started", true).size(24, 14)
}

// lost are the core-hours that jobs have waited within the time range, by a label that rank 0 has, and those jobs that
// have waited for more than half of what they held.
func lost(label string) *panel {
	// The rule is evaluated every two minutes.
	hours := func(states string) string {
		return sumBy(job, "sum_over_time("+selector("mpit_job:seconds:rate5m", ofJobs+states)+inRange+")") + " / 30"
	}
	named := `label_replace(` + basename(last(chosenInfo)) + `, "` + label + `", "none", "` + label + `", "")`
	by := func(expr string) string {
		if label == "user" { // which all have
			expr = ofChosen(expr)
		} else {
			expr = "(" + expr + ") * on (" + job + ") group_left (" + label + ") (topk by (" + job +
				") (1, max by (" + job + ", " + label + ") (" + named + ")) > bool 0)"
		}
		return sumBy(label, expr)
	}
	waited, held := hours(`, state=~"wait|collective|poll|finalize|ended"`), hours("")
	half := by("(" + waited + ") > bool 0.5 * (" + held + ")")
	return table("Waited, by "+label, "Core-hours within the time range in which ranks waited for others: the thirty "+
		"with most, of jobs whose calls are measured. A rank counts as one core.",
		column{label: label},
		column{rows: true, title: "Core-hours lost", expr: "topk(30, " + by(waited) + ")", unit: "short", gauge: true},
		column{title: "Core-hours", expr: by(held), unit: "short"},
		column{title: "Jobs that waited for half", expr: half, unit: "short"},
	).sorted("Core-hours lost", true).size(8, 9)
}

// counted is what one job is in numbers of them, however many worlds it has.
const counted = "cluster, jobid, user"

// jobs is the dashboard of all jobs of a cluster. Everything is summed over a job's ranks before it leaves Prometheus.
func jobs() grafana.Dashboard {
	const name = "{{jobid}} of {{user}}"
	link := func(p *panel) *panel {
		return p.links("This job", to(uidJob, "jobid", ofSeries("jobid"), "user", ofSeries("user")))
	}
	mostOf := func(level string) string {
		return maxBy(job, level) + "\nand on (" + job + ") topk(10, " +
			ofChosen(maxBy(job, "max_over_time("+level+atTheEnd+")")) + ")"
	}
	overTime := func(title, description, unit, rule string) *panel {
		return link(many(title, description+" The ten jobs with most.", unit).
			query(mostOf(selector(rule, ofJobs)), name))
	}
	up, useful := selector("mpit_rank_up", ofJobs), selector("mpit_job:parallel_efficiency:ratio5m", ofJobs)
	profiled := ofChosen(selector("mpit_job:ranks:profiled", ofJobs))
	count := func(of string) string { return orZero("count(" + countBy(counted, ofChosen(of)) + ")") }
	states := func(with string) string { return selector("mpit_job_verdict_info", ofJobs+with) }
	info := selector("mpit_process_info", inClusters+`, rank="0"`)
	return board{
		uid: uidJobs, title: "MPI jobs", from: "now-6h",
		description: "Which job needs attention: all MPI jobs of a cluster, with the state of each, their efficiency, " +
			"whom they wait for, and their alerts. Needs the recording rules of alerts/.",
		variables: []grafana.Variable{datasource(), cluster(), users(),
			anyOf(labels("partition", "Partition", "Of the scheduler, where ranks know it", info, "partition",
				grafana.SortAlphabetical)),
			anyOf(labels("node", "Node of rank 0", "Label instance of the exporter on it", info, "instance",
				grafana.SortNatural))},
		rows: []row{
			{title: "Now", panels: []*panel{
				stat("Jobs running", "Jobs of which a rank answers at the end of the time range.", "short", neutral).
					instant(count(up+" == 1"), "jobs"),
				stat("Ranks running", "Ranks that answer.", "short", neutral).
					instant(orZero("sum("+ofChosen(up)+")"), "ranks"),
				stat("Jobs that need attention", "Jobs in a state that is coloured in the table below.", "short", bad(1)).
					instant(count(states(`, state!~"`+calm()+`"`)), "jobs"),
				stat("Jobs with alerts", "Jobs of which an alert is firing.", "short", bad(1)).
					instant(count(selector("ALERTS", ofJobs+`, jobid!="", alertstate="firing"`)), "jobs"),
				stat("Useful time", "Of all ranks whose calls are measured, the share of time outside MPI.", "percentunit",
					neutral).size(8, 4).
					instant("sum("+useful+" * "+profiled+") / sum("+profiled+")", "useful"),
			}},
			{title: "Which job needs attention?", panels: []*panel{
				jobsTable(),
				graph("Jobs by state", "Jobs of whose state an exporter knows: all ranks on its node.", "short").stacked().
					query(countBy("state", maxBy(counted+", state", ofChosen(states("")))), "{{state}}").
					colored("", stateColours()).size(12, 9),
				link(many("Ranks", "Ranks that answer. The ten jobs with most.", "short").stacked().
					query(mostOf(selector("mpit_job:ranks:live", ofJobs)), name)),
				overTime("Bytes sent", "Of all ranks of a job, by the call profile or what its library counts.", "binBps",
					"mpit_job:sent_bytes:rate5m"),
				overTime("Longest queue of unexpected messages", "Messages that have come before their receive: of each job "+
					"the rank that has most. "+withQueues, "short",
					"mpit_job:unexpected_messages:max").thresholds(bad(unexpectedMany)),
			}},
			{title: "Whose core-hours are lost by waiting?", panels: []*panel{lost("user"), lost("account"), lost("program")}},
		},
	}.grafana()
}

// calm are the states of jobs that need no attention, as on the live page, as a pattern.
func calm() string {
	var words []string
	for _, s := range verdict.States() {
		if s.Colour == "" || s.Word == verdict.Healthy {
			words = append(words, s.Word)
		}
	}
	return strings.Join(words, "|")
}
