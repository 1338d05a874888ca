package dashboards

import (
	"fmt"

	"github.com/mpit-exporter/mpit-exporter/dashboards/internal/grafana"
)

// spent says how each rank's time goes, by state: see docs/calls.md.
const spent = "mpit_rank_seconds_total"

// How time goes in five minutes, by the rules of alerts/: of a rank shares, of all ranks together seconds by state.
const (
	usefulShare  = "mpit_rank:useful:ratio5m"
	waitingShare = "mpit_rank:waiting:ratio5m"
	spentRate    = "mpit_job:seconds:rate5m"
)

// mean is a recorded level's over the time range.
func mean(level string) string {
	return "avg_over_time(" + selector(level, ofOneJob) + inRange + ")"
}

// oneJob is the dashboard of one job: a verdict, then where its time goes, who is late, and why.
func oneJob() grafana.Dashboard {
	return board{
		uid: uidJob, title: "One MPI job", from: "now-1h",
		description: "One job: its state, where its time goes, which ranks others wait for, and why. Most " +
			"of it needs the call profile (exec --calls) and the recording rules of alerts/.",
		variables: ofJob(nodes()),
		marks: []grafana.Annotation{
			mark("Alerts", palette["hung"], "{{alertname}}", maxBy("alertname", selector("ALERTS",
				ofOneJob+`, alertstate="firing"`))),
			mark("States", palette["late"], "{{state}} {{rank}}", maxBy("state, rank", selector("mpit_job_verdict_info",
				ofOneJob+`, state!~"`+calm()+`"`))),
		},
		rows: []row{
			{title: "Job $jobid", panels: jobVerdict()},
			{title: "Where does the time go?", panels: jobWhere()},
			{title: "Who is late?", panels: jobWho()},
			{title: "Why?", panels: jobWhy()},
			{title: "How are its nodes?", panels: jobNodes()},
			{title: "What is it?", panels: jobItself()},
		},
	}.grafana()
}

func jobVerdict() []*panel {
	firing := selector("ALERTS", ofOneJob+`, alertstate="firing"`)
	said := verdictOf(ofOneJob)
	named := "(" + said + ")\nunless on (rank) vector(0)" // which has none
	return []*panel{
		stat("State", verdictMeans, "none", neutral).named(nameAlone).filled().colored("", stateColours()).size(5, 5).
			instant(said, "{{state}}"),
		stat("The others wait for", "The rank that the state names.", "none", neutral).named(nameAlone).size(6, 5).
			instant(named, "rank {{rank}} on {{node}}").instant("vector(0) unless on () ("+named+")", "none").
			links("Its calls", ofTheJob(uidCalls, "world", ofSeries("world"), "rank", ofSeries("rank"))),
		stat("Useful time", "Share of its ranks' time outside MPI within the time range.", "percentunit", neutral).size(4, 5).
			instant("avg("+mean("mpit_job:parallel_efficiency:ratio5m")+")", "useful"),
		stat("Ranks that answer", "At the end of the time range, and how many there are in the world.", "short", neutral).
			named(withValue).size(4, 5).
			instant("0 * "+countBy("world_size", programs())+" + on () group_left () ("+
				orZero("sum("+selector("mpit_rank_up", ofOneJob)+")")+")", "in a world of {{world_size}}"),
		stat("Alerts that are firing", "At the end of the time range; a click leads to what to do.", "short", bad(1)).
			named(nameAlone).size(5, 5).
			instant(maxBy("alertname", firing), "{{alertname}}").
			instant("vector(0) unless on () count("+firing+")", "none").
			links("Runbook", runbook(ofSeries("alertname")).URL),
	}
}

// timeColours are those of the states of mpit_rank_seconds_total.
func timeColours() series {
	colours := series{"outside": palette["useful"]}
	for _, state := range []string{"send", "wait", "collective", "file", "poll", "finalize", "ended"} {
		colours[state] = palette[state]
	}
	return colours
}

