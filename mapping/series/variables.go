package series

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

const (
	// maxRankFamilies bounds what one rank can take of Config.MaxFamilies. The largest library known has 1,100
	// variables.
	maxRankFamilies = 8192
	// highRatio and levelRatio stand for a class in the keys of ratios.
	highRatio  mpit.Class = 254
	levelRatio mpit.Class = 253

	// distribution stands for TIMER in the keys of distributions: they are no timers with a companion.
	distribution mpit.Class = 252
)

// holdings is the families that a rank holds, each with the variables it is made of. Most are made of one.
type holdings struct {
	first map[*mapping.Metric]*variable
	parts map[*mapping.Metric]map[string]*variable // all of them by labelKey, of those that have had several
}

func newHoldings() holdings {
	return holdings{map[*mapping.Metric]*variable{}, map[*mapping.Metric]map[string]*variable{}}
}

// part is the variable of a family whose series have these labels, by labelKey; nil: none.
func (h holdings) part(metric *mapping.Metric, labels string) *variable {
	if parts, several := h.parts[metric]; several {
		return parts[labels]
	}
	if first := h.first[metric]; first != nil && first.labelKey() == labels {
		return first
	}
	return nil
}

// hold notes that v is a part of its family.
func (h holdings) hold(v *variable, labels string) {
	first := h.first[v.Metric]
	switch parts := h.parts[v.Metric]; {
	case first == nil:
		h.first[v.Metric] = v
	case parts == nil:
		h.parts[v.Metric] = map[string]*variable{first.labelKey(): first, labels: v}
	default:
		parts[labels] = v
	}
}

// release forgets that v is a part of its family; false: it isn't.
func (h holdings) release(v *variable) bool {
	labels := v.labelKey()
	if h.part(v.Metric, labels) != v {
		return false
	}
	parts := h.parts[v.Metric]
	delete(parts, labels)
	if len(parts) == 0 {
		delete(h.first, v.Metric)
		delete(h.parts, v.Metric)
	}
	return true
}

// catalogue takes new and changed variables in. nil is a library that has none, as Debian's MPICH.
func (r *Rank) catalogue(vs *mpit.Variables) {
	if vs == nil {
		return
	}
	var fresh []*variable
	more := max(0, len(vs.ByID)-len(r.byID))
	r.byID, r.order = slices.Grow(r.byID, more), slices.Grow(r.order, more)
	for i := range vs.ByID {
		info := &vs.ByID[i]
		if i < len(r.byID) {
			old := r.byID[i]
			if same(old.info, info) {
				if old.info.State != info.State {
					r.countState(info.State)
				}
				old.info = info
				continue
			}
			// An agent never uses a number again; whoever does starts anew with it.
			r.forget(old)
			r.byID[i] = r.newVariable(info)
		} else {
			r.byID = append(r.byID, r.newVariable(info))
		}
		fresh = append(fresh, r.byID[i])
	}
	r.enter(fresh)
	r.resolve()
}

// enter makes variables known by their keys, but those whose key is taken.
func (r *Rank) enter(fresh []*variable) {
	slices.SortFunc(fresh, func(a, b *variable) int { return cmp.Or(a.key().compare(b.key()), cmp.Compare(a.info.ID, b.info.ID)) })
	known := len(r.byKey)
	r.byKey = slices.Grow(r.byKey, len(fresh))
	for _, v := range fresh {
		_, taken := find(r.byKey[:known], v.key())
		if n := len(r.byKey); taken || n > known && r.byKey[n-1].key() == v.key() {
			r.drop(v, mapping.ReasonDuplicate, "")
			continue
		}
		r.byKey = append(r.byKey, v)
		v.held, v.wanted = true, true
		r.held++
	}
	if known > 0 {
		slices.SortFunc(r.byKey, func(a, b *variable) int { return a.key().compare(b.key()) })
	}
}

// named is the variable of that name and class; nil: there is none.
func (r *Rank) named(key variableKey) *variable {
	if i, found := find(r.byKey, key); found {
		return r.byKey[i]
	}
	return nil
}

func find(sorted []*variable, key variableKey) (int, bool) {
	return slices.BinarySearchFunc(sorted, key, func(v *variable, key variableKey) int { return v.key().compare(key) })
}

