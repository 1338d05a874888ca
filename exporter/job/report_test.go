package job

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/exporter/job/jobtest"
)

func TestWhatIsKnownOfAJob(t *testing.T) {
	reports := Of(jobtest.Late(), nil)
	require.Len(t, reports, 1)
	r := reports[0]
	ended := jobtest.Began.Add(100 * time.Second)
	assert.Equal(t, Job{ID: "17", World: "0", User: "ada", Name: "heat <3>", Program: "/home/ada/solver",
		Library: "openmpi 5.0.7", WorldSize: 4, Observed: 4, Nodes: 2, Started: &jobtest.Began, Ended: &ended}, r.Job)
	assert.Equal(t, 100.0, r.Lasted())
	assert.Equal(t, []Call{
		{Called: Called{Function: "MPI_Allreduce", Kind: "comm", Object: "residual"}, Calls: 4000,
			Seconds: 207, Share: 207. / 400,
			Most: 0, MostSeconds: 69, ByRank: []float64{1, 68, 69, 69}},
		{Called: Called{Function: "MPI_Send", Kind: "comm", Object: "halo"}, Calls: 2000, Seconds: 4, Share: 0.01, Most: 0,
			MostSeconds: 1, Bytes: map[string]float64{"sent": 4096000}, ByRank: []float64{1, 1, 1, 1}},
	}, r.WithRanks(2).Calls)
	assert.Equal(t, []Sizes{{Called: Called{Function: "MPI_Send", Kind: "comm", Object: "halo"}, Calls: 2000,
		Buckets: []Bucket{
			{1024, 1600}, {4096, 396}, {LargestSize, 4}}}}, r.Sizes)
	assert.Equal(t, []float64{1024, 4096, LargestSize},
		[]float64{r.Sizes[0].AtMost(0.5), r.Sizes[0].AtMost(0.9), r.Sizes[0].AtMost(1)})
	assert.Equal(t, []Messages{{0, "1", 500, 1024000}, {1, "2", 500, 1024000}, {2, "3", 500, 1024000},
		{3, "0", 500, 1024000}}, r.Messages)
	var ranks []int
	for i := range r.Ranks {
		ranks = append(ranks, r.Ranks[i].Rank)
	}
	assert.Equal(t, []int{2, 1, 0, 3}, ranks, "from late to early")
	assert.InDelta(t, 0.98, r.Ranks[0].Useful(), 1e-9)
	assert.Equal(t, []Level{{Metric: "mpit_unexpected_recvq_length", Unit: "{message}", Most: 30, Rank: 3}},
		r.Levels, "what was never there says nothing")
}
