package dashboards

import "github.com/mpit-exporter/mpit-exporter/dashboards/internal/grafana"

// Names of families by what they are, whatever library has them.
const (
	timers         = "mpit_.+_seconds"
	highWatermarks = "mpit_.+_highwatermark(_[a-z]+)?"
	lowWatermarks  = "mpit_.+_lowwatermark(_[a-z]+)?"
	levelsInBytes  = "mpit_.+_bytes"
	shares         = "mpit_.+_ratio"
	states         = "mpit_.+_state"
)

// notTogether leaves out what rules show for several ranks together beside the ranks' own, and the one gauge that is
// named as timers are.
const notTogether = `, __name__!~"mpit_node_.+|mpit_call_running_seconds"`

// ofTimers is a part of each timer, sum or count, with the timer's name in a label: a native histogram's part has no
// name, and sums and counts are to meet. What over makes of a selector must keep names.
func ofTimers(part, matchers string, over func(selector string) string) string {
	timer := func(end string) string {
		return `label_replace(` + over(named(timers+end, matchers+notTogether)) + `, "timer", "$1", "__name__", "(.+)` +
			end + `")`
	}
	return "(" + timer("_"+part) + " or histogram_" + part + "(" + timer("") + "))"
}

// spread is the ranks' highest, mean and lowest of what expr says of each.
func (p *panel) spread(expr string) *panel {
	return p.query("max("+expr+")", "highest rank").query("avg("+expr+")",
		"mean of the ranks").query("min("+expr+")", "lowest rank")
}

// oneJob is the dashboard of one job, rank by rank.
func oneJob() grafana.Dashboard {
	timer := anyOf(labels("timer", "Timer", "Timers of the job; a row of panels for each",
		named(timers+"(_bucket)?", ofOneJob+`, __name__!~"mpit_(node|rank|pcontrol)_.+|mpit_call_running_seconds"`), "__name__",
		grafana.SortAlphabetical))
	timer.Regex, timer.AllValue = "(.+?)(?:_bucket)?", ""
	counter := labels("counter", "Counter", "Any counter or timer of the job, for the row Any variable",
		`{__name__=~"mpit_[^:]+(_total|_seconds_sum)", __name__!~"mpit_(rank|pcontrol)_.+", `+ofOneJob+`}`,
		"__name__", grafana.SortAlphabetical)
	gauge := labels("gauge", "Gauge", "Any level, size, share or watermark of the job, for the row Any variable",
		`{__name__=~"mpit_[^:]+", __name__!~"mpit_.+_(total|bucket|sum|count|info|time_seconds)|mpit_(rank_.+|pcontrol_.+|objects|cvar_ranks|node_extreme_rank)", `+
			ofOneJob+`}`, "__name__", grafana.SortAlphabetical)

	return board{
		uid: uidJob, title: "One MPI job", from: "now-1h",
		description: "One job: who and where, how even its ranks are, queues and watermarks, where its time goes, " +
			"its communicators, and any other variable that its library has.",
		variables: []grafana.Variable{datasource(), scrapeJob(), jobID(), user(), world(), rank(), comm(), timer,
			counter, gauge},
		rows: []row{
			{title: "Job $jobid", panels: jobItself()},
			{title: "Balance of ranks", panels: jobBalance()},
			{title: "Queues", panels: jobQueues()},
			{title: "Communicators", panels: jobCommunicators()},
			{title: "Time by timer", panels: jobTimers()},
			{title: "$timer", collapsed: true, repeat: "timer", panels: jobTimer()},
			{title: "Any variable: $counter, $gauge", panels: jobAny()},
			{title: "Watermarks, shares and states", collapsed: true, panels: jobLevels()},
			{title: "Open MPI with monitoring: collectives and one-sided", collapsed: true, panels: jobMonitoring()},
			{title: "Open MPI built with SPC", collapsed: true, panels: jobSPC()},
			{title: "MPICH built with pvars", collapsed: true, panels: jobMPICH()},
			{title: "MVAPICH", collapsed: true, panels: jobMVAPICH()},
		},
	}.grafana()
}

