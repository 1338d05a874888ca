package job

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
)

// Ranks that are in the same call, at the same place, stand together; those that are elsewhere are what the others may
// wait for, and are told only if a call is long.
func TestPlaces(t *testing.T) {
	in := func(rank int, seconds float64) Rank {
		return Rank{Rank: rank, State: "up", Running: seconds,
			Long: &api.LongCall{Function: "MPI_Barrier", Object: "halo", Module: "/app", Offset: 0x10}}
	}
	outside, silent, ended := Rank{Rank: 1, State: "up"}, Rank{Rank: 4, State: "late"}, Rank{Rank: 5, State: "ended"}
	r := &Report{Ranks: []Rank{outside, in(3, 2), in(2, 7), silent, ended}}
	assert.Equal(t, []*Place{
		{Call: "MPI_Barrier", Object: "halo", From: "/app+0x10", Ranks: []int{2, 3}, Seconds: 7},
		{Call: "(in no long call)", Ranks: []int{1}}, {Call: "(does not answer)", Ranks: []int{4}},
	}, r.Places())
	r.Ranks = []Rank{outside, silent}
	assert.Empty(t, r.Places(), "no call is long")
}
