package mapping

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// reload is what the exporter does with a rank when it has new rules.
func reload(t fataler, r *Rank, rules ...Rule) *Rank {
	t.Helper()
	blob, _ := r.Blob()
	if len(blob) > MaxBlob {
		t.Fatalf("blob of %d bytes", len(blob))
	}
	return newRank(t, blob, rules...)
}

var yes, no = true, false

// A counter that wraps, a timer with its counter, on two objects of one name and one of another: whatever the rules that come and
// go, what has once been shown with the same name and the same labels does not fall.
func TestReloadsLetNothingFall(t *testing.T) {
	scale, tiny := 1000.0, 0.001
	counts, timers := Match{Class: List{"counter"}, Name: "n*"}, Match{Class: List{"timer"}}
	choices := []struct {
		name  string
		rules []Rule
	}{
		{"plain", nil},
		{"drop counter", []Rule{{Match: counts, Drop: &yes}}},
		{"drop timer", []Rule{{Match: timers, Drop: &yes}}},
		{"drop companion", []Rule{{Match: Match{Class: List{"counter"}, Name: "t"}, Drop: &yes}}},
		{"scale up", []Rule{{Match: counts, Scale: &scale}, {Match: timers, Scale: &scale}}},
		{"scale down", []Rule{{Match: counts, Scale: &tiny}, {Match: timers, Scale: &tiny}}},
		{"unit", []Rule{{Match: counts, Unit: "KiBy"}, {Match: timers, Unit: "ms"}}},
		{"name", []Rule{{Match: Match{Name: "n", Class: List{"counter"}}, Name: "other"}, {Match: timers, Name: "spent"}}},
		{"each", []Rule{{Merge: MergeEach}}},
		{"one for all objects", []Rule{{Object: &no}}},
		{"peers", []Rule{{Elements: ElementsPeer}}},
		{"peers that are not 0", []Rule{{Elements: ElementsPeer, Nonzero: &yes}}},
		{"companion", []Rule{{Match: timers, Companion: "calls"}}},
		{"no companion", []Rule{{Match: timers, Companion: NoCompanion}}},
		{"buckets", []Rule{{Match: timers, Buckets: []float64{0.000064, 1, 10}}}},
		{"labels", []Rule{{Match: Match{Regexp: "(?P<letter>[nt])"}}}},
		{"aggregate", []Rule{{Match: counts, Class: "aggregate"}}},
		{"level", []Rule{{Match: counts, Class: "level"}}},
		{"watermark", []Rule{{Match: counts, Class: "highwatermark"}}},
	}
	rapid.Check(t, func(t *rapid.T) {
		a := newAgent(on("n", mpit.ClassCounter, tUint), on("t", mpit.ClassTimer, tDouble), on("t", mpit.ClassCounter, tULong), on("calls", mpit.ClassCounter, tULong))
		objects := []uint32{a.object("c", 2), a.object("c", 2), a.object("d", 2)}
		count := func() {
			for _, h := range a.handles {
				for i := range h.values {
					switch a.vars[h.Variable].Name + nameOf(a.vars[h.Variable].Class) {
					case "ncounter":
						h.values[i] = uint64(uint32(h.values[i] + uint64(rapid.SampledFrom([]int{0, 1, 1000, 1<<30 - 1}).Draw(t, "n"))))
					case "ttimer":
						h.values[i] = word(math.Float64frombits(h.values[i]) + float64(rapid.IntRange(0, 1<<20).Draw(t, "t"))/(1<<20))
					default:
						h.values[i] += uint64(rapid.IntRange(0, 9).Draw(t, "events"))
					}
				}
			}
		}
		type value struct {
			x       float64
			created time.Time
		}
		shown := map[string]value{}
		r := newRank(t, nil)
		what := "plain"
		look := func() {
			r.Update(a.after(time.Duration(rapid.IntRange(0, 12).Draw(t, "seconds")) * time.Second).sample())
			now := map[string]value{}
			for _, s := range r.Series() {
				id := s.Metric.Name + fmt.Sprint(s.Labels)
				if !s.Valid || !s.Metric.Monotonic {
					continue
				}
				if h := s.Histogram; h != nil {
					now[id+" sum"], now[id+" count"] = value{h.Sum, s.Created()}, value{float64(h.Count), s.Created()}
					var le uint64
					for i, b := range h.Bounds {
						le += h.Counts[i]
						now[id+fmt.Sprint(" le ", b)] = value{float64(le), s.Created()}
					}
				} else {
					now[id] = value{s.Value, s.Created()}
				}
			}
			for _, id := range slices.Sorted(maps.Keys(now)) {
				is := now[id]
				was, before := shown[id]
				// Sums that are taken in another order can differ by a digit, where the parts are doubles.
				if before && is.x < was.x*(1-1e-12) {
					t.Fatalf("with %s, %s falls from %v to %v", what, id, was, is)
				}
			}
			// Of the last rules alone: what was shown with others before those may be another variable's by now.
			shown = now
		}
		look()
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			count()
			look()
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0, 1, 2:
				c, d := rapid.IntRange(0, len(choices)-1).Draw(t, "rules"), rapid.IntRange(0, len(choices)-1).Draw(t, "and")
				r = reload(t, r, slices.Concat(choices[c].rules, choices[d].rules)...)
				what = choices[c].name + " and " + choices[d].name
				look()
			case 3:
				if len(objects) > 1 {
					o := rapid.SampledFrom(objects).Draw(t, "object")
					objects = slices.DeleteFunc(objects, func(x uint32) bool { return x == o })
					a.free(o)
				}
			case 4:
				a.rename(rapid.SampledFrom(objects).Draw(t, "object"), rapid.SampledFrom([]string{"c", "d"}).Draw(t, "to"))
			}
		}
		look()
	})
}

