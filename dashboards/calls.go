package dashboards

import (
	"fmt"

	"github.com/mpit-exporter/mpit-exporter/dashboards/internal/grafana"
)

// The families of the call profile: see docs/calls.md.
const (
	callTime  = "mpit_call_time_seconds"
	callBytes = "mpit_call_bytes_total"
	callSizes = "mpit_call_size_bytes"

	peerBytes    = "mpit_call_peer_bytes_total"
	peerMessages = "mpit_call_peer_messages_total"
)

// From where on things are bad, as the alerts have it.
const (
	mostlyInMPI = 0.8 // of a rank's time
	muchWaited  = 0.3 // of the ranks' time
)

// Kinds of functions, as patterns of their names; of each kind what is non-blocking and persistent, too.
const (
	sendingCalls = "MPI_(([BRS]s|Is|I[brs]s|S)end|I?[Ss]endrecv(_replace)?|R?([Pp]ut|[Aa]ccumulate))"
	// synchronising are collectives that no rank leaves before all have come.
	synchronising   = "MPI_(Barrier|Allreduce|Allgatherv?|Alltoall[vw]?|Reduce_scatter(_block)?)"
	collectiveCalls = "(?i:MPI_I?(barrier|bcast|gatherv?|scatterv?|reduce(_scatter.*|_init)?|allreduce|allgatherv?|alltoall[vw]?|scan|exscan|neighbor_.+)(_init)?)"
	completions     = "MPI_(Wait|Test)(all|any|some)?|MPI_Request_get_status.*"
	pointToPoint    = "(?i:MPI_(I?[brs]?send.*|P(send|recv).+|I?m?recv.*|I?m?probe|isendrecv.*|start(all)?))"
	filesAndWindows = "MPI_(File|Win)_.+|(?i:MPI_R?(put|get|accumulate|get_accumulate))|MPI_(Fetch_and_op|Compare_and_swap)"
	communicators   = "MPI_(Comm|Cart|Graph|Dist_graph|Intercomm)_.+"
)

// named communicators are those of which one series is one communicator, or parts of a split that have one name.
const namedComms = `comm!~"|unnamed|other|MPI_COMM_SELF"`

func ofFunctions(pattern string) string { return ofComms + `, function=~"` + pattern + `"` }

// callProfile is the dashboard of what the call profile tells of one job.
func callProfile() grafana.Dashboard {
	function := anyOf(labels("function", "Function", "MPI functions of the job, for the row that has their names",
		named(callTime+"(_count)?", ofOneJob), "function", grafana.SortAlphabetical))
	comms := anyOf(labels("comm", "Communicator", "By name. All takes in calls that have none: those on windows and "+
		"files, and those that complete requests",
		named(callTime+"(_count)?", ofOneJob+`, comm!=""`), "comm", grafana.SortNatural))
	return board{
		uid: uidCalls, title: "MPI calls of a job", from: "now-1h",
		description: "The call profile of one job (exec --calls): where its time goes inside MPI, how long calls " +
			"take, how large messages are, who waits and who is late.",
		variables: []grafana.Variable{datasource(), scrapeJob(), jobID(), user(), world(), rank(), comms, function},
		rows: []row{
			{title: "Job $jobid", panels: callsThemselves()},
			{title: "Where the time goes", panels: callTimes()},
			{title: "Who waits, and who is late", panels: callWaits()},
			{title: "Collectives", panels: callCollectives()},
			{title: "Messages", panels: callMessages()},
			{title: "Who sends to whom (exec --calls=peers)", collapsed: true, panels: callPeers()},
			{title: "How long calls take: $function", panels: callDurations()},
		},
	}.grafana()
}

// ofEachRank divides a sum over ranks by how many there are that have a call profile.
func ofEachRank(sum string) string {
	return sum + " / scalar(count(" + countBy(process, here(selector(callTime+"_count", ofRanks))) + "))"
}

