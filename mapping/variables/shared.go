package variables

import (
	"runtime"
	"sync"
	"weak"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// Ranks of one job have the same variables, and make the same of them: so what a variable becomes is held once in the
// process, for as long as a rank has it. Only what is equal in everything is shared: no rank can change what another
// one shows.

// specKey is all that a spec consists of.
type specKey struct {
	mapping.Plain
	labels  string // as labelKey has them
	buckets *float64
	enum    *mpit.Enum // that items are of; an enumeration never changes
}

// specs is what variables of all ranks become.
type specs struct {
	mu    sync.Mutex
	byKey map[specKey]weak.Pointer[mapping.Spec]
}

// share returns the one spec like this. Nobody may change it any more. enum is that of a STATE, of
// which it gets the items.
func (m *specs) share(s mapping.Spec, enum *mpit.Enum) *mapping.Spec {
	key := specKey{Plain: s.Plain, labels: labelText(s.Labels), enum: enum}
	if len(s.Buckets) > 0 {
		key.buckets = &s.Buckets[0] // a rule's or the Mapper's own: two that begin at one place are the same
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if have := m.byKey[key].Value(); have != nil {
		return have
	}
	s.Items = mapping.ItemsOf(enum)
	made := &s
	m.byKey[key] = weak.Make(made)
	runtime.AddCleanup(made, m.forget, key)
	return made
}

// forget takes out what no rank has any more, unless another one like it has come since.
func (m *specs) forget(key specKey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.byKey[key].Value() == nil {
		delete(m.byKey, key)
	}
}
