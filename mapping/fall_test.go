package mapping

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// A rank whose truth is known: what each variable has counted under each name of an object while nobody had switched observation
// off, and since it was last reset. Whatever happens to the rank, the agent's connection, the exporter and its rules, a counting
// series falls only where the source was reset, and then its created timestamp moves; what is shown is the truth.
func TestValuesNeverFall(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWatched(t)
		defer func() { w.r.Close() }()
		t.Repeat(map[string]func(*rapid.T){
			"count":     w.countSome,
			"leap":      w.leap,
			"reset":     w.reset,
			"open":      w.open,
			"free":      w.free,
			"rename":    w.rename,
			"pcontrol":  w.pcontrol,
			"reconnect": func(*rapid.T) { w.a.reconnect() },
			"restart":   func(t *rapid.T) { w.exporter(t, w.rules) },
			"reload":    func(t *rapid.T) { w.exporter(t, rapid.IntRange(0, len(ruleSets)-1).Draw(t, "rules")) },
			"selected":  func(*rapid.T) { w.tell() },
			"lost":      w.loseSample,
			"unread":    w.failToRead,
			"look":      func(t *rapid.T) { w.look(t) },
			"":          func(*rapid.T) {},
		})
		w.finish(t)
	})
}

// watched is the state machine.
type watched struct {
	a *agent
	r *Rank

	pauses bool // by MPI_Pcontrol; else its library may reset variables
	each   bool // elements of counters are series of their own
	rules  int
	fails  int             // since there is this exporter, how often something could not be read
	asked  map[uint32]bool // what the exporter has asked for, and the agent may not have got yet

	truth  map[spot]float64    // in the variable's own unit
	since  map[spot]float64    // of a companion: what it had counted at its timer's last reset
	resets map[variableKey]int // the last one of each variable, by looks
	looks  int
	last   map[string]seen
}

// spot is where a variable counts.
type spot struct {
	variable variableKey
	object   string
	elem     int // -1: all
}

// seen is what the last page that had a series said.
type seen struct {
	value   float64
	created time.Time
	of      variableKey
	look    int
}

var watchedRules = func() []Rule {
	yes := true
	return []Rule{
		{Match: Match{Name: "far"}, Offset: &yes},
		{Match: Match{Name: "ticks", Class: List{"timer"}}, Unit: "us"},
	}
}()

// ruleSets are what a reload can choose from. They stand before watchedRules.
var ruleSets = [][]Rule{
	nil,
	{{Match: Match{Name: "small"}, Drop: &yes}, {Match: Match{Name: "far"}, Drop: &yes}, {Match: Match{Name: "plain"}, Drop: &yes}},
	{{Match: Match{Class: List{"timer"}}, Drop: &yes}},
	{{Match: Match{Name: "small"}, Class: "level"}, {Match: Match{Name: "far"}, Class: "highwatermark"}},
	{{Match: Match{Name: "small"}, Name: "nice"}, {Match: Match{Name: "wide"}, Class: "aggregate"}, {Match: Match{Name: "plain"}, Name: "other"}},
}

func newWatched(t *rapid.T) *watched {
	w := &watched{
		a: newAgent(on("small", mpit.ClassCounter, tUint), on("signed", mpit.ClassAggregate, tInt), on("wide", mpit.ClassCounter, tULong),
			on("far", mpit.ClassCounter, tULong), on("timer", mpit.ClassTimer, tDouble), on("timer", mpit.ClassCounter, tULong),
			on("ticks", mpit.ClassTimer, tULong), on("ticks", mpit.ClassCounter, tUint), on("plain", mpit.ClassTimer, tDouble)),
		truth: map[spot]float64{}, since: map[spot]float64{}, resets: map[variableKey]int{}, last: map[string]seen{},
	}
	w.pauses, w.each = rapid.Bool().Draw(t, "pauses"), rapid.Bool().Draw(t, "each element")
	w.r = newRank(t, nil, w.allRules()...)
	return w
}

