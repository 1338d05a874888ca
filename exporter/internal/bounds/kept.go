package bounds

import (
	"strings"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// MaxKeptBytes bounds what is held of one rank's last MPI_Pcontrol(2), about.
const MaxKeptBytes = 1 << 20

// Kept is a sample that a rank has kept, with the catalogue that says what it is of.
type Kept struct {
	*mpit.Kept
	Size int // about, in bytes
	Cut  int // values left out
}

// Keep takes the sample that a rank has kept last.
func (k *Kept) Keep(s *mpit.Sample) {
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
		if size+one > MaxKeptBytes {
			*k = cutKept(s.Kept, i, size)
			return
		}
		size += one
	}
	*k = Kept{Kept: s.Kept, Size: size}
}

// cutKept copies the first n values: the others are not to be held by what is.
func cutKept(k *mpit.Kept, n, size int) Kept {
	short := *k
	short.List = make([]mpit.KeptValue, n)
	for i, v := range k.List[:n] {
		v.Name = strings.Clone(v.Name)
		v.Values = append([]uint64(nil), v.Values...)
		v.Base = append([]uint64(nil), v.Base...)
		short.List[i] = v
	}
	return Kept{Kept: &short, Size: size, Cut: len(k.List) - n}
}
