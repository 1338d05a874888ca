package variables

import (
	"slices"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// Info describes a variable of a rank, for mpit_pvar_info and for documentation.
type Info struct {
	Name      string     // as the library has it, made valid UTF-8
	Class     mpit.Class // as declared
	Unit      string     // UCUM of the metric, or what is counted: {message}; "" unknown
	Bind      mpit.Bind
	Verbosity mpit.Verbosity
	Bits      int             // of an element
	Metric    *mapping.Metric // nil: not shown, for Reason
	Reason    mapping.Reason
	// what Reason does not say by itself, for a log: whose family it would be in a ReasonTypeConflict
	Why string

	spec *mapping.Spec // shared, so that what two ranks have can be compared
}

// ByPeer says whether there may be such a variable for each process of a job: a rule has given it a label peer.
func (i *Info) ByPeer() bool {
	return slices.ContainsFunc(i.spec.Labels, func(l mapping.Label) bool { return l.Name == string(mapping.MergePeer) })
}

// Owns says how well a series fits the variable: one of Metric.
// Of several variables that share a family, the series is that one's which it fits best; 0: it is none of its series.
func (i *Info) Owns(s *mapping.Series) int {
	if i.Metric == nil || s.Metric.Name != i.Metric.Name {
		return 0
	}
	fit := 1
	for _, l := range i.spec.Labels {
		if !slices.Contains(s.Labels, l) {
			return 0
		}
		fit++
	}
	if object := i.spec.Label; object != "" {
		if !slices.ContainsFunc(s.Labels, func(l mapping.Label) bool { return l.Name == object }) {
			return 0
		}
		fit++
	}
	return fit
}

// Infos describes all variables of the catalogue, also those that are not shown, in the agent's order.
func (c *Catalogue) Infos() []Info {
	infos := make([]Info, len(c.byID))
	for i, v := range c.byID {
		infos[i] = Info{
			Name:  mapping.CleanText(v.Info.Name, 256),
			Class: v.Info.Class, Unit: v.Unit, Bind: v.Info.Bind, Verbosity: v.Info.Verbosity,
			Bits: 8 * v.Info.DatatypeBytes, Metric: v.Metric, spec: v.Spec,
		}
		if v.left != nil {
			infos[i].Reason, infos[i].Why = v.left.reason, v.left.why
		}
	}
	return infos
}
