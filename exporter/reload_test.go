package exporter

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/exporter/internal/self"
	"github.com/mpit-exporter/mpit-exporter/mapping/rules"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// withRules is rules to reload, before the shipped ones.
func withRules(t *testing.T, own ...rules.Rule) Rules {
	t.Helper()
	m, err := variables.New(variables.Config{Rules: append(own, shippedRules()...), TimerInterval: time.Second})
	require.NoError(t, err)
	return Rules{Mapper: m}
}

func named(name string) rules.Match { return rules.Match{Name: name} }

const (
	reloadedFamily = "mpit_exporter_config_last_reload_successful"
	reloadsOK      = `mpit_exporter_config_reloads_total{result="success"}`
	reloadsFailed  = `mpit_exporter_config_reloads_total{result="failure"}`
)

func TestReload(t *testing.T) {
	clock := newTestClock()
	cfg := small("1", 0)
	cfg.Clock = clock.Now
	n := startNode(t, Config{})
	r := mpittest.New(cfg)
	n.connect(r)
	n.scrape()
	clock.advance(10 * time.Second)
	require.NoError(t, r.Add("waiting", mpit.ClassTimer, 0, 2.5))
	before := n.scrape()
	calls, sum, count := of("mpit_calls_total", "1", 0), of("mpit_waiting_time_seconds_sum", "1", 0),
		of("mpit_waiting_time_seconds_count", "1", 0)
	require.Equal(t, []float64{10, 4}, []float64{before[calls], before[sum]})
	require.NotZero(t, before[count])
	dropped := `mpit_exporter_series_dropped_total{reason="rule"}`

	yes := true
	t.Run("what no rule touches goes on, names and classes change, and what is dropped is not read",
		func(t *testing.T) {
			require.NoError(t, n.Reload(withRules(t,
				rules.Rule{Match: named("calls"), Drop: &yes},
				rules.Rule{Match: named("depth"), Class: "counter", Unit: "{message}", Name: "arrived"},
			)))
			page := n.scrape()
			assert.NotContains(t, page, calls)
			assert.Equal(t, 0.0, page[of("mpit_arrived_total", "1", 0)], "it begins now")
			assert.Equal(t, before[sum], page[sum])
			assert.Equal(t, before[count], page[count], "a histogram's observations are not lost")
			assert.Equal(t, 1.0, page[`mpit_pvar_info{bind="NO_OBJECT",bits="64",class="LEVEL",name="depth",unit="{message}",verbosity="USER_BASIC"}`])
			assert.Equal(t, before[dropped]+1, page[dropped])
			require.Eventually(t, func() bool {
				return !r.Selected(0) && r.Selected(1) && r.Selected(2) &&
					r.Selected(3)
			},
				longest, time.Millisecond, "the agent is told")
		})
	t.Run("the same rules again: nothing is left out that has not been counted", func(t *testing.T) {
		require.NoError(t, n.Reload(withRules(t, rules.Rule{Match: named("calls"), Drop: &yes})))
		assert.Equal(t, before[dropped]+1, n.scrape()[dropped])
	})
	t.Run("what was dropped is back, and has counted meanwhile", func(t *testing.T) {
		require.NoError(t, r.Add("calls", mpit.ClassCounter, 0, 7))
		clock.advance(10 * time.Second)
		require.NoError(t, r.Add("waiting", mpit.ClassTimer, 0, 1))
		require.NoError(t, n.Reload(withRules(t)))
		n.scrape()
		require.Eventually(t, func() bool { return r.Selected(0) }, longest, time.Millisecond)
		page := n.scrape()
		assert.Equal(t, 17.0, page[calls])
		assert.Equal(t, []float64{5, before[count] + 1}, []float64{page[sum], page[count]})
		for key := range page {
			assert.False(t, strings.HasPrefix(key, "mpit_arrived"), key)
		}
	})
	page := n.scrape()
	assert.Equal(t, []float64{1, 3, 0}, []float64{page[reloadedFamily], page[reloadsOK], page[reloadsFailed]})
	assert.Zero(t, page["mpit_exporter_rank_panics_total"])
}