func (k variableKey) compare(o variableKey) int {
	return cmp.Or(strings.Compare(k.name, o.name), cmp.Compare(k.class, o.class))
}

func same(a, b *mpit.Variable) bool {
	return a.Name == b.Name && a.Class == b.Class && a.Datatype == b.Datatype && a.DatatypeBytes == b.DatatypeBytes && a.Bind == b.Bind &&
		a.Distribution == b.Distribution
}

// newVariable is a variable of which it has yet to be found out what it becomes. Until then the agent reads it.
func (r *Rank) newVariable(info *mpit.Variable) *variable {
	v := &variable{info: info, Spec: mapping.Unknown(info.Class)}
	r.order = append(r.order, v)
	r.countState(info.State)
	return v
}

// key is what the variable is known by.
func (v *variable) key() variableKey {
	if v.info.Distribution {
		return variableKey{v.info.Name, distribution}
	}
	return variableKey{v.info.Name, v.info.Class}
}

// resolve finds out what variables become, but for those whose categories would have to be known.
func (r *Rank) resolve() {
	if r.held == 0 {
		return
	}
	var fresh, changed []*variable // changed have a spec that is not shared yet
	asks := map[*variable]*mapping.Wanted{}
	for _, v := range r.order {
		if !v.held {
			continue
		}
		var categories []string
		if r.categories != nil {
			categories = r.categories(v.info.Name, v.info.Class)
		}
		s, want, reason, undecided := r.mapper.resolve(r.rules, v.info, categories, r.categorised)
		if undecided {
			continue
		}
		v.Spec, v.held = &s, false
		changed = append(changed, v)
		if r.held--; reason != "" {
			v.wanted = false
			r.drop(v, reason, "")
			continue
		}
		asks[v] = &want
		fresh = append(fresh, v)
	}
	fresh = slices.DeleteFunc(fresh, func(v *variable) bool {
		if v.Companion == "" {
			return false
		}
		known := r.findCompanion(v)
		if v.with != nil {
			changed = append(changed, v.with)
		}
		return !known
	})
	for _, v := range fresh {
		if reason, why := r.join(v, asks[v]); reason != "" {
			v.wanted, v.with = false, nil
			r.drop(v, reason, why)
		}
	}
	for _, v := range changed {
		var enum *mpit.Enum
		if v.Mode == mapping.ModeState && v.Metric != nil {
			enum = v.info.Enum
		}
		v.meaning = v.means()
		v.Spec = r.mapper.specs.share(*v.Spec, enum)
	}
	for _, v := range fresh {
		if v.with != nil {
			v.with.wanted = true
			r.timers[v.with] = append(r.timers[v.with], v)
		}
		if v.doubtful() {
			v.since = max(v.since, unixNano(r.process.Older))
		}
	}
	for _, v := range fresh {
		r.findRatio(v)
	}
}

// doubtful says whether nobody can vouch for what the variable had counted before this exporter met its process: it
// may have wrapped, or it is not known in which intervals a timer's observations came.
func (v *variable) doubtful() bool {
	return v.Mode == mapping.ModeCount && v.Metric != nil && !v.Exact && (v.Bits < 64 && v.Number != mapping.Floating || v.Metric.Kind == mapping.KindHistogram)
}

// findCompanion looks for the counter of a timer's events. It must be bound to the same, and be merged in the same
// way: then each cell of the timer has the counter's handles of the same objects. Without a companion, or with one
// that can't be it, the timer has none; false: nobody knows yet what the counter is.
func (r *Rank) findCompanion(v *variable) bool {
	with := r.named(variableKey{v.Companion, mpit.ClassCounter})
	if with != nil && with.held {
		v.held = true
		r.held++
		return false
	}
	switch {
	case with == nil, with.Mode != mapping.ModeCount, with.Number == mapping.NotNumber, with.info.Bind != v.info.Bind:
		v.Companion = ""
	case with.Structure == v.Structure:
		v.with = with
	case with.left != nil && with.left.reason == mapping.ReasonRule && !with.adopted:
		follows := *with.Spec
		follows.Structure, follows.Nonzero = v.Structure, v.Nonzero
		with.Spec, v.with = &follows, with
	default:
		v.Companion = ""
	}
	if v.with != nil {
		with.adopted = true
	}
	return true
}

