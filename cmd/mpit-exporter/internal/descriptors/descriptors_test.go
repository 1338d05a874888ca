package descriptors

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/mpit-exporter/mpit-exporter/exporter"
)

func TestShare(t *testing.T) {
	for _, test := range []struct {
		descriptors uint64
		want        Shares
	}{
		{0, Shares{1, 1}},
		{64, Shares{8, 6}},
		{1024, Shares{248, 186}},
		{20000, Shares{512, exporter.DefaultMaxRanks}},
		{1<<64 - 1, Shares{512, exporter.DefaultMaxRanks}}, // no limit
	} {
		assert.Equal(t, test.want, Share(test.descriptors, 512), "%d", test.descriptors)
	}
}

// Whatever the limit: scrapers and a user who has all that he may have leave the exporter its own.
func TestSharesFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Uint64Range(64, 1<<20).Draw(t, "limit")
		s := Share(limit, rapid.IntRange(1, 1<<16).Draw(t, "connections"))
		assert.Positive(t, s.Connections)
		assert.Positive(t, s.Ranks)
		assert.LessOrEqual(t, uint64(s.Connections+rankConnections*s.Ranks+ownDescriptors), limit)
	})
}
