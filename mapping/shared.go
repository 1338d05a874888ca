package mapping

import (
	"runtime"
	"weak"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// Ranks of one job have the same variables, and make the same of them: so what a variable becomes is held once in the
// process, for as long as a rank has it. Only what is equal in everything is shared: no rank can change what another
// one shows.

// specKey is all that a spec consists of.
type specKey struct {
	plain
	labels  string // as labelKey has them
	buckets *float64
	enum    *mpit.Enum // that items are of; an enumeration never changes
}

// share returns the one spec like this in the Mapper. Nobody may change it any more. enum is that of a STATE, of
// which it gets the items.
func (m *Mapper) share(s spec, enum *mpit.Enum) *spec {
	key := specKey{plain: s.plain, labels: labelText(s.labels), enum: enum}
	if len(s.buckets) > 0 {
		key.buckets = &s.buckets[0] // a rule's or the Mapper's own: two that begin at one place are the same
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if have := m.specs[key].Value(); have != nil {
		return have
	}
	s.items = itemsOf(enum)
	made := &s
	m.specs[key] = weak.Make(made)
	runtime.AddCleanup(made, m.forgetSpec, key)
	return made
}

// forgetSpec takes out what no rank has any more, unless another one like it has come since.
func (m *Mapper) forgetSpec(key specKey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.specs[key].Value() == nil {
		delete(m.specs, key)
	}
}

// unknownSpecs are of variables of each class of which nobody knows yet what they become.
var unknownSpecs = func() (specs [len(classNames) + 1]*spec) {
	for class := range specs {
		specs[class] = &spec{plain: plain{real: mpit.Class(class)}}
	}
	specs[len(classNames)].real = mpit.ClassUnknown
	return specs
}()

// unknown is the spec of a variable of which nobody knows yet what it becomes.
func unknown(class mpit.Class) *spec { return unknownSpecs[min(int(class), len(classNames))] }
