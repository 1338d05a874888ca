package mapping

import (
	"encoding/binary"
	"math"
	"slices"
)

// Of variables that fold, the blob has which cells have series of their own: a hash for each, shared by all variables that have
// such a cell. All others are folded. So objects that come and fold don't change the blob.

// maxOwnRecord is how many hashes stand in one record: a full blob loses the last of them, not all.
const maxOwnRecord = 256

// cellHash stands for an object's name and an element's number.
func cellHash(object string, elem int) uint64 {
	h := mix(14695981039346656037, uint64(elem+1))
	for i := range len(object) {
		h = mix(h, uint64(object[i]))
	}
	return h
}

// writeFolds writes which cells are folded, and what belongs to other.
func (r *Rank) writeFolds(w *blobWriter) {
	if !r.limits.active {
		return
	}
	numbers := map[uint64]int{}
	var hashes []uint64
	for _, v := range r.order {
		if v.other == nil || v.mode != modeCount {
			continue
		}
		for _, c := range v.list {
			if h := cellHash(c.id.object, c.id.elem); !c.folded && c != v.other {
				if _, ok := numbers[h]; !ok {
					numbers[h] = len(hashes)
					hashes = append(hashes, h)
				}
			}
		}
	}
	for some := range slices.Chunk(hashes, maxOwnRecord) {
		w.begin(recordOwn)
		w.uint(uint64(len(some)))
		for _, h := range some {
			w.buf = binary.LittleEndian.AppendUint64(w.buf, h)
		}
		w.end()
	}
	for _, v := range r.order {
		if v.other != nil && v.mode == modeCount {
			w.fold(v, numbers)
		}
	}
	for _, v := range r.order {
		if v.other == nil || v.mode != modeCount {
			continue
		}
		for _, c := range v.list {
			if c != v.other && (c.value.part > 0 || c.events.part > 0) {
				w.place(recordSplit, v.key, c.id.object)
				w.uint(uint64(c.id.elem + 1))
				w.float(c.value.part)
				w.float(c.events.part)
				w.end()
			}
		}
	}
}

func (w *blobWriter) fold(v *variable, numbers map[uint64]int) {
	f := v.other
	w.place(recordFold, v.key, f.id.object)
	w.uint(uint64(f.id.elem + 1))
	w.float(f.rest.value.kept)
	w.float(f.rest.events.kept)
	w.uint(uint64(max(0, f.created)))
	var own []int
	for _, c := range v.list {
		if !c.folded && c != f {
			own = append(own, numbers[cellHash(c.id.object, c.id.elem)])
		}
	}
	slices.Sort(own)
	var runs []uint64 // skipped, taken
	next := 0
	for _, n := range own {
		if n > next || runs == nil {
			runs = append(runs, uint64(n-next), 0)
		}
		if n >= next { // else two of one hash
			runs[len(runs)-1]++
			next = n + 1
		}
	}
	w.uint(uint64(len(runs) / 2))
	for _, x := range runs {
		w.uint(x)
	}
	w.end()
}

// restoredKey is the place of a cell in a blob.
type restoredKey struct {
	variable variableKey
	object   string
	elem     int
}

// restoredFolds is what a blob had of folding.
type restoredFolds struct {
	own    []uint64
	number map[uint64]int // by hash, once all are there
	folds  map[variableKey]*restoredFold
	splits map[restoredKey]restoredSplit
}

type restoredFold struct {
	id            cellID
	value, events float64
	created       int64
	runs          [][2]int // first and behind the last, rising
}

type restoredSplit struct{ value, events float64 }

func (f *restoredFolds) readOwn(r *blobReader) {
	for range r.uint(maxOwnRecord) {
		if len(r.b) < 8 {
			r.fail()
			return
		}
		f.own = append(f.own, binary.LittleEndian.Uint64(r.b))
		r.b = r.b[8:]
	}
}

func (f *restoredFolds) readFold(r *blobReader, key restoredKey) {
	one := &restoredFold{id: cellID{object: key.object, elem: int(r.uint(maxBlobElements+1)) - 1}}
	one.value, one.events = r.amount(), r.amount()
	one.created = int64(r.uint(math.MaxInt64))
	next := 0
	for range r.uint(MaxBlob) {
		next += int(r.uint(MaxBlob))
		first := next
		next += int(r.uint(MaxBlob))
		if r.bad {
			return
		}
		one.runs = append(one.runs, [2]int{first, next})
	}
	if r.bad {
		return
	}
	if f.folds == nil {
		f.folds = map[variableKey]*restoredFold{}
	}
	f.folds[key.variable] = one
}

func (f *restoredFolds) readSplit(r *blobReader, key restoredKey) {
	key.elem = int(r.uint(maxBlobElements+1)) - 1
	s := restoredSplit{r.amount(), r.amount()}
	if r.bad {
		return
	}
	if f.splits == nil {
		f.splits = map[restoredKey]restoredSplit{}
	}
	f.splits[key] = s
}

// amount reads a float that is not below zero.
func (r *blobReader) amount() float64 {
	x := r.float()
	if x < 0 {
		r.fail()
		return 0
	}
	return x
}

// of returns the record of a variable that still folds in the same way; rules may have changed that.
func (f *restoredFolds) of(v *variable) *restoredFold {
	if one := f.folds[v.key]; one != nil && v.mode == modeCount && !v.separate && one.id == v.otherID() {
		return one
	}
	return nil
}

// takeFold gives the cells of a variable that is new in the plan what they had, and makes other if there was one.
func (r *Rank) takeFold(v *variable) {
	if v.mode != modeCount || v.metric == nil {
		return
	}
	f := &r.restored.folds
	one := f.of(v)
	if one != nil {
		c := r.cell(v, one.id)
		c.rest = &rest{value: sum{kept: one.value}, events: sum{kept: one.events}}
		c.since(one.created)
		v.other = c
		r.limits.active = true
	}
	for _, c := range v.list {
		c.exposed, c.owns = true, true
		if one == nil || c.id == one.id {
			continue
		}
		c.folded = !f.owned(one, cellHash(c.id.object, c.id.elem))
		c.owns = !c.folded
		split := f.splits[restoredKey{v.key, c.id.object, c.id.elem}]
		c.value.part, c.events.part = split.value, split.events
	}
}

func (f *restoredFolds) owned(one *restoredFold, hash uint64) bool {
	if f.number == nil {
		f.number = make(map[uint64]int, len(f.own))
		for i, h := range f.own {
			f.number[h] = i
		}
	}
	n, ok := f.number[hash]
	if !ok {
		return false
	}
	i, found := slices.BinarySearchFunc(one.runs, n, func(run [2]int, n int) int { return run[0] - n })
	return found && one.runs[i][1] > n || i > 0 && one.runs[i-1][1] > n
}
