package exporter

import (
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/exporter/exposition"
	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mapping/series"
	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// Nothing holds what a removed rank had, in whatever way the others are read: its figures are most of an exporter's
// memory.
func TestRemovedRankIsNotHeld(t *testing.T) {
	var reader *OTelReader
	for name, read := range map[string]func(n *node){
		"protobuf": func(n *node) { n.scrape() },
		"text":     func(n *node) { get(n.Handler(), "/metrics") },
		"metric data": func(n *node) {
			scopes, done, err := reader.Read(n.t.Context())
			require.NoError(n.t, err)
			assert.NotEmpty(n.t, scopes)
			done()
		},
	} {
		t.Run(name, func(t *testing.T) {
			clock := newTestClock()
			n := startNode(t, Config{}, withClock(clock))
			stays, r := mpittest.New(small("1", 0)), mpittest.New(small("1", 1))
			n.connect(stays, r)
			if name == "metric data" {
				reader = n.OTelReader(OTelConfig{})
				defer reader.Close()
				read(n)
			}
			n.scrape()
			get(n.Handler(), "/metrics")
			var figures weak.Pointer[series.Rank]
			var one weak.Pointer[mapping.Series]
			n.contentsOf(r, func(c *contents) {
				figures = weak.Make(c.figures.(*series.Rank))
				one = weak.Make(c.figures.Series()[0])
			})

			n.finish(r, mpit.EndExit) // the last one of its world
			read(n)
			clock.advance(time.Hour)
			read(n)
			assert.Eventually(t, func() bool {
				runtime.GC()
				return figures.Value() == nil && one.Value() == nil
			}, longest, time.Millisecond)
		})
	}
}

// bytesPerSeries is what a series of a rank with a hundred may take at most, all that belongs to it and its part of
// its rank's: a fifth more than it did when docs/performance.md was written.
const bytesPerSeries = 900

// Ranks of one job cost little: what they have in common is there once.
func TestMemoryOfASeries(t *testing.T) {
	const ranks, series = 200, 100
	exposition.New(nil).Write(exposition.Text, 1).Release()
	before := liveHeap()
	e, touch := benchExporter(t, ranks, series)
	for range 2 {
		get(e.Handler(), "/metrics")
		touch()
	}
	each := (liveHeap() - before) / (ranks * series)
	g := e.lock()
	defer g.unlock()
	assert.Same(t, &g.table.ordered[0].facts.Load().Infos[0], &g.table.ordered[1].facts.Load().Infos[0],
		"what describes the variables")
	t.Log(each, "bytes for each series")
	assert.Less(t, each, bytesPerSeries)
}

// liveHeap is the memory that something refers to, in bytes.
func liveHeap() int {
	for range 3 { // pools hold things for two collections
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
