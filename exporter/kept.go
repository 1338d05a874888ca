package exporter

import (
	"encoding/json"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/mpit-exporter/mpit-exporter/exporter/internal/cvar"
	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

const (
	// maxKeptBytes bounds what is held of one rank's last MPI_Pcontrol(2), about.
	maxKeptBytes = 1 << 20
	// maxKeptAnswer bounds an answer, in the same measure.
	maxKeptAnswer = 16 << 20
)

// KeptList is the answer to GET /api/v1/kept.
type KeptList struct {
	Kept []KeptSample `json:"kept"`           // sorted by jobid, world, user, rank
	More int          `json:"more,omitempty"` // ranks that are left out, for the answer would become too large: ask for them by name
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
	// Values are the elements: integers exactly, in the variable's own unit; nil for what is no number. Of what only grows,
	// that which was counted under another name of the object or while observation was switched off is not in them.
	Values []*json.Number `json:"values"`
}

// KeptObject names an object.
type KeptObject struct {
	Kind string `json:"kind"` // comm, win, file …
	Name string `json:"name"`
}

// kept is a sample that a rank has kept, with the catalogue that says what it is of.
type kept struct {
	*mpit.Kept
	size int // about, in bytes
	cut  int // values left out
}

// keep holds on to a sample that a rank has kept: the last one.
func (r *contents) keep(s *mpit.Sample) {
	if s.Kept == nil || r.kept.Kept != nil && s.Kept.Number <= r.kept.Number {
		return
	}
	size := 0
	for i := range s.Kept.List {
		v := &s.Kept.List[i]
		one := 64 + len(v.Name) + 8*(len(v.Values)+len(v.Base))
		if s.Variables != nil && int(v.Variable) < len(s.Variables.ByID) {
			one += len(s.Variables.ByID[v.Variable].Name) // once more for each object, in an answer
		}
		if size+one > maxKeptBytes {
			r.kept = cutKept(s.Kept, i, size)
			return
		}
		size += one
	}
	r.kept = kept{Kept: s.Kept, size: size}
}

// cutKept copies the first n values: the others are not to be held by what is.
func cutKept(k *mpit.Kept, n, size int) kept {
	short := *k
	short.List = make([]mpit.KeptValue, n)
	for i, v := range k.List[:n] {
		v.Name = strings.Clone(v.Name)
		v.Values = append([]uint64(nil), v.Values...)
		v.Base = append([]uint64(nil), v.Base...)
		short.List[i] = v
	}
	return kept{Kept: &short, size: size, cut: len(k.List) - n}
}

// Kept returns what ranks kept at their last MPI_Pcontrol(2), sorted by jobid, world, user and rank: of those that are meant.
// Ranks that have ended are among them for as long as they stand on the page. more is how many ranks there are besides that
// would make the list larger than some 16 MiB.
func (e *Exporter) Kept(which Selector) (list []KeptSample, more int) {
	type source struct {
		status    RankStatus
		kept      kept
		variables []mpit.Variable
		infos     []mapping.Info
	}
	var sources []source
	func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		size := 0
		for _, r := range e.table.ordered {
			f := &r.facts
			if f.kept.Kept == nil || f.variables == nil || !which.selects(r.id) {
				continue
			}
			if size += f.kept.size; size > maxKeptAnswer {
				more++
				continue
			}
			sources = append(sources, source{r.status(), f.kept, f.variables.ByID, f.infos})
		}
	}()
	// What a rank has kept, and its catalogue, are never changed: nobody waits for what follows.
	list = make([]KeptSample, 0, len(sources))
	for _, from := range sources {
		k := from.kept
		s := KeptSample{Rank: from.status, Number: k.Number, Time: k.Time, Cut: k.cut, Values: make([]KeptValue, 0, len(k.List))}
		for i := range k.List {
			v := &k.List[i]
			if int(v.Variable) < len(from.variables) {
				grows := int(v.Variable) < len(from.infos) && mapping.Grows(from.infos[v.Variable].Real)
				s.Values = append(s.Values, keptValue(&from.variables[v.Variable], v, grows))
			}
		}
		list = append(list, s)
	}
	return list, more
}

// keptValue shows a kept value; grows says that it is of a class that only grows, by the rules.
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

// serveKept answers GET /api/v1/kept with a KeptList, of the ranks that the parameters jobid, world, user and rank name.
func (e *Exporter) serveKept(w http.ResponseWriter, req *http.Request) {
	which, err := selectorOf(req.URL.Query())
	if err != nil {
		e.writeError(w, http.StatusBadRequest, err)
		return
	}
	list, more := e.Kept(which)
	e.writeJSON(w, http.StatusOK, KeptList{Kept: list, More: more})
}
