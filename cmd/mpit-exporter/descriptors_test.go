package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/mpit-exporter/mpit-exporter/exporter"
)

func TestShare(t *testing.T) {
	for _, test := range []struct {
		descriptors uint64
		want        shares
	}{
		{0, shares{1, 1}},
		{64, shares{8, 6}},
		{1024, shares{248, 186}},
		{20000, shares{512, exporter.DefaultMaxRanks}},
		{1<<64 - 1, shares{512, exporter.DefaultMaxRanks}}, // no limit
	} {
		assert.Equal(t, test.want, share(test.descriptors, 512), "%d", test.descriptors)
	}
}

// Whatever the limit: scrapers and a user who has all that he may have leave the exporter its own.
func TestSharesFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Uint64Range(64, 1<<20).Draw(t, "limit")
		s := share(limit, rapid.IntRange(1, 1<<16).Draw(t, "connections"))
		assert.Positive(t, s.connections)
		assert.Positive(t, s.ranks)
		assert.LessOrEqual(t, uint64(s.connections+rankConnections*s.ranks+ownDescriptors), limit)
	})
}
