// Package answers is an exporter's API with jobs that nobody runs: what GET /api/v1/jobs and /api/v1/report say of
// jobs that are healthy, imbalanced, hung or broken, of any number of ranks. It is for looks and frames; what the
// answers of real jobs are, the other tests of the page see.
package answers

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/mpit-exporter/mpit-exporter/exporter/job"
)

// Kinds of jobs.
const (
	Healthy    = "healthy"
	Imbalanced = "late rank"
	Hung       = "deadlock"
	Broken     = "crashed"
	Unmeasured = "unknown" // without a call profile
)

// Job is one of them.
type Job struct {
	ID    string
	Kind  string
	Ranks int
	Text  string // of the verdict, for a state that is none of the kinds
}

// object is one of JSON's.
type object = map[string]any

// New serves the jobs, which began a while ago.
func New(jobs ...Job) http.Handler {
	began := time.Now().Add(-20 * time.Minute)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/jobs", func(w http.ResponseWriter, _ *http.Request) {
		list := []object{}
		for i := range jobs {
			r := jobs[i].report(began)
			states := map[string]int{}
			for _, rank := range r["ranks"].([]object) {
				states[rank["state"].(string)]++
			}
			list = append(list, object{"job": r["job"], "states": states, "seconds": 5.02, "whole": false,
				"verdict": r["verdict"]})
		}
		write(w, object{"time": time.Now(), "jobs": list})
	})
	mux.HandleFunc("GET /api/v1/report", func(w http.ResponseWriter, req *http.Request) {
		for i := range jobs {
			if jobs[i].ID == req.URL.Query().Get("jobid") {
				write(w, object{"reports": []object{jobs[i].report(began)}})
				return
			}
		}
		w.WriteHeader(http.StatusNotFound)
		write(w, object{"error": "there is no such job"})
	})
	mux.HandleFunc("GET /api/v1/sites", func(w http.ResponseWriter, _ *http.Request) {
		write(w, object{"sites": []object{{"function": "MPI_Allreduce", "kind": "comm", "object": "residual",
			"waited_seconds": 431.2, "calls": 52000, "module": "/opt/bin/solver", "offset": 4711}}})
	})
	mux.HandleFunc("GET /api/v1/values", func(w http.ResponseWriter, req *http.Request) {
		ask := req.URL.Query()
		rank, _ := strconv.Atoi(ask.Get("rank"))
		write(w, object{"time": time.Now(), "ranks": []object{{"rank": object{"jobid": ask.Get("jobid"),
			"world": ask.Get("world"), "user": ask.Get("user"), "rank": rank, "state": "up"},
			"variables": []object{{"name": "steps", "class": "COUNTER", "metric": "mpit_steps_total", "kind": "counter",
				"series": []object{{"labels": object{"comm": "grid"}, "value": strconv.FormatInt(time.Now().Unix(), 10)}}}}}}})
	})
	mux.HandleFunc("GET /api/v1/catalogue", func(w http.ResponseWriter, _ *http.Request) {
		write(w, object{"catalogues": []object{}})
	})
	return mux
}

