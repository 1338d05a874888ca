package rules

import (
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// Jobs are of so many ranks, on nodes of so many.
const (
	ranksOfNode = 128
	ranksOfJob  = 8 * ranksOfNode
)

// node answers as the exporter of a node would whose ranks have the call profile, but for what no rule looks at: most
// buckets of histograms. The first rank of each job is late: it computes, and the others wait for it in collectives.
type node struct {
	first, count int
	started      time.Time
}

// line is what a series has for each rank: a counter's rate, or a gauge's value.
type line struct {
	family, labels string
	value          float64
	counter        bool
}

var lines = func() []line {
	gauge := func(family, labels string, value float64) line { return line{family, labels, value, false} }
	counter := func(family, labels string, rate float64) line { return line{family, labels, rate, true} }
	list := []line{
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
	for comm := range 8 {
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
}()

func (n node) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	passed := time.Since(n.started).Seconds()
	text := []byte("mpit_exporter_build_info{version=\"1\"} 1\n")
	for rank := n.first; rank < n.first+n.count; rank++ {
		job := rank / ranksOfJob
		of := fmt.Sprintf(`{jobid="%d",world="%[1]d",user="ada",rank="%d"`, job, rank%ranksOfJob)
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
		for comm := range 8 {
			put("mpit_object_info", fmt.Sprintf(`,kind="comm",name="grid%d",object_rank="%d",size="%d"`, comm,
				rank%ranksOfJob, ranksOfJob), 1)
		}
		waits := 0.8
		if rank%ranksOfJob == 0 {
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
