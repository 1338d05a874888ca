package exporter

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// benchHistograms is how many functions' times a rank has here: 60 of 16 lines each are more than most programs call.
const benchHistograms = 60

// benchTimers are variables that become histograms: timed calls, each counted by the agent, or times of which only
// the sum is known.
var benchTimers = []struct {
	name     string
	elements int
	variable func(name string) mpit.Variable
	// move is what a variable's elements gain from scrape to scrape.
	move func(elements []uint64)
}{
	{"distributions", mpittest.DistributionElements,
		func(name string) mpit.Variable { return mpittest.DistributionVariable(name, mpit.BindNone) },
		func(elements []uint64) {
			elements[0] += 3000
			for k := 10; k < 16; k++ {
				elements[k]++
			}
		}},
	{"timers", 1, func(name string) mpit.Variable {
		v := mpittest.DistributionVariable(name, mpit.BindNone)
		v.Distribution, v.Datatype = false, mpit.DatatypeDouble
		return v
	}, func(elements []uint64) { elements[0] += 1 << 44 }}, // of a double
}

// BenchmarkScrapeOfHistograms is BenchmarkScrape of ranks that have nothing but histograms, of each kind.
func BenchmarkScrapeOfHistograms(b *testing.B) {
	for _, ranks := range []int{256, 1000} {
		for _, kind := range benchTimers {
			b.Run(fmt.Sprintf("ranks=%d/histograms=%d/of=%s/by=mpit-exporter", ranks, benchHistograms, kind.name),
				func(b *testing.B) {
					first := &mpit.Sample{Variables: &mpit.Variables{Generation: 1},
						Layout: &mpit.Layout{Generation: 1}}
					for i := range uint32(benchHistograms) {
						v := kind.variable(fmt.Sprintf("v%d", i))
						v.ID = i
						first.Variables.ByID = append(first.Variables.ByID, v)
						first.Layout.Handles = append(first.Layout.Handles, mpit.Handle{
							ID: i + 1, Variable: i, Count: kind.elements, Created: testTime,
							Offset: int(i) * kind.elements,
						})
					}
					first.Layout.Values = benchHistograms * kind.elements
					first.Values = make([]uint64, first.Layout.Values)
					samples, advance := benchSamplesOf(ranks, first, func(values []uint64) {
						for at := 0; at < len(values); at += kind.elements {
							kind.move(values[at : at+kind.elements])
						}
					})
					e, touch := benchExporterOf(b, samples, advance)
					h, req := e.Handler(), asked("", "gzip")
					length := 0
					scrape := func() {
						touch()
						length = 0
						h.ServeHTTP(discard{http.Header{}, &length}, req)
					}
					scrape()
					b.ReportAllocs()
					var cpu cpuMeter
					cpu.start()
					for b.Loop() {
						scrape()
					}
					cpu.stop()
					cpu.report(b, ranks*benchHistograms)
					b.ReportMetric(float64(length)/float64(ranks*benchHistograms), "body-B/series")
				})
		}
	}
}

// BenchmarkRoundOfHistograms is BenchmarkRound of such ranks, every value of which changes from scrape to scrape.
func BenchmarkRoundOfHistograms(b *testing.B) {
	for _, ranks := range []int{256, 1000} {
		for _, kind := range benchTimers {
			b.Run(fmt.Sprintf("ranks=%d/histograms=%d/of=%s", ranks, benchHistograms, kind.name), func(b *testing.B) {
				var variables []mpit.Variable
				for i := range benchHistograms {
					variables = append(variables, kind.variable(fmt.Sprintf("v%d", i)))
				}
				gain := []any{0.001}
				if kind.elements > 1 {
					gain = mpittest.Distribution(time.Microsecond, 2*time.Microsecond, 4*time.Microsecond,
						time.Millisecond)
				}
				benchRound(b, ranks, func(rank int) mpittest.Config {
					cfg := small("1", rank)
					cfg.Variables, cfg.Values, cfg.Elements, cfg.Initial = variables, nil, nil, nil
					return cfg
				}, func(r *mpittest.Rank) error {
					for i := range variables {
						if err := r.Add(variables[i].Name, mpit.ClassTimer, 0, gain...); err != nil {
							return err
						}
					}
					return nil
				})
			})
		}
	}
}