func (w *watched) allRules() []Rule {
	rules := append(slices.Clone(ruleSets[w.rules]), watchedRules...)
	if w.each {
		rules = append(rules, Rule{Match: Match{Class: List{"counter"}}, Elements: ElementsPeer})
	}
	return rules
}

func (w *watched) key(h *agentHandle) variableKey {
	v := w.a.vars[h.Variable]
	return variableKey{v.Name, v.Class}
}

func (w *watched) spot(h *agentHandle, elem int) spot {
	if !w.each || w.key(h).class != mpit.ClassCounter {
		elem = -1
	}
	return spot{w.key(h), CleanName(w.a.nameOf(h.Object)), elem}
}

// object is one of those that are alive; none, and the action does nothing.
func (w *watched) object(t *rapid.T) uint32 {
	if len(w.a.objects) == 0 {
		t.Skip("no object")
	}
	return rapid.SampledFrom(w.a.objects).Draw(t, "object").ID
}

// count lets an element gain n; doubles n/1024, which is exact.
func (w *watched) count(h *agentHandle, i, n int) {
	gained := float64(n)
	switch w.a.vars[h.Variable].Datatype {
	case tUint:
		h.values[i] = uint64(uint32(h.values[i] + uint64(n)))
	case tInt:
		h.values[i] = uint64(int64(int32(h.values[i] + uint64(n))))
	case tDouble:
		gained /= 1024
		h.values[i] = word(math.Float64frombits(h.values[i]) + gained)
	default:
		h.values[i] += uint64(n)
	}
	if !w.a.paused {
		w.truth[w.spot(h, i)] += gained
	}
}

func bitsOf(d mpit.Datatype) int {
	switch d {
	case tUint:
		return 32
	case tInt:
		return 31
	}
	return 64
}

// wraps says whether an element would wrap by n.
func (w *watched) wraps(h *agentHandle, i, n int) bool {
	bits := bitsOf(w.a.vars[h.Variable].Datatype)
	return bits < 64 && h.values[i] < 1<<bits && h.values[i]+uint64(n) >= 1<<bits
}

func (w *watched) countSome(t *rapid.T) {
	o := w.object(t)
	for _, h := range w.a.handles {
		i, n := rapid.IntRange(0, 1).Draw(t, "element"), rapid.IntRange(0, 1000).Draw(t, "n")
		// Nobody can know of a wrap that happens while the variable is not read, unless the next value tells.
		if h.Object == o && (w.counts(h) || !w.wraps(h, i, n)) {
			w.count(h, i, n)
		}
	}
}

// leap is at most a quarter of the range between two looks: more, and a wrap looks like a reset.
func (w *watched) leap(t *rapid.T) {
	o := w.object(t)
	w.look(t)
	for _, h := range w.a.handles {
		if h.Object == o && bitsOf(w.a.vars[h.Variable].Datatype) < 64 && w.counts(h) {
			w.count(h, rapid.IntRange(0, 1).Draw(t, "element"), rapid.IntRange(0, 1<<30-1).Draw(t, "n"))
		}
	}
	w.look(t)
}

// reset starts an element of a variable anew, and of its companion, between two looks: so it is known what was counted before and
// after. Of a program that calls MPI_Pcontrol, too, nobody knows which came first.
func (w *watched) reset(t *rapid.T) {
	if w.pauses {
		t.Skip("a program that pauses")
	}
	o := w.object(t)
	which, at := rapid.SampledFrom([]string{"small", "signed", "wide", "timer", "ticks", "plain"}).Draw(t, "which"), rapid.IntRange(0, 1).Draw(t, "element")
	w.look(t)
	var handles []*agentHandle
	for _, h := range w.a.handles {
		v := w.a.vars[h.Variable]
		if h.Object != o || v.Name != which {
			continue
		}
		n := numberOf(v.Datatype)
		if !n.less(0, h.values[at]) || n != floating && n.quarter(h.values[at], uint(8*v.DatatypeBytes)) == 3 || !w.counts(h) {
			t.Skip("nothing falls, or it looks like a wrap")
		}
		handles = append(handles, h)
	}
	for _, h := range handles {
		h.values[at] = 0
		w.truth[w.spot(h, at)] = 0
		w.resets[w.key(h)] = w.looks
	}
	for p, x := range w.truth { // a timer's observations begin anew with it
		if p.variable.name == which && p.object == CleanName(w.a.nameOf(o)) {
			w.since[p] = x
		}
	}
	w.look(t)
}