// join makes v a holder of its family, in this rank and in all. Its spec is not shared yet.
func (r *Rank) join(v *variable, want *mapping.Wanted) (_ mapping.Reason, why string) {
	metric, reason := r.mapper.families.acquire(want.Metric, r.process.User, func() string { return r.mapper.basis.Help(v.info, v.Spec, want) })
	switch reason {
	case "":
	case mapping.ReasonTypeConflict:
		_, conflict := r.mapper.families.look(&want.Metric)
		return reason, conflict
	default:
		return reason, ""
	}
	labels := v.labelKey()
	if other := r.families.part(metric, labels); other != nil {
		r.mapper.families.release(metric)
		return mapping.ReasonLabelConflict, fmt.Sprintf("%s is already made of %s, class %s, with the same labels",
			want.Name, mapping.Fold(other.info.Name, 200), mapping.NameOf(other.info.Class))
	}
	if r.families.first[metric] == nil && len(r.families.first) >= maxRankFamilies {
		r.mapper.families.release(metric)
		return mapping.ReasonFamiliesOverMax, ""
	}
	v.Metric = metric
	r.families.hold(v, labels)
	return "", ""
}

// labelKey is what tells the series of two variables of one family apart: what they are bound to, and the labels that
// rules give. Elements and numbers of objects do not, for one variable can have series with such a label and without.
func (v *variable) labelKey() string {
	return v.Label + labelText(v.Labels)
}

// labelText tells labels from any others.
func labelText(labels []mapping.Label) string {
	if len(labels) == 0 {
		return ""
	}
	var b []byte
	for _, l := range labels {
		b = strconv.AppendQuote(strconv.AppendQuote(b, l.Name), l.Value)
	}
	return string(b)
}

func (r *Rank) drop(v *variable, reason mapping.Reason, why string) {
	v.left = &leftOut{reason, why}
	r.dropped[reason]++
}

func (r *Rank) countState(s mpit.VariableState) {
	switch s {
	case mpit.VariableDenied:
		r.dropped[mapping.ReasonDenied]++
	case mpit.VariableAllocFailed:
		r.dropped[mapping.ReasonAllocFailed]++
	case mpit.VariableStartFailed:
		r.dropped[mapping.ReasonStartFailed]++
	case mpit.VariableReadFailed:
		r.dropped[mapping.ReasonReadFailed]++
	case mpit.VariableExhausted:
		r.dropped[mapping.ReasonExhausted]++
	}
}

func (r *Rank) forget(v *variable) {
	if i, found := find(r.byKey, v.key()); found && r.byKey[i] == v {
		r.byKey = slices.Delete(r.byKey, i, i+1)
	}
	if v.held {
		r.held--
	}
	r.takeOut(v)
	for _, class := range []mpit.Class{levelRatio, highRatio} {
		key := variableKey{v.info.Name, class}
		delete(r.refused, key)
		if ratio := r.ratios[key]; ratio != nil && (v.Real == mpit.ClassSize || r.ratioOf(v) == ratio) {
			r.takeOut(ratio)
			delete(r.ratios, key)
		}
	}
	for id, h := range r.index() {
		if h.v == v {
			delete(r.handles, id)
		}
	}
}

// takeOut takes a variable out of all that is read and shown, with its room and its part of its family.
func (r *Rank) takeOut(v *variable) {
	is := func(o *variable) bool { return o == v }
	r.order = slices.DeleteFunc(r.order, is)
	if v.Metric != nil {
		r.room.used -= len(v.list) * v.charge()
		r.room.reserved -= v.reserve()
	}
	r.giveBack(v)
	v.empty()
	delete(r.timers, v)
	if timers := slices.DeleteFunc(r.timers[v.with], is); v.with != nil && len(timers) > 0 {
		r.timers[v.with] = timers
	} else if v.with != nil {
		delete(r.timers, v.with)
	}
}

// giveBack lets go of a variable's part of its family.
func (r *Rank) giveBack(v *variable) {
	if v.Metric != nil && r.families.release(v) {
		r.mapper.families.release(v.Metric)
	}
}

// Close gives the families of the rank back. The Rank must not be used any more, and its Series must not be shown. It
// may be called more than once.
func (r *Rank) Close() {
	for _, v := range r.order {
		r.giveBack(v)
	}
}
