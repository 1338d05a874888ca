package cluster

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// BenchmarkDisk writes what nodes of three sites show in some hours as blocks of two hours, with promtool,
// and reports how large they are, and what a formula that is fitted to all of them says: so many bytes for
// each sample, and so many for each series of a block. No server runs and time isn't waited for, so a busy machine
// changes nothing. Series of rules are not among them.
func BenchmarkDisk(b *testing.B) {
	nodes, ranks := number(b, "BENCH_NODES", 4), number(b, "BENCH_RANKS", 2)
	hours := number(b, "BENCH_HOURS", 4)
	flags, ok := os.LookupEnv("BENCH_EXEC")
	if !ok {
		flags = "--calls"
	}
	template := record(b, suite, strings.Fields(flags), 5*time.Second, 10*time.Second)
	perRank, perNode := template.series()
	b.Logf("%d nodes with %d ranks each, exec %s: %.0f series a rank and %d a node", nodes, ranks, flags, perRank, perNode)
	const always = 2 // more than the nodes can do: a job waits for each that ends
	sites := []struct {
		name     string
		workload *workload
	}{
		{"one-node jobs of an hour", newWorkloadOf(1, nodes, always, func(r *rand.Rand) (int, time.Duration) {
			return 1, seconds(r.ExpFloat64() * 3600)
		})},
		{"the model's", newWorkload(1, nodes, 0.8)},
		{"on all nodes, of a day", newWorkloadOf(1, nodes, always, func(r *rand.Rand) (int, time.Duration) {
			return nodes, 24 * time.Hour
		})},
	}
	var written []blocks
	for _, site := range sites {
		m := newMachine(site.workload)
		e := exporters{machine: m, template: template, ranks: ranks}
		written = append(written, e.write(b, 386*time.Hour, hours))
	}
	perSample, perSeries := fit(written)
	b.Logf("%.2f bytes a sample and %.0f for each series of a block", perSample, perSeries)
	for i, w := range written {
		n, s, d := float64(nodes), perRank*float64(ranks), float64(perNode)
		active := w.busy*s + n*d
		short := active // series of a block
		if w.busy > 0 {
			short += w.busy * s * 2 / w.length
		}
		blocks := float64(hours) / 2
		said := active*float64(hours)*3600/interval.Seconds()*perSample + blocks*short*perSeries
		b.Logf("%-26s T %5.2f h, %.1f nodes busy: %8.0f samples, %6.0f series of blocks, %9.0f bytes (%.2f a sample); "+
			"fitted %+.1f %%, from N, R and T %+.1f %%", sites[i].name, w.length, w.busy, w.samples, w.series, w.bytes,
			w.bytes/w.samples, 100*((w.samples*perSample+w.series*perSeries)/w.bytes-1), 100*(said/w.bytes-1))
	}
}

// blocks are what a site has written: samples, series of each block and bytes, all together; and the nodes that had a
// job, in the mean, and the hours from one job on a node to the next.
type blocks struct{ samples, series, bytes, busy, length float64 }

// write has pages scraped for so many hours, which are even, from a moment on.
func (e exporters) write(b *testing.B, from time.Duration, hours int) (sum blocks) {
	dir := b.TempDir()
	file, err := os.Create(filepath.Join(dir, "scraped"))
	require.NoError(b, err)
	out := bufio.NewWriterSize(file, 1<<20)
	e.machine.advance(from)
	before, scrapes := e.machine.placed, 0.
	for now := from; now < from+time.Duration(hours)*time.Hour; now += interval {
		e.machine.advance(now)
		for i := range e.machine.nodes {
			e.scrape(out, i, now)
		}
		sum.busy += float64(e.machine.busy())
		scrapes++
	}
	sum.busy /= scrapes
	sum.length = sum.busy * float64(hours) / max(1, float64(e.machine.placed-before))
	_, err = out.WriteString("# EOF\n")
	require.NoError(b, err)
	require.NoError(b, out.Flush())
	require.NoError(b, file.Close())
	said, err := exec.CommandContext(b.Context(), "promtool", "tsdb", "create-blocks-from", "openmetrics", "-q", file.Name(),
		filepath.Join(dir, "blocks")).CombinedOutput()
	require.NoError(b, err, "%s", said)
	require.NoError(b, os.Remove(file.Name()))
	written, err := filepath.Glob(filepath.Join(dir, "blocks", "*", "meta.json"))
	require.NoError(b, err)
	require.Len(b, written, hours/2)
	for _, name := range written {
		text, err := os.ReadFile(name)
		require.NoError(b, err)
		var meta struct {
			Stats struct{ NumSamples, NumSeries float64 }
		}
		require.NoError(b, json.Unmarshal(text, &meta))
		sum.samples, sum.series = sum.samples+meta.Stats.NumSamples, sum.series+meta.Stats.NumSeries
		sum.bytes += size(b, filepath.Dir(name))
	}
	return sum
}

// scrape writes what is on a node's page, with a moment that is not quite that of the other nodes.
func (e exporters) scrape(out *bufio.Writer, node int, now time.Duration) {
	places, _ := e.machine.shown(node)
	when := now + time.Duration(node)*time.Second + time.Duration(rand.IntN(3))*time.Millisecond
	end := fmt.Sprintf(" %.3f\n", when.Seconds())
	labels := fmt.Sprintf(`job="mpit",instance="node%d:10093"`, node)
	for line := range strings.Lines(string(e.page(places, now))) {
		if line[0] == '#' {
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		series, has := strings.CutSuffix(line[:at], "}")
		if has {
			series += ","
		} else {
			series += "{"
		}
		_, _ = out.WriteString(series + labels + "} " + strings.TrimSpace(line[at:]) + end) // Flush returns the error
	}
}

// fit is the least sum of squares of relative errors.
func fit(all []blocks) (perSample, perSeries float64) {
	var xx, xy, yy, x, y float64
	for _, w := range all {
		u, v := w.samples/w.bytes, w.series/w.bytes
		xx, xy, yy, x, y = xx+u*u, xy+u*v, yy+v*v, x+u, y+v
	}
	det := xx*yy - xy*xy
	return (x*yy - y*xy) / det, (y*xx - x*xy) / det
}