func jobItself() []*panel {
	programs := countBy("world, user, jobname, partition, executable, library, library_version, world_size, "+
		"thread_level, jobid_source, jobid_check",
		last(selector("mpit_process_info", ofOneJob)))
	return []*panel{
		stat("State", "Whether a rank answers at the end of the time range.", "none",
			steps(step{color: "text"}, step{"green", 1})).
			words(jobState).instant("max("+running("jobid", ofOneJob)+")", "state"),
		stat("Ranks running", "Ranks that answer at the end of the time range.", "short", steps(step{color: "text"})).
			instant(orZero("sum("+selector("mpit_rank_up", ofOneJob)+")"), "ranks"),
		stat("Ranks seen", "Ranks that were there within the time range.", "short", steps(step{color: "text"})).
			instant("count("+last(selector("mpit_rank_up", ofOneJob))+")", "ranks"),
		stat("Started", "When the first rank opened its MPI_T session, right after MPI_Init.", "dateTimeAsIso",
			steps(step{color: "text"})).
			instant("min("+last(selector("mpit_rank_start_time_seconds", ofOneJob))+") * 1000", "started"),
		stat("Ran for", "From the first rank 0 of a world to the last answer of one, within the time range.",
			"dtdurations", steps(step{color: "text"})).
			instant(ranTime("jobid", ofOneJob), "ran for"),
		stat("Lost or aborted", "Ranks that ended within the time range without a last sample, or by MPI_Abort.",
			"short", bad(1)).
			instant(orZero("count("+last(selector("mpit_rank_end_info", ofOneJob+`, reason=~"lost|abort"`))+")"),
				"ranks"),
		table("Programs", "What the job runs: a row for each program of each MPI_COMM_WORLD. jobid_check says "+
			"whether the kernel's control group bears the job's id out.",
			column{label: "world"}, column{label: "user"}, column{label: "jobname"}, column{label: "partition"},
			column{label: "executable"},
			column{label: "library"}, column{label: "library_version"}, column{label: "world_size"},
			column{title: "Ranks", expr: programs}, column{label: "thread_level"}, column{label: "jobid_source"},
			column{label: "jobid_check"},
		).size(24, 6),
		graph("Ranks by state", "Running ranks answer. Ranks that don't answer were late and have not ended. Ended "+
			"ones are shown as long as they are on their exporter's page.", "short").stacked().
			// the lowest: a line of zeros is not seen there
			query(orZero("count("+inTrouble(ofOneJob)+")"), "not answering").
			query("sum("+selector("mpit_rank_up", ofOneJob)+")", "running").
			query(countBy("reason", selector("mpit_rank_end_info", ofOneJob)), "ended: {{reason}}").
			colored("", series{"running": "green", "not answering": "orange"}).
			colored("ended: ", series{"finalize": "blue", "exit": "purple", "lost": "red", "abort": "dark-red"}),
		graph("Ranks by node", "Ranks that answer, by exporter.", "short").stacked().
			query(sumBy("instance", selector("mpit_rank_up", ofOneJob)), "{{instance}}"),
	}
}

// ofRank leads to the rank that is clicked at.
func ofRank(world, rank string) string {
	return to(uidRanks, "jobid", "${jobid:percentencode}", "user", "${user:percentencode}", "world", world, "rank",
		rank)
}

