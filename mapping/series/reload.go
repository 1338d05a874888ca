package series

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"slices"
	"time"

	"github.com/mpit-exporter/mpit-exporter/mapping"
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
	r.categorised = !m.rules.ByCategory() || r.answered
}

// before is what a variable was until rules changed.
type before struct {
	meaning uint32
	plain   mapping.Plain
	held    bool
}

// reload finds out anew what all variables become.
func (r *Rank) reload() {
	at := r.reloading.at
	had := make(map[*variable]before, len(r.order))
	holders := map[string]*variable{} // by family and labels
	for _, v := range r.order {
		had[v] = before{v.meaning, v.Plain, v.held}
		if v.Metric != nil {
			holders[v.Metric.Name+v.labelKey()] = v
		}
	}
	r.Close()
	ratios := r.ratios
	r.mapper, r.rules, r.reloading = r.reloading.mapper, r.reloading.mapper.rules.ForLibrary(r.process.Library), nil
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
		v.Spec = mapping.Unknown(v.info.Class) // what it was is not to be found by others that are resolved
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
			v.Spec, v.meaning = mapping.Unknown(v.info.Class), 0
		}
		other := v.Metric != nil && holders[v.Metric.Name+v.labelKey()] != nil
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
		if a, b := had[h.v].plain, h.v.Plain; a.Mode != b.Mode || a.Exact != b.Exact || a.Number != b.Number || a.Bits != b.Bits {
			delete(r.handles, id)
		}
	}
	r.room.used, r.room.reserved = 0, 0
	for _, v := range r.order {
		if v.enter == refused {
			v.empty() // there may be room now
		}
		if v.Metric != nil {
			r.room.used += len(v.list) * v.charge()
			r.room.reserved += v.reserve()
		}
	}
	r.reselect = true
}

// renew makes a variable's series new ones that mean the same: who holds the old ones may still read them.
func (v *variable) renew() {
	of := func(old *mapping.Series) *mapping.Series {
		if old == nil {
			return nil
		}
		s := *old
		s.Metric, s.Together = v.Metric, mapping.NewTogether(v.Ranks, v.Across)
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
	if v.Metric == nil {
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
	for _, s := range []string{v.Metric.Name, v.Label, v.Each, string(v.Objects), string(v.Elements), v.Companion, labelText(v.Labels)} {
		text(s)
	}
	for _, x := range []float64{float64(v.Metric.Kind), float64(v.Metric.OTelKind), float64(v.Mode), float64(v.Real), float64(v.Number), float64(v.Bits), v.Scale} {
		number(x)
	}
	for _, b := range []bool{v.Separate, v.Numbered, v.Nonzero, v.Offset, v.Exact} {
		flag(b)
	}
	if v.Metric.Kind == mapping.KindHistogram {
		for _, b := range v.Buckets {
			number(b)
		}
	}
	if v.with != nil {
		number(v.with.Scale)
	}
	sum := hash.Sum64()
	return max(1, uint32(sum^sum>>32))
}
