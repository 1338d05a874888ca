package series

import (
	"cmp"
	"slices"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// Info describes a variable of a rank, for mpit_pvar_info and for documentation.
type Info struct {
	Name        string // as the library has it, made valid UTF-8
	Description string
	Class       mpit.Class // as declared
	Real        mpit.Class // as the rules say
	Unit        string     // UCUM of the metric, or what is counted: {message}; "" unknown
	Bind        mpit.Bind
	Verbosity   mpit.Verbosity
	Bits        int // of an element
	State       mpit.VariableState
	Metric      *mapping.Metric // nil: not shown, for Reason
	Reason      mapping.Reason
	Why         string          // what Reason does not say by itself, for a log: whose family it would be in a ReasonTypeConflict
	Companion   string          // of a timer: the COUNTER of its events, "" none
	Ratio       *mapping.Metric // of a LEVEL or watermark: its share in the SIZE of the same name; nil: none

	spec *mapping.Spec // shared, so that what two ranks have can be compared
}

// Owns says how well a series fits the variable: one of Metric or Ratio, or of the family that a Group made of these.
// Of several variables that share a family, the series is that one's which it fits best; 0: it is none of its series.
func (i *Info) Owns(s *mapping.Series) int {
	has := func(name string, such func(value string) bool) bool {
		return slices.ContainsFunc(s.Labels, func(l mapping.Label) bool { return l.Name == name && such(l.Value) })
	}
	of := func(m *mapping.Metric) bool {
		return m != nil && (s.Metric == m || s.Metric.Name == m.Name || s.Metric.Name == mapping.NodeName(m.Name))
	}
	if !of(i.Metric) && !of(i.Ratio) {
		return 0
	}
	for _, l := range i.spec.Labels {
		if !has(l.Name, func(value string) bool { return value == l.Value }) {
			return 0
		}
	}
	fit := 1 + len(i.spec.Labels)
	if i.spec.Label == "" {
		return fit
	}
	if !has(i.spec.Label, func(string) bool { return true }) {
		return 0
	}
	return fit + 1
}

// Infos describes all variables of the rank, also those that are not shown, in the agent's order.
func (r *Rank) Infos() []Info {
	infos := make([]Info, len(r.byID))
	for i, v := range r.byID {
		infos[i] = Info{
			Name: mapping.CleanText(v.info.Name, 256), Description: mapping.CleanText(v.info.Description, 4096),
			Class: v.info.Class, Real: v.Real, Unit: v.Unit, Bind: v.info.Bind, Verbosity: v.info.Verbosity,
			Bits: 8 * v.info.DatatypeBytes, State: v.info.State, Metric: v.Metric,
			spec: v.Spec,
		}
		if v.left != nil {
			infos[i].Reason, infos[i].Why = v.left.reason, v.left.why
		}
		if ratio := r.ratioOf(v); ratio != nil {
			infos[i].Ratio = ratio.Metric
		}
		if v.with != nil {
			infos[i].Companion = mapping.CleanText(v.with.info.Name, 256)
		}
	}
	return infos
}

// ObjectInfo is the objects of one kind that share a name.
type ObjectInfo struct {
	Kind   mpit.Bind
	Name   string      // cleaned
	Number int         // of such objects alive
	Object mpit.Object // the object itself where Number is 1, otherwise zero
	On     string      // name of the communicator that this object was made on, cleaned; "" none, or not known
}

// Objects is the objects that are alive, by kind and name. The slice belongs to the Rank and changes with its layout.
func (r *Rank) Objects() []ObjectInfo {
	if r.objects != nil || r.layout == nil {
		return r.objects
	}
	type place struct {
		kind mpit.Bind
		name string
	}
	comms := map[uint32]string{}
	for i := range r.layout.Objects {
		if o := &r.layout.Objects[i]; o.Kind == mpit.BindComm {
			comms[o.ID] = mapping.CleanName(o.Name)
		}
	}
	index := map[place]int{}
	r.objects = []ObjectInfo{}
	for i := range r.layout.Objects {
		o := &r.layout.Objects[i]
		p := place{o.Kind, mapping.CleanName(o.Name)}
		k, ok := index[p]
		if !ok {
			index[p] = len(r.objects)
			r.objects = append(r.objects, ObjectInfo{Kind: p.kind, Name: p.name, Number: 1, Object: *o, On: comms[o.On]})
			continue
		}
		r.objects[k].Number++
		r.objects[k].Object, r.objects[k].On = mpit.Object{}, ""
	}
	slices.SortFunc(r.objects, func(a, b ObjectInfo) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return r.objects
}