// TestReloadThatFails: the old rules stay, the metric says so until others come, and each of the mistakes stands in
// the log.
func TestReloadThatFails(t *testing.T) {
	var log logs
	clock := newTestClock()
	n := startNode(t, Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}, withClock(clock))
	r := mpittest.New(small("1", 0))
	n.connect(r)
	before := n.scrape()
	at := before["mpit_exporter_config_last_reload_success_timestamp_seconds"]
	assert.NotZero(t, at, "the rules that it begins with")

	n.ReloadFailed(errors.New("a.yaml:1: no such class\nb.yaml:7: no such key"))
	require.ErrorContains(t, n.Reload(Rules{}), "Mapper is nil")
	page := n.scrape()
	assert.Equal(t, []float64{0, 0, 2, at}, []float64{
		page[reloadedFamily], page[reloadsOK], page[reloadsFailed],
		page["mpit_exporter_config_last_reload_success_timestamp_seconds"],
	})
	assert.Equal(t, before[of("mpit_calls_total", "1", 0)], page[of("mpit_calls_total", "1", 0)])
	assert.Contains(t, log.String(),
		`level=ERROR msg="The rules could not be read anew; the old ones stay in force" err="a.yaml:1: no such class"`)
	assert.Contains(t, log.String(), `err="b.yaml:7: no such key"`)

	require.NoError(t, n.Reload(withRules(t)))
	page = n.scrape()
	assert.Equal(t, []float64{1, 1, 2, self.Seconds(testTime)}, []float64{
		page[reloadedFamily], page[reloadsOK], page[reloadsFailed],
		page["mpit_exporter_config_last_reload_success_timestamp_seconds"],
	})
}

// TestReloadPassesOthersBy: who does not answer, and who has ended, has the series that he had.
func TestReloadPassesOthersBy(t *testing.T) {
	n := startNode(t, Config{}, impatient)
	prompt, late, gone := mpittest.New(small("1", 0)), mpittest.New(small("1", 1)), mpittest.New(small("1", 2))
	n.connect(prompt, late, gone)
	n.scrape()
	n.finish(gone, mpit.EndFinalize)
	late.Stall(true)

	require.NoError(t, n.Reload(withRules(t, rules.Rule{Match: named("calls"), Name: "renamed"})))
	page := n.scrapeFor(prompt)
	assert.Equal(t, 0.0, page[of("mpit_renamed_total", "1", 0)], "it begins now")
	assert.Equal(t, 11.0, page[of("mpit_calls_total", "1", 1)])
	assert.Equal(t, 12.0, page[of("mpit_calls_total", "1", 2)])

	late.Stall(false)
	require.Eventually(t, func() bool { _, there := n.scrape()[of("mpit_renamed_total", "1", 1)]; return there },
		longest, time.Millisecond)
	page = n.scrape()
	assert.NotContains(t, page, of("mpit_calls_total", "1", 1))
	assert.Equal(t, 12.0, page[of("mpit_calls_total", "1", 2)])
}

// TestReloadChangesTypes: where ranks go over one after the other, a family would have two types, or a name in
// OpenMetrics two families. Who comes later waits, and is counted once, until the old series have left.
func TestReloadChangesTypes(t *testing.T) {
	for _, test := range []struct {
		name     string
		from, to rules.Rule
		old, new string
	}{
		{"a name with two types",
			rules.Rule{Match: named("depth"), Class: "level", Name: "same"},
			rules.Rule{Match: named("depth"), Class: "generic", Name: "same"},
			"mpit_same", "mpit_same"},
		{"a gauge that becomes a counter",
			rules.Rule{Match: named("depth"), Class: "level", Name: "same"},
			rules.Rule{Match: named("depth"), Class: "counter", Name: "same"},
			"mpit_same", "mpit_same_total"},
		{"a counter that becomes a gauge",
			rules.Rule{Match: named("depth"), Class: "counter", Name: "same"},
			rules.Rule{Match: named("depth"), Class: "level", Name: "same"},
			"mpit_same_total", "mpit_same"},
	} {
		t.Run(test.name, func(t *testing.T) {
			n := startNode(t, Config{Mapper: withRules(t, test.from).Mapper}, impatient)
			prompt, late := mpittest.New(small("1", 0)), mpittest.New(small("1", 1))
			n.connect(prompt, late)
			page := n.scrape()
			assert.Equal(t, []float64{5, 5}, []float64{page[of(test.old, "1", 0)], page[of(test.old, "1", 1)]})
			was := n.message(test.old).GetType()

			late.Stall(true)
			require.NoError(t, n.Reload(withRules(t, test.to)))
			for range 3 {
				page = n.scrapeFor(prompt)
				assert.NotContains(t, page, of(test.new, "1", 0))
				assert.Equal(t, 1.0, page[`mpit_exporter_series_dropped_total{reason="type_conflict"}`],
					"counted once")
			}
			late.Stall(false)
			require.Eventually(t, func() bool {
				page = n.scrape()
				_, first := page[of(test.new, "1", 0)]
				_, second := page[of(test.new, "1", 1)]
				return first && second
			}, longest, time.Millisecond)
			is := n.message(test.new).GetType()
			assert.NotEqual(t, was, is)
			assert.Zero(t, page["mpit_exporter_rank_panics_total"])
		})
	}
}

