package mapping

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"slices"
	"time"
)

// reloading is rules that come into force with the next plan.
type reloading struct {
	mapper *Mapper
	at     int64 // Unix nanoseconds
}

// Reload puts the rules of another Mapper into force, at a time of the exporter's clock. The next Update shows what
// they make of the variables, and Select says what the agent is to be told. A series whose meaning they change begins
// at zero; all others go on.
func (r *Rank) Reload(m *Mapper, at time.Time) {
	r.reloading = &reloading{m, unixNano(at)}
	r.categorised = !m.categories || r.answered
}

// before is what a variable was until rules changed.
type before struct {
	meaning uint32
	plain   plain
	held    bool
}

// reload finds out anew what all variables become.
func (r *Rank) reload() {
	at := r.reloading.at
	had := make(map[*variable]before, len(r.order))
	holders := map[string]*variable{} // by family and labels
	for _, v := range r.order {
		had[v] = before{v.meaning, v.plain, v.held}
		if v.metric != nil {
			holders[v.metric.Name+v.labelKey()] = v
		}
	}
	r.Close()
	ratios := r.ratios
	r.mapper, r.rules, r.reloading = r.reloading.mapper, r.reloading.mapper.rulesFor(r.process.Library), nil
	r.families, r.timers, r.ratios = newHoldings(), map[*variable][]*variable{}, map[variableKey]*variable{}
	r.order = slices.DeleteFunc(r.order, func(v *variable) bool { return v.isRatio() })
	for _, reason := range r.refused {
		r.dropped[reason]-- // or it would be counted twice
	}
	r.refused = nil
	r.held = len(r.byKey)
	for _, v := range r.byKey {
		if v.left != nil {
			r.dropped[v.left.reason]-- // or it would be counted twice
			v.left = nil
		}
		v.held, v.wanted, v.adopted, v.with = true, true, false, nil
		v.spec = unknown(v.info.Class) // what it was is not to be found by others that are resolved
	}
	r.resolve()
	for _, v := range r.byKey {
		was := had[v]
		if !v.held && v.meaning == was.meaning {
			v.renew()
			continue
		}
		v.empty()
		if v.held {
			v.spec, v.meaning = unknown(v.info.Class), 0
		}
		other := v.metric != nil && holders[v.metric.Name+v.labelKey()] != nil
		switch {
		case was.held && v.held: // nothing has been decided
		case v.held || was.meaning != 0 || other || v.doubtful():
			v.since = at
		case !was.held: // else it may have been shown before that
			v.since = 0
		}
	}
	for key, v := range r.ratios {
		if old := ratios[key]; old != nil && old.meaning == v.meaning {
			v.list, v.cells, v.overflow, v.enter, v.unsorted = old.list, old.cells, old.overflow, old.enter, old.unsorted
			for _, c := range v.list {
				c.v = v
			}
			v.renew()
		}
	}
	for id, h := range r.index() {
		if a, b := had[h.v].plain, h.v.plain; a.mode != b.mode || a.exact != b.exact || a.number != b.number || a.bits != b.bits {
			delete(r.handles, id)
		}
	}
	r.room.used, r.room.reserved = 0, 0
	for _, v := range r.order {
		if v.enter == refused {
			v.empty() // there may be room now
		}
		if v.metric != nil {
			r.room.used += len(v.list) * v.charge()
			r.room.reserved += v.reserve()
		}
	}
	r.reselect = true
}

// renew makes a variable's series new ones that mean the same: who holds the old ones may still read them.
func (v *variable) renew() {
	of := func(old *Series) *Series {
		if old == nil {
			return nil
		}
		s := *old
		s.Metric, s.Together = v.metric, NewTogether(v.ranks, v.across)
		return &s
	}
	for _, c := range v.list {
		c.series = of(c.series)
		if t := c.state; t != nil {
			for i := range t.series {
				t.series[i] = of(t.series[i])
			}
			t.outside = of(t.outside)
		}
	}
}

// empty takes all cells from a variable.
func (v *variable) empty() {
	v.list, v.cells, v.overflow, v.enter, v.unsorted = nil, nil, nil, undecided, false
}

func (v *variable) isRatio() bool { return v.info.Class == highRatio || v.info.Class == levelRatio }

// means stands for what the values of the variable's series are, but for HELP and what is made of several ranks: 0 is
// nothing. Its own metric need not be known for long: what means the same in another Mapper has the same number.
func (v *variable) means() uint32 {
	if v.metric == nil {
		return 0
	}
	hash := fnv.New64a()
	text := func(s string) { _, _ = hash.Write(append([]byte(s), 0)) }
	number := func(x float64) {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], math.Float64bits(x))
		_, _ = hash.Write(b[:])
	}
	flag := func(b bool) {
		if b {
			number(1)
		} else {
			number(0)
		}
	}
	for _, s := range []string{v.metric.Name, v.label, v.each, string(v.objects), string(v.elements), v.companion, labelText(v.labels)} {
		text(s)
	}
	for _, x := range []float64{float64(v.metric.Kind), float64(v.metric.OTelKind), float64(v.mode), float64(v.real), float64(v.number), float64(v.bits), v.scale} {
		number(x)
	}
	for _, b := range []bool{v.separate, v.numbered, v.nonzero, v.offset, v.exact} {
		flag(b)
	}
	if v.metric.Kind == KindHistogram {
		for _, b := range v.buckets {
			number(b)
		}
	}
	if v.with != nil {
		number(v.with.scale)
	}
	sum := hash.Sum64()
	return max(1, uint32(sum^sum>>32))
}