// insideMPI is each rank's share of time inside MPI, of the thread that initialised MPI. Both counters are read at one
// instant, and a call that has not returned counts.
func insideMPI(over func(selector string) string) string {
	of := func(family string) string { return sumBy(process, over(selector(family, ofRanks))) }
	return of("mpit_call_inside_seconds_total") + " / (" + of("mpit_call_observed_seconds_total") + " > 0)"
}

// share is the share of a rank's time that goes into calls, by labels, in the mean of the ranks.
func share(by, matchers string) string {
	return ofEachRank(sumBy(by, rateOf(selector(callTime+"_sum", matchers))))
}

// whole are the communicators, by name, that are one of that name: nobody has the same number in it as another rank.
func whole(over func(selector string) string) string {
	comms := `label_replace(` + over(selector("mpit_object_info",
		ofOneJob+`, kind="comm", inter=""`)) + `, "comm", "$1", "name", "(.*)")`
	return "(" + maxBy("jobid, world, comm", countBy("jobid, world, comm, object_rank",
		countBy(process+", comm, object_rank", comms))) + " == 1)"
}

// waited is how long each rank waited in each communicator for the last one to come, at least: what it took longer
// than the rank that took least. That one is looked for among all ranks, whichever are chosen. by must have the
// labels of process, and comm.
func waited(by string, inner, objects func(selector string) string) string {
	of := func(matchers string) string {
		return sumBy(process+", comm, function", inner(selector(callTime+"_sum",
			matchers+", "+namedComms+`, comm=~"$comm", function=~"`+synchronising+`"`)))
	}
	return sumBy(by, of(ofRanks)+" - on (jobid, world, comm, function) group_left () "+minBy("jobid, world, comm, function", of(ofOneJob))) +
		" and on (jobid, world, comm) " + whole(objects)
}

const waitedMeans = "At least: in collectives that no rank leaves before all have come (barrier, allreduce, " +
	"allgather, alltoall, reduce-scatter), on named communicators, it is what ranks take longer than the one that " +
	"takes least, which is the one that comes last. docs/calls.md says what is left out."

func callsThemselves() []*panel {
	plain := steps(step{color: "text"})
	count := last(selector(callTime+"_count", ofRanks))
	ran := "(" + ranTime("jobid", ofOneJob) + ")"
	ranks := countBy("jobid", countBy(process, count))
	return []*panel{
		stat("Time in MPI", "Share of its ranks' time that the job has spent inside MPI calls so far, of the threads "+
			"that initialised MPI: the rest is useful time.",
			"percentunit", bad(mostlyInMPI)).instant("avg("+insideMPI(last)+")", "in MPI"),
		stat("Waited for late ranks", "Share of its ranks' time that the job has lost in this way so far. "+waitedMeans, "percentunit", bad(muchWaited)).
			instant(sumBy("jobid", waited(process+", comm", last, last))+" / "+ranks+" / "+ran, "waited"),
		stat("Ranks measured", "How many ranks of the job have a call profile, of how many there are: efficiencies are of "+
			"these.", "short", plain).named().
			instant(countBy("world_size", last(selector("mpit_process_info", ofRanks))+" and on ("+process+") "+
				last(selector("mpit_call_observed_seconds_total", ofRanks))), "of {{world_size}}"),
		stat("Bytes sent", "What stood in the send buffers of all calls of all ranks so far.", "bytes", plain).
			instant("sum("+last(selector(callBytes, ofRanks+`, direction="sent"`))+")", "bytes"),
		stat("Mean message", "Bytes of a point-to-point send or a put, over all so far.", "bytes", plain).
			instant("sum("+last(selector(callBytes, ofFunctions(sendingCalls)+`, direction="sent"`))+") / sum("+last(selector(callTime+"_count", ofFunctions(sendingCalls)))+")", "bytes"),
		stat("Not counted", "Calls for which the agent had no memory; what is shown lacks them.", "short", bad(1)).
			instant("sum("+last(selector("mpit_call_uncounted_total", ofRanks))+")", "calls"),
	}
}

