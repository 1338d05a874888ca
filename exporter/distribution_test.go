package exporter

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mapping/rules"
	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// callTime is a variable of the call profile.
const callTime = "mpit_call_time_MPI_Send"

// withDistribution adds to a rank what the call profile has of one function on a communicator halo.
func withDistribution(cfg mpittest.Config, durations ...time.Duration) mpittest.Config {
	cfg.Variables = append(cfg.Variables, mpittest.DistributionVariable(callTime, mpit.BindComm))
	cfg.Objects = append(cfg.Objects, mpit.Object{Kind: mpit.BindComm, Name: "halo", Size: 2, Created: testTime})
	cfg.Values = append(cfg.Values, mpittest.Value{Name: callTime, Class: mpit.ClassTimer,
		Object: uint32(len(cfg.Objects)), Values: mpittest.Distribution(durations...)})
	return cfg
}

// bucketsOnPage are the buckets of all series of the family by power of two, of ranks by their labels, when count,
// +Inf and the native buckets agree in each.
func bucketsOnPage(t require.TestingT, families []*dto.MetricFamily, name string) map[string]map[int32]uint64 {
	all := map[string]map[int32]uint64{}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.Metric {
			var labels []string
			for _, l := range m.Label {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			h, buckets := m.Histogram, map[int32]uint64{}
			require.NotNil(t, h.Schema, "%v has native buckets", labels)
			require.EqualValues(t, mapping.ExactSchema, h.GetSchema())
			total, below := h.GetZeroCount(), uint64(0)
			buckets[-30] = total
			at, n, deltas := int32(0), int64(0), h.PositiveDelta
			for _, span := range h.PositiveSpan {
				at += span.GetOffset()
				for range span.GetLength() {
					n, deltas = n+deltas[0], deltas[1:]
					buckets[at] = uint64(n)
					total += uint64(n)
					at++
				}
			}
			for _, b := range h.Bucket {
				require.GreaterOrEqual(t, b.GetCumulativeCount(), below)
				below = b.GetCumulativeCount()
			}
			require.Equal(t, h.GetSampleCount(), total, labels)
			require.LessOrEqual(t, below, total, labels)
			all[strings.Join(labels, ",")] = buckets
		}
	}
	return all
}

// Sizes are in bytes wherever they go: their native histograms' zero bucket ends at a byte.
func TestPagesOfSizes(t *testing.T) {
	n := startNode(t, Config{})
	cfg := small("1", 0)
	cfg.Variables = append(cfg.Variables, mpittest.SizesVariable("mpit_call_size_MPI_Send", mpit.BindNone))
	cfg.Values = append(cfg.Values, mpittest.Value{Name: "mpit_call_size_MPI_Send", Class: mpit.ClassAggregate,
		Values: mpittest.Sizes(0, 1, 8, 1<<43)})
	n.connect(mpittest.New(cfg))
	families := decoded(t, n.Handler())
	at := slices.IndexFunc(families, func(f *dto.MetricFamily) bool {
		return f.GetName() == "mpit_call_size_bytes"
	})
	require.GreaterOrEqual(t, at, 0)
	h := families[at].Metric[0].Histogram
	assert.EqualValues(t, mapping.ExactSchema, h.GetSchema())
	assert.Equal(t, 1.0, h.GetZeroThreshold())
	assert.EqualValues(t, 2, h.GetZeroCount())
	assert.Equal(t, 9+float64(1<<43), h.GetSampleSum())
	require.Len(t, h.PositiveSpan, 2)
	assert.EqualValues(t, 3, h.PositiveSpan[0].GetOffset(), "from 4 to 8 bytes")
	assert.Equal(t, []int64{1, 0}, h.PositiveDelta)
}

