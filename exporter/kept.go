package exporter

import (
	"strings"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

const (
	// maxKeptBytes bounds what is held of one rank's last MPI_Pcontrol(2), about.
	maxKeptBytes = 1 << 20
	// maxKeptAnswer bounds an answer, in the same measure.
	maxKeptAnswer = 16 << 20
)

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

// Kept returns what ranks kept at their last MPI_Pcontrol(2). Ranks that have ended are among them for as long as
// they stand on the page.
func (s source) Kept(which api.Selector) api.KeptList {
	type sample struct {
		status    api.RankStatus
		kept      kept
		variables []mpit.Variable
		infos     []mapping.Info
	}
	var samples []sample
	list := api.KeptList{Kept: []api.KeptSample{}}
	func() {
		s.e.mu.Lock()
		defer s.e.mu.Unlock()
		size := 0
		for _, r := range s.e.table.ordered {
			f := &r.facts
			if f.kept.Kept == nil || f.variables == nil || !which.Selects(r.id) {
				continue
			}
			if size += f.kept.size; size > maxKeptAnswer {
				list.More++
				continue
			}
			samples = append(samples, sample{r.status(), f.kept, f.variables.ByID, f.infos})
		}
	}()
	// What a rank has kept, and its catalogue, are never changed: nobody waits for what follows.
	for _, k := range samples {
		list.Kept = append(list.Kept, api.NewKeptSample(k.status, k.kept.Kept, k.kept.cut, k.variables, k.infos))
	}
	return list
}
