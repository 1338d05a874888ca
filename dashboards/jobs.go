package dashboards

import (
	"fmt"
	"slices"

	"github.com/mpit-exporter/mpit-exporter/dashboards/internal/grafana"
	verdict "github.com/mpit-exporter/mpit-exporter/exporter/job"
)

// From where on things are bad, as the alerts have it.
const (
	unexpectedMany = 10000 // messages in a rank's queue
	nearLimit      = 0.9   // of what there is room for
	leastUseful    = 0.2   // of the ranks' time
	muchWaited     = verdict.Late
)

var (
	usefulSteps = steps(step{color: "text"}, step{"red", 0}, step{"green", leastUseful})
	waitedSteps = steps(step{color: "text"}, step{"green", 0}, step{"red", muchWaited})
	neutral     = steps(step{color: "text"})
)

// state is one number for each job at the end of the time range, the worst that is to be said of it: see stateWords.
// That ranks wait is known with the call profile, where the rules of alerts/ are loaded.
func state(matchers string) string {
	live, waiting := selector("mpit_job:ranks:live", matchers), selector("mpit_job:ranks:waiting", matchers)
	up := selector("mpit_rank_up", matchers)
	ended := func(reason string) string {
		return countBy(job, last(selector("mpit_rank_end_info", matchers+`, reason="`+reason+`"`)))
	}
	silent := up + " == 0 unless on (" + process + ") " + selector("mpit_rank_end_info", matchers)
	return "7 + 0 * (" + live + " - " + waiting + " <= 1 or " + waiting + " >= 0.9 * " + live + ")" +
		"\nor 6 + 0 * " + countBy(job, silent) +
		"\nor 5 + 0 * " + ended("abort") + // which may have taken others along, without a last word
		"\nor 4 + 0 * " + ended("lost") +
		"\nor 3 + 0 * " + ended("exit") +
		"\nor 2 + 0 * " + countBy(job, up+" == 1") +
		"\nor 1 + 0 * " + ended("finalize") +
		"\nor 0 * " + countBy(job, last(up))
}

var stateWords = map[string]grafana.MappingText{
	"7": inWord(verdict.Waits, 0),
	"6": {Text: "ranks are silent", Color: "dark-orange", Index: 1},
	"5": {Text: "aborted", Color: "red", Index: 2},
	"4": {Text: "ranks were lost", Color: "red", Index: 3},
	"3": {Text: "no MPI_Finalize", Color: "orange", Index: 4},
	"2": {Text: "running", Color: "green", Index: 5},
	"1": {Text: "finished", Color: "blue", Index: 6},
	"0": {Text: "gone", Color: "purple", Index: 7},
}

// inWord is a state of the table, as Grafana has it.
func inWord(word string, index int) grafana.MappingText {
	all := verdict.States()
	at := slices.IndexFunc(all, func(s verdict.State) bool { return s.Word == word })
	return grafana.MappingText{Text: word, Color: all[at].Board, Index: index}
}

const statesMean = "waiting: every rank has been in one MPI call for 5 minutes, or all but one, or but a " +
	"tenth; silent: ranks don't answer, as if they were stopped; lost: ranks ended without a last word, by a " +
	"signal or with their node; gone: nothing is known of its end."

// lateRank is the rank of each job that waits least for others, where the others wait a tenth of their time or more:
// that with most useful time, or, if it isn't that, the one that is late inside MPI.
func lateRank(matchers string) string {
	of := func(rule string) string { return last(selector(rule, matchers)) }
	return "max by (" + job + ", rank) (\n  topk by (" + job + ") (1, " + of("mpit_rank:useful:ratio5m") +
		")\n  and on (" + job + ") (" +
		of("mpit_job:communication_efficiency:ratio5m") + " - " + of("mpit_job:parallel_efficiency:ratio5m") +
		" > " + fmt.Sprint(muchWaited) + ")\n  or on (" + job + ") topk by (" + job + ") (1, " +
		of("mpit_rank:busy:ratio5m") + ")\n) and on (" + job + ") " +
		of("mpit_job:late_rank:ratio5m") + " > 0.1"
}

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

