package series

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mapping/rules"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

func TestNeedsCategories(t *testing.T) {
	assert.False(t, newMapper(t, rules.Defaults()...).NeedsCategories())
	assert.True(t, newMapper(t, rules.Rule{Match: rules.Match{Category: "p2p"}, Drop: &yes}).NeedsCategories())
}

// As long as nobody knows the categories, variables to which they could matter are held back: read, but not shown,
// and not counted as left out.
func TestCategoriesAreWaitedFor(t *testing.T) {
	list := []rules.Rule{{Match: rules.Match{Category: "inside*", Class: rules.List{"counter"}}, Drop: &yes}}
	for _, c := range []struct {
		name       string
		categories variables.Categories
		want       m
		dropped    map[mapping.Reason]uint64
	}{
		{
			"told", func(name string, class mpit.Class) []string {
				if name == "in" && class == mpit.ClassCounter {
					return []string{"all", "inside things"}
				}
				return nil
			}, m{"out_total{comm=c}": 2, "depth_level{comm=c}": 3}, map[mapping.Reason]uint64{mapping.ReasonRule: 1},
		},
		{"the rank can't tell", nil, m{"in_total{comm=c}": 1, "out_total{comm=c}": 2, "depth_level{comm=c}": 3},
			map[mapping.Reason]uint64{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newAgent(on("in", mpit.ClassCounter, tULong), on("out", mpit.ClassCounter, tULong),
				on("depth", mpit.ClassLevel, tInt))
			x := a.object("c", 1)
			a.set("in", x, 1)
			a.set("out", x, 2)
			a.set("depth", x, 3)
			r := newRank(t, list...)
			for range 2 {
				r.Update(a.after(time.Second).sample())
				assert.Equal(t, m{"depth_level{comm=c}": 3}, show(r))
				assert.Empty(t, r.Dropped())
				_, ids, changed := r.Select()
				assert.Equal(t, map[uint32]bool{0: true, 1: true, 2: true}, ids)
				assert.False(t, changed)
			}
			r.SetCategories(c.categories)
			r.Update(a.sample()) // the catalogue is the same
			assert.Equal(t, c.want, show(r))
			assert.Equal(t, c.dropped, r.Dropped())
			a.add(on("later", mpit.ClassCounter, tULong))
			r.Update(a.sample())
			assert.Contains(t, show(r), "later_total{comm=c}")
		})
	}
}
