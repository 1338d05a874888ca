package dashboards

import (
	"fmt"
	"strings"
)

// source is counters of one MPI library that count the same thing.
type source struct {
	library  string   // who has it, for descriptions
	families []string // are summed; who has one has all
	match    string   // matchers beside the panel's
}

// messagesSent and bytesSent are the counters of what ranks send, the best first: of what a job has, the first
// stands. A build of Open MPI can lack the monitoring of point-to-point messages, as Debian's does; the other two
// kinds are what is left then.
var (
	messagesSent = []source{
		{library: "Open MPI with `OMPI_MCA_pml_monitoring_enable=2`: all messages",
			families: []string{"mpit_pml_monitoring_messages_total"}},
		{library: "Open MPI on Omni-Path (PSM2)", families: []string{"mpit_mtl_psm2_tx_messages_total"}},
		{library: "Open MPI built with SPC: calls that send", families: []string{"mpit_runtime_spc_calls_total"},
			match: `function=~"I?[BRS]?SEND|I?SENDRECV(_REPLACE)?"`},
		{library: "Any with `exec --calls`: calls that send, and puts", families: []string{callTime + "_count"},
			match: `function=~"` + sendingCalls + `"`},
		{library: "MVAPICH2", families: []string{"mpit_mv2_pt2pt_messages_total"}, match: `operation=~"i?send"`},
		collectivesAndPuts("messages", "mpit_coll_monitoring_messages_total",
			"mpit_osc_monitoring_messages_sent_total"),
	}
	bytesSent = []source{
		{library: "Open MPI with `OMPI_MCA_pml_monitoring_enable=2`: all messages",
			families: []string{"mpit_pml_monitoring_bytes_total"}},
		{library: "Open MPI on Omni-Path (PSM2)", families: []string{"mpit_mtl_psm2_tx_eager_bytes_total",
			"mpit_mtl_psm2_tx_rndv_bytes_total"}},
		{library: "Open MPI built with SPC", families: []string{"mpit_runtime_spc_bytes_total"},
			match: `direction="SENT"`},
		{library: "Any with `exec --calls`: what stands in the send buffers of all calls",
			families: []string{callBytes}, match: `direction="sent"`},
		{library: "MPICH built with pvars: through network cards", families: []string{"mpit_nic_sent_bytes_total"}},
		{library: "MVAPICH 3 and 4", families: []string{"mpit_mvp_mpic_send_bytes_total",
			"mpit_mvp_mpic_isend_bytes_total"}},
		{library: "MVAPICH2: through shared memory", families: []string{"mpit_mv2_smp_eager_sent_bytes_total",
			"mpit_mv2_smp_rndv_sent_bytes_total"}},
		collectivesAndPuts("bytes", "mpit_coll_monitoring_bytes_total", "mpit_osc_monitoring_sent_bytes_total"),
	}
)

func collectivesAndPuts(what, collectives, puts string) source {
	return source{
		library: "Open MPI with `OMPI_MCA_pml_monitoring_enable=2` where it does not count point-to-point messages " +
			"(Debian's 4.1.4): " + what + " of collectives and puts",
		families: []string{collectives, puts},
	}
}

// withQueues says who has the queues that the rules look at.
const withQueues = "Open MPI's ob1, Open MPI built with SPC, MPICH built with pvars, and MVAPICH have it."

// who lists the libraries, for descriptions.
func who(sources []source) string {
	var b strings.Builder
	for _, s := range sources {
		fmt.Fprintf(&b, "\n- %s", s.library)
	}
	return b.String()
}

// firstOf sums each source by labels; of what several sources say of the same labels, the first stands. inner makes
// an expression of a selector without its range: what is summed.
func firstOf(sources []source, by, matchers string, inner func(selector string) string) string {
	var alternatives []string
	for _, s := range sources {
		m := matchers
		if s.match != "" {
			m += ", " + s.match
		}
		var terms []string
		for _, family := range s.families {
			terms = append(terms, fmt.Sprintf("sum by (%s) (%s)", by, inner(selector(family, m))))
		}
		alternatives = append(alternatives, strings.Join(terms, " + "))
	}
	return strings.Join(alternatives, "\nor ")
}