func callTimes() []*panel {
	perRank := insideMPI(rateOf)
	kinds := graph("By kind of call", "Share of the mean rank's time. What requests stand for is not known when "+
		"they complete.", "percentunit").stacked()
	for _, kind := range []struct{ name, functions string }{
		{"collectives", collectiveCalls}, {"completing requests", completions}, {"point-to-point", pointToPoint},
		{"windows and files", filesAndWindows}, {"making communicators", communicators},
	} {
		kinds.query(ofEachRank("sum("+rateOf(selector(callTime+"_sum", ofFunctions(kind.functions)))+")"), kind.name)
	}
	sums, counts := last(selector(callTime+"_sum", ofComms)), last(selector(callTime+"_count", ofComms))
	const row = "function, comm, win, file"
	return []*panel{
		graph("Time inside MPI", "Share of a rank's time inside MPI calls: the highest rank, the mean and the "+
			"lowest. A call counts while it lasts. Of the thread that initialised MPI.", "percentunit").
			spread(perRank).thresholds(bad(mostlyInMPI)).axis(0, 1),
		heat("Time inside MPI, rank by rank", "A row for each rank: even rows are an even job, a light one is a "+
			"rank that the others wait for.", "percentunit", "rank").
			query(maxBy("rank", perRank), "{{rank}}").size(12, 8),
		kinds,
		graph("By function", "Share of the mean rank's time: the ten functions that take most.",
			"percentunit").stacked().
			query("topk(10, "+share("function", ofComms)+")", "{{function}}"),
		graph("By communicator", "Share of the mean rank's time: the ten communicators that take most, by name.",
			"percentunit").stacked().
			query("topk(10, "+share("comm", ofComms+`, comm!=""`)+")", "{{comm}}"),
		graph("By window and file", "Share of the mean rank's time, where functions work on one.",
			"percentunit").stacked().
			query("topk(5, "+share("win", ofRanks+`, win!=""`)+")", "window {{win}}").
			query("topk(5, "+share("file", ofRanks+`, file!=""`)+")", "file {{file}}"),
		table("Functions and communicators", "Since the job began, all ranks together. Bytes are those of the send "+
			"and the receive buffers; those of a non-blocking receive are the room for it.",
			column{label: "function"}, column{label: "comm"}, column{label: "win"}, column{label: "file"},
			column{title: "Time", expr: sumBy(row, sums), unit: "s", gauge: true},
			column{title: "Longest rank", expr: maxBy(row, sumBy(process+", "+row, sums)), unit: "s"},
			column{title: "Shortest rank", expr: minBy(row, sumBy(process+", "+row, sums)), unit: "s"},
			column{title: "Calls", expr: sumBy(row, counts), unit: "short"},
			column{title: "Mean call", expr: sumBy(row, sums) + " / " + sumBy(row, counts), unit: "s"},
			column{title: "Bytes", expr: sumBy(row, last(selector(callBytes, ofComms))), unit: "bytes"},
		).sorted("Time", true).size(24, 10),
	}
}