func jobBalance() []*panel {
	messages := firstOf(messagesSent, process, ofRanks, rateOf)
	bytes := firstOf(bytesSent, process, ofRanks, rateOf)
	even := "1 is a job whose ranks all do the same; 2 is one whose busiest rank does twice the mean."
	link := grafana.DataLink{Title: "This rank", URL: ofRank(inRow("world"), cell)}
	long := bad(unexpectedMany)
	return []*panel{
		graph("Messages sent by a rank", "The busiest rank, the mean and the idlest one, by what the job's library "+
			"counts:"+who(messagesSent), "mps").
			spread(messages),
		graph("Bytes sent by a rank", "The busiest rank, the mean and the idlest one, by what the job's library "+
			"counts:"+who(bytesSent), "binBps").
			spread(bytes),
		heat("Messages sent, rank by rank", "A row for each rank; those of one number in several worlds share one.",
			"mps", "rank").
			query(firstOf(messagesSent, "rank", ofRanks, rateOf), "{{rank}}"),
		heat("Bytes sent, rank by rank", "A row for each rank; those of one number in several worlds share one.",
			"binBps", "rank").
			query(firstOf(bytesSent, "rank", ofRanks, rateOf), "{{rank}}"),
		graph("Imbalance", "The busiest rank's share of the mean. "+even, "none").
			query("max("+messages+") / avg("+messages+")", "messages sent").
			query("max("+bytes+") / avg("+bytes+")", "bytes sent").thresholds(bad(uneven)).axis(1, uneven),
		graph("Imbalance of time", "The rank that spends most time in a timer, as a share of the mean, over the job "+
			"so far. "+even+" `exec --calls`, MPICH built with pvars, MVAPICH and Open MPI built with SPC have "+
			"timers.", "none").
			query("max by (timer) ("+rankTimers+") / avg by (timer) ("+rankTimers+")",
				"{{timer}}").thresholds(bad(uneven)).axis(1, uneven),
		table("Rank by rank", "Counted since the job began; the queue is the longest within the time range. The "+
			"label rank leads to the rank.",
			column{label: "world"},
			column{label: "rank", link: &link},
			column{label: "host"},
			column{label: "instance"},
			column{rows: true, title: "Process", hidden: true,
				expr: countBy(process+", host", last(selector("mpit_process_info", ofRanks)))},
			column{title: "Messages", expr: firstOf(messagesSent, process, ofRanks, last), unit: "short", gauge: true},
			column{title: "Bytes", expr: firstOf(bytesSent, process, ofRanks, last), unit: "bytes", gauge: true},
			column{title: "Longest queue", expr: maxBy(process,
				sumBy(process+", __name__", "max_over_time("+named(unexpectedQueues, ofRanks)+inRange+")")),
				unit: "short", steps: &long},
			column{title: "Waited for samples", expr: sumBy(process,
				last(selector("mpit_rank_agent_gate_wait_seconds_total", ofRanks))), unit: "s"},
		).sorted("Messages", true).without("jobid", "user"),
	}
}

// rankTimers is how long each rank has spent in each timer so far.
var rankTimers = sumBy(process+", timer", ofTimers("sum", ofRanks, here))

func jobQueues() []*panel {
	const unexpected = "Messages that have come and nobody has received yet. "
	return []*panel{
		graph("Unexpected messages", unexpected+"The five longest queues at each moment. "+withQueues, "short").
			query("topk(5, "+maxBy("world, rank", queueOf(unexpectedQueues, ofRanks))+")",
				"rank {{rank}}").thresholds(bad(unexpectedMany)).size(12, 9).
			links("This rank", ofRank(ofSeries("world"), ofSeries("rank"))),
		heat("Unexpected messages, rank by rank", unexpected+"A row for each rank. "+withQueues, "short", "rank").
			query(maxBy("rank", queueOf(unexpectedQueues, ofRanks)), "{{rank}}"),
		graph("Posted receives", "Receives that wait for a message: the five ranks that have most at each moment. "+withQueues, "short").
			query("topk(5, "+maxBy("world, rank", queueOf(postedQueues, ofRanks))+")", "rank {{rank}}"),
		graph("Bytes held", "Levels and sizes in bytes, summed over the ranks: huge pages of Open MPI, the "+
			"unexpected queue's buffer of MPICH, memory of MVAPICH.", "bytes").
			query(sumBy("__name__", named(levelsInBytes, ofRanks+`, __name__!~"mpit_node_.+|.+watermark_bytes"`)),
				"{{__name__}}"),
	}
}

