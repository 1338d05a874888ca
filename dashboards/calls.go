package dashboards

import (
	"strings"

	"github.com/mpit-exporter/mpit-exporter/dashboards/internal/grafana"
	"github.com/mpit-exporter/mpit-exporter/exporter/api"
)

// The families of the call profile: see docs/calls.md.
const (
	callTime  = "mpit_call_time_seconds"
	callBytes = "mpit_call_bytes_total"
	callSizes = "mpit_call_size_bytes"

	peerBytes    = "mpit_call_peer_bytes_total"
	peerMessages = "mpit_call_peer_messages_total"
)

// Kinds of functions, as patterns of their names; of each kind what is non-blocking and persistent, too.
const (
	sendingCalls    = "MPI_(([BRS]s|Is|I[brs]s|S)end|I?[Ss]endrecv(_replace)?|R?([Pp]ut|[Aa]ccumulate))"
	collectiveCalls = "(?i:MPI_I?(barrier|bcast|gatherv?|scatterv?|reduce(_scatter.*|_init)?|allreduce|allgatherv?|alltoall[vw]?|scan|exscan|neighbor_.+)(_init)?)"
	completions     = "MPI_(Wait|Test)(all|any|some)?|MPI_Request_get_status.*"
	pointToPoint    = "(?i:MPI_(I?[brs]?send.*|P(send|recv).+|I?m?recv.*|I?m?probe|isendrecv.*|start(all)?))"
	filesAndWindows = "MPI_(File|Win)_.+|(?i:MPI_R?(put|get|accumulate|get_accumulate))|MPI_(Fetch_and_op|Compare_and_swap)"
	communicators   = "MPI_(Comm|Cart|Graph|Dist_graph|Intercomm)_.+"
)

// named communicators are those of which one series is one communicator, or parts of a split that have one name.
const namedComms = `comm!~"|unnamed|other|MPI_COMM_SELF"`

// lately reads a counter over a window.
func lately(over string) func(selector string) string {
	return func(selector string) string { return rateOf(selector, over) }
}

// synchronising are collectives that no rank leaves before all have come.
func synchronising() string { return strings.Join(api.Holding(), "|") }

func ofFunctions(pattern string) string { return ofComms + `, function=~"` + pattern + `"` }

// What a call works on, and how a legend names it.
const (
	call     = "function, comm, win, file"
	callName = "{{function}} {{comm}}{{win}}{{file}}"
)

// callProfile is the dashboard of what the call profile tells of one job beyond the dashboard of the job.
func callProfile() grafana.Dashboard {
	comms := anyOf(labels("comm", "Communicator", "By name. All takes in calls that have none: those on windows and "+
		"files, and "+
		"those that complete requests", named(callTime+"(_count)?", ofOneJob+`, comm!=""`), "comm", grafana.SortNatural))
	function := anyOf(labels("function", "Function", "MPI functions, for the row that has their names",
		named(callTime+"(_count)?", ofOneJob), "function", grafana.SortAlphabetical))
	return board{
		uid: uidCalls, title: "MPI calls of a job", from: "now-1h",
		description: "The call profile of one job (exec --calls) in detail: which functions on what, how long calls " +
			"take, how " +
			"large messages are, who waits in which communicator, who sends to whom.",
		variables: ofJob(rank(), comms, function),
		rows: []row{
			{title: "Where does the time of job $jobid go?", panels: callTimes()},
			{title: "Who waits, and who is late?", panels: callWaits()},
			{title: "How long do calls take? $function", panels: callDurations()},
			{title: "What is sent?", panels: callMessages()},
			{title: "Who sends to whom? (exec --calls=peers)", collapsed: true, panels: callPeers()},
		},
	}.grafana()
}

// ofEachRank divides a sum over ranks by how many there are that have a call profile.
func ofEachRank(sum, over string) string {
	return sum + " / scalar(count(" + countBy(process, rateOf(selector(spent, ofRanks), over)) + "))"
}

// shares shows what takes most of the mean rank's time, by labels: the ten that take most over the time range.
func (p *panel) shares(by, matchers, legend string) *panel {
	return p.query(top(10, by, func(over string) string {
		return ofEachRank(sumBy(by, rateOf(selector(callTime+"_sum", matchers), over)), over)
	}), legend)
}

