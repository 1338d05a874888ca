package series

import (
	"maps"
	"strconv"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// otherElement is the number of no element: a sample has fewer values.
const otherElement = 1 << 18

// Limits decide when something comes: a variable is let in or left out, an object's series find room or count into
// the one called other. Nothing that has been decided changes later. So a limit is never more than a comparison, and
// no series ever has to be divided.

// Room is what ranks share: how many series they may have together. It is used by several ranks at the same time.
type Room interface {
	// Take takes so much room at once and returns ""; where there is less, it takes none and says what bounds it.
	Take(weight int) mapping.Reason
}

// room is what bounds a rank's series, and what they take of it.
type room struct {
	shared   Room           // nil: no bound
	held     int            // taken from shared
	denied   mapping.Reason // what shared said last when it had none
	limit    int            // of each variable's weight by itself; below zero: none
	used     int            // by cells
	reserved int            // for the first cell of each variable that has been let in, or for its other
}

// admission says whether there was room for a variable.
type admission uint8

const (
	undecided admission = iota
	asking
	admitted
	refused
)

// overflow is what of a variable found no room.
type overflow struct {
	cell *cell             // other, where it counts; nil: nothing does, or it found no room either
	ids  map[cellID]uint32 // what counts there, or nowhere, and the generation in which it was seen last
}

// other is the cell where those count that found no room; nil: there is none.
func (v *variable) other() *cell {
	if v.overflow == nil {
		return nil
	}
	return v.overflow.cell
}

// find says whether something found no room, and notes that it is there.
func (o *overflow) find(id cellID, generation uint32) bool {
	if o == nil {
		return false
	}
	_, found := o.ids[id]
	if found {
		o.ids[id] = generation
	}
	return found
}

// sweep forgets what is no longer there.
func (o *overflow) sweep(generation uint32) {
	if o != nil {
		maps.DeleteFunc(o.ids, func(_ cellID, seen uint32) bool { return seen != generation })
	}
}

// lines is the weight of one cell of the variable.
func (v *variable) lines() int {
	switch {
	case v.Mode == mapping.ModeState:
		return len(v.Items) + 1
	case v.Metric.Kind == mapping.KindHistogram:
		return len(v.Buckets) + 3 // +Inf, sum and count
	}
	return 1
}

// folds says whether objects or elements of the variable can count into one called other.
func (v *variable) folds() bool { return !v.Separate && (v.Label != "" || v.Each != "") }

// otherID is the id of the variable's cell other.
func (v *variable) otherID() cellID {
	id := cellID{elem: -1}
	if v.Label != "" {
		id.object = mapping.Other
	}
	if v.Each != "" {
		id.elem = otherElement
	}
	return id
}

func elementName(n int) string {
	if n == otherElement {
		return mapping.Other
	}
	return strconv.Itoa(n)
}

// allows says whether a variable may have that weight.
func (m *room) allows(weight int) bool { return m.limit < 0 || weight <= m.limit }

// has says whether there is room for so much more, and takes it. For nothing there always is.
func (m *room) has(weight int) bool {
	more := m.used + m.reserved + weight - m.held
	if m.shared == nil || weight <= 0 || more <= 0 {
		return true
	}
	if reason := m.shared.Take(more); reason != "" {
		m.denied = reason
		return false
	}
	m.held += more
	return true
}

// giveBack gives back what was taken and is not used.
func (m *room) giveBack() { m.held = m.used }

// admit decides whether a variable is let in. Room for one cell is reserved for it.
func (m *room) admit(v *variable) {
	if v.enter > asking {
		return
	}
	if !m.allows(v.lines()) || !m.has(v.lines()) {
		v.enter = refused
		return
	}
	v.enter = admitted
	m.reserved += v.reserve()
}

// reserve is what is reserved for the variable: a cell for what finds no room, or the only one that it has.
func (v *variable) reserve() int {
	if v.enter == admitted && v.other() == nil && (v.folds() || len(v.list) == 0) {
		return v.lines()
	}
	return 0
}

// reason is why there was no room.
func (m *room) reason(v *variable) mapping.Reason {
	if m.denied == "" || !m.allows((len(v.list)+2)*v.lines()) {
		return mapping.ReasonVariableOverLimit
	}
	return m.denied
}

// verbosity is the variable's, unknown ones being the highest.
func (v *variable) verbosity() mpit.Verbosity {
	if v.of.Info.Verbosity == mpit.VerbosityUnknown {
		return ^mpit.Verbosity(0)
	}
	return v.of.Info.Verbosity
}