func callWaits() []*panel {
	useful := "(1 - " + insideMPI(rateOf) + ")"
	ofNode := "max(avg by (instance) (" + useful + "))"
	synchronised := ofRanks + ", " + namedComms + `, comm=~"$comm", function=~"` + synchronising + `"`
	link := grafana.DataLink{Title: "This rank", URL: ofRank(inRow("world"), cell)}
	const row = "world, comm, function"
	bySums := sumBy(process+", comm, function", last(selector(callTime+"_sum", synchronised)))
	return []*panel{
		graph("Waiting for late ranks", "Share of time that a rank waits: the two that wait most, and the mean of "+
			"all. "+waitedMeans, "percentunit").
			query("topk(2, "+sumBy("world, rank", waited(process+", comm", rateOf, here))+")", "rank {{rank}}").
			query(ofEachRank("sum("+waited(process+", comm", rateOf, here)+")"),
				"mean of all").thresholds(bad(muchWaited)).
			links("This rank", ofRank(ofSeries("world"), ofSeries("rank"))),
		graph("Who is late", "Share of time inside the collectives in which ranks wait for each other: the rank "+
			"that has least, and the mean of all. Where one rank has far less it comes last, and the others wait "+
			"for it.", "percentunit").
			query("bottomk(1, "+sumBy("world, rank", rateOf(selector(callTime+"_sum", synchronised)))+")",
				"rank {{rank}}").
			query("avg("+sumBy(process, rateOf(selector(callTime+"_sum", synchronised)))+")", "mean of all").
			links("This rank", ofRank(ofSeries("world"), ofSeries("rank"))),
		graph("Efficiency", "Useful time is time outside MPI. Parallel efficiency is the mean rank's, and the product of "+
			"communication efficiency (the rank's that has most) and load balance, which is the product of that "+
			"between nodes and that within nodes.", "percentunit").
			query("avg("+useful+")", "parallel efficiency").
			query("max("+useful+")", "communication efficiency").
			query("avg("+useful+") / "+ofNode, "load balance between nodes").
			query(ofNode+" / max("+useful+")", "load balance within nodes").axis(0, 1),
		graph("Waiting by communicator", "Share of the mean rank's time: the ten communicators in which ranks wait "+
			"most for late ones. "+waitedMeans, "percentunit").stacked().
			query("topk(10, "+ofEachRank(sumBy("comm", waited(process+", comm", rateOf, here)))+")", "{{comm}}"),
		table("Rank by rank", "Since the job began. The rank at the top waits least: where others wait long, they "+
			"wait for it. Completing requests is where ranks wait for late senders. "+
			waitedMeans,
			column{label: "world"}, column{label: "rank", link: &link}, column{label: "host"},
			column{rows: true, title: "Process", hidden: true,
				expr: countBy(process+", host", last(selector("mpit_process_info", ofRanks)))},
			column{title: "Waited at least", expr: sumBy(process, waited(process+", comm", last, last)), unit: "s",
				gauge: true},
			column{title: "In MPI", expr: sumBy(process, last(selector(callTime+"_sum", ofRanks))), unit: "s",
				gauge: true},
			column{title: "In collectives", expr: sumBy(process,
				last(selector(callTime+"_sum", ofRanks+`, function=~"`+collectiveCalls+`"`))), unit: "s"},
			column{title: "Completing requests", expr: sumBy(process,
				last(selector(callTime+"_sum", ofRanks+`, function=~"`+completions+`"`))), unit: "s"},
			column{title: "Calls", expr: sumBy(process, last(selector(callTime+"_count", ofRanks))), unit: "short"},
			column{title: "Bytes sent", expr: sumBy(process,
				last(selector(callBytes, ofRanks+`, direction="sent"`))), unit: "bytes"},
		).without("jobid", "user", "instance", "dup").sorted("Waited at least", false).size(24, 9),
		table("Who is late, by communicator", "Collectives that no rank leaves before all have come, since the job "+
			"began. rank is the one that has spent least time in them: the late one, if others have spent much "+
			"more. Parts of a split that have one name are told apart nowhere: ranks of one part may stand for "+
			"another there.",
			column{label: "world"}, column{label: "comm"}, column{label: "function"},
			column{label: "rank", link: &link},
			column{rows: true, title: "Least", expr: "bottomk by (" + row + ") (1, " + sumBy(row+", rank",
				last(selector(callTime+"_sum", synchronised))) + ")", unit: "s"},
			column{title: "Mean", expr: "avg by (" + row + ") (" + bySums + ")", unit: "s"},
			column{title: "Most", expr: maxBy(row, bySums), unit: "s", gauge: true},
			column{title: "Calls of a rank", expr: maxBy(row,
				sumBy(process+", comm, function", last(selector(callTime+"_count", synchronised)))), unit: "short"},
		).sorted("Most", true).size(24, 8),
	}
}