func write(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// late is the rank that the others of an imbalanced or hung job wait for.
func (j *Job) late() int { return j.Ranks * 5 / 8 }

func (j *Job) report(began time.Time) object {
	seconds := 5.02
	job := object{"jobid": j.ID, "world": "1", "user": "ada", "name": "", "program": "/home/ada/bin/stencil",
		"library": "openmpi 4.1.4", "world_size": j.Ranks, "observed": j.Ranks, "nodes": 1, "started": began}
	if j.Kind == Broken {
		job["ended"] = time.Now().Add(-time.Minute)
	}
	names := []string{"MPI_Allreduce residual", "MPI_Waitall", "MPI_Isend grid", "MPI_File_write_all plate",
		"MPI_Irecv grid", "MPI_Bcast MPI_COMM_WORLD"}
	shares := make([][]float64, len(names))
	ranks := make([]object, j.Ranks)
	useful, most := 0.0, 0.0
	for rank := range j.Ranks {
		r, spent := j.rank(rank, seconds)
		ranks[rank] = r
		share := 0.0
		for i := range names {
			shares[i] = append(shares[i], spent[i]*seconds)
			share += spent[i]
		}
		useful += (1 - share) / float64(j.Ranks)
		most = max(most, 1-share)
	}
	if late := j.late(); j.Kind == Imbalanced || j.Kind == Hung { // from late to early
		ranks[0], ranks[late] = ranks[late], ranks[0]
		for i := range shares {
			shares[i][0], shares[i][late] = shares[i][late], shares[i][0]
		}
	}
	r := object{"format": 2, "time": time.Now(), "job": job, "verdict": j.verdict(useful, most), "ranks": ranks,
		"seconds": seconds, "whole": j.Kind == Broken || j.Kind == Hung, "levels": []object{
			{"metric": "mpit_pml_ob1_unexpected_msgq_length", "labels": object{"comm": "grid"}, "unit": "{message}",
				"most": 31, "rank": j.late()},
			{"metric": "mpit_mpool_hugepage_bytes_allocated", "unit": "By", "most": 48 << 20, "rank": 0}}}
	if j.Kind != Unmeasured {
		r["calls"] = calls(names, shares, ranks, seconds*float64(j.Ranks))
		r["sizes"], r["messages"] = sizes(j.Ranks), messages(j.Ranks)
	}
	return r
}

// rank is one rank, and its shares of time in the functions.
func (j *Job) rank(rank int, seconds float64) (r object, spent [6]float64) {
	noise := 0.03 * rand.Float64()
	switch j.Kind {
	case Healthy:
		spent = [6]float64{0.06 + noise, 0.05 + 0.03*rand.Float64(), 0.01, 0.005, 0.002, 0.001}
	case Imbalanced, Broken:
		spent = [6]float64{0.6 + noise, 0.05, 0.01, 0.004, 0.002, 0.001}
		if rank == j.late() {
			spent[0] = 0.01
		}
	case Hung:
		spent[0] = 1
	}
	r = object{"rank": rank, "node": "node7", "state": "up", "pid": 4000 + rank, "uid": 1000, "state_seconds": object{
		"outside":    seconds * (1 - spent[0] - spent[1] - spent[2] - spent[3] - spent[4] - spent[5]),
		"collective": seconds * (spent[0] + spent[5]), "wait": seconds * spent[1], "poll": 0,
		"send": seconds * (spent[2] + spent[4]), "file": seconds * spent[3]}}
	switch j.Kind {
	case Unmeasured:
		r["state_seconds"] = object{}
	case Broken:
		r["state"], r["end_reason"] = "ended", "lost"
	case Hung:
		r["running_seconds"] = 412.0 + noise
		r["long"] = object{"function": "MPI_Allreduce", "kind": "comm", "object": "residual",
			"module": "/home/ada/bin/stencil", "offset": 4779}
		if rank == j.late() {
			r["long"] = object{"function": "MPI_Recv", "kind": "comm", "object": "grid", "module": "/home/ada/bin/stencil",
				"offset": 4221}
		}
	}
	return r, spent
}

func (j *Job) verdict(useful, most float64) object {
	v := object{"state": j.Kind, "efficiency": object{"parallel": useful, "communication": most,
		"load_balance": useful / max(most, 1e-9), "between_nodes": 1, "within_nodes": useful / max(most, 1e-9),
		"ranks": j.Ranks}}
	late := object{"rank": j.late(), "node": "node7", "why": "is outside MPI for 98 % of the time",
		"share": most - useful, "by_useful_time": true}
	switch j.Kind {
	case Healthy:
		v["text"] = fmt.Sprintf("healthy: %.0f %% useful", 100*useful)
	case Imbalanced:
		v["late"] = late
		v["text"] = fmt.Sprintf("%.0f %% useful; %.0f %% of the time ranks wait in MPI_Allreduce on residual for rank %d on "+
			"node7, which is outside MPI for 98 %% of the time", 100*useful, 100*(most-useful), j.late())
	case Hung:
		v["text"] = fmt.Sprintf("rank %d is one collective behind on residual (41 of 42): it is in MPI_Recv on grid; the others "+
			"wait for it in MPI_Allreduce on residual, for 6m52s", j.late())
	case Broken:
		v["text"] = fmt.Sprintf("%d of %d ranks ended without MPI_Finalize, probably rank 0 on node7 (lost) first", j.Ranks,
			j.Ranks)
	case Unmeasured:
		delete(v, "efficiency")
		v["text"] = "nothing is known of its time: no MPI call has been measured (exec --calls)"
	}
	if j.Text != "" {
		v["text"] = j.Text
	}
	said := job.Verdict{State: j.Kind}
	if j.Kind != Unmeasured {
		said.Efficiency = &job.Efficiency{Parallel: useful, Communication: most}
	}
	v["bar"], v["attention"] = said.Bar(), job.StateOf(j.Kind).NeedsAttention()
	return v
}

func calls(names []string, shares [][]float64, ranks []object, observed float64) (list []object) {
	for i, name := range names {
		var function, on string
		_, _ = fmt.Sscan(name, &function, &on)
		sum, most := 0.0, 0
		for rank, seconds := range shares[i] {
			sum += seconds
			if seconds > shares[i][most] {
				most = rank
			}
		}
		if sum == 0 {
			continue
		}
		list = append(list, object{"function": function, "kind": "comm", "object": on, "calls": 100 * len(shares[i]),
			"seconds": sum, "share": sum / observed, "bytes": object{"sent": 1600 * len(shares[i])},
			"most_rank":    ranks[most]["rank"],
			"most_seconds": shares[i][most], "by_rank": shares[i]})
	}
	return list
}

func sizes(ranks int) []object {
	return []object{
		{"function": "MPI_Isend", "kind": "comm", "object": "grid", "calls": 400 * ranks, "buckets": []object{
			{"bytes": 1024, "calls": 300 * ranks}, {"bytes": 65536, "calls": 100 * ranks}}},
		{"function": "MPI_Allreduce", "kind": "comm", "object": "residual", "calls": 100 * ranks, "buckets": []object{
			{"bytes": 16, "calls": 100 * ranks}}},
	}
}

func messages(ranks int) (list []object) {
	for from := range ranks {
		for _, to := range []int{(from + 1) % ranks, (from + ranks - 1) % ranks, (from + 32) % ranks} {
			if to != from {
				list = append(list, object{"from": from, "to": fmt.Sprint(to), "messages": 100, "bytes": 51200 + 40*from})
			}
		}
	}
	return list
}
