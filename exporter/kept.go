package exporter

import (
	"strings"

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

// keep takes the sample that a rank has kept last.
func (k *kept) keep(s *mpit.Sample) {
	if s.Kept == nil || k.Kept != nil && s.Kept.Number <= k.Number {
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
			*k = cutKept(s.Kept, i, size)
			return
		}
		size += one
	}
	*k = kept{Kept: s.Kept, size: size}
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