// quantiles are durations, or sizes, that so many percent of the calls stay below, by labels: the ten most.
func (p *panel) quantiles(family, by, matchers, legend string, percent ...int) *panel {
	for _, q := range percent {
		p.query("topk(10, "+quantileOf(float64(q)/100, by, selector(family+"_bucket", matchers))+")",
			fmt.Sprintf("p%d %s", q, legend))
	}
	return p
}

const measureSizes = "Needs `exec --calls=sizes`."

const coarse = "Between the bounds of the buckets, a factor of 4 apart as they are shipped, it is a guess."

func callCollectives() []*panel {
	allreduce := ofComms + `, function="MPI_Allreduce"`
	return []*panel{
		graph("Time in collectives, by communicator", "Share of the mean rank's time in collectives of all kinds: "+
			"the ten communicators that take most.", "percentunit").stacked().
			query("topk(10, "+share("comm", ofFunctions(collectiveCalls))+")", "{{comm}}"),
		graph("Collectives", "Calls of a rank, in the mean, by function and communicator: the ten most frequent.",
			"cps").
			query("topk(10, "+ofEachRank(sumBy("function, comm",
				rateOf(selector(callTime+"_count", ofFunctions(collectiveCalls)))))+")", "{{function}} {{comm}}"),
		graph("MPI_Allreduce by communicator", "How long an allreduce takes, waiting for late ranks included: the "+
			"median, and what 90 and 99 of 100 stay below, on the ten communicators where it is longest. "+coarse,
			"s").logarithmic().
			quantiles(callTime, "comm", allreduce, "{{comm}}", 50, 90, 99),
		graph("MPI_Allreduce without waiting", "The mean duration in the rank in which it is shortest: of the rank "+
			"that comes last, so how long the operation itself takes.", "s").logarithmic().
			query(minBy("comm", sumBy(process+", comm", rateOf(selector(callTime+"_sum", allreduce)))+" / ("+
				sumBy(process+", comm", rateOf(selector(callTime+"_count", allreduce)))+" > 0)"), "{{comm}}"),
		heat("Durations of MPI_Allreduce", "Calls of each duration, of all ranks and chosen communicators.", "short",
			"duration").duration().size(24, 9).
			target(bucketsOf(selector(callTime+"_bucket", allreduce)), "heatmap", "{{le}}", false),
	}
}

func callMessages() []*panel {
	sizes := sumBy("function, direction", rateOf(selector(callBytes, ofComms)))
	return []*panel{
		graph("Bytes of a call", "By function and direction, in the mean of all ranks: the ten largest. posted is "+
			"the room that a non-blocking receive has, not what came.", "bytes").logarithmic().
			query("topk(10, "+sizes+" / on (function) group_left () ("+sumBy("function",
				rateOf(selector(callTime+"_count", ofComms)))+" > 0))", "{{function}} {{direction}}"),
		graph("Bytes of a message", "Of point-to-point sends and puts, in the mean of all: on each communicator and "+
			"window the mean. Below 64 bytes a message is mostly its envelope.", "bytes").logarithmic().
			query("topk(10, "+sumBy("comm, win", rateOf(selector(callBytes,
				ofFunctions(sendingCalls)+`, direction="sent"`)))+" / ("+
				sumBy("comm, win", rateOf(selector(callTime+"_count", ofFunctions(sendingCalls))))+" > 0))",
				"{{comm}}{{win}}"),
		heat("Sizes of messages", "Point-to-point sends and puts of each size, of all ranks and chosen communicators. "+
			measureSizes, "short", "size").bytes().
			target(bucketsOf(selector(callSizes+"_bucket", ofFunctions(sendingCalls))), "heatmap", "{{le}}", false),
		graph("Sizes of calls", "What 90 of 100 calls are no larger than, by function and what they work on: the ten "+
			"largest. "+coarse+" "+measureSizes, "bytes").logarithmic().
			quantiles(callSizes, "function, comm, win, file", ofComms, "{{function}} {{comm}}{{win}}{{file}}", 90).
			size(12, 9),
		graph("Bytes by direction", "What stood in the buffers of calls, all ranks together.", "binBps").
			query(sumBy("direction", rateOf(selector(callBytes, ofComms))), "{{direction}}"),
		graph("Bytes sent by communicator", "Of all ranks: the ten communicators and windows with most.", "binBps").
			query("topk(10, "+sumBy("comm, win", rateOf(selector(callBytes, ofComms+`, direction="sent"`)))+")",
				"{{comm}}{{win}}"),
		graph("Messages sent by a rank", "Point-to-point sends and puts: the busiest rank, the mean and the idlest "+
			"one.", "mps").
			spread(sumBy(process, rateOf(selector(callTime+"_count", ofFunctions(sendingCalls))))),
		graph("Calls by function", "Of all ranks: the ten most frequent functions.", "cps").
			query("topk(10, "+sumBy("function", rateOf(selector(callTime+"_count", ofComms)))+")", "{{function}}"),
	}
}

