package mapping

// Defaults is the rules that are shipped: what MPI libraries are known to declare otherwise than it is. The caller owns
// the slice, and may put rules of its own before it.
func Defaults() []Rule {
	yes := new(bool)
	*yes = true
	const (
		messages = "{message}"
		bytes    = "By"
	)
	var rules []Rule

	// Open MPI: the queues of the ob1 PML are lengths per peer, declared as sizes.
	for _, queue := range []string{"pml_ob1_unexpected_msgq_length", "pml_ob1_posted_recvq_length"} {
		rules = append(rules, Rule{
			Match: Match{Library: OpenMPI, Name: queue, Class: "size"},
			Class: "level", Unit: messages, Elements: ElementsSum,
		})
	}
	rules = append(rules, Rule{
		Match: Match{Library: OpenMPI, Name: "mpool_hugepage_bytes_allocated", Class: "size"},
		Class: "level", Unit: bytes, Name: "mpool_hugepage_allocated",
	})

	// Open MPI's monitoring: messages and bytes per peer, counted from zero but declared as sizes.
	for _, m := range []struct{ match, name string }{
		{"pml_monitoring_messages", "pml_monitoring"},
		{"coll_monitoring_messages", "coll_monitoring"},
		{"osc_monitoring_messages_sent", "osc_monitoring_sent"},
		{"osc_monitoring_messages_recv", "osc_monitoring_recv"},
	} {
		rules = append(rules,
			Rule{
				Match: Match{Library: OpenMPI, Name: m.match + "_count", Class: "size"},
				Class: "counter", Unit: messages, Name: m.match, Elements: ElementsSum,
			},
			Rule{
				Match: Match{Library: OpenMPI, Name: m.match + "_size", Class: "size"},
				Class: "aggregate", Unit: bytes, Name: m.name, Elements: ElementsSum,
			})
	}
	for _, kind := range []string{"o2a", "a2o", "a2a"} {
		rules = append(rules, Rule{
			Match: Match{Library: OpenMPI, Name: "coll_monitoring_" + kind + "_size", Class: "aggregate"},
			Unit:  bytes, Name: "coll_monitoring_" + kind,
		})
	}
	rules = append(rules, Rule{
		Match: Match{Library: OpenMPI, Name: "mtl_psm2_*", Class: "counter"},
		Help:  "Some variables of this component count bytes.",
	})

	// Open MPI's software performance counters are all declared as sizes.
	const spc = "runtime_spc_OMPI_SPC_"
	rules = append(rules,
		Rule{
			Match: Match{Library: OpenMPI, Name: spc + "MAX_*_IN_QUEUE", Class: "size"},
			Class: "highwatermark", Unit: messages, Name: "runtime_spc_$1_in_queue_highwatermark",
			Help: "Open MPI starts it anew at each reading.",
		},
		Rule{
			Match: Match{Library: OpenMPI, Name: spc + "*_IN_QUEUE", Class: "size"},
			Class: "level", Unit: messages, Name: "runtime_spc_$1_in_queue",
		},
		Rule{
			Match: Match{Library: OpenMPI, Name: spc + "*BYTES*", Class: "size"},
			Class: "aggregate", Unit: bytes, Name: "runtime_spc_$1_$2",
		},
		Rule{
			Match: Match{Library: OpenMPI, Name: spc + "*_TIME", Class: "size"},
			Class: "timer", Unit: "us", Name: "runtime_spc_$1_time",
		},
		Rule{
			Match: Match{Library: OpenMPI, Name: spc + "*", Class: "size"},
			Class: "counter", Name: "runtime_spc_$1",
		})

	// MPICH 4.0's ch4 returns garbage for these.
	rules = append(rules, Rule{
		Match: Match{Library: MPICH, Version: ">=4.0 <4.1", Name: "rma_pref_phy_nic_*"},
		Drop:  yes,
	})
	// Arrays of bytes, an element for each network card.
	rules = append(rules,
		Rule{
			Match: Match{Library: MPICH, Name: "multinic_*", Class: "counter"},
			Class: "aggregate", Unit: bytes, Name: "multinic_$1", Elements: ElementsSum,
		},
		Rule{
			Match: Match{Library: MPICH, Name: "*_bytes_count", Class: "counter"},
			Class: "aggregate", Unit: bytes, Name: "$1", Elements: ElementsSum,
		},
		Rule{
			Match: Match{Library: MPICH, Class: "highwatermark"},
			Help:  "Many versions of MPICH return the present level here.",
		})

	// Timers of the MPICH family are doubles in seconds, and begin at about minus the time of day.
	rules = append(rules,
		Rule{Match: Match{Library: MPICH, Version: ">=4.0 <5.1", Class: "timer"}, Offset: yes},
		Rule{Match: Match{Library: MVAPICH, Version: ">=4.0 <5.0", Class: "timer"}, Offset: yes},
		Rule{Match: Match{Library: MPICH, Class: "timer"}, Unit: "s"},
		Rule{Match: Match{Library: MVAPICH, Class: "timer"}, Unit: "s"})

	// MVAPICH's arrays of bytes have an element for each class of message sizes.
	rules = append(rules,
		Rule{
			Match: Match{Library: MVAPICH, Name: "*_byte_counter_array", Class: "counter"},
			Class: "aggregate", Unit: bytes, Name: "$1", Elements: ElementsSum,
		},
		Rule{
			Match: Match{Library: MVAPICH, Name: "mv2_pt2pt_mpid_*", Class: "counter"},
			Class: "aggregate", Unit: bytes, Name: "mv2_pt2pt_mpid_$1", Elements: ElementsSum,
		})
	return rules
}
