package mapping

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

const (
	// maxRankFamilies bounds what one rank can take of Config.MaxFamilies. The largest library known has 1,100 variables.
	maxRankFamilies = 8192
	// highRatio and levelRatio stand for a class in the keys of ratios.
	highRatio  mpit.Class = 254
	levelRatio mpit.Class = 253
)

// holding is a family that a rank holds, with the variables it is made of, by what tells their series apart.
type holding struct {
	metric *Metric
	parts  map[string]*variable
}

// catalogue takes new and changed variables in. nil is a library that has none, as Debian's MPICH.
func (r *Rank) catalogue(vs *mpit.Variables) {
	if vs == nil {
		return
	}
	for i := range vs.ByID {
		info := &vs.ByID[i]
		if i < len(r.byID) {
			old := r.byID[i]
			if same(&old.info, info) {
				if old.info.State != info.State {
					r.countState(info.State)
				}
				old.info = *info
				continue
			}
			// An agent never uses a number again; whoever does starts anew with it.
			r.forget(old)
			r.byID[i] = r.newVariable(info)
		} else {
			r.byID = append(r.byID, r.newVariable(info))
		}
	}
	r.resolve()
}

func same(a, b *mpit.Variable) bool {
	return a.Name == b.Name && a.Class == b.Class && a.Datatype == b.Datatype && a.DatatypeBytes == b.DatatypeBytes && a.Bind == b.Bind
}

// newVariable is a variable of which it has yet to be found out what it becomes. Until then the agent reads it.
func (r *Rank) newVariable(info *mpit.Variable) *variable {
	v := &variable{info: *info, key: variableKey{info.Name, info.Class}, spec: spec{real: info.Class}}
	r.order = append(r.order, v)
	r.countState(info.State)
	if r.byKey[v.key] != nil {
		r.drop(v, ReasonDuplicate)
		return v
	}
	r.byKey[v.key] = v
	v.held, v.wanted = true, true
	r.held++
	return v
}

// resolve finds out what variables become, but for those whose categories would have to be known.
func (r *Rank) resolve() {
	if r.held == 0 {
		return
	}
	var fresh []*variable
	asks := map[*variable]*wanted{}
	for _, v := range r.order {
		if !v.held {
			continue
		}
		var categories []string
		if r.categories != nil {
			categories = r.categories(v.info.Name, v.info.Class)
		}
		s, want, reason, undecided := r.mapper.resolve(r.rules, &v.info, categories, r.categorised)
		if undecided {
			continue
		}
		v.spec, v.held = s, false
		if r.held--; reason != "" {
			v.wanted = false
			r.drop(v, reason)
			continue
		}
		asks[v] = &want
		fresh = append(fresh, v)
	}
	fresh = slices.DeleteFunc(fresh, func(v *variable) bool { return v.companion != "" && !r.findCompanion(v) })
	for _, v := range fresh {
		if reason := r.join(v, asks[v]); reason != "" {
			v.wanted, v.with = false, nil
			r.drop(v, reason)
			continue
		}
		if v.mode == modeState {
			v.items = itemsOf(v.info.Enum)
		}
	}
	for _, v := range fresh {
		if v.with != nil {
			v.with.wanted = true
		}
	}
	for _, v := range fresh {
		r.findRatio(v)
	}
}

// findCompanion looks for the counter of a timer's events. It must be bound to the same, and be merged in the same way: then
// each cell of the timer has one of the counter. A counter that isn't shown follows the timer. Without a companion, or with one
// that can't be it, the timer has none; false: nobody knows yet what the counter is.
func (r *Rank) findCompanion(v *variable) bool {
	with := r.byKey[variableKey{v.companion, mpit.ClassCounter}]
	if with != nil && with.held {
		v.held = true
		r.held++
		return false
	}
	switch {
	case with == nil, with.mode != modeCount, with.number == notNumber, with.info.Bind != v.info.Bind:
		v.companion = ""
	case with.structure == v.structure:
		v.with = with
	case with.reason == ReasonRule && !with.adopted:
		with.structure, with.nonzero = v.structure, v.nonzero
		v.with = with
	default:
		v.companion = ""
	}
	if v.with != nil {
		with.adopted = true
	}
	return true
}

// join makes v a holder of its family, in this rank and in all.
func (r *Rank) join(v *variable, want *wanted) Reason {
	have, labels := r.families[want.Name], v.labelKey()
	switch {
	case have == nil && len(r.families) >= maxRankFamilies:
		return ReasonFamiliesOverMax
	case have != nil && have.metric.Kind == want.Kind && have.parts[labels] != nil:
		other := &have.parts[labels].info
		v.why = fmt.Sprintf("%s is already made of %s, class %s, with the same labels", want.Name, fold(other.Name, 200), nameOf(other.Class))
		return ReasonLabelConflict
	}
	metric, reason := r.mapper.acquire(want.Metric, func() string { return r.mapper.help(&v.info, &v.spec, want) })
	if reason == ReasonTypeConflict {
		v.why = r.mapper.conflict(&want.Metric)
	}
	if reason != "" {
		return reason
	}
	r.hold(v, metric, labels)
	return ""
}

func (r *Rank) hold(v *variable, metric *Metric, labels string) {
	v.metric = metric
	have := r.families[metric.Name]
	if have == nil {
		have = &holding{metric: metric, parts: make(map[string]*variable, 1)}
		r.families[metric.Name] = have
	}
	have.parts[labels] = v
}

// labelKey is what tells the series of two variables of one family apart: what they are bound to, and the labels that rules give.
// Elements and numbers of objects do not, for one variable can have series with such a label and without.
func (v *variable) labelKey() string {
	if len(v.labels) == 0 {
		return v.label
	}
	var b strings.Builder
	b.WriteString(v.label)
	for _, l := range v.labels {
		b.WriteString("\x00" + l.Name + "\x00" + l.Value)
	}
	return b.String()
}

func (r *Rank) drop(v *variable, reason Reason) {
	v.reason = reason
	r.dropped[reason]++
}

func (r *Rank) countState(s mpit.VariableState) {
	switch s {
	case mpit.VariableDenied:
		r.dropped[ReasonDenied]++
	case mpit.VariableAllocFailed:
		r.dropped[ReasonAllocFailed]++
	case mpit.VariableStartFailed:
		r.dropped[ReasonStartFailed]++
	case mpit.VariableReadFailed:
		r.dropped[ReasonReadFailed]++
	case mpit.VariableExhausted:
		r.dropped[ReasonExhausted]++
	}
}

func (r *Rank) forget(v *variable) {
	r.order = slices.DeleteFunc(r.order, func(o *variable) bool { return o == v })
	if r.byKey[v.key] == v {
		delete(r.byKey, v.key)
	}
	if v.held {
		r.held--
	}
	r.giveBack(v)
	for id, h := range r.index() {
		if h.v == v {
			delete(r.handles, id)
		}
	}
}

// giveBack lets go of a variable's part of its family.
func (r *Rank) giveBack(v *variable) {
	if v.metric == nil {
		return
	}
	have, labels := r.families[v.metric.Name], v.labelKey()
	if have == nil || have.parts[labels] != v {
		return
	}
	if delete(have.parts, labels); len(have.parts) == 0 {
		delete(r.families, v.metric.Name)
	}
	r.mapper.release(v.metric)
}

// Close gives the families of the rank back. The Rank must not be used any more, and its Series must not be shown. It may
// be called more than once.
func (r *Rank) Close() {
	for _, v := range r.order {
		r.giveBack(v)
	}
}