// whole are the communicators, by name, that are one of that name: nobody has the same number in it as another rank.
func whole(over func(selector string) string) string {
	comms := `label_replace(` + over(selector("mpit_object_info",
		ofOneJob+`, kind="comm", inter=""`)) + `, "comm", "$1", "name", "(.*)")`
	return "(" + maxBy("cluster, jobid, world, comm", countBy("cluster, jobid, world, comm, object_rank",
		countBy(process+", comm, object_rank", comms))) + " == 1)"
}

// waited is how long each rank waited in each communicator for the last one to come, at least: what it took longer
// than the rank that took least. That one is looked for among all ranks, whichever are chosen. by must have the
// labels of process, and comm.
func waited(by string, inner, objects func(selector string) string) string {
	of := func(matchers string) string {
		return sumBy(process+", comm, function", inner(selector(callTime+"_sum",
			matchers+", "+namedComms+`, comm=~"$comm", function=~"`+synchronising()+`"`)))
	}
	return sumBy(by,
		of(ofRanks)+" - on (cluster, jobid, world, comm, function) group_left () "+minBy("cluster, jobid, world, comm, "+
			"function", of(ofOneJob))) +
		" and on (cluster, jobid, world, comm) " + whole(objects)
}

const waitedMeans = "At least: in collectives that no rank leaves before all have come (barrier, allreduce, " +
	"allgather, alltoall, reduce-scatter), on named communicators, it is what ranks take longer than the one that " +
	"takes least, which is the one that comes last. docs/calls.md says what is left out."

func callTimes() []*panel {
	sums, counts := last(selector(callTime+"_sum", ofComms)), last(selector(callTime+"_count", ofComms))
	return []*panel{
		many("By function", "Share of the mean rank's time: the ten functions that take most.", "percentunit").stacked().
			shares("function", ofComms, "{{function}}"),
		many("By communicator, window and file", "Share of the mean rank's time: the ten that take most, by name. Calls "+
			"that complete "+
			"requests have none.", "percentunit").stacked().
			shares("comm, win, file", ofComms+`, function!~"`+completions+`"`, "{{comm}}{{win}}{{file}}"),
		table("Functions and communicators", "Since the job began, all ranks together: the hundred with most time. "+
			"Bytes are those of "+
			"the send and the receive buffers; those of a non-blocking receive are the room for it.",
			column{label: "function"}, column{label: "comm"}, column{label: "win"}, column{label: "file"},
			column{rows: true, title: "Time", expr: "topk(100, " + sumBy(call, sums) + ")", unit: "s", gauge: true},
			column{title: "Longest rank", expr: maxBy(call, sumBy(process+", "+call, sums)), unit: "s"},
			column{title: "Shortest rank", expr: minBy(call, sumBy(process+", "+call, sums)), unit: "s"},
			column{title: "Calls", expr: sumBy(call, counts), unit: "short"},
			column{title: "Mean call", expr: sumBy(call, sums) + " / (" + sumBy(call, counts) + " > 0)", unit: "s"},
			column{title: "Bytes", expr: sumBy(call, last(selector(callBytes, ofComms))), unit: "bytes"},
		).sorted("Time", true).size(24, 10),
		stat("Ranks measured", "How many ranks of the job have a call profile, of how many there are: all figures are "+
			"of these.",
			"short", neutral).named(withValue).size(12, 3).
			instant(countBy("world_size", last(selector("mpit_process_info", ofRanks))+" and on ("+process+") "+
				last(selector(spent, ofRanks))), "of {{world_size}}"),
		stat("Not counted", "Calls for which the agent had no memory; what is shown lacks them.", "short", bad(1)).size(12,
			3).
			instant("sum("+last(selector("mpit_call_uncounted_total", ofRanks))+")", "calls"),
	}
}

