package job

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
)

// Each rank has all the work of one phase: together they are balanced, and neither phase is.
func TestPhasesHideImbalance(t *testing.T) {
	works, waits := api.StateSeconds{api.Outside: 10}, api.StateSeconds{api.Collective: 10}
	rank := func(n int, first, second api.StateSeconds) Rank {
		return Rank{Rank: n, Node: "a", State: "up", Time: first.Plus(second),
			Phases: []api.Phase{{Name: "assembly", State: first}, {Name: "solver", State: second}}}
	}
	r := &Report{Job: Job{WorldSize: 2}, Ranks: []Rank{rank(0, works, waits), rank(1, waits, works)}}
	r.Verdict = r.verdict()
	phases := r.Written().Phases
	require.Len(t, phases, 2)
	for i, p := range phases {
		assert.Equal(t, []string{"assembly", "solver"}[i], p.Name)
		assert.InDelta(t, 0.5, p.Efficiency.Parallel, 1e-9)
		assert.InDelta(t, 0.5, p.Efficiency.LoadBalance, 1e-9)
		assert.Equal(t, i, p.Late.Rank)
	}
	assert.InDelta(t, 1, r.Verdict.Efficiency.LoadBalance, 1e-9)
	assert.Equal(t, "Load balance is 100 % over all time, and 50 % in phase assembly: ranks with less to do in one phase "+
		"have more in another.", r.HiddenBy(phases))

	even := &Report{Job: Job{WorldSize: 2}, Ranks: []Rank{rank(0, works, waits), rank(1, works, waits)}}
	even.Verdict = even.verdict()
	assert.Empty(t, even.HiddenBy(even.Written().Phases))
	assert.Empty(t, even.Since(even.Totals()).Ranks[0].Phases, "of an interval they aren't known")
}