// counts says whether the exporter sees what a handle counts.
func (w *watched) counts(h *agentHandle) bool {
	v := w.r.named(w.key(h))
	return v != nil && v.wanted && v.mode == modeCount && !w.a.unread[h.Variable]
}

func (w *watched) open(t *rapid.T) {
	if len(w.a.objects) >= 5 {
		t.Skip("enough")
	}
	o := w.a.object(rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "name"), 2)
	for _, h := range w.a.handles {
		if h.Object != o {
			continue
		}
		switch w.key(h).name {
		case "far": // close to the end of 64 bits
			h.values[0] = math.MaxUint64 - uint64(rapid.IntRange(0, 5000).Draw(t, "from"))
		case "small", "signed":
			last := uint64(1)<<bitsOf(w.a.vars[h.Variable].Datatype) - 10
			h.values[0] = rapid.SampledFrom([]uint64{0, 5, last}).Draw(t, "from")
			w.truth[w.spot(h, 0)] += float64(h.values[0])
		}
		if h.values[0] != 0 {
			h.First = slices.Clone(h.values)
		}
	}
}

// few are the last counts before an end, which nobody sees but the agent.
func (w *watched) few(t *rapid.T, object uint32) {
	for _, h := range w.a.handles {
		if n := rapid.IntRange(0, 9).Draw(t, "few"); h.Object == object && (w.a.paused || !w.wraps(h, 0, n)) {
			w.count(h, 0, n)
		}
	}
}

func (w *watched) free(t *rapid.T) {
	o := w.object(t)
	w.look(t)
	w.few(t, o)
	w.a.free(o)
}

func (w *watched) rename(t *rapid.T) {
	o := w.object(t)
	w.look(t)
	w.few(t, o)
	w.a.rename(o, rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "to"))
}

func (w *watched) pcontrol(t *rapid.T) {
	switch {
	case !w.pauses:
		t.Skip("a program that does not")
	case w.a.paused:
		w.a.resume()
	default:
		w.a.pause()
	}
}

// exporter is another one, or other rules: it has nothing but the blob.
func (w *watched) exporter(t *rapid.T, rules int) {
	if rules != w.rules {
		w.look(t) // a wrap that nobody has seen yet is not known of where the new rules leave the variable out
	}
	blob, _ := w.r.Blob()
	if len(blob) > MaxBlob {
		t.Fatalf("blob of %d bytes", len(blob))
	}
	w.r.Close()
	w.rules = rules
	w.r = newRank(t, blob, w.allRules()...)
	w.asked, w.fails = nil, 0
}

// tell brings the agent what the exporter wants to be read.
func (w *watched) tell() {
	if w.asked != nil {
		w.a.selects(w.asked)
		w.asked = nil
	}
}

func (w *watched) loseSample(t *rapid.T) {
	switch rapid.IntRange(0, 2).Draw(t, "how") {
	case 0:
		w.r.Update(nil)
	case 1:
		w.r.Update(&mpit.Sample{Status: mpit.SampleBusy, Monotonic: w.a.clock, Variables: w.a.lastVars, Layout: w.a.lastLayout})
	default:
		s := w.a.sample()
		s.Monotonic--
		w.r.Update(s)
	}
	w.compare(t, false)
}