func jobWhere() []*panel {
	kinds := graph("How the ranks' time goes", "Of all ranks whose calls are measured. What is outside MPI is useful; "+
		"wait is for messages, "+
		"requests and windows; collective returns when all ranks of a communicator have taken part.", "percentunit").
		stacked().axis(0, 1).size(12, 9).
		colored("", timeColours()).
		query(sumBy("state", selector(spentRate, ofOneJob))+" / on () group_left () (sum("+selector(spentRate,
			ofOneJob)+") > 0)", "{{state}}")
	p := kinds.graphField()
	p.FillOpacity, p.LineWidth = 60, 0
	kinds.MaxDataPoints = enoughPoints

	running := sumBy(process, selector("mpit_call_running_seconds", ofOneJob))
	inCall := running + " * on (" + process + ") group_right () max by (" + process + ", function, comm, win, file) (" +
		selector("mpit_call_running_info", ofOneJob) + ")"
	none := `label_replace(` + selector("mpit_rank_up", ofOneJob) + " unless on (" + process + ") " +
		selector("mpit_call_running_info", ofOneJob) + " unless on (" + process + ") " + selector("mpit_rank_end_info",
		ofOneJob) +
		` and on (` + process + `) ` + selector("mpit_call_running_seconds", ofOneJob) +
		`, "function", "(in no long call)", "", "")`
	all := "(" + inCall + " or " + none + ")"
	sums, counts := here(selector(callTime+"_sum", ofOneJob)), here(selector(callTime+"_count", ofOneJob))
	inMPI := "sum(" + selector(spent, ofOneJob) + ")"
	return []*panel{
		kinds,
		table("Where are the ranks now?", "Calls that have taken longer than a second at the end of the time range. "+
			"The "+
			"ranks that are somewhere else are the ones the others wait for: in no long call they compute, are stuck in "+
			"I/O, or are stopped.",
			column{rows: true, title: "Ranks", expr: countBy(call, all)},
			column{label: "function"}, column{label: "comm"}, column{label: "win"}, column{label: "file"},
			column{title: "For", expr: maxBy(call, inCall), unit: "s"},
			column{label: "rank", title: "one of them"},
			column{title: "One", expr: "bottomk by (" + call + ") (1, " + maxBy(call+", rank", all) + ")", hidden: true},
		).sorted("Ranks", true).size(12, 9),
		table("Functions and communicators", "From the job's beginning to the end of the time range, all ranks "+
			"together: the thirty with most time. A call that has not returned doesn't count yet. Empty if the job ended "+
			"within the time range: *MPI calls of a job* has it.",
			column{label: "function"}, column{label: "comm"}, column{label: "win"}, column{label: "file"},
			column{rows: true, title: "Share of time", expr: "topk(30, " + sumBy(call, sums) + " / on () group_left () " +
				inMPI + ")",
				unit: "percentunit", gauge: true},
			column{title: "Calls", expr: sumBy(call, counts), unit: "short"},
			column{title: "Mean call", expr: sumBy(call, sums) + " / (" + sumBy(call, counts) + " > 0)", unit: "s"},
		).sorted("Share of time", true).size(24, 9),
	}
}

