package merge

import (
	"fmt"
	"testing"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// benchGroup is ranks with series of all kinds, which touch changes.
func benchGroup(ranks, series int) (members []Member, touch func()) {
	classes := []mpit.Class{mpit.ClassLevel, mpit.ClassHighWatermark, mpit.ClassCounter, mpit.ClassCounter,
		mpit.ClassCounter}
	var all []*mapping.Series
	for i := range ranks {
		m := rankOf(i)
		for k := range series {
			s := like(classes[k%len(classes)], 1, "comm", fmt.Sprint(k))
			m.Series = append(m.Series, s)
		}
		all = append(all, m.Series...)
		members = append(members, m)
	}
	return members, func() {
		for _, s := range all {
			s.Value++
		}
	}
}

// BenchmarkGroup is an Update of 128 ranks with 50 series each, all of which have changed; of histograms one in ten
// has.
func BenchmarkGroup(b *testing.B) {
	const ranks, series = 128, 50
	run := func(b *testing.B, members []Member, touch func()) {
		g := NewGroup()
		g.Update(members, groupStart)
		b.ReportAllocs()
		for b.Loop() {
			touch()
			g.Update(members, groupStart)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(ranks*series), "ns/value")
	}
	b.Run("numbers", func(b *testing.B) {
		members, touch := benchGroup(ranks, series)
		run(b, members, touch)
	})
	b.Run("histograms", func(b *testing.B) {
		members, _ := benchGroup(ranks, 0)
		var all []*mapping.Series
		for i := range members {
			for k := range series {
				s := like(mpit.ClassTimer, 0, "comm", fmt.Sprint(k))
				s.Histogram.Bounds, s.Histogram.Counts = mapping.DefaultBuckets(),
					make([]uint64, len(mapping.DefaultBuckets())+1)
				members[i].Series = append(members[i].Series, s)
				all = append(all, s)
			}
		}
		n := 0
		run(b, members, func() {
			n++
			for i, s := range all {
				s.Histogram.Sum++
				if (i+n)%10 == 0 {
					s.Histogram.Count++
					s.Histogram.Counts[5]++
				}
			}
		})
	})
	b.Run("one rank's series change", func(b *testing.B) {
		members, touch := benchGroup(ranks, series)
		run(b, members, func() {
			touch()
			members[0].Structure++
		})
	})
}