func callWaits() []*panel {
	synchronised := ofRanks + ", " + namedComms + `, comm=~"$comm", function=~"` + synchronising() + `"`
	link := &grafana.DataLink{Title: "This rank", URL: ofTheJob(uidCalls, "world", inRow("world"), "rank", cell)}
	const row = "world, comm, function"
	bySums := sumBy(process+", comm, function", last(selector(callTime+"_sum", synchronised)))
	in := func(functions string) string {
		return sumBy(process, last(selector(callTime+"_sum", ofRanks+`, function=~"`+functions+`"`)))
	}
	return []*panel{
		heatOfRanks("Waiting for late ranks, rank by rank", "Share of time: the light row among dark ones is the rank "+
			"that the others "+
			"wait for. "+waitedMeans, "percentunit", "Oranges", "bottomk", func(over string) string {
			return sumBy("rank", waited(process+", comm", lately(over), here))
		}).between(0, 1),
		many("Waiting by communicator", "Share of the mean rank's time: the ten communicators in which ranks wait most "+
			"for late "+
			"ones. "+waitedMeans, "percentunit").stacked().thresholds(bad(muchWaited)).
			query(top(10, "comm", func(over string) string {
				return ofEachRank(sumBy("comm", waited(process+", comm", lately(over), here)), over)
			}), "{{comm}}"),
		table("Rank by rank", "Since the job began. The rank at the top waits least: where others wait long, they wait "+
			"for it. "+
			"Completing requests is where ranks wait for late senders. "+waitedMeans,
			column{label: "rank", link: link}, column{label: "host"},
			column{rows: true, title: "Process", hidden: true, expr: countBy(process+", host",
				last(selector("mpit_process_info", ofRanks)))},
			column{title: "Waited at least", expr: sumBy(process, waited(process+", comm", last, last)), unit: "s", gauge: true},
			column{title: "In MPI", expr: sumBy(process, last(selector(callTime+"_sum", ofRanks))), unit: "s", gauge: true},
			column{title: "In collectives", expr: in(collectiveCalls), unit: "s"},
			column{title: "Completing requests", expr: in(completions), unit: "s"},
			column{title: "Calls", expr: sumBy(process, last(selector(callTime+"_count", ofRanks))), unit: "short"},
			column{title: "Bytes sent", expr: sumBy(process, last(selector(callBytes, ofRanks+`, direction="sent"`))),
				unit: "bytes"},
			column{label: "world"},
		).without("cluster", "jobid", "user", "instance", "dup").sorted("Waited at least", false).size(24, 9),
		table("Who is late, by communicator", "Collectives that no rank leaves before all have come, since the job "+
			"began. rank is the "+
			"one that has spent least time in them: the late one, if others have spent much more. Parts of a split that "+
			"have one name are told apart nowhere: ranks of one part may stand for another there.",
			column{label: "comm"}, column{label: "function"}, column{label: "rank", link: link},
			column{rows: true, title: "Least", expr: "bottomk by (" + row + ") (1, " + sumBy(row+", rank",
				last(selector(callTime+"_sum", synchronised))) + ")", unit: "s"},
			column{title: "Mean", expr: "avg by (" + row + ") (" + bySums + ")", unit: "s"},
			column{title: "Most", expr: maxBy(row, bySums), unit: "s", gauge: true},
			column{title: "Calls of a rank", expr: maxBy(row,
				sumBy(process+", comm, function", last(selector(callTime+"_count", synchronised)))), unit: "short"},
			column{label: "world"},
		).sorted("Most", true).size(24, 7),
	}
}

// longest shows what is longest or largest over the whole time range, by labels: the ten.
func (p *panel) longest(by, legend string, expr func(over string) string) *panel {
	return p.query(top(10, by, expr), legend)
}

const measureSizes = "Needs `exec --calls=sizes`."

const coarse = "Between the bounds of the buckets, a factor of 4 apart as they are shipped, it is a guess."

