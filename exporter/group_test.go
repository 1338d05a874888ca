package exporter

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/exporter/internal/board"
	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mapping/rules"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// merging makes an Exporter treat the ranks of variables so by default, from its start on, with these rules besides.
func merging(t testing.TB, mode mapping.RankMode, own ...rules.Rule) func(*Exporter) {
	m, err := variables.New(variables.Config{TimerInterval: time.Second, Rank: mode,
		Rules: append(own, rules.Defaults()...)})
	require.NoError(t, err)
	return func(e *Exporter) { e.rules.Store(&ruling{mapper: m, identity: e.rules.Load().identity}) }
}

// ofAll returns the key of a series of all ranks of job 1, as valuesOf writes it.
func ofAll(name string) string { return name + `{jobid="1",user="alice",world="0"}` }

// 128 ranks with 50 variables each are 6,400 series, or 50.
func TestManyRanksCostAsMuchAsOne(t *testing.T) {
	const ranks, variables, peaks = 128, 50, 10
	series := func(page map[string]float64) (n int) {
		for key := range page {
			if strings.HasPrefix(key, "mpit_variable_") {
				n++
			}
		}
		return n
	}
	for _, test := range []struct {
		mode   mapping.RankMode
		series int
	}{
		{mapping.RankKeep, ranks * variables},
		{mapping.RankNode, variables},
	} {
		t.Run(string(test.mode), func(t *testing.T) {
			n := startNode(t, Config{}, merging(t, test.mode))
			for i := range ranks {
				cfg := small("1", i)
				cfg.Hello.Size, cfg.Variables, cfg.Values = ranks, nil, nil
				for k := range variables {
					v := mpit.Variable{Name: fmt.Sprintf("variable_%d", k), Class: mpit.ClassCounter,
						Datatype: mpit.DatatypeUnsignedLongLong, DatatypeBytes: 8}
					switch {
					case k < peaks:
						v.Class = mpit.ClassHighWatermark
					case k < 2*peaks:
						v.Class = mpit.ClassLevel
					}
					cfg.Variables = append(cfg.Variables, v)
					cfg.Values = append(cfg.Values, mpittest.Value{Name: v.Name, Class: v.Class,
						Values: []any{(i*7 + k) % ranks}})
				}
				n.connect(mpittest.New(cfg))
			}
			page := n.scrape()
			assert.Equal(t, test.series, series(page))
			assert.Equal(t, 1.0, page[of("mpit_rank_up", "1", 127)], "what is said of ranks is said of each")
			if test.mode == mapping.RankKeep {
				return
			}
			// Each of 0 to 127 is the value of one rank.
			assert.EqualValues(t, 127*128/2, page[ofAll("mpit_variable_49_total")])
			assert.EqualValues(t, 127*128/2, page[ofAll("mpit_variable_10_level")])
			assert.Equal(t, 127.0, page[ofAll("mpit_variable_3_highwatermark")])
		})
	}
}

// togetherNode is a node with three ranks whose variables are kept, or merged.
func togetherNode(t *testing.T, cfg Config) (*node, []*mpittest.Rank) {
	cfg.UserName = func(uint32) string { return "alice" }
	n := startNode(t, cfg, merging(t, mapping.RankKeep,
		rules.Rule{Match: rules.Match{Class: rules.List{"counter", "highwatermark", "timer"}}, Rank: mapping.RankNode}))
	var ranks []*mpittest.Rank
	for i := range 3 {
		ranks = append(ranks, mpittest.New(small("1", i)))
	}
	n.connect(ranks...)
	require.NoError(t, ranks[1].Set("peak", mpit.ClassHighWatermark, 0, 70))
	n.scrape()
	n.settle()
	return n, ranks
}

func TestGoldenOfRanksTogether(t *testing.T) {
	n, _ := togetherNode(t, Config{})
	w := get(n.Handler(), "/metrics")
	require.Equal(t, http.StatusOK, w.Code)
	var page strings.Builder
	for line := range strings.Lines(w.Body.String()) {
		if !strings.Contains(line, board.Prefix) {
			page.WriteString(line)
		}
	}
	golden(t, "together.golden", page.String())
	problems, err := promlint.New(bytes.NewReader(w.Body.Bytes())).Lint()
	require.NoError(t, err)
	assert.Empty(t, problems)
}

