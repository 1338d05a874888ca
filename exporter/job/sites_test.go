package job

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
)

// The sentence has the line of the call that it names, where there is one and it is known.
func TestSentenceHasTheLine(t *testing.T) {
	inCall := func(rank int, place string) Rank {
		return Rank{Rank: rank, State: "up", Place: place, Running: 20, Long: &api.LongCall{Function: "MPI_Allreduce",
			Kind: "comm", Object: "residual"}}
	}
	at := func(function, object, from string) Site {
		return Site{Site: api.Site{Function: function, Object: object}, From: from}
	}
	site := at("MPI_Allreduce", "residual", "step (a.c:7)")
	const text = "ranks wait in MPI_Allreduce on residual for rank 2"
	for name, c := range map[string]struct {
		r    Report
		want string
	}{
		"a call under way": {Report{Ranks: []Rank{inCall(0, "main (a.c:9)"), inCall(1, "main (a.c:9)")}},
			"ranks wait in MPI_Allreduce on residual at main (a.c:9) for rank 2"},
		"from two places": {Report{Ranks: []Rank{inCall(0, "main (a.c:9)"), inCall(1, "main (a.c:10)")}}, text},
		"where they have waited": {Report{Sites: []Site{site, at("MPI_Allreduce", "residual", "last")}},
			"ranks wait in MPI_Allreduce on residual at step (a.c:7) for rank 2"},
		"code without a name": {Report{Sites: []Site{at("MPI_Allreduce", "residual", "stencil+0x12")}}, text},
		"another call":        {Report{Sites: []Site{at("MPI_Allreduce", "", "main"), at("MPI_Allreduce", "res", "main")}}, text},
	} {
		c.r.Verdict.Text = text
		c.r.Locate()
		c.r.Locate()
		assert.Equal(t, c.want, c.r.Verdict.Text, name)
	}
}

// One rank that doesn't answer, or is over, would have all others waited for.
func TestAnswers(t *testing.T) {
	rank := func(state string) *Report {
		return &Report{Ranks: []Rank{{State: "up"}, {Rank: 1, State: state}}}
	}
	assert.True(t, rank("up").Answers())
	assert.False(t, rank("late").Answers())
	assert.False(t, rank("ended").Answers())
}