// TestReloadChangesTypesOfAll: ranks that go over in one round are not in each other's way.
func TestReloadChangesTypesOfAll(t *testing.T) {
	n := startNode(t, Config{Mapper: withRules(t, rules.Rule{Match: named("depth"), Class: "level",
		Name: "same"}).Mapper})
	n.connect(mpittest.New(small("1", 0)), mpittest.New(small("1", 1)))
	n.scrape()
	require.NoError(t, n.Reload(withRules(t, rules.Rule{Match: named("depth"), Class: "generic", Name: "same"})))
	page := n.scrape()
	assert.Equal(t, []float64{5, 5}, []float64{page[of("mpit_same", "1", 0)], page[of("mpit_same", "1", 1)]})
	assert.Zero(t, page[`mpit_exporter_series_dropped_total{reason="type_conflict"}`])
}

// TestReloadAwaitsAFreshSample: what a passive rank has read before would look like a fall to figures that know
// nothing else.
func TestReloadAwaitsAFreshSample(t *testing.T) {
	c, now := &contents{clock: 10 * time.Second}, &ruling{epoch: 1}
	for _, test := range []struct {
		name   string
		sample mpit.Sample
		want   bool
	}{
		{"fresh", mpit.Sample{Monotonic: 11 * time.Second, Layout: &mpit.Layout{Values: 1}, Values: []uint64{1}},
			true},
		{"the same again", mpit.Sample{Monotonic: 10 * time.Second, Layout: &mpit.Layout{}}, true},
		{"an older one", mpit.Sample{Monotonic: 9 * time.Second, Layout: &mpit.Layout{Values: 1},
			Values: []uint64{1}}, false},
		{"without values", mpit.Sample{Monotonic: 11 * time.Second, Layout: &mpit.Layout{Values: 1}}, false},
		{"without a layout", mpit.Sample{Monotonic: 11 * time.Second}, false},
	} {
		assert.Equal(t, test.want, now.outdate(c, &test.sample), test.name)
	}
	c.facts.Rules = now.epoch
	assert.False(t, now.outdate(c, &mpit.Sample{Monotonic: 11 * time.Second, Layout: &mpit.Layout{}}), "up to date")
}

// TestManyReloads: whatever meets, nothing falls and nobody fails.
func TestManyReloads(t *testing.T) {
	t.Parallel() // it computes while others wait
	n := startNode(t, Config{})
	ranks := []*mpittest.Rank{mpittest.New(small("1", 0)), mpittest.New(small("1", 1)), mpittest.New(small("1", 2))}
	n.connect(ranks...)
	n.scrape()
	yes := true
	sets := []Rules{}
	for i := range 30 {
		own := [][]rules.Rule{
			nil,
			{{Match: named("depth"), Drop: &yes}},
			{{Match: named("depth"), Class: "counter", Name: "same"}},
			{{Match: named("depth"), Name: "same"}, {Match: named("peak"), Drop: &yes}},
		}[i%4]
		sets = append(sets, withRules(t, own...))
	}
	var wg sync.WaitGroup
	done := make(chan struct{})
	wg.Go(func() {
		defer close(done)
		for _, s := range sets {
			assert.NoError(t, n.Reload(s))
			n.ReloadFailed(errors.New("no"))
			for _, r := range ranks {
				assert.NoError(t, r.Add("calls", mpit.ClassCounter, 0, 1))
			}
		}
	})
	for range 3 {
		wg.Go(func() {
			last := map[string]float64{}
			for more := true; more; {
				select {
				case <-done:
					more = false
				default:
				}
				page := n.scrape()
				for i := range ranks {
					for _, name := range []string{"mpit_calls_total", "mpit_waiting_time_seconds_sum",
						"mpit_waiting_time_seconds_count"} {
						key := of(name, "1", i)
						value, ok := page[key]
						if !assert.True(t, ok, "%s is gone", key) || !assert.GreaterOrEqual(t, value, last[key], key) {
							return
						}
						last[key] = value
					}
				}
			}
		})
	}
	wg.Wait()
	page := n.scrape()
	assert.Equal(t, 40.0, page[of("mpit_calls_total", "1", 0)])
	assert.Equal(t, []float64{0, 30, 30}, []float64{page[reloadedFamily], page[reloadsOK], page[reloadsFailed]})
	assert.Zero(t, page["mpit_exporter_rank_panics_total"])
}

