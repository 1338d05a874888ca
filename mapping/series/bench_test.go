package series

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mapping/rules"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// BenchmarkUpdate is one sample of a rank with 50 communicators, when nothing but values has changed.
func BenchmarkUpdate(b *testing.B) {
	classes := []mpit.Class{mpit.ClassLevel, mpit.ClassSize, mpit.ClassHighWatermark, mpit.ClassCounter,
		mpit.ClassAggregate, mpit.ClassTimer}
	for _, count := range []int{60, 200} {
		b.Run(fmt.Sprintf("%dx50", count), func(b *testing.B) {
			a := newAgent()
			for i := range count {
				c := classes[i%len(classes)]
				d := tULong
				if c == mpit.ClassTimer {
					d = tDouble
				}
				a.add(on(fmt.Sprintf("variable_%d", i), c, d))
			}
			for i := range 50 {
				a.object(fmt.Sprintf("comm_%d", i), 1)
			}
			r := newRank(b)
			s := a.sample()
			r.Update(s)
			b.ReportAllocs()
			for b.Loop() {
				s.Monotonic += time.Second
				for i := range s.Values {
					s.Values[i]++
				}
				r.Update(s)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(s.Values)), "ns/value")
		})
	}
}

// BenchmarkCompile is the same rank when a communicator has come and gone.
func BenchmarkCompile(b *testing.B) {
	a := newAgent()
	for i := range 60 {
		a.add(on(fmt.Sprintf("variable_%d", i), mpit.ClassCounter, tULong))
	}
	for i := range 50 {
		a.object(fmt.Sprintf("comm_%d", i), 1)
	}
	r := newRank(b)
	r.Update(a.sample())
	b.ReportAllocs()
	for b.Loop() {
		a.free(a.object("", 1))
		r.Update(a.sample())
	}
}

// BenchmarkPlan is what is done once for a rank with 200 variables and 50 communicators, 10,000 handles: compiling
// its plan, and the whole first sample. The shipped rules stand behind 50 of a user's, globs and regular expressions.
func BenchmarkPlan(b *testing.B) {
	var list []rules.Rule
	for i := range 25 {
		list = append(list,
			rules.Rule{Match: rules.Match{Library: rules.List{mapping.MPICH}, Name: fmt.Sprintf("variable_%d?", i)},
				Help: "One of ten."},
			rules.Rule{Match: rules.Match{Regexp: fmt.Sprintf(`(?:coll|variable)_%d_(?P<function>[a-z]+)_(?P<what>calls|time)`,
				i)}, Name: "calls", Elements: mapping.MergePeer})
	}
	mapper := newMapper(b, append(list, rules.Defaults()...)...)
	classes := []mpit.Class{mpit.ClassLevel, mpit.ClassSize, mpit.ClassHighWatermark, mpit.ClassCounter,
		mpit.ClassAggregate, mpit.ClassTimer}
	a := newAgent()
	for i := range 200 {
		c, name := classes[i%len(classes)], fmt.Sprintf("variable_%d", i)
		d := tULong
		if c == mpit.ClassTimer {
			d = tDouble
		}
		a.add(on(name, c, d))
	}
	for i := range 50 {
		a.object(fmt.Sprintf("comm_%d", i), 1)
	}
	s := a.sample()
	for name, first := range map[string]func(r *Rank){"compile": func(r *Rank) { r.compile(s) },
		"sample": func(r *Rank) { r.Update(s) }} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r := NewRank(mapper, variables.Process{Library: mapping.Library{Name: mapping.MPICH,
					Version: "4.2.0"}})
				first(r)
				r.Close()
			}
		})
	}
}

// TestUpdateAllocatesNothing holds while the structure stays.
func TestUpdateAllocatesNothing(t *testing.T) {
	a := newAgent(on("v", mpit.ClassCounter, tULong), on("t", mpit.ClassTimer, tDouble),
		on("l", mpit.ClassLevel, tInt), on("s", mpit.ClassState, tInt))
	for range 5 {
		a.object("", 2)
	}
	r := newRank(t)
	s := a.sample()
	r.Update(s)
	if n := testing.AllocsPerRun(100, func() { s.Values[0]++; r.Update(s) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// distributionRank is a rank with 60 distributions, each on a communicator, and what its agent sends: what moves of
// them is calls' alone.
func distributionRank(t fataler) (*Rank, *agent) {
	var names []string
	for i := range 12 {
		names = append(names, fmt.Sprintf("v%d", i))
	}
	a := newAgent(calls(mpit.BindComm, names...)...)
	for i := range 5 {
		a.object(fmt.Sprintf("comm_%d", i), 1)
	}
	for i, h := range a.handles {
		for k := range 12 { // a function's calls take from less than a microsecond to some milliseconds
			h.took(time.Duration(500+i) << k)
		}
	}
	return newRank(t), a
}

// BenchmarkDistributions is one sample of a rank with 60 distributions, each of which has moved, or none.
func BenchmarkDistributions(b *testing.B) {
	for _, moves := range []bool{true, false} {
		b.Run(map[bool]string{true: "all move", false: "none moves"}[moves], func(b *testing.B) {
			r, a := distributionRank(b)
			s := a.sample()
			r.Update(s)
			b.ReportAllocs()
			for b.Loop() {
				s.Monotonic += time.Second
				for i := 0; moves && i < len(s.Values); i += mpittest.DistributionElements {
					s.Values[i] += 3000
					for k := 10; k < 16; k++ {
						s.Values[i+k]++
					}
				}
				r.Update(s)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/60, "ns/distribution")
		})
	}
}

// TestDistributionsAllocateNothing holds while the structure stays, also where some fold.
func TestDistributionsAllocateNothing(t *testing.T) {
	r, a := distributionRank(t)
	r.SetVariableLimit(48)
	s := a.sample()
	r.Update(s)
	if n := testing.AllocsPerRun(100, func() {
		for i := 0; i < len(s.Values); i += mpittest.DistributionElements {
			s.Values[i]++
			s.Values[i+12]++
		}
		r.Update(s)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkDistributionMemory is what 1,000 ranks hold that have 60 distributions each: the mapping's own, without
// what the agent's answers take.
func BenchmarkDistributionMemory(b *testing.B) {
	for b.Loop() {
		_, a := distributionRank(b)
		m := newMapper(b)
		s := a.sample()
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		ranks := make([]*Rank, 1000)
		for i := range ranks {
			r := NewRank(m, variables.Process{})
			r.Update(s)
			ranks[i] = r
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/60_000, "B/histogram")
		runtime.KeepAlive(ranks)
	}
}

// BenchmarkNewNames is what a variable costs whose name nobody has had yet, as those of a rank that invents them:
// from the catalogue to its place on the page.
func BenchmarkNewNames(b *testing.B) {
	const count = 4096
	mapper, err := variables.New(variables.Config{MaxFamilies: 1 << 30})
	require.NoError(b, err)
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		b.StopTimer()
		a := newAgent()
		for i := range count {
			class := mpit.ClassCounter
			if i%2 == 0 {
				class = mpit.ClassTimer
			}
			a.add(mpit.Variable{Name: fmt.Sprintf("rank %d, variable %d", n, i), Class: class, Datatype: tULong,
				Description: "Something that is counted in this rank alone."})
		}
		s := a.sample()
		b.StartTimer()
		r := NewRank(mapper, variables.Process{Library: mapping.Library{Name: mapping.OpenMPI, Version: "4.1.4"}})
		r.Update(s)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/count, "ns/variable")
}