// Whatever becomes of communicators, connections, rules, limits and exporters: a page, in each of the ways in which
// it is made, has each single duration of the programs in its bucket, none of them twice, and none falls.
func TestPagesOfDistributions(t *testing.T) {
	t.Parallel() // it computes while others wait
	path := socketPath(t)
	const family = "mpit_call_time_seconds"
	cases := [][]rules.Rule{nil,
		{{Match: rules.Match{Class: rules.List{"timer"}}, Buckets: []float64{1e-6, 0.001, 3}}}}
	type program struct {
		*mpittest.Rank
		comms   []uint32
		counted map[int32]uint64 // that a page is to have
		all     map[int32]uint64 // by the agent
		paused  bool
		ended   bool
		anew    bool // other buckets are in force, and it has not answered since: its histograms begin at zero then
	}
	rapid.Check(t, func(rt *rapid.T) {
		clock := newTestClock()
		rule, limited := 0, false
		limits := rules.Limits{}
		start := func(at time.Time) *node {
			return startNodeAt(t, path, Config{Mapper: withRules(t, cases[rule]...).Mapper, Limits: limits},
				withClock(clock), startedAt(at))
		}
		n := start(testTime)
		defer func() { n.stop() }()
		var programs []*program
		for i := range 2 {
			cfg := small("1", i)
			cfg.Clock = clock.Now
			cfg.Variables = append(slices.Clone(cfg.Variables), mpittest.DistributionVariable(callTime, mpit.BindComm))
			p := &program{Rank: mpittest.New(cfg), counted: map[int32]uint64{}, all: map[int32]uint64{}}
			programs = append(programs, p)
			defer p.Kill()
		}
		living := func() (list []*program) {
			for _, p := range programs {
				if !p.ended {
					list = append(list, p)
				}
			}
			return list
		}
		connect := func() {
			for _, p := range living() {
				n.connect(p.Rank)
			}
		}
		connect()
		last := map[string]map[int32]uint64{}
		look := func(rt *rapid.T) {
			clock.advance(time.Duration(rapid.IntRange(1, 2000).Draw(rt, "ms")) * time.Millisecond)
			n.scrape()
			n.settle()
			for _, p := range programs {
				if p.anew {
					p.anew, p.counted = false, map[int32]uint64{}
				}
			}
			families, points := n.eachWay()
			sameSaid(rt, families, points, clock.Now())
			page := bucketsOnPage(rt, families, family)
			for of, buckets := range page {
				for k, was := range last[of] {
					if buckets[k] < was {
						rt.Fatalf("bucket %d of %s falls from %d to %d", k, of, was, buckets[k])
					}
				}
				last[of] = buckets
			}
			for i, p := range programs {
				if p.ended && !strings.Contains(fmt.Sprint(page), fmt.Sprint("rank=", i)) {
					continue // it has been forgotten
				}
				got := map[int32]uint64{}
				for of, buckets := range page {
					for k, x := range buckets {
						if strings.Contains(of, fmt.Sprint("rank=", i)) {
							got[k] += x
						}
					}
				}
				for k := int32(-30); k <= 13; k++ {
					if want := p.counted[k]; got[k] > want || got[k] < want && !limited {
						rt.Fatalf("rank %d has %d durations in bucket %d, the page %d", i, want, k, got[k])
					}
				}
			}
		}
		one := func(rt *rapid.T) *program { return rapid.SampledFrom(living()).Draw(rt, "rank") }
		count := func(rt *rapid.T) {
			p := one(rt)
			if len(p.comms) == 0 {
				rt.Skip("no communicator")
			}
			d := rapid.SampledFrom([]time.Duration{0, 1, 2, 3, 1000, time.Millisecond, time.Second, 3 * time.Second,
				5000 * time.Second}).Draw(rt, "duration")
			values := mpittest.Distribution(d)
			require.NoError(rt, p.Add(callTime, mpit.ClassTimer, rapid.SampledFrom(p.comms).Draw(rt, "comm"),
				values...))
			for k := range values[1:] {
				if !p.paused {
					p.counted[int32(k-30)] += values[1+k].(uint64)
					p.all[int32(k-30)] += values[1+k].(uint64)
				}
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"count": count, "count more": count, "count again": count, "look": look, "look again": look,
			"open": func(rt *rapid.T) {
				if p := one(rt); len(p.comms) < 6 {
					name := rapid.SampledFrom([]string{"", "a", "b", "c", mapping.Other}).Draw(rt, "name")
					p.comms = append(p.comms, p.AddObject(mpit.Object{Kind: mpit.BindComm, Name: name, Size: 2,
						Created: clock.Now()}))
				}
			},
			"free": func(rt *rapid.T) {
				if p := one(rt); len(p.comms) > 0 {
					require.NoError(rt, p.FreeObject(p.comms[0]))
					p.comms = p.comms[1:]
				}
			},
			"rename": func(rt *rapid.T) {
				if p := one(rt); len(p.comms) > 0 {
					require.NoError(rt, p.RenameObject(p.comms[0],
						rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "to")))
				}
			},
			"pause": func(rt *rapid.T) {
				p := one(rt)
				p.paused = !p.paused
				p.Pcontrol(map[bool]int{true: 0, false: 1}[p.paused])
			},
			"end": func(rt *rapid.T) {
				if p := one(rt); len(living()) > 1 && !p.paused {
					if p.ended = true; p.anew {
						p.anew, p.counted = false, map[int32]uint64{}
						clock.advance(time.Millisecond) // what comes at the moment of the answer counts
					}
					n.finish(p.Rank, mpit.EndFinalize)
				}
			},
			"reconnect": func(rt *rapid.T) {
				p := one(rt)
				n.kill(p.Rank)
				n.connect(p.Rank)
			},
			"limit": func(rt *rapid.T) {
				look(rt)
				limits = rapid.SampledFrom([]rules.Limits{{}, {SeriesPerRank: 60}, {SeriesPerVariable: 48}}).Draw(rt,
					"limits")
				limited = limited || limits != (rules.Limits{})
				n.changeLimits(limits)
			},
			"reload": func(rt *rapid.T) {
				look(rt)
				was := rule
				rule = rapid.IntRange(0, len(cases)-1).Draw(rt, "rules")
				for _, p := range living() {
					p.anew = p.anew || (rule == 1) != (was == 1)
				}
				next := withRules(t, cases[rule]...)
				next.Limits = limits
				require.NoError(rt, n.Reload(next))
				clear(last) // bounds and labels are others
			},
			"restart": func(rt *rapid.T) {
				look(rt)
				n.stop()
				for _, p := range living() {
					<-p.Disconnected()
				}
				n = start(clock.Now())
				connect()
				for _, p := range living() {
					p.anew, p.counted = false, maps.Clone(p.all)
				}
				if limited {
					clear(last) // objects fold otherwise
				}
			},
		})
		look(rt)
	})
}
