package exporter

import (
	"slices"
	"strconv"
	"sync"

	"go.opentelemetry.io/otel/attribute"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// otelAttribute is what a label is called in OpenTelemetry. Labels that are not in the table, such as those that rules give, are
// called the same there.
type otelAttribute struct {
	label, name string
	integer     bool     // else it is text. An attribute is always of one type: what can be "other" is text
	in          []Family // of the exporter's own; nil: in all families. No rule can give these labels
}

// otelAttributes is the table of attributes. Names that OpenTelemetry's semantic conventions have are theirs.
var otelAttributes = func() []otelAttribute {
	process := []Family{familyProcessInfo}
	variables := []Family{familyPvarInfo, familyPvarCategory}
	categories := []Family{familyPvarCategory, familyCategoryParent}
	objects := []Family{familyObjectInfo, familyObjects}
	controls := []Family{familyControlRanks}
	table := []otelAttribute{
		{label: "jobid", name: "mpi.job.id"},
		{label: "world", name: "mpi.world"},
		{label: "user", name: "process.user.name"},
		{label: "rank", name: "mpi.rank", integer: true},
		{label: "dup", name: "mpi.dup", integer: true},
		{label: "object", name: "mpi.object.number", integer: true},
		{label: "peer", name: "mpi.peer"},
		{label: "index", name: "mpi.index"},
	}
	for kind := mpit.BindComm; kind <= mpit.BindSession+1; kind++ { // the last is of kinds that nobody knows
		label := mapping.BindLabel(kind)
		table = append(table, otelAttribute{label: label, name: "mpi." + label + ".name"})
	}
	table = append(table,
		otelAttribute{"pid", "process.pid", true, process},
		otelAttribute{"uid", "process.user.id", true, process},
		otelAttribute{"host", "host.name", false, process},
		otelAttribute{"executable", "process.executable.path", false, process},
		otelAttribute{"library", "mpi.library.name", false, process},
		otelAttribute{"library_version", "mpi.library.version", false, process},
		otelAttribute{"world_size", "mpi.world_size", true, process},
		otelAttribute{"thread_level", "mpi.thread_level", false, process},
		otelAttribute{"agent_version", "mpi.agent.version", false, process},
		otelAttribute{"jobname", "mpi.job.name", false, process},
		otelAttribute{"partition", "mpi.job.partition", false, process},
		otelAttribute{"jobid_source", "mpi.job.id_source", false, process},
		otelAttribute{"jobid_check", "mpi.job.id_check", false, process},
		otelAttribute{"cgroup_jobid", "mpi.job.cgroup_id", false, process},

		otelAttribute{"name", "mpi.pvar.name", false, variables},
		otelAttribute{"class", "mpi.pvar.class", false, variables},
		otelAttribute{"unit", "mpi.pvar.unit", false, variables},
		otelAttribute{"bind", "mpi.pvar.bind", false, variables},
		otelAttribute{"verbosity", "mpi.pvar.verbosity", false, variables},
		otelAttribute{"bits", "mpi.pvar.bits", true, variables},
		otelAttribute{"category", "mpi.category.name", false, categories},
		otelAttribute{"parent", "mpi.category.parent", false, categories},
		otelAttribute{"name", "mpi.cvar.name", false, controls},
		otelAttribute{"value", "mpi.cvar.value", false, controls},

		otelAttribute{"kind", "mpi.object.kind", false, objects},
		otelAttribute{"name", "mpi.object.name", false, objects},
		otelAttribute{"size", "mpi.object.size", true, objects},
		otelAttribute{"object_rank", "mpi.object.rank", true, objects},
		otelAttribute{"predefined", "mpi.object.predefined", false, objects},
		otelAttribute{"inter", "mpi.object.inter", false, objects},
		otelAttribute{"on", "mpi.object.on", false, objects},
	)
	for _, label := range objectDetailLabels {
		table = append(table, otelAttribute{label, "mpi.object." + label, false, objects})
	}
	for i := range table {
		a := &table[i]
		a.in = slices.DeleteFunc(slices.Clone(a.in), func(f Family) bool { return !slices.Contains(f.Labels, a.label) })
	}
	return table
}()

// familyLabel is a label of one of the exporter's own families, or with no family, of any.
type familyLabel struct{ family, label string }

var otelAttributeOf = sync.OnceValue(func() map[familyLabel]otelAttribute {
	byLabel := map[familyLabel]otelAttribute{}
	for _, a := range otelAttributes {
		if a.in == nil {
			byLabel[familyLabel{"", a.label}] = a
		}
		for _, f := range a.in {
			byLabel[familyLabel{f.Name, a.label}] = a
		}
	}
	return byLabel
})

// keyValue is a label as an attribute. family is one of the exporter's own, else "".
func keyValue(family, label, value string) attribute.KeyValue {
	a, found := otelAttributeOf()[familyLabel{family, label}]
	if !found {
		a, found = otelAttributeOf()[familyLabel{"", label}]
	}
	if !found {
		return attribute.String(label, value)
	}
	if a.integer {
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			return attribute.Int64(a.name, n)
		}
	}
	return attribute.String(a.name, value)
}

// attributeSets makes sets of attributes, one for all series that have the same: those of a rank mostly do.
type attributeSets struct{ made map[setKey]attribute.Set }

type setKey struct {
	family string // one of the exporter's own where its labels have names of their own
	labels string // all of them, as text
}

func (s *attributeSets) of(f *family, in *sheet, i int) attribute.Set {
	e := &in.entries[i]
	key, own := setKey{labels: e.labels}, e.series.Labels
	if !in.figures && len(own) > 0 {
		key.family = f.name
	}
	set, found := s.made[key]
	if found {
		return set
	}
	shared := in.sharedLabels()
	list := make([]attribute.KeyValue, 0, len(shared)+len(own))
	for _, l := range shared {
		list = append(list, keyValue(key.family, l.GetName(), l.GetValue()))
	}
	for _, l := range own {
		list = append(list, keyValue(key.family, l.Name, l.Value))
	}
	set = attribute.NewSet(list...)
	if s.made == nil {
		s.made = map[setKey]attribute.Set{}
	}
	s.made[key] = set
	return set
}