func TestTheSumOfTheRanks(t *testing.T) {
	n, ranks := togetherNode(t, Config{})
	page := n.scrape()
	assert.Equal(t, 33.0, page[ofAll("mpit_calls_total")])
	assert.NotContains(t, page, of("mpit_calls_total", "1", 1))
	assert.Equal(t, 70.0, page[ofAll("mpit_peak_highwatermark")])
	assert.NotContains(t, page, of("mpit_peak_highwatermark", "1", 1))
	assert.Equal(t, 5.0, page[of("mpit_depth_level", "1", 0)])
	assert.NotContains(t, page, ofAll("mpit_depth_level"))
	assert.Equal(t, 4.5, page[ofAll("mpit_waiting_time_seconds_sum")])

	require.NoError(t, ranks[2].Set("calls", mpit.ClassCounter, 0, 20))
	families, done, err := n.Gather(t.Context()) // a slow reader, so that the next page is a new one
	require.NoError(t, err)
	before := valuesOf(families)
	require.NoError(t, ranks[2].Set("calls", mpit.ClassCounter, 0, 30))
	assert.Equal(t, 51.0, n.scrape()[ofAll("mpit_calls_total")])
	assert.Equal(t, 41.0, before[ofAll("mpit_calls_total")])
	assert.Equal(t, before, valuesOf(families))
	done()
	assert.Equal(t, 51.0, n.scrape()[ofAll("mpit_calls_total")])
}

func TestRanksTogetherThatEnd(t *testing.T) {
	clock := newTestClock()
	n := startNode(t, Config{Retention: time.Minute}, withClock(clock), merging(t, mapping.RankNode))
	a, b, other := mpittest.New(small("1", 0)), mpittest.New(small("1", 1)), mpittest.New(small("2", 0))
	require.NoError(t, b.Set("peak", mpit.ClassHighWatermark, 0, 70))
	n.connect(a, b, other)
	page := n.scrape()
	assert.Equal(t, 21.0, page[ofAll("mpit_calls_total")])
	assert.Equal(t, 10.0, page[ofAll("mpit_depth_level")])
	g := n.lock()
	world := g.table.byID[a.Hello().ID].World
	g.unlock()
	_, _, grouped := n.page().board.OfWorld(world)
	assert.True(t, grouped)

	require.NoError(t, b.Set("calls", mpit.ClassCounter, 0, 90))
	n.finish(b, mpit.EndExit)
	shown := func(page map[string]float64) {
		t.Helper()
		assert.Equal(t, 100.0, page[ofAll("mpit_calls_total")])
		assert.Equal(t, 70.0, page[ofAll("mpit_peak_highwatermark")])
		assert.Equal(t, 5.0, page[ofAll("mpit_depth_level")])
	}
	shown(n.scrape())
	clock.advance(time.Minute)
	page = n.scrape()
	assert.NotContains(t, page, ended("exit"))
	assert.False(t, n.known(b))
	shown(page)

	n.finish(a, mpit.EndExit)
	page = n.scrape()
	assert.Equal(t, 100.0, page[ofAll("mpit_calls_total")])
	assert.NotContains(t, page, ofAll("mpit_depth_level"))
	clock.advance(time.Minute)
	page = n.scrape()
	assert.NotContains(t, page, ofAll("mpit_calls_total"), "the last one has taken it along")
	assert.Contains(t, page, `mpit_calls_total{jobid="2",user="alice",world="0"}`)
	_, _, grouped = n.page().board.OfWorld(world)
	assert.False(t, grouped)
}