// jobLevels are levels that Debian's libraries don't have.
func jobLevels() []*panel {
	return []*panel{
		graph("Shares", "Levels as a share of their size, and percentages: of each variable the rank that has most. "+
			"There is one for each SIZE and LEVEL "+
			"of one name, and for each PERCENTAGE.", "percentunit").upTo(1).thresholds(bad(nearLimit)).
			query(maxBy("__name__", named(shares, ofRanks+notTogether)), "{{__name__}}"),
		graph("States", "Ranks in each state of each variable of class STATE.", "short").stacked().
			query(sumBy("__name__, state", named(states, ofRanks+notTogether)), "{{__name__}} {{state}}"),
		graph("High watermarks", "Of each the rank that has the highest. MPICH built with pvars, MVAPICH, Open MPI "+
			"4.1 built with SPC and usNIC have some.",
			"short").query(maxBy("__name__", named(highWatermarks, ofRanks)), "{{__name__}}"),
		graph("Low watermarks", "Of each the rank that has the lowest.", "short").
			query(minBy("__name__", named(lowWatermarks, ofRanks)), "{{__name__}}"),
		table("Which rank holds a watermark", "Of each high watermark the rank that has the highest at the end of "+
			"the time range, or had it at its own end.",
			column{label: "__name__"}, column{label: "world"}, column{label: "rank"}, column{label: "comm"},
			column{title: "Highest", expr: "topk by (__name__) (1, " + maxBy("__name__, world, rank, comm, win",
				last(named(highWatermarks, ofRanks))) + ")"},
		).size(24, 7),
	}
}

func jobCommunicators() []*panel {
	const nameIsComm = `, "comm", "$1", "name", "(.*)")`
	const needs = "Collectives need Open MPI with `OMPI_MCA_pml_monitoring_enable=2`, which counts those with a " +
		"root in the root's rank alone, and knows of no other communicator than MPI_COMM_WORLD for other messages; " +
		"or any library with `exec --calls`, which counts them in every rank."
	ofObjects := ofRanks + `, kind="comm", name=~"$comm"`
	long := bad(unexpectedMany)
	return []*panel{
		table("Communicators", "By name: those that lived at the end of the time range, or last within it, and what "+
			"was counted on all of that name. "+
			needs,
			column{label: "comm"}, column{label: "size"}, column{label: "topology"}, column{label: "inter"},
			column{title: "Ranks in it", expr: "count by (comm, size, topology, inter) (label_replace(" + last(selector("mpit_object_info", ofObjects)) + nameIsComm + ")"},
			column{title: "Objects", expr: "sum by (comm) (label_replace(" + last(selector("mpit_objects",
				ofObjects)) + nameIsComm + ")"},
			column{title: "Collectives", expr: firstOf(collectivesOnComm, "comm", ofComms, last), unit: "short"},
			column{title: "Bytes of collectives", expr: firstOf(collectiveBytesOnComm, "comm", ofComms, last),
				unit: "bytes"},
			column{title: "Longest queue", expr: maxBy("comm",
				"max_over_time("+named(unexpectedQueues, ofComms+`, comm!=""`)+inRange+")"), steps: &long},
		).sorted("Bytes of collectives", true),
		graph("Collectives on a communicator", "Calls, the ten communicators with most at each moment. "+needs, "cps").
			query("topk(10, "+firstOf(collectivesOnComm, "comm", ofComms, rateOf)+")", "{{comm}}"),
		graph("Bytes of collectives on a communicator",
			"Sent, the ten communicators with most at each moment. "+needs, "binBps").
			query("topk(10, "+firstOf(collectiveBytesOnComm, "comm", ofComms, rateOf)+")", "{{comm}}"),
		graph("Unexpected messages on a communicator",
			"Of each the rank with most; the ten highest at each moment. Open MPI's ob1.", "short").
			query("topk(10, "+maxBy("comm", selector("mpit_pml_ob1_unexpected_msgq_length", ofComms))+")", "{{comm}}"),
		graph("Posted receives on a communicator", "Of each the rank with most; the ten highest at each moment. "+
			"Open MPI's ob1.", "short").
			query("topk(10, "+maxBy("comm", selector("mpit_pml_ob1_posted_recvq_length", ofComms))+")", "{{comm}}"),
	}
}