func jobsTable() *panel {
	link := &grafana.DataLink{Title: "This job", URL: to(uidJob, "jobid", cell, "user", inRow("user"))}
	ofRule := func(rule string) string { return maxBy(job, last(selector(rule, ofJobs))) }
	info := last(selector("mpit_process_info", ofJobs))
	return table("Jobs", "Jobs within the time range; those that need attention first. A job is an MPI_COMM_WORLD of one "+
		"user. Useful is its ranks' time outside MPI, waiting what goes by waiting for the late rank, both in the last "+
		"five minutes of its life: they need the call profile (exec --calls). Of several alerts the most urgent is "+
		"named, of several programs the one with most ranks. "+statesMean,
		column{title: "State", expr: state(ofJobs), words: stateWords},
		column{label: "jobid", link: link},
		column{label: "program"},
		column{label: "jobname"},
		column{label: "user"},
		column{title: "Useful", expr: ofRule("mpit_job:parallel_efficiency:ratio5m"), unit: "percentunit", gauge: true,
			steps: &usefulSteps},
		column{title: "Waiting", expr: ofRule("mpit_job:late_rank:ratio5m"), unit: "percentunit", gauge: true,
			steps: &waitedSteps},
		column{label: "rank", title: "late rank"},
		column{title: "Late", expr: lateRank(ofJobs), hidden: true},
		column{label: "alertname", title: "alert"},
		column{title: "Alert", expr: firing(ofJobs + `, jobid!=""`), hidden: true},
		column{rows: true, title: "Ranks", expr: "topk by (" + job + ") (1, " +
			countBy(job+", program, jobname", basename(info)) + ")"},
		column{title: "Nodes", expr: countBy(job, countBy(job+", instance", info))},
		column{title: "Started", expr: minBy(job, last(selector("mpit_rank_start_time_seconds", ofJobs))) + " * 1000",
			unit: "dateTimeAsIso"},
		column{title: "Ran for", expr: ranTime(job, ofJobs), unit: "dtdurations"},
		column{label: "world"},
		column{label: "cluster"},
	).sorted("State", true).sorted("Waiting", true).sorted("Started", true).size(24, 14)
}

// jobs is the dashboard of all jobs of a cluster. Everything is summed over a job's ranks before it leaves Prometheus.
func jobs() grafana.Dashboard {
	const name = "{{jobid}} of {{user}}"
	link := func(p *panel) *panel {
		return p.links("This job", to(uidJob, "jobid", ofSeries("jobid"), "user", ofSeries("user")))
	}
	overTime := func(title, description, unit, rule string) *panel {
		return link(many(title, description+" The ten jobs with most.", unit).
			query(most(10, job, selector(rule, ofJobs)), name))
	}
	up := selector("mpit_rank_up", ofJobs)
	return board{
		uid: uidJobs, title: "MPI jobs", from: "now-6h",
		description: "Which job needs attention: all MPI jobs of a cluster, with their efficiency, their late ranks, how " +
			"they ended, and their alerts. Needs the recording rules of alerts/.",
		variables: []grafana.Variable{datasource(), cluster(), users()},
		rows: []row{
			{title: "Now", panels: []*panel{
				stat("Jobs running", "Jobs of which a rank answers at the end of the time range.", "short", neutral).
					instant(orZero("count("+countBy(job, up+" == 1")+")"), "jobs"),
				stat("Ranks running", "Ranks that answer.", "short", neutral).instant(orZero("sum("+up+")"), "ranks"),
				stat("Jobs that hang", "Jobs of which all ranks, all but one or all but a tenth have been in one MPI call for "+
					"more than 5 minutes.", "short", bad(1)).
					instant(orZero("count(("+state(ofJobs)+") >= 7)"), "jobs"),
				stat("Jobs with lost ranks", "Jobs of which a rank ended within the time range without a last word, or by "+
					"MPI_Abort.", "short", bad(1)).
					instant(orZero("count("+countBy(job, last(selector("mpit_rank_end_info", ofJobs+`, reason=~"lost|abort"`)))+")"),
						"jobs"),
				stat("Jobs with alerts", "Jobs of which an alert is firing.", "short", bad(1)).
					instant(orZero("count("+countBy(job, selector("ALERTS", ofJobs+`, jobid!="", alertstate="firing"`))+")"), "jobs"),
				stat("Useful time", "Of all ranks whose calls are measured, the share of time outside MPI.", "percentunit",
					usefulSteps).
					instant("sum("+selector("mpit_job:parallel_efficiency:ratio5m", ofJobs)+" * "+
						selector("mpit_job:ranks:profiled", ofJobs)+") / sum("+selector("mpit_job:ranks:profiled", ofJobs)+")", "useful"),
			}},
			{title: "Which job needs attention?", panels: []*panel{
				jobsTable(),
				link(many("Ranks", "Ranks that answer. The ten jobs with most.", "short").stacked().
					query(sumBy(job, up)+"\nand on ("+job+") topk(10, "+sumBy(job, "max_over_time("+up+atTheEnd+")")+")", name)),
				link(many("Ranks' worth of time in MPI", "The share of time inside MPI times the number of ranks: as if so many "+
					"ranks did nothing else. The ten jobs with most.", "short").stacked().
					query("(1 - "+selector("mpit_job:parallel_efficiency:ratio5m", ofJobs)+") * "+selector("mpit_job:ranks:profiled",
						ofJobs)+
						"\nand on ("+job+") topk(10, (1 - avg_over_time("+selector("mpit_job:parallel_efficiency:ratio5m",
						ofJobs)+atTheEnd+
						")) * max_over_time("+selector("mpit_job:ranks:profiled", ofJobs)+atTheEnd+"))", name)),
				overTime("Bytes sent", "Of all ranks of a job, by the call profile or what its library counts.", "binBps",
					"mpit_job:sent_bytes:rate5m"),
				overTime("Longest queue of unexpected messages", "Messages that have come and nobody has received yet: of "+
					"each job "+
					"the rank that has most. "+withQueues, "short",
					"mpit_job:unexpected_messages:max").thresholds(bad(unexpectedMany)),
			}},
		},
	}.grafana()
}
