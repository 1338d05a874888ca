package board

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/mpit-exporter/mpit-exporter/exporter/exposition"
	"github.com/mpit-exporter/mpit-exporter/exporter/identity"
	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mapping/merge"
)

// A group's block stands before those of its ranks, in any family.
func TestGroupsStandBeforeTheirRanks(t *testing.T) {
	p, dropped := countingPage()
	r, figures := pageRank(0, "mpit_x", "a")
	show(p, r, figures)
	g := newGroup(identity.Identity{JobID: "1", World: "0", Rank: groupRank})
	series := func(name, value string) *mapping.Series {
		return &mapping.Series{
			Metric: &mapping.Metric{Name: name, Kind: mapping.KindGauge},
			Labels: []mapping.Label{{Name: "l", Value: value}}, Value: 1,
			Valid: true, Together: mapping.NewTogether(mapping.RankNode, mapping.MergeSum),
		}
	}
	g.figures.Update([]merge.Member{{Live: true, Series: []*mapping.Series{
		series("mpit_x", "b"),
		series("mpit_rank_up", "b"), series("mpit_exporter_x", "b"),
	}}}, time.Now())
	p.updateSheet(g)
	assert.Equal(t, []string{":b", "0:a"}, labelsOf(t, p, "mpit_x"))
	assert.Equal(t, map[string]int{exposition.DroppedReserved: 2}, maps.Clone(dropped))
	p.updateSheet(g)
	assert.Equal(t, map[string]int{exposition.DroppedReserved: 2}, dropped, "counted once")
	p.Forget(r)
	p.clear(g.sheet)
	assert.Empty(t, familiesOf(t, p))
}

// Owners stand on the page in the order of their identities.
func TestPlaces(t *testing.T) {
	words := rapid.SampledFrom([]string{"", "1", "10", "2", "a", "é"})
	ids := rapid.Custom(func(t *rapid.T) identity.Identity {
		return identity.Identity{JobID: words.Draw(t, "job"), World: words.Draw(t, "world"), User: words.Draw(t, "user"),
			Rank: rapid.IntRange(groupRank, 1<<31-1).Draw(t, "rank"), Dup: rapid.IntRange(0, 11).Draw(t, "dup")}
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := ids.Draw(t, "a"), ids.Draw(t, "b")
		assert.Equal(t, a.Compare(b), strings.Compare(placeOf(a), placeOf(b)))
	})
}