func jobTimers() []*panel {
	sums, counts := ofTimers("sum", ofRanks, last), ofTimers("count", ofRanks, last)
	perRank := sumBy(process+", timer", sums)
	return []*panel{
		table("Time spent, by timer", "Since the job began. Events are calls (`exec --calls`), the library's own "+
			"where it counts them (MPICH, MVAPICH), else intervals in which the timer moved. `exec --calls`, MPICH "+
			"built with pvars, MVAPICH and Open MPI built with SPC have timers.",
			column{label: "timer"},
			column{title: "All ranks", expr: sumBy("timer", sums), unit: "s", gauge: true},
			column{title: "Mean of ranks", expr: "avg by (timer) (" + perRank + ")", unit: "s"},
			column{title: "Longest rank", expr: "max by (timer) (" + perRank + ")", unit: "s"},
			column{title: "Events", expr: sumBy("timer", counts), unit: "short"},
			column{title: "Mean event", expr: sumBy("timer", sums) + " / " + sumBy("timer", counts), unit: "s"},
		).sorted("All ranks", true).size(24, 8),
	}
}

func jobTimer() []*panel {
	perRank := sumBy(process, rateOf(selector("${timer}_sum", ofRanks)))
	return []*panel{
		graph("Share of time in ${timer}", "Seconds in a second: the rank that spends most there, the mean and the "+
			"least.", "percentunit").spread(perRank),
		heat("Durations of ${timer}", "Events of each duration. Of libraries' timers new events stand in the bucket "+
			"of their mean duration in each scrape interval; those of "+
			"exec --calls are each by itself.", "short", "duration").
			duration().
			target(bucketsOf(selector("${timer}_bucket", ofRanks)), "heatmap", "{{le}}", false),
	}
}

func jobAny() []*panel {
	const others = "sum without (job, instance, jobid, world, user, rank, dup) "
	return []*panel{
		graph("$counter: all ranks", "How fast it grows in all ranks together, by its other labels: the ten fastest.", "cps").
			query("topk(10, "+others+"("+rateOf(selector("$counter", ofRanks))+"))", ""),
		graph("$counter: by rank", "How fast it grows: the ten fastest ranks at each moment.", "cps").
			query("topk(10, "+sumBy("world, rank", rateOf(selector("$counter", ofRanks)))+")", "rank {{rank}}").
			links("This rank", ofRank(ofSeries("world"), ofSeries("rank"))),
		graph("$gauge: all ranks", "The highest rank, by its other labels: the ten highest.", "short").
			query("topk(10, max without (job, instance, jobid, world, user, rank, dup) ("+selector("$gauge",
				ofRanks)+"))", ""),
		graph("$gauge: by rank", "The ten highest ranks at each moment; what a rank has of it in several objects is "+
			"summed.", "short").
			query("topk(10, "+sumBy("world, rank", selector("$gauge", ofRanks))+")", "rank {{rank}}").
			links("This rank", ofRank(ofSeries("world"), ofSeries("rank"))),
		heat("$counter, rank by rank", "How fast it grows: a row for each rank.", "cps", "rank").
			query(sumBy("rank", rateOf(selector("$counter", ofRanks))), "{{rank}}"),
		heat("$gauge, rank by rank", "A row for each rank.", "short", "rank").
			query(sumBy("rank", selector("$gauge", ofRanks)), "{{rank}}"),
	}
}
