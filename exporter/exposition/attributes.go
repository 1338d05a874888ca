package exposition

import (
	"strconv"
	"sync"

	"go.opentelemetry.io/otel/attribute"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// CommonLabels are the labels that any series may have, whoever's it is. No rule can give them. What is neither here
// nor a Label of its family is called the same in OpenTelemetry. Names that its semantic conventions have are theirs.
var CommonLabels = sync.OnceValue(func() []Label {
	labels := []Label{
		{"jobid", "mpi.job.id", false},
		{"world", "mpi.world", false},
		{"user", "process.user.name", false},
		{"rank", "mpi.rank", true},
		{"dup", "mpi.dup", true},
		{"object", "mpi.object.number", true},
		{"peer", "mpi.peer", false},
		{"index", "mpi.index", false},
	}
	for kind := mpit.BindComm; kind <= mpit.BindLast+1; kind++ { // the last is of kinds that nobody knows
		name := mapping.BindLabel(kind)
		labels = append(labels, Label{name, "mpi." + name + ".name", false})
	}
	return labels
})

var commonByName = sync.OnceValue(func() map[string]Label {
	byName := map[string]Label{}
	for _, l := range CommonLabels() {
		byName[l.Name] = l
	}
	return byName
})

// attributes are the labels that have a name of their own in OpenTelemetry, or are no text there; nil: none.
func (f *Family) attributes() map[string]Label {
	var own map[string]Label
	for _, l := range f.Labels {
		if l.Attribute != "" && l != commonByName()[l.Name] {
			if own == nil {
				own = map[string]Label{}
			}
			own[l.Name] = l
		}
	}
	return own
}

// Naming is what labels are called as attributes.
type Naming uint8

// What labels are called as attributes.
const (
	AsAttributes Naming = iota // as CommonLabels and the families say
	AsLabels                   // the same as on the page, and all of them are text
)

// keyValue is a label as an attribute. own is what the family calls it.
func (n Naming) keyValue(own map[string]Label, label, value string) attribute.KeyValue {
	if n == AsLabels {
		return attribute.String(label, value)
	}
	l, found := own[label]
	if !found {
		l, found = commonByName()[label]
	}
	if !found {
		return attribute.String(label, value)
	}
	if l.Integer {
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			return attribute.Int64(l.Attribute, n)
		}
	}
	return attribute.String(l.Attribute, value)
}

// attributeSets makes sets of attributes, one for all series that have the same: those of a rank mostly do.
type attributeSets struct {
	naming Naming
	made   map[setKey]attribute.Set
}

type setKey struct {
	family string // one of the exporter's own where its labels have names of their own
	labels string // all of them, as text
}

func (s *attributeSets) of(f *family, in *Sheet, i int) attribute.Set {
	e := &in.entries[i]
	key, own := setKey{labels: e.labels}, e.series.Labels
	var names map[string]Label
	if !in.figures && len(own) > 0 {
		key.family, names = f.name, f.attributes
	}
	set, found := s.made[key]
	if found {
		return set
	}
	shared := in.sharedLabels()
	list := make([]attribute.KeyValue, 0, len(shared)+len(own))
	for _, l := range shared {
		list = append(list, s.naming.keyValue(names, l.GetName(), l.GetValue()))
	}
	for _, l := range own {
		list = append(list, s.naming.keyValue(names, l.Name, l.Value))
	}
	set = attribute.NewSet(list...)
	if s.made == nil {
		s.made = map[setKey]attribute.Set{}
	}
	s.made[key] = set
	return set
}