func TestRankTogetherThatIsLostAndComesBack(t *testing.T) {
	clock := newTestClock()
	n := startNode(t, Config{Retention: time.Minute}, withClock(clock), merging(t, mapping.RankNode))
	a, b := mpittest.New(small("1", 0)), mpittest.New(small("1", 1))
	n.connect(a, b)
	calls := func() float64 { t.Helper(); return n.scrape()[ofAll("mpit_calls_total")] }
	require.Equal(t, 21.0, calls())
	n.kill(b)
	assert.Equal(t, 21.0, calls())
	n.connect(b)
	assert.Equal(t, 21.0, calls())

	n.kill(b)
	clock.advance(usual().grace)
	assert.Equal(t, 21.0, calls(), "lost")
	n.connect(b)
	assert.Equal(t, 21.0, calls(), "revived")

	n.kill(b)
	clock.advance(usual().grace)
	calls()
	clock.advance(time.Minute)
	assert.Equal(t, 21.0, calls())
	require.False(t, n.known(b))
	n.connect(b)
	assert.Equal(t, 21.0, calls(), "it was forgotten, and has been counted all the same")
	require.NoError(t, b.Set("calls", mpit.ClassCounter, 0, 15))
	assert.Equal(t, 25.0, calls())
}

func TestPanicOfARankTogetherWithOthers(t *testing.T) {
	n, broken := nodeWithUnsound(t, Config{}, merging(t, mapping.RankNode))
	require.Equal(t, 21.0, n.scrape()[ofAll("mpit_calls_total")])
	broken.inUpdate = true
	page := n.scrape()
	assert.Equal(t, 1.0, page["mpit_exporter_rank_panics_total"])
	assert.Equal(t, 21.0, page[ofAll("mpit_calls_total")])
	assert.Equal(t, 5.0, page[ofAll("mpit_depth_level")])
	page = n.scrape()
	assert.Equal(t, 21.0, page[ofAll("mpit_calls_total")], "figures made anew are counted once")
	assert.Equal(t, 10.0, page[ofAll("mpit_depth_level")])
}

func TestPanicCostsItsGroupOnly(t *testing.T) {
	var log logs
	n := startNode(t, Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}, merging(t, mapping.RankNode))
	a, b := mpittest.New(small("1", 0)), mpittest.New(small("2", 0))
	n.connect(a, b)
	n.scrape()
	n.contentsOf(a, func(c *contents) {
		c.figures = &fixed{structure: 99, series: []*mapping.Series{{Together: mapping.NewTogether(mapping.RankNode,
			mapping.MergeSum)}}}
	})
	p := n.page()
	p.board = newBoard(n.base)
	r, err := n.pages.commit(&questions{}, readers{asProtobuf: 1})
	require.NoError(t, err)
	families := valuesOf(mergeFamilies(familiesOf(r.bodies[asProtobuf]), r.own))
	assert.Equal(t, 1.0, families["mpit_exporter_rank_panics_total"])
	assert.NotContains(t, families, ofAll("mpit_calls_total"))
	assert.Equal(t, 10.0, families[`mpit_calls_total{jobid="2",user="alice",world="0"}`])
	assert.Contains(t, log.String(), "goroutine", "the log says where")
	n.contentsOf(a, func(c *contents) { c.figures = nil })
	assert.Equal(t, 10.0, n.scrape()[ofAll("mpit_calls_total")], "it is made anew")
}

// A page that could not be made is made anew, and what was on it isn't counted twice.
func TestPanicWhileThePageIsMade(t *testing.T) {
	n := startNode(t, Config{}, merging(t, mapping.RankNode))
	n.connect(mpittest.New(small("1", 0)), mpittest.New(small("1", 1)))
	want, used := n.scrape()[ofAll("mpit_calls_total")], n.budgets.Used(nil)
	n.page().board.Page = nil
	_, done, err := n.Gather(t.Context())
	done()
	require.ErrorContains(t, err, "exporter: making the page: panic")
	assert.Equal(t, want, n.scrape()[ofAll("mpit_calls_total")])
	assert.Equal(t, used, n.budgets.Used(nil))
}

