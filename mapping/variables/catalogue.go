package variables

import (
	"slices"
	"time"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mapping/rules"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// Catalogue is the variables of one process, and what they become. It belongs to one goroutine, and goes on through
// later connections of the same process.
type Catalogue struct {
	mapper  *Mapper
	process Process
	rules   *rules.Set

	variables *mpit.Variables // as the agent told them last

	byID    []*Variable        // by mpit.Variable.ID
	all     []*Variable        // as they came
	parts   map[part]*Variable // those that are shown
	dropped map[mapping.Reason]uint64

	reloading *reloading // rules have changed since the last Update; nil: they haven't
}

// Variable is a variable of a process. What it becomes is shared with other processes' (shared.go), and changes in an
// Update of its Catalogue alone.
type Variable struct {
	*mapping.Spec
	Info    *mpit.Variable // as the agent told it
	With    *Variable      // companion of a timer; nil: none
	Since   int64          // what has begun before counts from here on, in Unix nanoseconds; 0: all of it counts
	Meaning uint32         // stands for what the values of its series are; 0: it has none
	Wanted  bool           // to be read: shown, or the companion of one that is

	left    *leftOut // nil: it isn't
	adopted bool     // it is the companion of a timer
}

// leftOut says why a variable is not shown.
type leftOut struct {
	reason mapping.Reason
	why    string // of ReasonTypeConflict, in words
}

// variableKey is what a variable is known by, for indices differ from run to run.
type variableKey struct {
	name  string
	class mpit.Class // as declared
}

// part is what is of one variable: the series of a family that have these labels (labelKey).
type part struct {
	metric *mapping.Metric
	labels string
}

const (
	// maxParts bounds what one rank can take of Config.MaxFamilies. The largest library known has 1,100 variables.
	maxParts = 8192

	// distribution stands for the class in the keys of distributions: they are no timers with a companion.
	distribution mpit.Class = 254
)

// Process is what a Rank has to know of its process.
type Process struct {
	Library mapping.Library
	User    uint32 // whose it is: users share the names that there are (Config.MaxFamilies)

	// Older is when the exporter met a process that was there before itself, the zero time for any other: of one that
	// is older, what nobody can vouch for begins at zero, when it is read first. That is histograms of estimated
	// observations, and counters of fewer than 64 bits, which may have wrapped.
	Older time.Time
}

// NewCatalogue makes the Catalogue of a process, which has no variables yet.
func (m *Mapper) NewCatalogue(p Process) *Catalogue {
	return &Catalogue{
		mapper: m, process: p, rules: m.rules.ForLibrary(p.Library),
		parts: map[part]*Variable{}, dropped: map[mapping.Reason]uint64{},
	}
}

// All is all variables. The slice is the Catalogue's, good until the next Update.
func (c *Catalogue) All() []*Variable { return c.all }

// ByID is the variables as the agent counts them. The slice is the Catalogue's, good until the next Update.
func (c *Catalogue) ByID() []*Variable { return c.byID }

// AddDropped adds how many variables have been left out, by reason.
func (c *Catalogue) AddDropped(to map[mapping.Reason]uint64) {
	for reason, n := range c.dropped {
		to[reason] += n
	}
}

// Interval is the least time between two observations of a timer whose durations are estimated.
func (c *Catalogue) Interval() time.Duration { return c.mapper.basis.Interval }

// Update takes new and changed variables in, and other rules. It says whether anything may have changed. Snapshots are
// never changed, so what is the same pointer is the same. nil is a library that has no variables, as Debian's MPICH.
func (c *Catalogue) Update(vs *mpit.Variables) (changed bool) {
	if vs == c.variables && c.reloading == nil {
		return false
	}
	if c.reloading != nil {
		c.reload()
	}
	if vs != nil && vs != c.variables {
		c.take(vs)
	}
	c.variables = vs
	return true
}

// take takes new and changed variables in.
func (c *Catalogue) take(vs *mpit.Variables) {
	var fresh []*Variable
	more := max(0, len(vs.ByID)-len(c.byID))
	c.byID, c.all = slices.Grow(c.byID, more), slices.Grow(c.all, more)
	made := make([]Variable, more)
	for i := range vs.ByID {
		info := &vs.ByID[i]
		if i < len(c.byID) {
			old := c.byID[i]
			if same(old.Info, info) {
				if old.Info.State != info.State {
					c.countState(info.State)
				}
				old.Info = info
				continue
			}
			// An agent never uses a number again; whoever does starts anew with it.
			c.all = slices.DeleteFunc(c.all, func(v *Variable) bool { return v == old })
			c.giveBack(old)
			c.byID[i] = c.newVariable(&Variable{}, info)
		} else {
			c.byID = append(c.byID, c.newVariable(&made[0], info))
			made = made[1:]
		}
		fresh = append(fresh, c.byID[i])
	}
	if len(fresh) == 0 {
		return
	}
	known := c.known()
	for _, v := range fresh {
		if _, taken := known[v.key()]; taken {
			v.Spec = &mapping.Spec{Plain: mapping.Plain{Real: v.Info.Class}}
			c.drop(v, mapping.ReasonDuplicate, "")
			continue
		}
		known[v.key()] = v
	}
	c.resolve(fresh, known) // in the agent's order: of two that want one name, the first gets it
}

// known is the variables that have become something, by what they are known by, of which the first has it. A catalogue
// lasts as long as its process, and needs this only now and then.
func (c *Catalogue) known() map[variableKey]*Variable {
	known := make(map[variableKey]*Variable, len(c.byID))
	for _, v := range c.all {
		if v.Spec != nil && !v.duplicate() {
			known[v.key()] = v
		}
	}
	return known
}

// duplicate says whether another variable is known by the same.
func (v *Variable) duplicate() bool { return v.left != nil && v.left.reason == mapping.ReasonDuplicate }

func same(a, b *mpit.Variable) bool {
	return a.Name == b.Name && a.Class == b.Class && a.Datatype == b.Datatype && a.DatatypeBytes == b.DatatypeBytes &&
		a.Bind == b.Bind && a.Distribution == b.Distribution
}

// newVariable is a variable of which it has yet to be found out what it becomes.
func (c *Catalogue) newVariable(v *Variable, info *mpit.Variable) *Variable {
	v.Info = info
	c.all = append(c.all, v)
	c.countState(info.State)
	return v
}

// key is what the variable is known by.
func (v *Variable) key() variableKey {
	if v.Info.Distribution {
		return variableKey{v.Info.Name, distribution}
	}
	return variableKey{v.Info.Name, v.Info.Class}
}

func (c *Catalogue) drop(v *Variable, reason mapping.Reason, why string) {
	v.left = &leftOut{reason, why}
	c.dropped[reason]++
}

func (c *Catalogue) countState(s mpit.VariableState) {
	switch s {
	case mpit.VariableDenied, mpit.VariableAllocFailed, mpit.VariableStartFailed, mpit.VariableReadFailed,
		mpit.VariableExhausted:
		c.dropped[mapping.Reason(s.String())]++ // they have the same words
	}
}

// giveBack lets go of a variable's part of its family.
func (c *Catalogue) giveBack(v *Variable) {
	if v.Metric == nil {
		return
	}
	if key := (part{v.Metric, v.labelKey()}); c.parts[key] == v {
		delete(c.parts, key)
		c.mapper.families.release(v.Metric)
	}
}

// Close gives the families back. The Catalogue must not be used any more, and no series of its families be shown. It
// may be called more than once.
func (c *Catalogue) Close() {
	for _, v := range c.all {
		c.giveBack(v)
	}
}