func (w *watched) failToRead(t *rapid.T) {
	if len(w.a.handles) == 0 {
		t.Skip("no handle")
	}
	// A new exporter waits only so long for what can't be read.
	if w.fails++; w.fails > maxWait {
		w.look(t)
	}
	w.a.failed = map[uint32]bool{rapid.SampledFrom(w.a.handles).Draw(t, "which").ID: true}
	w.update(w.a.after(time.Second).sample())
	w.a.failed = map[uint32]bool{}
	w.compare(t, false)
}

func (w *watched) update(s *mpit.Sample) {
	w.r.Update(s)
	if _, ids, changed := w.r.Select(); changed {
		w.asked = ids
	}
}

// look is a sample that has everything that is selected.
func (w *watched) look(t *rapid.T) {
	w.update(w.a.after(time.Duration(rapid.IntRange(0, 12).Draw(t, "seconds"))*time.Second + time.Millisecond).sample()) // no two samples are of one moment
	w.compare(t, true)
}

// compare checks the page against the last one, and whole says: against the truth.
func (w *watched) compare(t *rapid.T, whole bool) {
	w.looks++
	now := map[string]seen{}
	for _, v := range w.r.order {
		if v.mode != modeCount || v.metric == nil {
			continue
		}
		sum, want := 0.0, 0.0
		for _, c := range v.list {
			if !c.series.Valid {
				continue
			}
			id := c.series.Metric.Name + fmt.Sprint(c.series.Labels)
			add := func(id string, x float64) { now[id] = seen{x, c.series.Created(), v.key(), w.looks} }
			add(id, c.count.value)
			sum += c.count.value
			if h := c.series.Histogram; h != nil {
				total := uint64(0)
				for i, n := range h.Counts {
					add(fmt.Sprintf("%s bucket %d", id, i), float64(n))
					total += n
				}
				native := h.NativeZero
				for _, b := range h.Native {
					add(fmt.Sprintf("%s native %d", id, b.Index), float64(b.Count))
					native += b.Count
				}
				for other := range w.last { // a native bucket that is not there is empty
					if _, ok := now[other]; !ok && strings.HasPrefix(other, id+" native ") {
						add(other, 0)
					}
				}
				add(id+" count", float64(h.Count))
				if total != h.Count || native != h.Count || math.Abs(h.Sum-c.count.value*v.scale) > 0 {
					t.Fatalf("%s: %d in buckets, %d in native ones of %d; %v of %v s", id, total, native, h.Count, h.Sum, c.count.value*v.scale)
				}
			}
		}
		for at, x := range w.truth {
			if at.variable == v.key() {
				want += x
			}
		}
		read := !slices.ContainsFunc(w.r.plan, func(h *handle) bool { return h.v == v && h.offset < 0 })
		if whole && read && sum != want {
			t.Fatalf("%v is %v, the program counted %v: %v", v.key(), sum, want, w.truth)
		}
	}
	for id, is := range now {
		was, ok := w.last[id]
		if !ok || is.value >= was.value {
			continue
		}
		if reset, ok := w.resets[is.of]; !ok || reset < was.look {
			t.Fatalf("%s falls from %v to %v", id, was.value, is.value)
		}
		if !is.created.After(was.created) {
			t.Fatalf("%s falls from %v to %v, and its created timestamp is %v after %v", id, was.value, is.value, is.created, was.created)
		}
	}
	maps.Copy(w.last, now)
}

// finish is the rank's end: all that is selected has come, and intervals are closed.
func (w *watched) finish(t *rapid.T) {
	w.tell()
	w.look(t)
	w.tell()
	s := w.a.after(time.Second).sample()
	s.Status = mpit.SampleFinal
	w.update(s)
	w.compare(t, true)
	for _, v := range w.r.order {
		if v.with == nil {
			continue
		}
		var count uint64
		want := 0.0
		for _, c := range v.list {
			count += c.timer.hist.Count
		}
		for at, x := range w.truth {
			if at.variable == v.with.key() {
				want += x - w.since[at]
			}
		}
		if float64(count) != want {
			t.Fatalf("%v has %d events, its companion %v", v.key(), count, want)
		}
	}
}