// After a restart, a sum counts what its ranks count from then on: what they counted before may have been in the sum
// of an earlier exporter.
func TestOlderRanksBeginAtZeroTogether(t *testing.T) {
	clock := newTestClock()
	clock.advance(time.Hour)
	n := startNode(t, Config{}, withClock(clock), merging(t, mapping.RankNode), startedAt(clock.Now()))
	calls := ofAll("mpit_calls_total")
	young := small("1", 0)
	young.Hello.InitTime = clock.Now().Add(time.Second)
	n.connect(mpittest.New(young))
	assert.Equal(t, 10.0, n.scrape()[calls], "nothing holds it up")
	old := mpittest.New(small("1", 3))
	n.connect(old)
	assert.Equal(t, 10.0, n.scrape()[calls])
	require.NoError(t, old.Set("calls", mpit.ClassCounter, 0, 20))
	assert.Equal(t, 17.0, n.scrape()[calls])
}

// joined is a rank that has answered and is gone, in whatever user's name.
func (n *node) joined(uid uint32, id byte, calls uint64) *rank {
	g := n.lock()
	h := small("1", int(id)).Hello
	h.ID, h.InitTime = mpit.RankID{id}, n.started.Add(time.Hour)
	r := g.add(h, mpit.Peer{UID: uid}, processOf(&h, fmt.Sprint(uid)))
	r.gone, r.state = n.now().AddDate(1, 0, 0), stateUp // not lost yet
	g.unlock()
	s := benchSample(benchSeries)
	s.Values[0] = calls
	require.True(n.t, n.absorbed(r, s))
	return r
}

func TestTwoUsersThatClaimOneJob(t *testing.T) {
	n := startNode(t, Config{}, merging(t, mapping.RankNode))
	sums := func() map[string]float64 {
		sums := map[string]float64{}
		for key, value := range n.scrape() {
			if labels, ok := strings.CutPrefix(key, "mpit_variable_0_total"); ok {
				sums[labels] = value
			}
		}
		return sums
	}
	first := n.joined(1, 0, 10)
	n.joined(2, 0+10, 500)
	n.joined(1, 1, 7)
	assert.Equal(t, map[string]float64{`{jobid="1",user="1",world="0"}`: 17, `{jobid="1",user="2",world="0"}`: 500},
		sums())
	forget := func(list ...*rank) {
		g := n.lock()
		defer g.unlock()
		for _, r := range list {
			g.remove(r)
		}
	}
	forget(first)
	assert.Equal(t, map[string]float64{`{jobid="1",user="1",world="0"}`: 17, `{jobid="1",user="2",world="0"}`: 500},
		sums())
	g := n.lock()
	last := g.table.byID[mpit.RankID{1}]
	g.unlock()
	forget(last)
	assert.Equal(t, map[string]float64{`{jobid="1",user="2",world="0"}`: 500}, sums(), "it stays what it is")
	n.joined(3, 20, 3)
	assert.Equal(t, map[string]float64{`{jobid="1",user="3",world="0"}`: 3, `{jobid="1",user="2",world="0"}`: 500},
		sums())
}

func TestGroupIsBoundedOnThePage(t *testing.T) {
	n := startNode(t, Config{Limits: rules.Limits{SeriesPerJob: 20}}, merging(t, mapping.RankNode))
	n.joined(1, 0, 1)
	page := n.scrape()
	merged := 0
	for key := range page {
		if strings.HasPrefix(key, "mpit_variable_") {
			merged++
		}
	}
	assert.Equal(t, 20, merged)
	dropped := float64(benchSeries - 20)
	const key = `mpit_exporter_series_dropped_total{reason="job_over_limit"}`
	assert.Equal(t, dropped, page[key])
	assert.Equal(t, dropped, n.scrape()[key], "counted once")
}

func TestMergingAllocatesNothing(t *testing.T) {
	n := startNode(t, Config{}, merging(t, mapping.RankNode))
	for i := range byte(8) {
		n.joined(1, i, 5)
	}
	n.scrape()
	require.Len(t, n.message("mpit_variable_0_total").Metric, 1)
	on := n.page()
	p := on.board
	assert.Zero(t, testing.AllocsPerRun(10, func() {
		p.Begin(on.order, on.describing, on.describingAll)
		p.End(on.categories, on.controls)
	}))
}
