package merge

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// groupRank is a rank of the model below.
type groupRank struct {
	Member
	returned bool
	counters map[string]*groupCounter
}

type groupCounter struct {
	series     *mapping.Series
	everything float64 // that it has counted
	shown      float64 // of that, by whoever was there to show it
}

func (c *groupCounter) count(n int) {
	observe(c.series.Histogram, 1.5, uint64(n))
	c.series.Histogram.Sum += 1.5 * float64(n)
	c.everything += 1.5 * float64(n)
}

// counter is the rank's counter of that name, which may be new.
func (r *groupRank) counter(name string, now time.Time) *groupCounter {
	c := r.counters[name]
	if c == nil {
		c = &groupCounter{series: like(mpit.ClassTimer, 0, "comm", name)}
		c.series.Since = now.UnixNano()
		r.counters[name] = c
		r.Structure++
		r.Series = append(r.Series, c.series)
	}
	return c
}

// anew makes the rank's series anew, with the same values.
func (r *groupRank) anew() {
	r.Figures, r.Series = &struct{ int }{}, nil
	for _, c := range r.counters {
		s := *c.series
		c.series = &s
		r.Series = append(r.Series, c.series)
	}
}

// Ranks come, count, are reset, are late, are not read, end, come back, have their figures made anew, and stay when
// the exporter does not. The Group has what they counted, but for what an earlier exporter has shown, and nothing of
// it ever falls.
func TestGroupsAreTrueAndNeverFall(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := NewGroup()
		var ranks, ended []*groupRank
		truth, before := m{}, m{}
		number := 0
		now := groupStart
		names := rapid.SampledFrom([]string{"a", "b", "c"})
		one := func() *groupRank {
			if len(ranks) == 0 {
				t.Skip()
			}
			return rapid.SampledFrom(ranks).Draw(t, "rank")
		}
		joined := func(r *groupRank) bool { return g.members[r.Key] != nil && g.members[r.Key].joined }
		update := func() {
			members := make([]Member, len(ranks))
			for i, r := range ranks {
				members[i] = r.Member
				late := len(r.Series) > 0 && !joined(r) && (r.Old || r.returned)
				for name, c := range r.counters {
					if late {
						c.shown = c.everything
					}
					if c.series.Valid && len(r.Series) > 0 {
						truth[name] += c.everything - c.shown
						c.shown = c.everything
					}
				}
			}
			g.Update(members, groupStart)
			got := m{}
			for _, s := range g.Series() {
				name, h := s.Labels[0].Value, s.Histogram
				got[name] = h.Sum
				sum, native := uint64(0), h.NativeZero
				for _, n := range h.Counts {
					sum += n
				}
				for _, b := range h.Native {
					native += b.Count
				}
				if sum != h.Count || native != sum {
					t.Fatalf("%s: buckets %v, native %v, count %d", name, h.Counts, h.Native, h.Count)
				}
				if before[name] > h.Sum || before[name+" count"] > float64(sum) {
					t.Fatalf("%s falls from %v (%v) to %v (%v)", name, before[name], before[name+" count"], h.Sum, sum)
				}
				if math.Abs(float64(sum)*1.5-h.Sum) > 1e-6 {
					t.Fatalf("%s: %d observations, sum %v", name, sum, h.Sum)
				}
				before[name], before[name+" count"] = h.Sum, float64(sum)
			}
			for name, want := range truth {
				if math.Abs(got[name]-want) > 1e-6 {
					t.Fatalf("%s is %v, should be %v", name, got[name], want)
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"update": func(*rapid.T) { update() },
			"come": func(t *rapid.T) {
				number++
				r := &groupRank{counters: map[string]*groupCounter{}}
				r.Member = Member{Key: mpit.RankID{byte(number), byte(number >> 8)}, Live: true}
				r.Old = rapid.Bool().Draw(t, "old")
				for range rapid.IntRange(0, 2).Draw(t, "series") {
					r.counter(names.Draw(t, "name"), now).count(rapid.IntRange(0, 9).Draw(t, "had"))
				}
				ranks = append(ranks, r)
			},
			"count": func(t *rapid.T) {
				one().counter(names.Draw(t, "name"), now).count(rapid.IntRange(1, 9).
					Draw(t, "n"))
			},
			"late": func(*rapid.T) { r := one(); r.Live = !r.Live },
			"reset": func(*rapid.T) {
				r := one()
				// what is counted between the last Update and a reset is nobody's, nor what is before the next one
				update()
				now = now.Add(time.Second)
				for _, c := range r.counters {
					if c.series.Valid {
						c.series.Since = now.UnixNano()
						*c.series.Histogram = mapping.Histogram{Bounds: c.series.Histogram.Bounds,
							Counts: make([]uint64, 4)}
					}
				}
				update()
			},
			"not read": func(t *rapid.T) {
				r := one()
				if c := r.counters[names.Draw(t, "name")]; c != nil && joined(r) {
					c.series.Valid = !c.series.Valid
				}
			},
			"figures made anew": func(*rapid.T) {
				r := one()
				// nobody can tell figures made anew from a reset at the same moment, if more was counted since
				update()
				r.anew()
			},
			"figures thrown away": func(*rapid.T) {
				r := one()
				update()
				r.Figures, r.Series = &struct{ int }{}, nil
				update()
				r.anew()
			},
			"end": func(*rapid.T) {
				r := one()
				update() // an ended rank is shown before it goes
				i := slices.Index(ranks, r)
				ranks, ended = slices.Delete(ranks, i, i+1), append(ended, r)
				update()
			},
			"come back": func(t *rapid.T) {
				if len(ended) == 0 {
					t.Skip()
				}
				r := ended[0]
				ranks, ended = append(ranks, r), ended[1:]
				r.returned = len(r.Series) > 0
				for _, c := range r.counters {
					c.series.Valid = true
				}
			},
			"another exporter": func(*rapid.T) {
				update()
				g = NewGroup()
				before, truth, ended = m{}, m{}, nil
				for _, r := range ranks {
					r.Old, r.returned = true, false
					r.anew()
					for _, c := range r.counters {
						c.series.Valid = true
					}
				}
				update()
			},
		})
	})
}
