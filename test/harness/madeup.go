package harness

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// Jobs of made-up ranks are of so many, on nodes of so many.
const (
	MadeUpOfNode = 128
	MadeUpOfJob  = 8 * MadeUpOfNode
)

// MadeUpNodes serves pages of nodes with so many ranks, all together, each with so many communicators, until the test
// ends. It returns a file with their addresses, for PrometheusConfig.Discovery.
func MadeUpNodes(tb testing.TB, ranks, comms int) (discovery string) {
	tb.Helper()
	started := time.Now()
	var targets []string
	for first := 0; first < ranks; first += MadeUpOfNode {
		server := httptest.NewServer(madeUp{first: first, count: min(MadeUpOfNode, ranks-first), comms: comms, started: started})
		tb.Cleanup(server.Close)
		targets = append(targets, server.Listener.Addr().String())
	}
	discovery = filepath.Join(tb.TempDir(), "targets.json")
	text, err := json.Marshal([]any{map[string]any{"targets": targets}})
	if err != nil {
		tb.Fatalf("encoding the nodes' addresses: %v", err)
	}
	if err := os.WriteFile(discovery, text, 0o600); err != nil {
		tb.Fatalf("writing the nodes' addresses: %v", err)
	}
	return discovery
}

// madeUp answers as the exporter of a node would whose ranks have the call profile, but for what no rule looks at: most
// buckets of histograms. The first rank of each job is late: it computes, and the others wait for it in collectives.
type madeUp struct {
	first, count, comms int
	started             time.Time
}

// madeUpLine is what a series has for each rank: a counter's rate, or a gauge's value.
type madeUpLine struct {
	family, labels string
	value          float64
	counter        bool
}

func madeUpLines(comms int) []madeUpLine {
	gauge := func(family, labels string, value float64) madeUpLine { return madeUpLine{family, labels, value, false} }
	counter := func(family, labels string, rate float64) madeUpLine { return madeUpLine{family, labels, rate, true} }
	list := []madeUpLine{
		gauge("mpit_rank_up", "", 1),
		gauge("mpit_process_info", `,host="node",executable="/bin/app",library="openmpi",jobname="ocean",world_size="1024"`, 1),
		counter("mpit_rank_agent_cpu_seconds_total", "", 1e-4),
		counter("mpit_rank_agent_gate_wait_seconds_total", "", 0),
		gauge("mpit_rank_agent_gate_wait_max_seconds", "", 0),
		counter("mpit_rank_agent_samples_total", "", 1./15),
		counter("mpit_rank_agent_busy_total", "", 0),
		counter("mpit_rank_agent_read_errors_total", "", 0),
		counter("mpit_call_uncounted_total", "", 0),
		counter("mpit_call_observed_seconds_total", "", 1),
		gauge("mpit_call_running_seconds", "", 0.01),
		gauge("mpit_mpool_hugepage_allocated_bytes", "", 0),
	}
	for comm := range comms {
		name := fmt.Sprintf(`,comm="grid%d"`, comm)
		for _, function := range []string{"MPI_Isend", "MPI_Irecv", "MPI_Bcast", "MPI_Allreduce", "MPI_Barrier"} {
			labels := name + `,function="` + function + `"`
			list = append(list, counter("mpit_call_time_seconds_sum", labels, 0.015),
				counter("mpit_call_time_seconds_count", labels, 100),
				counter("mpit_call_time_seconds_bucket", labels+`,le="+Inf"`, 100))
			for _, direction := range map[string][]string{"MPI_Isend": {"sent"}, "MPI_Irecv": {"posted"},
				"MPI_Bcast": {"sent", "received"}, "MPI_Allreduce": {"sent", "received"}}[function] {
				list = append(list, counter("mpit_call_bytes_total", labels+`,direction="`+direction+`"`, 1e5))
			}
		}
		list = append(list, gauge("mpit_objects", fmt.Sprintf(`,kind="comm",name="grid%d"`, comm), 1),
			gauge("mpit_pml_ob1_posted_recvq_length", name, 1), gauge("mpit_pml_ob1_unexpected_msgq_length", name, 1))
	}
	return list
}

func (n madeUp) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	lines := madeUpLines(n.comms)
	passed := time.Since(n.started).Seconds()
	text := []byte("mpit_exporter_build_info{version=\"1\"} 1\n")
	for rank := n.first; rank < n.first+n.count; rank++ {
		job := rank / MadeUpOfJob
		of := fmt.Sprintf(`{jobid="%d",world="%[1]d",user="ada",rank="%d"`, job, rank%MadeUpOfJob)
		put := func(family, labels string, value float64) {
			text = append(append(append(append(text, family...), of...), labels...), "} "...)
			text = append(strconv.AppendFloat(text, value, 'g', -1, 64), '\n')
		}
		for _, l := range lines {
			value := l.value
			if l.counter {
				value *= passed
			}
			put(l.family, l.labels, value)
		}
		put("mpit_rank_start_time_seconds", "", float64(n.started.Unix()))
		for comm := range n.comms {
			put("mpit_object_info", fmt.Sprintf(`,kind="comm",name="grid%d",object_rank="%d",size="%d"`, comm,
				rank%MadeUpOfJob, MadeUpOfJob), 1)
		}
		waits := 0.8
		if rank%MadeUpOfJob == 0 {
			waits = 0.05
		}
		for kind, share := range map[string]float64{"send": 0.03, "wait": 0.05, "collective": waits, "file": 0} {
			put("mpit_call_kind_seconds_total", `,kind="`+kind+`"`, share*passed)
		}
		put("mpit_call_inside_seconds_total", "", (waits+0.08)*passed)
		put("mpit_call_messages_total", "", 800*passed)
		put("mpit_call_message_bytes_total", "", 8e5*passed)
		put("mpit_call_collectives_total", "", 1600*passed)
		put("mpit_call_collective_seconds_total", "", waits*passed)
	}
	_, _ = w.Write(text)
}
