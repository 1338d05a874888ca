package dashboards

import "github.com/mpit-exporter/mpit-exporter/dashboards/internal/grafana"

// inTrouble are ranks that are neither there nor have ended: late, or lost with their node.
func inTrouble(matchers string) string {
	return "(" + selector("mpit_rank_up", matchers) + " == 0 unless on (" + process + ") " + selector("mpit_rank_end_info", matchers) + ")"
}

// From where on things are bad, as the alerts have it.
const (
	unexpectedMany = 10000 // messages in a rank's queue
	uneven         = 3     // the busiest rank's share of the mean
	nearLimit      = 0.9   // of what there is room for
)

// running is 1 for a job that runs at the end of the time range, 0 for one that was there before.
func running(by, matchers string) string {
	up := selector("mpit_rank_up", matchers)
	return maxBy(by, up) + " or 0 * " + maxBy(by, last(up))
}

// ranTime is how long jobs ran within the time range: from the start of the first rank 0 to the last answer of one.
func ranTime(by, matchers string) string {
	matchers += `, rank="0"`
	return maxBy(by, "max_over_time(timestamp("+selector("mpit_rank_up", matchers)+" == 1)[$__range:$__interval])") +
		" - " + minBy(by, "min_over_time("+selector("mpit_rank_start_time_seconds", matchers)+inRange+")")
}

var jobState = map[string]grafana.MappingText{
	"0": {Text: "ended", Color: "text", Index: 0}, "1": {Text: "running", Color: "green", Index: 1},
}

// jobLink leads from a row of a table to the job that it names.
func jobLink() *grafana.DataLink {
	return &grafana.DataLink{Title: "This job", URL: to(uidJob, "jobid", cell, "user", inRow("user"))}
}

func jobsTable() *panel {
	long := bad(unexpectedMany)
	return table("Jobs", "Jobs within the time range, also those that have ended. A job that runs several programs "+
		"has a row for each; what is counted stands in each of them. Messages and bytes are those sent since the "+
		"job began, where its library counts them; the queue is the longest that any of its ranks had. The label "+
		"jobid leads to the job.",
		column{label: "jobid", link: jobLink()},
		column{title: "State", expr: running("jobid, user", ofJobs), words: jobState},
		column{label: "user"},
		column{label: "jobname"},
		column{label: "partition"},
		column{label: "executable"},
		column{label: "library"},
		column{rows: true, title: "Ranks", expr: countBy("jobid, user, jobname, partition, executable, library",
			last(selector("mpit_process_info", ofJobs)))},
		column{title: "Nodes", expr: countBy("jobid, user",
			countBy("jobid, user, instance", last(selector("mpit_process_info", ofJobs))))},
		column{title: "Started", expr: minBy("jobid, user",
			last(selector("mpit_rank_start_time_seconds", ofJobs))) + " * 1000", unit: "dateTimeAsIso"},
		column{title: "Ran for", expr: ranTime("jobid, user", ofJobs), unit: "dtdurations"},
		column{title: "Messages", expr: firstOf(messagesSent, "jobid, user", ofJobs, last), unit: "short"},
		column{title: "Bytes", expr: firstOf(bytesSent, "jobid, user", ofJobs, last), unit: "bytes"},
		column{title: "Longest queue", expr: maxBy("jobid, user",
			sumBy(process+", __name__", "max_over_time("+named(unexpectedQueues, ofJobs)+inRange+")")),
			unit: "short", steps: &long},
	).sorted("Started", true).size(24, 12)
}

