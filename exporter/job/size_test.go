package job

import (
	"fmt"
	"testing"
	"time"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
)

// Each rank of a job may have objects of its own: a report then has many times more calls than ranks.
func BenchmarkPrivateCommunicators(b *testing.B) {
	r := &Report{Time: time.Now(), Seconds: 10, Job: Job{WorldSize: 2000}}
	for rank := range 2000 {
		of := Rank{Rank: rank, Node: "a", State: "up", Time: api.StateSeconds{api.Outside: 5, api.Collective: 5}}
		for c := range 20 {
			name := fmt.Sprintf("%d of %d", c, rank)
			of.Comms = append(of.Comms, api.Comm{ID: name, Name: name, Size: 2})
			r.Calls = append(r.Calls, Call{Called: Called{"MPI_Barrier", "comm", name}, Calls: 10, Seconds: 1,
				ranks: map[who]float64{of.who(): 1}})
		}
		r.Ranks = append(r.Ranks, of)
	}
	for b.Loop() {
		r.verdict()
	}
}
