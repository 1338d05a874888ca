package dashboards

// The rows that only some libraries fill. They are collapsed: they ask nothing until they are opened.

// rates is a graph of how fast families grow, each by labels.
func rates(title, description, unit, by, legend string, families ...string) *panel {
	p := graph(title, description, unit)
	for _, family := range families {
		l := legend
		if l == "" {
			l = family
		}
		expr := rateOf(selector(family, ofRanks))
		if by == "" {
			p.query("sum("+expr+")", l)
			continue
		}
		p.query("topk(10, "+sumBy(by, expr)+")", l)
	}
	return p
}

func jobMonitoring() []*panel {
	const needs = "Open MPI with `OMPI_MCA_pml_monitoring_enable=2`."
	byComm := func(p *panel, family, what string) *panel {
		return p.query("topk(5, "+sumBy("comm", rateOf(selector(family, ofComms)))+")", what+" on {{comm}}")
	}
	calls := graph("Collectives", "Calls, by kind and communicator, summed over ranks: the five fastest of each "+
		"kind. "+needs, "cps")
	bytes := graph("Bytes of collectives", "Bytes sent, by kind and communicator, summed over ranks: the five "+
		"fastest of each kind. "+needs, "binBps")
	for _, kind := range []struct{ name, what string }{{"a2a", "all-to-all"}, {"a2o", "all-to-one"},
		{"o2a", "one-to-all"}} {
		byComm(calls, "mpit_coll_monitoring_"+kind.name+"_count_total", kind.what)
		byComm(bytes, "mpit_coll_monitoring_"+kind.name+"_bytes_total", kind.what)
	}
	return []*panel{
		calls, bytes,
		rates("Messages of collectives and one-sided operations", "Of all ranks. "+needs, "mps", "", "",
			"mpit_coll_monitoring_messages_total", "mpit_osc_monitoring_messages_sent_total",
			"mpit_osc_monitoring_messages_recv_total"),
		rates("Their bytes", "Sent in collectives, put and got, by all ranks. "+needs, "binBps", "", "",
			"mpit_coll_monitoring_bytes_total", "mpit_osc_monitoring_sent_bytes_total",
			"mpit_osc_monitoring_recv_bytes_total"),
	}
}

func jobSPC() []*panel {
	const needs = "Open MPI 5 built with --enable-spc, with `exec --monitoring` or rules that open its counters."
	return []*panel{
		rates("Calls of MPI functions", "The ten most frequent. "+needs, "cps", "function", "{{function}}",
			"mpit_runtime_spc_calls_total"),
		rates("Bytes", "By direction, and by whether the program or the library itself sent them. "+needs, "binBps",
			"direction, by", "{{direction}} {{by}}",
			"mpit_runtime_spc_bytes_total"),
		rates("Messages that came too early or out of order", "Unexpected: before their receive. "+needs, "mps", "",
			"",
			"mpit_runtime_spc_unexpected_messages_total", "mpit_runtime_spc_out_of_sequence_messages_total"),
		graph("Time spent matching", "Share of time: the rank that spends most, the mean and the least. "+needs,
			"percentunit").
			spread(sumBy(process, rateOf(selector("mpit_runtime_spc_match_time_seconds_sum", ofRanks)))),
	}
}

func jobMPICH() []*panel {
	const needs = "MPICH, Intel MPI or Cray MPICH built with --enable-mpit-pvars=all; Debian's MPICH has no " +
		"performance variables."
	return []*panel{
		rates("Bytes through network cards", "Of all ranks. "+needs, "binBps", "", "", "mpit_nic_sent_bytes_total",
			"mpit_nic_recvd_bytes_total"),
		rates("Searches of the queues", "How often the queues of receives and messages are searched. "+needs, "cps",
			"", "",
			"mpit_posted_recvq_match_attempts_total", "mpit_unexpected_recvq_match_attempts_total"),
		graph("Bytes that unexpected messages take up", "The rank with most, the mean and the least. "+needs, "bytes").
			spread(selector("mpit_unexpected_recvq_buffer_bytes", ofRanks)),
		rates("Handlers of one-sided operations", "Packets of the device ch3, call-backs of ch4. "+needs, "cps",
			"operation", "{{operation}}",
			"mpit_rma_packet_handler_calls_total", "mpit_rma_target_callback_calls_total"),
	}
}

func jobMVAPICH() []*panel {
	const two, four = "MVAPICH2.", "MVAPICH 3 and 4."
	return []*panel{
		rates("Messages", "By operation. "+two, "mps", "operation", "{{operation}}", "mpit_mv2_pt2pt_messages_total"),
		rates("Collectives by algorithm", "Calls: the ten most frequent. "+two, "cps", "collective, algorithm",
			"{{collective}} {{algorithm}}",
			"mpit_mv2_coll_algorithm_calls_total"),
		rates("Time in collectives", "Seconds in a second, of all ranks: the ten longest. "+two, "s",
			"collective, algorithm", "{{collective}} {{algorithm}}",
			"mpit_mv2_coll_algorithm_time_seconds_sum"),
		rates("Collectives by algorithm (MVAPICH 3 and 4)", "Calls: the ten most frequent. "+four, "cps",
			"collective, communicators, algorithm",
			"{{collective}} {{communicators}} {{algorithm}}", "mpit_mvp_coll_algorithm_calls_total"),
		rates("Cache of registered memory", "A miss registers memory anew. "+two, "cps", "", "",
			"mpit_mv2_reg_cache_hits_total", "mpit_mv2_reg_cache_misses_total"),
		graph("Network buffers free", "The rank with fewest. "+two, "short").
			query("min("+selector("mpit_mv2_vbuf_available", ofRanks)+")", "connections").
			query("min("+selector("mpit_mv2_ud_vbuf_available", ofRanks)+")", "datagrams"),
	}
}