// jobs is the dashboard of all jobs of a cluster. Everything is summed over a job's ranks before it leaves Prometheus.
func jobs() grafana.Dashboard {
	return board{
		uid: uidJobs, title: "MPI jobs", from: "now-6h",
		description: "All MPI jobs of a cluster: how many ranks, how fast they send, whose queues grow. What is " +
			"shown of a job depends on its library.",
		variables: []grafana.Variable{datasource(), scrapeJob(), users(), jobsOfUsers()},
		rows: []row{
			{title: "Now", panels: []*panel{
				stat("Jobs running", "Jobs of which a rank answers at the end of the time range.", "short",
					steps(step{color: "text"})).
					instant(orZero("count("+countBy("jobid, user", selector("mpit_rank_up", ofJobs)+" == 1")+")"),
						"jobs"),
				stat("Ranks running", "Ranks that answer.", "short", steps(step{color: "text"})).
					instant(orZero("sum("+selector("mpit_rank_up", ofJobs)+")"), "ranks"),
				stat("Nodes in use", "Exporters to which ranks are connected.", "short", steps(step{color: "text"})).
					instant(orZero("count("+countBy("instance", selector("mpit_rank_up", ofJobs)+" == 1")+")"),
						"nodes"),
				stat("Users", "Users of whom a rank is on a node.", "short", steps(step{color: "text"})).
					instant(orZero("count("+countBy("user", selector("mpit_rank_up", ofJobs))+")"), "users"),
				stat("Silent ranks", "Ranks that were late in the last scrape, and have not ended.", "short", bad(1)).
					instant(orZero("count("+inTrouble(ofJobs)+")"), "ranks"),
				stat("Ranks that were lost", "Ranks that ended within the time range without a last sample: killed, "+
					"crashed, or cut off; and those that aborted.", "short", bad(1)).
					instant(orZero("count("+last(selector("mpit_rank_end_info",
						ofJobs+`, reason=~"lost|abort"`))+")"), "ranks"),
			}},
			{title: "Jobs", panels: []*panel{
				jobsTable(),
				graph("Ranks that run", "Ranks that answer, by job.", "short").stacked().
					query(sumBy("jobid, user", selector("mpit_rank_up", ofJobs)),
						"{{jobid}} of {{user}}").links("This job",
					to(uidJob, "jobid", ofSeries("jobid"), "user", ofSeries("user"))),
				graph("Longest queue of unexpected messages",
					"Messages that have come and nobody has received yet: of each job the rank that has most. A "+
						"queue that grows means a rank that is slower than those that send to it. "+withQueues,
					"short").
					query(maxBy("jobid, user", queueOf(unexpectedQueues, ofJobs)),
						"{{jobid}} of {{user}}").thresholds(bad(unexpectedMany)).
					links("This job", to(uidJob, "jobid", ofSeries("jobid"), "user", ofSeries("user"))),
				graph("Messages sent", "Of all ranks of a job, by what its library counts; the first that it has:"+who(messagesSent), "mps").
					query(firstOf(messagesSent, "jobid, user", ofJobs, rateOf),
						"{{jobid}} of {{user}}").links("This job",
					to(uidJob, "jobid", ofSeries("jobid"), "user", ofSeries("user"))),
				graph("Bytes sent", "Of all ranks of a job, by what its library counts; the first that it has:"+who(bytesSent), "binBps").
					query(firstOf(bytesSent, "jobid, user", ofJobs, rateOf),
						"{{jobid}} of {{user}}").links("This job",
					to(uidJob, "jobid", ofSeries("jobid"), "user", ofSeries("user"))),
			}},
			{title: "Ends", panels: []*panel{
				graph("Ranks that have ended", "Ranks that have ended and are still on their exporter's page, by "+
					"how: finalize is regular, exit is without "+
					"MPI_Finalize, lost without a last sample.", "short").stacked().
					query(countBy("reason", selector("mpit_rank_end_info", ofJobs)), "{{reason}}").colored("",
					endings),
				table("Ranks that were lost or aborted", "Within the time range.",
					column{label: "jobid", link: jobLink()},
					column{label: "user"},
					column{label: "reason"},
					column{title: "Ranks", expr: countBy("jobid, user, reason",
						last(selector("mpit_rank_end_info", ofJobs+`, reason=~"lost|abort|exit"`)))},
				).size(12, 8),
			}},
		},
	}.grafana()
}
