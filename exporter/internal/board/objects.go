package board

import (
	"slices"
	"strconv"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/exporter/internal/clean"
	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mapping/series"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// objectDetails are the properties of objects that are labels of mpit_object_info, out of those in
// docs/internals/protocol.md. A window's base is not among them: it differs in every process and says nothing outside
// of it.
var objectDetails = []string{
	"remote_size", "topology", "dims", "periods", "nodes", "edges", "indegree", "outdegree", // communicators
	"bytes", "disp_unit", "flavor", "model", // windows
	"mode",                     // files
	"extent", "lb", "combiner", // datatypes, and bytes
	onDetail,      // error handlers
	"commutative", // operators
	"operation",   // requests
	"keys",        // info
}

// onDetail is the label for what kind of object an error handler is for, the property on, since the label on names a
// communicator.
const onDetail = "errhandler_on"

// objectLabels are the labels of mpit_object_info besides kind and name. What an object does not have, has no label.
func objectLabels(o *series.ObjectInfo) (labels []mapping.Label) {
	add := func(name, value string) {
		if value != "" {
			labels = append(labels, mapping.Label{Name: name, Value: value})
		}
	}
	if o.Object.Size >= 0 {
		add("size", strconv.Itoa(o.Object.Size))
	}
	if o.Object.Rank >= 0 {
		add("object_rank", strconv.Itoa(o.Object.Rank))
	}
	if o.Object.Predefined {
		add("predefined", "true")
	}
	if o.Object.Inter {
		add("inter", "true")
	}
	add("on", o.On)
	for _, label := range objectDetails {
		key := strings.TrimPrefix(label, "errhandler_")
		if i := slices.IndexFunc(o.Object.Details, func(d mpit.Detail) bool { return d.Key == key }); i >= 0 {
			add(label, clean.Label(o.Object.Details[i].Value))
		}
	}
	return labels
}
