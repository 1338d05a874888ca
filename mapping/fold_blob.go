package mapping

import (
	"cmp"
	"encoding/binary"
	"maps"
	"math"
	"slices"
	"strings"
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

// writeFolds writes which cells are folded, and what belongs to other; then the same of variables that are not shown now, or with
// other labels, or not known yet: they may come back.
func (r *Rank) writeFolds(w *blobWriter) {
	var old *restoredFolds
	var waiting []*variable // some of their elements have no cell yet
	if r.restored != nil {
		old = &r.restored.folds
		for _, v := range r.order {
			if was := v.had().was; was != nil && was.fold != nil {
				waiting = append(waiting, v)
			}
		}
		if len(old.folds) == 0 && len(waiting) == 0 {
			old = nil
		}
	}
	if !r.limits.active && old == nil {
		return
	}
	numbers := map[uint64]int{}
	var hashes []uint64
	number := func(hash uint64) int {
		n, ok := numbers[hash]
		if !ok {
			n = len(hashes)
			numbers[hash], hashes = n, append(hashes, hash)
		}
		return n
	}
	var place []int // in hashes, of what stood in the blob there
	if old != nil {
		place = old.used(waiting, number)
	}
	folds := make([]*variable, 0, len(r.order))
	for _, v := range r.order {
		if v.other == nil || v.mode != modeCount {
			continue
		}
		folds = append(folds, v)
		for _, c := range v.list {
			if !c.folded && c != v.other {
				number(cellHash(c.id.object, int(c.id.elem)))
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
	for _, v := range folds {
		w.fold(v.key(), v.foldNow(numbers, place))
	}
	for _, v := range folds {
		for _, c := range v.list {
			if c == v.other {
				continue
			}
			split := restoredSplit{buckets: c.partBuckets()}
			if p := c.rare; p != nil {
				split.value, split.events = p.value.part, p.events.part
			}
			if split.value > 0 || split.events > 0 || split.buckets != nil {
				w.split(v.key(), c.id, split)
			}
		}
		if was := v.had().was; was != nil && was.fold != nil {
			w.splits(v.key(), was.fold)
		}
	}
	if old != nil {
		old.write(w, place)
	}
}

// foldNow is what the blob is to have of a variable that folds.
func (v *variable) foldNow(numbers map[uint64]int, place []int) *restoredFold {
	f := v.other
	rest := f.rest()
	now := &restoredFold{
		id: f.id, value: rest.value.kept, events: rest.events.kept, buckets: f.keptOfOther(), created: max(0, f.created), companion: v.companionHash(), scale: v.scale,
	}
	var own, folded []int
	for _, c := range v.list {
		if n, ok := numbers[cellHash(c.id.object, int(c.id.elem))]; ok && c != f {
			if c.folded {
				folded = append(folded, n)
			} else {
				own = append(own, n)
			}
		}
	}
	slices.Sort(own)
	slices.Sort(folded)
	if was := v.had().was; was != nil && was.fold != nil { // and those that have no cell yet
		for _, run := range was.fold.runs {
			first, end := place[run[0]], place[run[1]]
			for i, _ := slices.BinarySearch(folded, first); i < len(folded) && folded[i] < end; i++ {
				now.add(first, folded[i])
				first = folded[i] + 1
			}
			now.add(first, end)
		}
	}
	for _, n := range own {
		now.add(n, n+1)
	}
	slices.SortFunc(now.runs, func(a, b [2]int) int { return cmp.Compare(a[0], b[0]) })
	joined := now.runs[:0]
	for _, run := range now.runs {
		if n := len(joined); n > 0 && run[0] <= joined[n-1][1] {
			joined[n-1][1] = max(joined[n-1][1], run[1])
			continue
		}
		joined = append(joined, run)
	}
	now.runs = joined
	return now
}

func (f *restoredFold) add(first, end int) {
	if first < end {
		f.runs = append(f.runs, [2]int{first, end})
	}
}

func (w *blobWriter) fold(key variableKey, f *restoredFold) {
	w.place(recordFold, key, f.id.object)
	w.uint(uint64(f.id.elem + 1))
	w.float(f.value)
	w.float(f.events)
	w.uint(uint64(f.created))
	w.uint(uint64(f.companion))
	w.float(f.scale)
	w.uint(uint64(len(f.runs)))
	next := 0
	for _, run := range f.runs {
		w.uint(uint64(run[0] - next))
		w.uint(uint64(run[1] - run[0]))
		next = run[1]
	}
	w.end()
	if f.buckets != nil {
		w.place(recordFoldBuckets, key, f.id.object)
		w.uint(uint64(f.id.elem + 1))
		writeBuckets(w, f.buckets)
		w.end()
	}
}

func (w *blobWriter) splits(key variableKey, f *restoredFold) {
	for _, id := range slices.SortedFunc(maps.Keys(f.splits), cellID.compare) {
		w.split(key, id, f.splits[id])
	}
}

func (w *blobWriter) split(key variableKey, id cellID, s restoredSplit) {
	w.place(recordSplit, key, id.object)
	w.uint(uint64(id.elem + 1))
	w.float(s.value)
	w.float(s.events)
	w.end()
	if s.buckets != nil {
		w.place(recordSplitBuckets, key, id.object)
		w.uint(uint64(id.elem + 1))
		writeBuckets(w, s.buckets)
		w.end()
	}
}

// restoredKey is the place of a cell in a blob.
type restoredKey struct {
	variable variableKey
	object   string
	elem     int
}

// restoredFolds is what a blob had of folding and no variable has taken yet.
type restoredFolds struct {
	own    []uint64
	number map[uint64]int                // by hash, once all are there
	folds  map[restoredKey]*restoredFold // by the place of other
}

type restoredFold struct {
	id            cellID
	value, events float64
	buckets       []uint64 // of a distribution
	created       int64
	companion     uint32 // hash, of whose events they are
	scale         float64
	runs          [][2]int // first and behind the last, rising
	splits        map[cellID]restoredSplit
}

type restoredSplit struct {
	value, events float64
	buckets       []uint64 // of a distribution
}

// wasFolded is what a blob had of a variable's cells, as long as some may be without one yet.
type wasFolded struct {
	fold   *restoredFold // nil: none has folded
	from   *restoredFolds
	factor float64 // of amounts, because of another scale
	events bool    // they are of the companion that it has now
}

// used numbers the hashes that are still needed, and returns for each of the blob's, and for one behind the last, what the next of
// them has become: those of a run stay side by side.
func (f *restoredFolds) used(waiting []*variable, number func(uint64) int) []int {
	depth := make([]int, len(f.own)+1)
	mark := func(fold *restoredFold) {
		for i := range fold.runs {
			run := &fold.runs[i]
			run[0], run[1] = min(run[0], len(f.own)), min(run[1], len(f.own)) // a full blob has not all of them
			depth[run[0]]++
			depth[run[1]]--
		}
	}
	for _, fold := range f.folds {
		mark(fold)
	}
	for _, v := range waiting {
		mark(v.past.was.fold)
	}
	place := make([]int, len(f.own)+1)
	seen, next := map[uint64]bool{}, 0
	for i, hash := range f.own {
		place[i] = next
		depth[i+1] += depth[i]
		if depth[i] > 0 && !seen[hash] {
			seen[hash] = true
			next = number(hash) + 1
		}
	}
	place[len(f.own)] = next
	return place
}

// write writes what no variable has taken.
func (f *restoredFolds) write(w *blobWriter, place []int) {
	for _, key := range slices.SortedFunc(maps.Keys(f.folds), restoredKey.compare) {
		now := *f.folds[key]
		now.runs = nil
		for _, run := range f.folds[key].runs {
			now.add(place[run[0]], place[run[1]])
		}
		w.fold(key.variable, &now)
		w.splits(key.variable, &now)
	}
}

func (k restoredKey) compare(o restoredKey) int {
	return cmp.Or(strings.Compare(k.variable.name, o.variable.name), cmp.Compare(k.variable.class, o.variable.class),
		strings.Compare(k.object, o.object), cmp.Compare(k.elem, o.elem))
}

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
	key.elem = int(r.uint(maxBlobElements+1)) - 1
	one := &restoredFold{id: cellID{object: key.object, elem: int32(key.elem)}}
	one.value, one.events = r.amount(), r.amount()
	one.created = int64(r.uint(math.MaxInt64))
	one.companion = uint32(r.uint(math.MaxUint32))
	if one.scale = r.amount(); one.scale == 0 {
		r.fail()
	}
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
		f.folds = map[restoredKey]*restoredFold{}
	}
	f.folds[key] = one
}

func (f *restoredFolds) readSplit(r *blobReader, key restoredKey) {
	id := cellID{object: key.object, elem: int32(r.uint(maxBlobElements+1)) - 1}
	s := restoredSplit{value: r.amount(), events: r.amount()}
	if r.bad {
		return
	}
	if one := f.ofCell(key, id); one != nil { // else the blob was full
		if one.splits == nil {
			one.splits = map[cellID]restoredSplit{}
		}
		one.splits[id] = s
	}
}

// ofCell is the fold that a cell takes part in; nil: none.
func (f *restoredFolds) ofCell(key restoredKey, id cellID) *restoredFold {
	if key.object != "" { // the place of other
		key.object = Other
	}
	if key.elem = int(id.elem); key.elem >= 0 {
		key.elem = otherElement
	}
	return f.folds[key]
}

func (f *restoredFolds) readFoldBuckets(r *blobReader, key restoredKey) {
	key.elem = int(r.uint(maxBlobElements+1)) - 1
	counts := r.counts()
	if one := f.folds[key]; one != nil && !r.bad {
		one.buckets = counts
	}
}

func (f *restoredFolds) readSplitBuckets(r *blobReader, key restoredKey) {
	id := cellID{object: key.object, elem: int32(r.uint(maxBlobElements+1)) - 1}
	counts := r.counts()
	one := f.ofCell(key, id)
	if one == nil || r.bad {
		return
	}
	if split, ok := one.splits[id]; ok {
		split.buckets = counts
		one.splits[id] = split
	}
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

// takeFold gives the cells of a variable that is new in the plan what they had, and makes other if there was one. A variable that
// folds in another way now, or has other labels, leaves what there is for when it comes back.
func (r *Rank) takeFold(v *variable, how change) {
	if v.mode != modeCount || v.metric == nil {
		return
	}
	f := &r.restored.folds
	was := &wasFolded{from: f, factor: 1}
	id := v.otherID()
	key := restoredKey{v.key(), id.object, int(id.elem)}
	one := f.folds[key]
	delete(f.folds, key)
	switch {
	case one == nil:
	case v.separate: // objects have the same series, which do not fold: what was in other shows there
		if c := v.find(one.id); c != nil {
			c.restart(r.now)
			c.setCreated()
		}
	default:
		was.fold, was.factor, was.events = one, one.scale/v.scale, one.companion == v.companionHash()
		if how.anew {
			was.factor, was.events = 0, false
		}
		c := r.cell(v, one.id)
		rest := &rest{value: sum{kept: one.value * was.factor}}
		c.rarely().rest = rest
		if was.events {
			rest.events.kept = one.events
		} else if c.timer != nil {
			c.timer.recount = true
		}
		if d := c.exactly(); d != nil && !how.anew && one.buckets != nil {
			c.v.hasElements(1 + len(one.buckets))
			c.correct().kept = one.buckets
		}
		if how.anew {
			c.restart(r.now)
		}
		c.since(one.created)
		c.setCreated()
		v.other = c
		r.limits.active = true
	}
	v.keep().was = was
	r.returning = append(r.returning, v)
	for _, c := range v.list {
		was.give(c)
	}
}

// give gives a cell what it had.
func (w *wasFolded) give(c *cell) {
	c.exposed, c.owns = true, true
	if w.fold == nil || c.id == w.fold.id {
		return
	}
	c.folded = !w.from.owned(w.fold, cellHash(c.id.object, int(c.id.elem)))
	c.owns = !c.folded
	if split, ok := w.fold.splits[c.id]; ok {
		delete(w.fold.splits, c.id)
		p := c.rarely()
		if p.value.part = split.value * w.factor; w.events {
			p.events.part = split.events
		}
		if d := c.exactly(); d != nil && w.factor > 0 && split.buckets != nil {
			c.v.hasElements(1 + len(split.buckets))
			c.correct().part = split.buckets
		}
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
