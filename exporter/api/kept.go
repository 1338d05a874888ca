package api

import (
	"encoding/json"
	"math"
	"time"

	"github.com/mpit-exporter/mpit-exporter/exporter/internal/cvar"
	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// KeptList is the answer to GET /api/v1/kept.
type KeptList struct {
	Kept []KeptSample `json:"kept"`           // sorted by jobid, world, user, rank
	More int          `json:"more,omitempty"` // ranks left out to bound the answer: ask for them by name
}

// KeptSample is what a rank kept at its last MPI_Pcontrol(2).
type KeptSample struct {
	Rank   RankStatus  `json:"rank"`
	Number uint64      `json:"number"`        // of such calls that kept something
	Time   time.Time   `json:"time"`          // by the rank's clock
	Cut    int         `json:"cut,omitempty"` // so many values found no place
	Values []KeptValue `json:"values"`
}

// KeptValue is one variable on one object at that moment, whatever has become of the object since.
type KeptValue struct {
	Name   string      `json:"name"`
	Class  mpit.Class  `json:"class"`            // as the library declares it
	Object *KeptObject `json:"object,omitempty"` // nil: the variable is bound to none
	// Values are the elements: integers exactly, in the variable's own unit; nil for what is no number. Of what only
	// grows, that which was counted under another name of the object or while observation was switched off is not in
	// them.
	Values []*json.Number `json:"values"`
}

// KeptObject names an object.
type KeptObject struct {
	Kind string `json:"kind"` // comm, win, file …
	Name string `json:"name"`
}

// NewKeptSample describes a sample that a rank has kept, by the catalogue that it was taken with. cut is how many of
// its values were left out.
func NewKeptSample(rank RankStatus, k *mpit.Kept, cut int, variables []mpit.Variable,
	infos []variables.Info) KeptSample {
	s := KeptSample{Rank: rank, Number: k.Number, Time: k.Time, Cut: cut, Values: make([]KeptValue, 0, len(k.List))}
	for i := range k.List {
		v := &k.List[i]
		if int(v.Variable) < len(variables) {
			grows := int(v.Variable) < len(infos) && mapping.Grows(infos[v.Variable].Real)
			s.Values = append(s.Values, keptValue(&variables[v.Variable], v, grows))
		}
	}
	return s
}

// keptValue describes one value. grows: its class only grows, by the rules.
func keptValue(variable *mpit.Variable, v *mpit.KeptValue, grows bool) KeptValue {
	out := KeptValue{Name: variable.Name, Class: variable.Class, Values: make([]*json.Number, len(v.Values))}
	if v.Kind != mpit.BindNone {
		out.Object = &KeptObject{Kind: mapping.BindLabel(v.Kind), Name: mapping.CleanName(v.Name)}
	}
	for i, w := range v.Values {
		if grows && i < len(v.Base) {
			if variable.Datatype.Floating() {
				w = math.Float64bits(math.Float64frombits(w) - math.Float64frombits(v.Base[i]))
			} else {
				w -= v.Base[i]
			}
		}
		if x := variable.Datatype.Float64(w); math.IsNaN(x) || math.IsInf(x, 0) {
			continue
		}
		number := json.Number(cvar.Number(variable.Datatype, w))
		out.Values[i] = &number
	}
	return out
}
