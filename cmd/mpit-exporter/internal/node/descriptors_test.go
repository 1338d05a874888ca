package node

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/mpit-exporter/mpit-exporter/exporter"
)

func TestDivide(t *testing.T) {
	for _, test := range []struct {
		descriptors uint64
		want        Budget
	}{
		{0, Budget{1, 1}},
		{64, Budget{8, 6}},
		{1024, Budget{248, 186}},
		{20000, Budget{512, exporter.DefaultMaxRanks}},
		{1<<64 - 1, Budget{512, exporter.DefaultMaxRanks}}, // no limit
	} {
		assert.Equal(t, test.want, Divide(test.descriptors, 512), "%d", test.descriptors)
	}
}

// Whatever the limit: scrapers and a user who has all that he may have leave the exporter its own.
func TestBudgetFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Uint64Range(64, 1<<20).Draw(t, "limit")
		s := Divide(limit, rapid.IntRange(1, 1<<16).Draw(t, "connections"))
		assert.Positive(t, s.Connections)
		assert.Positive(t, s.Ranks)
		assert.LessOrEqual(t, uint64(s.Connections+rankDescriptors*s.Ranks+reserved), limit)
	})
}