func jobWho() []*panel {
	link := &grafana.DataLink{Title: "Its calls", URL: ofTheJob(uidCalls, "world", inRow("world"), "rank", cell)}
	answers := map[string]grafana.MappingText{
		"0": {Text: "silent", Color: palette["late"], Index: 0}, "1": {Text: "answers", Color: "transparent", Index: 1},
		"2": {Text: "finished", Color: "transparent", Index: 2},
		"3": {Text: "no MPI_Finalize", Color: palette["hung"], Index: 3},
		"4": {Text: "lost or aborted", Color: palette["hung"], Index: 4},
	}
	ended := func(reason string) string {
		return countBy(process, last(selector("mpit_rank_end_info", ofOneJob+`, reason=~"`+reason+`"`)))
	}
	up, useful := selector("mpit_rank_up", ofOneJob), selector(usefulShare, ofOneJob)
	long := bad(unexpectedMany)
	heat := heatOfRanks("Useful time, rank by rank", "Dark is useful time, light is time in MPI. Even columns are an "+
		"even job; a dark row among light ones is a rank that the others wait for. Each is of five minutes.",
		"percentunit", "Blues", "topk").
		query(maxBy("rank", fmt.Sprintf("%s and on (rank) topk(%d, avg_over_time(%[1]s[$__range:$__interval] @ end()))",
			useful, mostRanks)), "{{rank}}").between(0, 1).size(12, 12)
	heat.MaxDataPoints = 100 // the most expensive query: all ranks' values are read, twice
	return []*panel{
		heat,
		table("Ranks, from late to early", "Within the time range. The rank at the top waits least for others: where "+
			"others wait long, "+
			"they wait for it. A click on a rank leads to its functions, one on the node to the rank on its "+
			"exporter's live page.",
			column{label: "rank", link: link},
			column{rows: true, title: "State", words: answers, expr: "4 + 0 * " + ended("lost|abort") + "\nor 3 + 0 * " +
				ended("exit") + "\nor 2 + 0 * " + ended("finalize") + "\nor " + sumBy(process, up) + "\nor 0 * " +
				sumBy(process, last(selector(waitingShare, ofOneJob)))},
			column{title: "Waiting", expr: sumBy(process, mean(waitingShare)), unit: "percentunit", gauge: true,
				colour: palette["late"]},
			column{title: "Useful", expr: sumBy(process, mean(usefulShare)), unit: "percentunit", gauge: true},
			column{title: "Longest queue", expr: maxBy(process, "max_over_time("+selector("mpit_rank:unexpected_messages:max",
				ofOneJob)+inRange+")"),
				unit: "short", steps: &long},
			column{label: "instance", title: "node", link: &grafana.DataLink{Title: "Its live page",
				URL: "http://${__value.raw}/#jobid=${jobid:percentencode}&user=${user:percentencode}&world=" + inRow("world") +
					"&rank=" + inRow("rank")}},
			column{label: "world"}, column{label: "dup"},
		).without("cluster", "jobid", "user").sorted("Waiting", false).size(12, 12),
	}
}

func jobWhy() []*panel {
	job := func(rule string) string { return selector("mpit_job:"+rule, ofOneJob) }
	parallel := "avg(" + job("parallel_efficiency:ratio5m") + ")"
	most := "(max(" + selector(usefulShare, ofOneJob) + ") > 0.01)" // of nothing, no balance is known
	efficiencies := graph("Efficiencies", "Parallel efficiency is the mean rank's useful time, and the product of "+
		"communication efficiency (the "+
		"rank's that has most) and load balance. Reports divide that into nodes, too.", "percentunit").axis(0, 1).
		query(parallel, "parallel efficiency").query("max("+selector(usefulShare, ofOneJob)+")", "communication efficiency").
		query(parallel+" / "+most, "load balance")
	bytes := graph("Bytes sent by a rank", "By the call profile, or what the job's library counts.", "binBps").
		spread(selector("mpit_rank:sent_bytes:rate5m", ofOneJob))
	efficiencies.MaxDataPoints, bytes.MaxDataPoints = enoughPoints, enoughPoints
	silent := orZero("count(" + selector("mpit_rank:late", ofOneJob) + ")")
	return []*panel{
		efficiencies,
		graph("Ranks by state", "Running ranks answer; silent ones don't, and have not ended; ended ones are shown as "+
			"long as they "+
			"are on their exporter's page.", "short").stacked().
			query(silent, "silent").
			query("sum("+job("ranks:live")+") - ("+silent+")", "running").
			query(countBy("reason", selector("mpit_rank_end_info", ofOneJob)), "ended: {{reason}}").
			colored("", series{"running": palette["useful"], "silent": palette["late"]}).
			colored("ended: ", series{"finalize": palette["ended"], "exit": palette["hung"], "lost": palette["hung"],
				"abort": palette["hung"]}),
		graph("Messages sent by a rank", "Mean of the ranks: point-to-point sends and puts.", "mps").
			query("sum("+job("sent_messages:rate5m")+") / sum("+job("ranks:profiled")+")", "mean of the ranks"),
		bytes,
		graph("Size of a message", "Mean size of point-to-point sends and puts; *MPI calls of a job* has how many there "+
			"are of each size.", "bytes").
			query("avg("+job("sent_message_bytes:avg")+")", "mean size"),
		graph("Unexpected messages", "Messages that have come and nobody has received yet: who has many receives too late. "+
			withQueues, "short").
			query("max("+job("unexpected_messages:max")+")", "longest queue").
			query("max("+job("unexpected_messages:median")+")", "median rank").axis(0, 10).
			thresholds(bad(unexpectedMany)),
	}
}