func callDurations() []*panel {
	chosen := ofComms + `, function=~"$function"`
	quantile := func(q float64) func(over string) string {
		return func(over string) string {
			// Where there were no calls, it is NaN.
			return "(" + quantileOf(q, call, selector(callTime+"_bucket", chosen), over) + ") > 0"
		}
	}
	mean := func(over string) string {
		of := func(part string) string {
			return sumBy(process+", "+call, rateOf(selector(callTime+part, chosen), over))
		}
		return minBy(call, of("_sum")+" / ("+of("_count")+" > 0)")
	}
	return []*panel{
		many("Median", "What half of the calls stay below, by function and what it works on: the ten longest. "+coarse, "s").
			logarithmic().longest(call, callName, quantile(0.5)),
		many("99th percentile", "What 99 of 100 calls stay below: the ten longest. "+coarse, "s").logarithmic().
			longest(call, callName, quantile(0.99)),
		many("Mean, in the rank where it is shortest", "Of a collective, that of the rank that comes last: how long the "+
			"operation "+
			"itself takes, without waiting. The ten longest.", "s").logarithmic().longest(call, callName, mean),
		heatOfBuckets("Durations", "Calls of each duration, of all ranks and chosen functions and communicators.", "s",
			selector(callTime+"_bucket", chosen)),
	}
}

func callMessages() []*panel {
	const on = "comm, win"
	sends := ofFunctions(sendingCalls)
	return []*panel{
		many("Bytes of a message", "Of point-to-point sends and puts: the mean of all of them, on each communicator and "+
			"window. "+
			"Below 64 bytes a message is mostly its envelope.", "bytes").logarithmic().
			longest(on, "{{comm}}{{win}}", func(over string) string {
				return sumBy(on, rateOf(selector(callBytes, sends+`, direction="sent"`), over)) + " / (" +
					sumBy(on, rateOf(selector(callTime+"_count", sends), over)) + " > 0)"
			}),
		heatOfBuckets("Sizes of messages", "Point-to-point sends and puts of each size, of all ranks and chosen "+
			"communicators. "+
			measureSizes, "bytes", selector(callSizes+"_bucket", sends)),
		many("Bytes sent", "Of all ranks: the ten communicators, windows and files with most.", "binBps").
			longest("comm, win, file", "{{comm}}{{win}}{{file}}", func(over string) string {
				return sumBy("comm, win, file", rateOf(selector(callBytes, ofComms+`, direction="sent"`), over))
			}),
		many("Calls", "Of all ranks: the ten most frequent functions.", "cps").
			longest("function", "{{function}}", func(over string) string {
				return sumBy("function", rateOf(selector(callTime+"_count", ofComms), over))
			}),
		table("Sizes of calls", "What 90 of 100 calls are no larger than, over the time range, by function and what "+
			"they work on. "+coarse+" "+measureSizes,
			column{label: "function"}, column{label: "comm"}, column{label: "win"}, column{label: "file"},
			column{title: "90 of 100 calls", unit: "bytes", gauge: true,
				expr: "topk(50, " + quantileOf(0.9, call, selector(callSizes+"_bucket", ofComms), inRange) + ")"},
		).sorted("90 of 100 calls", true).size(24, 7),
	}
}

// callPeers is what exec --calls=peers counts.
func callPeers() []*panel {
	const row = "world, rank, peer"
	link := &grafana.DataLink{Title: "This rank", URL: ofTheJob(uidCalls, "world", inRow("world"), "rank", cell)}
	bytes, messages := last(selector(peerBytes, ofRanks)), last(selector(peerMessages, ofRanks))
	const peers = "A peer is a rank of MPI_COMM_WORLD, whatever communicator or window was used; other is all that have " +
		"no series of their own. Collectives have no peer."
	return []*panel{
		matrix("Bytes from rank to rank", "Since the job began: a row for each sender, a column for each peer. Of more than "+
			"two thousand pairs those with most; choose ranks above to see others. "+peers, "bytes",
			"topk(2000, "+sumBy("rank, peer", bytes)+")", "rank", "peer").size(24, 14),
		table("Busiest pairs", "Since the job began: the hundred with most bytes. "+peers,
			column{label: "world"}, column{label: "rank", link: link}, column{label: "peer"},
			column{rows: true, title: "Bytes", expr: "topk(100, " + sumBy(row, bytes) + ")", unit: "bytes", gauge: true},
			column{title: "Messages", expr: sumBy(row, messages), unit: "short"},
			column{title: "Mean message", expr: sumBy(row, bytes) + " / (" + sumBy(row, messages) + " > 0)", unit: "bytes"},
		).sorted("Bytes", true).size(24, 9),
	}
}