// What is opened on request is opened in running ranks once a rule asks, and stays open. A connection that is lost
// meanwhile changes nothing.
func TestReloadOpens(t *testing.T) {
	yes := true
	cfg := small("1", 0)
	cfg.Variables = append(cfg.Variables, mpit.Variable{
		Name: "sends", Class: mpit.ClassCounter, Datatype: mpit.DatatypeUnsignedLongLong, DatatypeBytes: 8,
		State: mpit.VariableOnRequest, OnRequest: true,
	})
	cfg.Initial = map[string]float64{"sends": 1000}
	n := startNode(t, Config{Mapper: withRules(t).Mapper})
	r := mpittest.New(cfg)
	n.connect(r)
	sends, inState := of("mpit_sends_total", "1", 0),
		func(state string) string { return `mpit_exporter_variables{state="` + state + `"}` }
	page := n.scrape()
	assert.NotContains(t, page, sends)
	assert.Equal(t, []float64{4, 1}, []float64{page[inState("open")], page[inState("on_request")]})
	assert.Error(t, r.Add("sends", mpit.ClassCounter, 0, 1), "it is not open")

	// Asked, but not heard.
	r.Stall(true)
	require.NoError(t, n.Reload(withRules(t, rules.Rule{Match: named("sends"), Open: &yes})))
	n.scrapeFor() // nobody
	n.kill(r)
	r.Stall(false)
	n.connect(r)
	n.scrape() // goes over to the rules, and asks
	opened := func() bool { return r.Add("sends", mpit.ClassCounter, 0, 3) == nil }
	require.Eventually(t, opened, longest, time.Millisecond)
	page = n.scrape()
	assert.Equal(t, 3.0, page[sends], "what it was when it was opened is not counted")
	assert.Equal(t, []float64{5, 0}, []float64{page[inState("open")], page[inState("on_request")]})

	require.NoError(t, n.Reload(withRules(t)))
	require.NoError(t, r.Add("sends", mpit.ClassCounter, 0, 4))
	assert.Equal(t, 7.0, n.scrape()[sends], "it goes on without the rule")
	assert.Zero(t, n.scrape()["mpit_exporter_rank_panics_total"])
}

// A request that can't be sent waits for the next round.
func TestOpenIsTriedAgain(t *testing.T) {
	n := startNode(t, Config{})
	r := mpittest.New(small("1", 0))
	n.connect(r)
	g := n.lock()
	known := g.table.byID[r.Hello().ID]
	known.send.open = []uint32{7}
	c := &connection{ranks: n.ranks, line: known.line, rank: known}
	g.unlock()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	c.push(over)
	g = n.lock()
	assert.Equal(t, []uint32{7}, known.send.open)
	g.unlock()
	c.push(t.Context())
	g = n.lock()
	defer g.unlock()
	assert.Empty(t, known.send.open)

	alone := &attendance{line: newLine(c.session), send: outbox{open: []uint32{7}}}
	alone.nudge()
	assert.Len(t, alone.line.wake, 1, "it is enough to wake who sends it")
}

// content is figures that never say that the agent has to be told anything.
type content struct{ figures }

func (c content) Select() (def bool, ids map[uint32]bool, changed bool) {
	def, ids, _ = c.figures.Select()
	return def, ids, false
}

// TestReloadSelects: an agent reads what the old rules wanted until it is told, whatever the new figures take for
// granted.
func TestReloadSelects(t *testing.T) {
	yes := true
	n := startNode(t, Config{Mapper: withRules(t, rules.Rule{Match: named("calls"), Drop: &yes}).Mapper})
	r := mpittest.New(small("1", 0))
	n.connect(r)
	n.scrape()
	require.Eventually(t, func() bool { return !r.Selected(0) }, longest, time.Millisecond)
	g := n.lock()
	sound := n.newRank
	n.newRank = func(m *variables.Mapper, p variables.Process) figures {
		f := sound(m, p)
		return content{f}
	}
	g.unlock()
	require.NoError(t, n.Reload(withRules(t)))
	n.scrape()
	require.Eventually(t, func() bool { return r.Selected(0) }, longest, time.Millisecond)
}
