package series

import (
	"math"
	"sort"
	"strings"
	"time"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mapping/rules"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// agent does what a real agent does with the figures of a rank: origins at renames, remains of what is freed, and
// what is gained while the program has switched observation off.
type agent struct {
	vars    []mpit.Variable
	objects []mpit.Object
	handles []*agentHandle
	remains map[[2]string]*mpit.Remain // variable's name and class, object's name
	next    uint32
	gen     uint64
	clock   time.Duration
	failed  map[uint32]bool
	start   time.Time

	lastVars    *mpit.Variables
	lastLayout  *mpit.Layout
	lastRemains *mpit.Remains
	loseRemains bool

	paused bool
	calls  uint64 // of MPI_Pcontrol

	unread map[uint32]bool // variables that the exporter does not want
}

// selects is SELECT: what the exporter wants to be read from now on.
func (a *agent) selects(ids map[uint32]bool) {
	a.unread, a.lastLayout = map[uint32]bool{}, nil
	for id, wanted := range ids {
		a.unread[id] = !wanted
	}
}

type agentHandle struct {
	mpit.Handle
	mpit.Earlier
	values []uint64
	frozen []uint64 // while paused: the values when that began, or when the handle was made; nil: zeros
}

// seen is what a sample has of a handle.
func (h *agentHandle) seen(paused bool) []uint64 {
	switch {
	case !paused:
		return h.values
	case h.frozen != nil:
		return h.frozen
	case h.First != nil:
		return h.First
	}
	return make([]uint64, len(h.values))
}

// pause is MPI_Pcontrol(0).
func (a *agent) pause() {
	a.calls++
	if a.paused {
		return
	}
	a.paused = true
	for _, h := range a.handles {
		h.frozen = append([]uint64(nil), h.values...)
	}
}

// resume is MPI_Pcontrol(1).
func (a *agent) resume() {
	a.calls++
	if !a.paused {
		return
	}
	for _, h := range a.handles {
		n := mapping.NumberOf(a.vars[h.Variable].Datatype)
		before := h.seen(true)
		for i, w := range h.values {
			gained := difference(n, w, before[i])
			if gained == 0 {
				continue
			}
			excluded := make([]uint64, h.Count) // what was sent is not changed any more
			copy(excluded, h.Excluded)
			excluded[i] = plus(n, excluded[i], gained)
			h.Excluded, a.lastLayout = excluded, nil
		}
		h.frozen = nil
	}
	a.paused = false
}

func plus(n mapping.Number, x, y uint64) uint64 {
	if n == mapping.Floating {
		return math.Float64bits(math.Float64frombits(x) + math.Float64frombits(y))
	}
	return x + y
}

func newAgent(vars ...mpit.Variable) *agent {
	a := &agent{remains: map[[2]string]*mpit.Remain{}, failed: map[uint32]bool{}, start: time.Unix(1000, 0)}
	for _, v := range vars {
		a.add(v)
	}
	return a
}

// add finds a variable; it is open at once where it is bound to nothing.
func (a *agent) add(v mpit.Variable) {
	v.ID = uint32(len(a.vars))
	if v.DatatypeBytes == 0 {
		v.DatatypeBytes = 8
	}
	a.vars = append(a.vars, v)
	a.lastVars = nil
	if v.State == mpit.VariableOnRequest {
		return
	}
	if v.Bind == mpit.BindNone {
		a.open(v.ID, 0, 1)
		return
	}
	for _, o := range a.objects {
		if o.Kind == v.Bind {
			a.open(v.ID, o.ID, 1)
		}
	}
}

func (a *agent) now() time.Time { return a.start.Add(a.clock) }

func (a *agent) open(variable, object uint32, n int) *agentHandle {
	if a.vars[variable].Distribution {
		n = mpittest.DistributionElements
	}
	a.next++
	h := &agentHandle{Handle: mpit.Handle{ID: a.next, Variable: variable, Object: object, Count: n,
		Created: a.now()}, values: make([]uint64, n)}
	a.handles = append(a.handles, h)
	a.lastLayout = nil
	return h
}

// object makes a communicator, with a handle of n elements for each variable bound to one.
func (a *agent) object(name string, n int) uint32 { return a.objectOf(mpit.BindComm, name, n) }

func (a *agent) objectOf(kind mpit.Bind, name string, n int) uint32 {
	a.next++
	id := a.next
	a.objects = append(a.objects, mpit.Object{ID: id, Kind: kind, Name: name, Created: a.now()})
	for _, v := range a.vars {
		if v.Bind == kind {
			a.open(v.ID, id, n)
		}
	}
	a.lastLayout = nil
	return id
}

func (a *agent) handle(variable string, object uint32) *agentHandle {
	for _, h := range a.handles {
		if a.vars[h.Variable].Name == variable && h.Object == object {
			return h
		}
	}
	panic("no handle of " + variable)
}

func (a *agent) set(variable string, object uint32, values ...any) {
	h := a.handle(variable, object)
	for i, v := range values {
		h.values[i] = word(v)
	}
}

func word(v any) uint64 {
	switch v := v.(type) {
	case int:
		return uint64(v)
	case uint64:
		return v
	case float64:
		return math.Float64bits(v)
	}
	panic("no number")
}

// end does the arithmetic of REMAINS for one handle's contribution.
func (a *agent) end(h *agentHandle, name string) {
	if a.loseRemains {
		return
	}
	v := a.vars[h.Variable]
	key := [2]string{v.Name + "/" + mapping.NameOf(v.Class), name}
	rm := a.remains[key]
	if rm == nil {
		rm = &mpit.Remain{Variable: h.Variable, Name: name, Created: h.Created,
			Gained: make([]uint64, h.Count), First: make([]uint64, h.Count),
			Max: append([]uint64(nil), h.seen(a.paused)...), Min: append([]uint64(nil), h.seen(a.paused)...)}
	} else {
		c := *rm
		rm = &c
		for _, s := range []*[]uint64{&rm.Gained, &rm.First, &rm.Max, &rm.Min} {
			*s = append([]uint64(nil), *s...)
		}
	}
	rm.Contributions++
	n := mapping.NumberOf(v.Datatype)
	add := func(x *uint64, y uint64) { *x = plus(n, *x, y) }
	sub := func(a, b uint64) uint64 { return difference(n, a, b) }
	for i, w := range h.seen(a.paused) {
		excluded := uint64(0)
		if h.Excluded != nil {
			excluded = h.Excluded[i]
		}
		add(&rm.Gained[i], sub(0, excluded))
		var first uint64
		if h.First != nil {
			first = h.First[i]
		}
		if h.Origin != nil {
			add(&rm.Gained[i], sub(w, h.Origin[i]))
		} else {
			add(&rm.Gained[i], sub(w, first))
			add(&rm.First[i], first)
		}
		if less(n, rm.Max[i], w) {
			rm.Max[i] = w
		}
		if less(n, w, rm.Min[i]) {
			rm.Min[i] = w
		}
	}
	a.remains[key] = rm
	a.lastRemains = nil
}

func (a *agent) free(object uint32) {
	name := a.nameOf(object)
	kept := a.handles[:0:0]
	for _, h := range a.handles {
		if h.Object == object {
			a.end(h, name)
		} else {
			kept = append(kept, h)
		}
	}
	a.handles = kept
	objects := a.objects[:0:0]
	for _, o := range a.objects {
		if o.ID != object {
			objects = append(objects, o)
		}
	}
	a.objects, a.lastLayout = objects, nil
}

func (a *agent) rename(object uint32, name string) {
	old := a.nameOf(object)
	for _, h := range a.handles {
		if h.Object == object {
			a.end(h, old)
			h.Origin, h.Excluded, h.Created = append([]uint64(nil), h.seen(a.paused)...), nil, a.now()
		}
	}
	a.objects = append([]mpit.Object(nil), a.objects...)
	for i := range a.objects {
		if a.objects[i].ID == object {
			a.objects[i].Name = name
		}
	}
	a.lastLayout = nil
}

func (a *agent) nameOf(object uint32) string {
	for _, o := range a.objects {
		if o.ID == object {
			return o.Name
		}
	}
	panic("no object")
}

// reconnect makes all snapshots new ones, with the same content.
func (a *agent) reconnect() { a.lastVars, a.lastLayout, a.lastRemains = nil, nil, nil }

func (a *agent) sample() *mpit.Sample {
	a.gen++
	s := &mpit.Sample{Time: a.now(), Monotonic: a.clock}
	s.Stats.PcontrolLevel, s.Stats.PcontrolCalls = 1, a.calls
	if a.paused {
		s.Status, s.Stats.PcontrolLevel = mpit.SamplePaused, 0
	}
	if a.lastVars == nil {
		a.lastVars = &mpit.Variables{Generation: a.gen, ByID: append([]mpit.Variable(nil), a.vars...)}
	}
	if a.lastLayout == nil {
		l := &mpit.Layout{Generation: a.gen, Objects: a.objects}
		for _, h := range a.handles {
			if h.Offset = -1; !a.unread[h.Variable] {
				h.Offset = l.Values
				l.Values += h.Count
			}
			lh := h.Handle
			if h.First != nil || h.Origin != nil || h.Excluded != nil {
				earlier := h.Earlier
				lh.Earlier = &earlier
			}
			l.Handles = append(l.Handles, lh)
		}
		a.lastLayout = l
	}
	if a.lastRemains == nil {
		a.lastRemains = &mpit.Remains{Generation: a.gen}
		for _, rm := range a.remains {
			a.lastRemains.List = append(a.lastRemains.List, *rm)
		}
		sort.Slice(a.lastRemains.List, func(i, j int) bool {
			x, y := a.lastRemains.List[i], a.lastRemains.List[j]
			return x.Variable < y.Variable || x.Variable == y.Variable && x.Name < y.Name
		})
	}
	s.Variables, s.Layout, s.Remains = a.lastVars, a.lastLayout, a.lastRemains
	s.Values = []uint64{}
	for _, h := range a.handles {
		if a.unread[h.Variable] {
			continue
		}
		s.Values = append(s.Values, h.seen(a.paused)...)
		if a.failed[h.ID] {
			s.Failed = append(s.Failed, mpit.FailedHandle{Handle: h.ID})
		}
	}
	return s
}

// after lets time pass.
func (a *agent) after(d time.Duration) *agent { a.clock += d; return a }

// show writes valid series as a text: name{label="value"} = value.
func show(r *Rank) map[string]float64 {
	out := map[string]float64{}
	for _, s := range r.Series() {
		if !s.Valid {
			continue
		}
		var labels []string
		for _, l := range s.Labels {
			labels = append(labels, l.Name+"="+l.Value)
		}
		name := strings.TrimPrefix(s.Metric.Name, mapping.Prefix)
		if labels != nil {
			name += "{" + strings.Join(labels, ",") + "}"
		}
		if _, twice := out[name]; twice {
			panic("two series of " + name)
		}
		if s.Histogram != nil {
			out[name+" count"], out[name+" sum"] = float64(s.Histogram.Count), s.Histogram.Sum
			continue
		}
		out[name] = s.Value
	}
	return out
}

var yes, no = true, false

// reload puts other rules into force, as the exporter does when it is told to.
func reload(t fataler, r *Rank, a *agent, list ...rules.Rule) {
	t.Helper()
	r.Reload(newMapper(t, list...), a.now())
}

// restart is another exporter that meets the agent's process.
func restart(t fataler, r *Rank, a *agent, list ...rules.Rule) *Rank {
	t.Helper()
	again := NewRank(newMapper(t, list...), variables.Process{Library: mapping.Library{Name: mapping.MPICH,
		Version: "4.0.2"}, Older: a.now()})
	again.room.limit = r.room.limit
	if own, ok := r.room.shared.(ownRoom); ok {
		limitTo(again, own.weight, own.reason)
	}
	return again
}

// difference is a-b of two amounts that are signed for all integers.
func difference(n mapping.Number, a, b uint64) uint64 {
	if n == mapping.Floating {
		return math.Float64bits(math.Float64frombits(a) - math.Float64frombits(b))
	}
	return a - b
}

// less compares two words of a sample.
func less(n mapping.Number, a, b uint64) bool {
	switch n {
	case mapping.Signed:
		return int64(a) < int64(b)
	case mapping.Unsigned:
		return a < b
	}
	return math.Float64frombits(a) < math.Float64frombits(b)
}

// createdAt is when a series' value was zero; the zero time: not known.
func createdAt(s *mapping.Series) time.Time {
	if s.Since == 0 {
		return time.Time{}
	}
	return time.Unix(0, s.Since)
}
