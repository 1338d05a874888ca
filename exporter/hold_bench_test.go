package exporter

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/exporter/identity"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// manyVariables is a sample with so many counters, none of them bound.
func manyVariables(n int) *mpit.Sample {
	s := &mpit.Sample{Variables: &mpit.Variables{Generation: 1}, Layout: &mpit.Layout{Generation: 1, Values: n},
		Values: make([]uint64, n)}
	for i := range uint32(n) {
		s.Variables.ByID = append(s.Variables.ByID, mpit.Variable{
			ID: i, Name: fmt.Sprintf("variable_%d", i), Class: mpit.ClassCounter, Datatype: mpit.DatatypeUint64,
			DatatypeBytes: 8,
		})
		s.Layout.Handles = append(s.Layout.Handles, mpit.Handle{ID: i + 1, Variable: i, Count: 1, Created: testTime,
			Offset: int(i)})
	}
	return s
}

// anew is the sample with all its objects and handles replaced by others.
func anew(s *mpit.Sample, times int) *mpit.Sample {
	l := *s.Layout
	l.Generation += uint64(times)
	l.Objects, l.Handles = make([]mpit.Object, len(s.Layout.Objects)), make([]mpit.Handle, len(s.Layout.Handles))
	for i, o := range s.Layout.Objects {
		o.ID += uint32(times * len(l.Objects))
		o.Name = fmt.Sprintf("%s, %d", o.Name, times)
		l.Objects[i] = o
	}
	for i, h := range s.Layout.Handles {
		h.ID += uint32(times * len(l.Handles))
		if h.Object != 0 {
			h.Object += uint32(times * len(l.Objects))
		}
		l.Handles[i] = h
	}
	changed := *s
	changed.Layout, changed.Monotonic = &l, s.Monotonic+time.Duration(times)
	return &changed
}

// BenchmarkHold is how long one rank holds its own lock while a
// sample is mapped, and everybody up while the page is made: medians, for these
// machines are noisy. Only what is new costs anything worth speaking of.
func BenchmarkHold(b *testing.B) {
	for _, test := range []struct {
		name   string
		sample *mpit.Sample
		change bool // all objects, with each sample
	}{
		{"ordinary", floodSample(60, 20), false},
		{"1100-variables", manyVariables(1100), false},
		{"65500-variables", manyVariables(65_500), false},
		{"52000-objects-change", floodSample(1, 52_000), true},
	} {
		b.Run(test.name, func(b *testing.B) {
			var mapping, page []time.Duration
			for b.Loop() {
				e, err := New(Config{Mapper: newMapper(b)})
				require.NoError(b, err)
				g := e.lock()
				r := g.add(mpit.Hello{ID: mpit.RankID{1}, InitTime: testTime}, mpit.Peer{},
					identity.Process{ID: Identity{User: "alice"}})
				r.gone = e.now().AddDate(1, 0, 0) // not lost yet
				g.unlock()
				for i := range 3 {
					s := test.sample
					if test.change {
						s = anew(s, i)
					}
					start := time.Now()
					require.True(b, e.absorbed(r, s))
					r.state = stateUp
					mapped := time.Now()
					_, done, err := e.Gather(context.Background())
					require.NoError(b, err)
					done()
					if test.change || i == 0 {
						mapping, page = append(mapping, mapped.Sub(start)), append(page, time.Since(mapped))
					}
				}
			}
			b.ReportMetric(median(mapping), "ms-map")
			b.ReportMetric(median(page), "ms-page")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// median is in milliseconds.
func median(times []time.Duration) float64 {
	slices.Sort(times)
	return float64(times[len(times)/2].Microseconds()) / 1e3
}