// nodes is a variable for the hosts of the exporters that have ranks of the job, as node_exporter's targets have them.
func nodes() grafana.Variable {
	v := anyOf(labels("host", "Nodes", "Where the job's ranks are", selector("mpit_process_info", ofOneJob), "instance",
		grafana.SortNatural))
	v.Regex, v.AllValue, v.Hide = "(.+):[0-9]+", "", grafana.HiddenVariable
	return v
}

// jobNodes are what node_exporter says beside MPI, where it is scraped under the same host names.
func jobNodes() []*panel {
	of := func(family, more string) string {
		return selector(family, inClusters+`, instance=~"$host(:[0-9]+)?"`+more)
	}
	beside := func(title, description, unit, expr string) *panel {
		p := graph(title, description+" By node_exporter, if it is scraped under the same host names.", unit).size(8, 8).
			query("max("+expr+")", "highest node").query("avg("+expr+")", "mean of the nodes").
			query("min("+expr+")", "lowest node")
		p.MaxDataPoints = enoughPoints
		return p
	}
	return []*panel{
		beside("CPU", "Share of its cores that a node uses, with all that runs there: ranks that wait mostly use theirs, "+
			"too.", "percentunit", "1 - avg by (cluster, instance) (rate("+
			of("node_cpu_seconds_total", `, mode="idle"`)+atOnePoint+"))").axis(0, 1),
		beside("Run queue", "Threads that have a core or wait for one. More than a node has cores: ranks lose time, and "+
			"others wait for them.", "short", of("node_procs_running", "")),
		beside("Memory", "Share of its memory that a node has in use and couldn't give to programs.", "percentunit",
			"1 - "+of("node_memory_MemAvailable_bytes", "")+" / "+of("node_memory_MemTotal_bytes", "")).axis(0, 1),
	}
}

// programs is what is known of ranks: of a job that has ended within the time range, of rank 0.
func programs() string {
	return "(" + selector("mpit_process_info", ofOneJob) + " or " +
		last(selector("mpit_process_info", ofOneJob+`, rank="0"`)) + ")"
}

func jobItself() []*panel {
	ranks := selector("mpit_process_info", ofOneJob)
	const is = "world, user, jobname, partition, executable, library, library_version, world_size, thread_level, " +
		"jobid_source, jobid_check"
	return []*panel{
		table("Programs", "A row for each program of each MPI_COMM_WORLD. jobid_check says whether the kernel's control "+
			"group bears "+
			"the job's id out.",
			column{label: "executable"}, column{label: "jobname"}, column{label: "partition"},
			column{rows: true, title: "Program", expr: countBy(is, programs()), hidden: true},
			column{title: "Ranks", expr: countBy(is, ranks)}, column{label: "world_size"},
			column{title: "Nodes", expr: countBy("world, user", countBy("world, user, instance", ranks))},
			column{label: "library"}, column{label: "library_version"}, column{label: "thread_level"},
			column{title: "Started", expr: minBy("world, user", last(selector("mpit_rank_start_time_seconds",
				ofOneJob+`, rank="0"`))) + " * 1000", unit: "dateTimeAsIso"},
			column{title: "Ran for", expr: ranTime("world, user", ofOneJob), unit: "dtdurations"},
			column{label: "world"}, column{label: "jobid_source"}, column{label: "jobid_check"},
		).without("user").size(24, 5),
	}
}