// There and back: the series of the first rules are what they were and what has been counted since, wraps included.
func TestReloadThereAndBack(t *testing.T) {
	for _, c := range []struct {
		name  string
		there []Rule
	}{
		{"drop", []Rule{{Drop: &yes}}},
		{"another name", []Rule{{Match: Match{Class: List{"counter"}}, Name: "other"}}},
		{"each", []Rule{{Merge: MergeEach}}},
		{"one for all objects", []Rule{{Object: &no}}},
		{"peers", []Rule{{Elements: ElementsPeer}}},
		{"peers that are not 0", []Rule{{Elements: ElementsPeer, Nonzero: &yes}}},
		{"a level", []Rule{{Class: "level"}}},
		{"a watermark", []Rule{{Class: "highwatermark"}}},
		{"an aggregate", []Rule{{Class: "aggregate"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newAgent(on("n", mpit.ClassCounter, tUint))
			x, y := a.object("c", 2), a.object("d", 2)
			r := newRank(t, nil)
			step := func(v uint64) {
				a.set("n", x, v, 1)
				a.set("n", y, v, 2)
				r.Update(a.after(time.Second).sample())
			}
			step(1<<32 - 2)
			step(3) // a wrap of both
			created := r.Series()[0].Created()
			require.Equal(t, m{"n_total{comm=c}": 1<<32 + 4, "n_total{comm=d}": 1<<32 + 5}, show(r))
			r = reload(t, r, c.there...)
			step(7)
			a.free(y) // its wrap is now the exporter's alone to know
			r.Update(a.after(time.Second).sample())
			r = reload(t, r, c.there...)
			r.Update(a.after(time.Second).sample())
			r = reload(t, r)
			r.Update(a.after(time.Second).sample())
			assert.Equal(t, m{"n_total{comm=c}": 1<<32 + 8, "n_total{comm=d}": 1<<32 + 9}, show(r))
			assert.Equal(t, created, r.Series()[0].Created())
		})
	}
}

// What was known of finer cells is added up.
func TestReloadToCoarserCells(t *testing.T) {
	a := newAgent(on("n", mpit.ClassCounter, tULong), on("t", mpit.ClassTimer, tDouble), on("t", mpit.ClassCounter, tULong), on("high", mpit.ClassHighWatermark, tInt))
	fine := []Rule{{Elements: ElementsPeer}}
	r := newRank(t, nil, fine...)
	x, y := a.object("c", 2), a.object("d", 2)
	for _, o := range []uint32{x, y} {
		a.set("n", o, 100, 50)
		a.set("t", o, 1.0, 4.0)
		a.set("high", o, 5, 9)
		a.handles[slices.IndexFunc(a.handles, func(h *agentHandle) bool { return h.Object == o && h.Variable == 2 })].values = []uint64{10, 2}
	}
	r.Update(a.sample())
	a.set("n", x, 7, 60) // a reset: 100 are subtracted no more, the series starts anew
	a.loseRemains = true
	a.free(y) // 150 are lost among the remains, and kept by the exporter
	r.Update(a.after(time.Second).sample())
	assert.Equal(t, 100.0, show(r)["n_total{comm=d,peer=0}"])
	a.loseRemains = false
	r = reload(t, r, Rule{Object: &no})
	r.Update(a.after(time.Second).sample())
	got := show(r)
	assert.Equal(t, 7.0+60+150, got["n_total"])
	assert.Equal(t, 9.0, got["high_highwatermark"])
	assert.Equal(t, 24.0, got["t_time_seconds count"], "events of both objects and both elements")
	assert.Equal(t, 10.0, got["t_time_seconds sum"])

	r = reload(t, r, fine...)
	r.Update(a.after(time.Second).sample())
	got = show(r)
	assert.Equal(t, 100.0, got["n_total{comm=d,peer=0}"], "what was known of the finer cells is known again")
	assert.Equal(t, 10.0, got["t_time_seconds{comm=d,peer=0} count"])
	assert.Equal(t, 7.0, got["n_total{comm=c,peer=0}"])
}

// With another companion the histogram goes on: what that one had counted before stands in no observation.
func TestReloadWithAnotherCompanion(t *testing.T) {
	a := newAgent(mpit.Variable{Name: "v", Class: mpit.ClassTimer, Datatype: tDouble}, mpit.Variable{Name: "v", Class: mpit.ClassCounter, Datatype: tULong},
		mpit.Variable{Name: "calls", Class: mpit.ClassCounter, Datatype: tULong})
	r := newRank(t, nil)
	look := func(seconds float64, events, calls uint64) float64 {
		a.handles[0].values[0], a.handles[1].values[0], a.handles[2].values[0] = word(seconds), events, calls
		r.Update(a.after(time.Minute).sample())
		return show(r)["v_time_seconds count"]
	}
	assert.Equal(t, 10.0, look(1, 10, 1000))
	r = reload(t, r, Rule{Match: Match{Class: List{"timer"}}, Companion: "calls"})
	assert.Equal(t, 10.0, look(2, 20, 2000))
	assert.Equal(t, 15.0, look(3, 30, 2005))
	r = reload(t, r, Rule{Match: Match{Class: List{"timer"}}, Companion: NoCompanion})
	assert.Equal(t, 16.0, look(4, 40, 3000), "an interval")
	r = reload(t, r)
	assert.Equal(t, 16.0, look(5, 50, 3000))
	assert.Equal(t, 23.0, look(6, 57, 3000))
}

// The value in the old unit stands, and goes on in the new one: neither a fall nor a jump.
func TestReloadWithAnotherScale(t *testing.T) {
	a := newAgent(mpit.Variable{Name: "n", Class: mpit.ClassCounter, Datatype: tULong})
	ten := 10.0
	r := newRank(t, nil, Rule{Scale: &ten})
	look := func(v int) float64 {
		a.set("n", 0, v)
		r.Update(a.after(time.Second).sample())
		return show(r)["n_total"]
	}
	assert.Equal(t, 50.0, look(5))
	r = reload(t, r)
	assert.Equal(t, 60.0, look(6), "what was counted until it is shown with the new scale")
	assert.Equal(t, 61.0, look(7))
	r = reload(t, r)
	assert.Equal(t, 62.0, look(8), "a restart changes nothing")
	r = reload(t, r, Rule{Scale: &ten})
	assert.Equal(t, 63.0, look(9))
	assert.Equal(t, 73.0, look(10))
	fresh := newRank(t, nil, Rule{Scale: &ten})
	fresh.Update(a.sample())
	assert.Equal(t, m{"n_total": 100}, show(fresh), "a rank that comes with these rules has the new scale throughout")
}

// A series that becomes another variable's begins anew, and says so.
func TestReloadGivesASeriesToAnotherVariable(t *testing.T) {
	a := newAgent(mpit.Variable{Name: "p", Class: mpit.ClassCounter, Datatype: tULong}, mpit.Variable{Name: "q", Class: mpit.ClassCounter, Datatype: tULong})
	a.set("p", 0, 1000)
	a.set("q", 0, 10)
	r := newRank(t, nil, Rule{Match: Match{Name: "p"}, Name: "x"})
	r.Update(a.sample())
	assert.Equal(t, m{"x_total": 1000, "q_total": 10}, show(r))
	for _, c := range []struct{ name string }{{"q"}, {"p"}} {
		r = reload(t, r, Rule{Match: Match{Name: c.name}, Name: "x"})
		r.Update(a.after(time.Second).sample())
		got := show(r)
		assert.Equal(t, 0.0, got["x_total"], "of %s", c.name)
		for _, s := range r.Series() {
			if s.Metric.Name == "mpit_x_total" {
				assert.Equal(t, a.now(), s.Created().In(a.now().Location()))
			}
		}
		a.set(c.name, 0, int(a.handle(c.name, 0).values[0])+5)
		r.Update(a.after(time.Second).sample())
		assert.Equal(t, 5.0, show(r)["x_total"])
	}
}

// With a label for each object, what all had counted together stays where it was; nothing counts twice.
func TestReloadToASeriesForEachObject(t *testing.T) {
	a := newAgent(on("n", mpit.ClassCounter, tULong))
	x, y := a.object("c", 1), a.object("c", 1)
	a.set("n", x, 100)
	a.set("n", y, 50)
	r := newRank(t, nil)
	r.Update(a.sample())
	each := Rule{Merge: MergeEach}
	r = reload(t, r, each)
	r.Update(a.sample())
	assert.Equal(t, m{"n_total{comm=c}": 150, "n_total{comm=c,object=1}": 0, "n_total{comm=c,object=3}": 0}, show(r))
	a.set("n", x, 107)
	r.Update(a.sample())
	r = reload(t, r, each) // and a restart
	r.Update(a.sample())
	assert.Equal(t, m{"n_total{comm=c}": 150, "n_total{comm=c,object=1}": 7, "n_total{comm=c,object=3}": 0}, show(r))
	a.free(x)
	r.Update(a.sample())
	assert.Equal(t, m{"n_total{comm=c}": 157, "n_total{comm=c,object=3}": 0}, show(r))
	r = reload(t, r)
	r.Update(a.sample())
	assert.Equal(t, m{"n_total{comm=c}": 157}, show(r))
}

// An agent that was told to leave a variable out is told to read it: at the first Select in any case.
func TestReloadSelectsAnew(t *testing.T) {
	a := newAgent(on("n", mpit.ClassCounter, tULong), on("m", mpit.ClassCounter, tULong))
	r := newRank(t, nil, Rule{Match: Match{Name: "m"}, Drop: &yes})
	r.Update(a.sample()) // no object, and so no handle that would show what the agent was told
	_, ids, changed := r.Select()
	assert.True(t, changed)
	assert.Equal(t, map[uint32]bool{0: true, 1: false}, ids)
	r = reload(t, r)
	r.Update(a.sample())
	_, ids, changed = r.Select()
	assert.True(t, changed)
	assert.Equal(t, map[uint32]bool{0: true, 1: true}, ids)
	_, _, changed = r.Select()
	assert.False(t, changed)
}

// Until the agent reads it again, a counter that was left out has no value: less than before would be a fall.
func TestReloadWaitsForTheAgent(t *testing.T) {
	a := newAgent(on("n", mpit.ClassCounter, tUint))
	x := a.object("c", 1)
	r := newRank(t, nil)
	for _, v := range []uint64{1<<32 - 2, 3} {
		a.set("n", x, v)
		r.Update(a.sample())
	}
	a.rename(x, "d")
	a.rename(x, "c")
	r.Update(a.sample())
	r = reload(t, r, Rule{Drop: &yes})
	r.Update(a.sample())
	r = reload(t, r)
	for range 5 {
		s := a.sample()
		layout := *s.Layout
		layout.Handles = slices.Clone(layout.Handles)
		layout.Handles[0].Offset, layout.Values = -1, 0
		s.Layout, s.Values = &layout, []uint64{}
		r.Update(s)
		assert.NotContains(t, show(r), "n_total{comm=c}")
	}
	r.Update(a.sample())
	assert.Equal(t, 1<<32+3.0, show(r)["n_total{comm=c}"])
}

// A blob of version 1 is read: wraps, corrections and observations.
func TestBlobOfVersion1(t *testing.T) {
	b := blobWriter{buf: []byte{1}, variables: map[variableKey]uint64{}, objects: map[string]uint64{}}
	b.cell(variableKey{"n", mpit.ClassCounter}, &kept{object: "c", elem: -1, gone: 1 << 32, adjust: 5})
	b.cell(variableKey{"low", mpit.ClassLowWatermark}, &kept{object: "c", elem: -1, floor: 3, floorKnown: true})
	b.begin(recordBuckets)
	b.uint(boundsHash(DefaultBuckets()))
	b.end()
	b.place(recordTimer, variableKey{"t", mpit.ClassTimer}, "c")
	for _, x := range []uint64{0, 1} { // all elements, with a companion
		b.uint(x)
	}
	b.float(2)
	b.float(8)
	for _, x := range []uint64{1, 10, 8, 0, 1} { // eight observations in bucket 10
		b.uint(x)
	}
	b.buf = append(b.buf, 3) // native bucket -2, as a varint
	b.uint(8)
	b.end()
	a := newAgent(on("n", mpit.ClassCounter, tUint), on("low", mpit.ClassLowWatermark, tInt), on("t", mpit.ClassTimer, tDouble), on("t", mpit.ClassCounter, tULong))
	x := a.object("c", 1)
	a.set("n", x, 1)
	a.set("low", x, 4)
	a.set("t", x, 2.5)
	a.handles[3].values[0] = 9
	r := newRank(t, b.buf)
	s := a.after(time.Second).sample()
	s.Status = mpit.SampleFinal
	r.Update(s)
	assert.Equal(t, m{"n_total{comm=c}": 1<<32 + 6, "low_lowwatermark{comm=c}": 3, "t_time_seconds{comm=c} count": 9, "t_time_seconds{comm=c} sum": 2.5, "t_total{comm=c}": 9}, show(r))
}

// What stands in the blob of a variable that is left out now goes into the next one, after all that is needed.
func TestBlobKeepsWhatIsLeftOut(t *testing.T) {
	a := newAgent(on("t", mpit.ClassTimer, tDouble), on("n", mpit.ClassCounter, tUint))
	for i := range 300 {
		x := a.object(fmt.Sprint("a name of some length, for the blob to be full soon: ", i), 1)
		a.set("t", x, 1.5)
	}
	r := newRank(t, nil)
	r.Update(a.sample())
	r = reload(t, r, Rule{Match: Match{Name: "t"}, Drop: &yes})
	r.Update(a.sample())
	for i, v := range []uint64{1<<32 - 2, 3} { // wraps now need room
		for _, h := range a.handles {
			if h.Variable == 1 {
				h.values[0] = v + uint64(i)
			}
		}
		r.Update(a.after(time.Second).sample())
	}
	r = reload(t, r)
	r.Update(a.after(time.Second).sample())
	counts := map[float64]int{}
	for name, x := range show(r) {
		if name[0] == 'n' {
			require.Equal(t, 1<<32+4.0, x)
		} else if name[len(name)-1] == 't' {
			counts[x]++
		}
	}
	assert.Equal(t, map[float64]int{1: 300}, counts, "one observation each, none of them made twice")
}

// An object that can't be read at once hands over to the series of its name later, though there is nothing in that yet.
func TestReloadToASeriesForEachObjectThatCannotBeReadYet(t *testing.T) {
	a := newAgent(on("n", mpit.ClassCounter, tULong))
	x := a.object("c", 1)
	a.set("n", x, 100)
	r := newRank(t, nil)
	r.Update(a.sample())
	r = reload(t, r, Rule{Merge: MergeEach})
	a.failed[a.handle("n", x).ID] = true
	r.Update(a.after(time.Second).sample())
	a.reconnect()
	r.Update(a.after(time.Second).sample())
	assert.Empty(t, show(r))
	a.failed = map[uint32]bool{}
	r.Update(a.after(time.Second).sample())
	assert.Equal(t, m{"n_total{comm=c}": 100, "n_total{comm=c,object=1}": 0}, show(r))
}

// Nor does the series of its name, where freed objects have left something, show less until then.
func TestReloadToASeriesForEachObjectWaitsForAll(t *testing.T) {
	a := newAgent(on("n", mpit.ClassCounter, tULong))
	x, y := a.object("c", 1), a.object("c", 1)
	a.set("n", x, 100)
	a.set("n", y, 50)
	a.free(y)
	r := newRank(t, nil)
	r.Update(a.sample())
	r = reload(t, r, Rule{Merge: MergeEach})
	a.failed[a.handle("n", x).ID] = true
	r.Update(a.after(time.Second).sample())
	assert.Empty(t, show(r))
	a.failed = map[uint32]bool{}
	r.Update(a.after(time.Second).sample())
	assert.Equal(t, m{"n_total{comm=c}": 150, "n_total{comm=c,object=1}": 0}, show(r))
}

// Of two changes of rules between which nothing could be read, the second one goes by what was shown before the first.
func TestReloadTwiceBeforeAnythingIsRead(t *testing.T) {
	a := newAgent(mpit.Variable{Name: "n", Class: mpit.ClassCounter, Datatype: tULong})
	thousand := 1000.0
	r := newRank(t, nil, Rule{Scale: &thousand})
	a.set("n", 0, 5)
	r.Update(a.sample())
	assert.Equal(t, m{"n_total": 5000}, show(r))
	a.failed[a.handles[0].ID] = true
	r = reload(t, r)
	r.Update(a.after(time.Second).sample())
	r = reload(t, r, Rule{Help: "the same otherwise"})
	r.Update(a.after(time.Second).sample())
	assert.Empty(t, show(r))
	a.failed = map[uint32]bool{}
	r.Update(a.after(time.Second).sample())
	assert.Equal(t, m{"n_total": 5000}, show(r))
}