// callPeers is what exec --calls=peers counts.
func callPeers() []*panel {
	const row = "world, rank, peer"
	link := grafana.DataLink{Title: "This rank", URL: ofRank(inRow("world"), cell)}
	bytes, messages := last(selector(peerBytes, ofRanks)), last(selector(peerMessages, ofRanks))
	const peers = "A peer is a rank of MPI_COMM_WORLD, whatever communicator or window was used; other is all that have " +
		"no series of their own. Collectives have no peer."
	return []*panel{
		matrix("Bytes from rank to rank", "Since the job began: a row for each sender, a column for each peer. Of more than "+
			"two thousand pairs those with most; choose ranks above to see others. "+peers, "bytes",
			"topk(2000, "+sumBy("rank, peer", bytes)+")", "rank", "peer").size(24, 14),
		table("Busiest pairs", "Since the job began: the hundred with most bytes. "+peers,
			column{label: "world"}, column{label: "rank", link: &link}, column{label: "peer"},
			column{rows: true, title: "Bytes", expr: "topk(100, " + sumBy(row, bytes) + ")", unit: "bytes", gauge: true},
			column{title: "Messages", expr: sumBy(row, messages), unit: "short"},
			column{title: "Mean message", expr: sumBy(row, bytes) + " / (" + sumBy(row, messages) + " > 0)", unit: "bytes"},
		).sorted("Bytes", true).size(24, 9),
		graph("Bytes sent, by rank and peer", "The ten busiest pairs.", "binBps").
			query("topk(10, "+sumBy("rank, peer", rateOf(selector(peerBytes, ofRanks)))+")", "{{rank}} to {{peer}}").size(24, 8),
	}
}

func callDurations() []*panel {
	chosen := ofComms + `, function=~"$function"`
	by := "function, comm, win, file"
	const legend = "{{function}} {{comm}}{{win}}{{file}}"
	return []*panel{
		graph("Median", "Of the chosen functions, by what they work on: the ten longest. "+coarse,
			"s").logarithmic().quantiles(callTime, by, chosen, legend, 50),
		graph("99th percentile", "Of the chosen functions, by what they work on: the ten longest. "+coarse,
			"s").logarithmic().quantiles(callTime, by, chosen, legend, 99),
		graph("Mean", "Of the chosen functions, by what they work on: the ten longest.", "s").logarithmic().
			query("topk(10, "+sumBy(by, rateOf(selector(callTime+"_sum", chosen)))+" / ("+sumBy(by,
				rateOf(selector(callTime+"_count", chosen)))+" > 0))", legend),
		graph("Share of time", "Of the mean rank's time, in the chosen functions: the ten that take most.",
			"percentunit").stacked().
			query("topk(10, "+share(by, chosen)+")", legend),
		heat("Durations", "Calls of each duration, of all ranks and chosen functions.", "short",
			"duration").duration().size(24, 9).
			target(bucketsOf(selector(callTime+"_bucket", chosen)), "heatmap", "{{le}}", false),
	}
}
