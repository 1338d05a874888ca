package mapping

import (
	"cmp"
	"encoding/binary"
	"maps"
	"math"
	"slices"
)

// The blob is what the exporter adds to a rank's figures: wraps, corrections and observations of timers. The agent
// keeps it and returns it in its next HELLO.
//
// It is a version byte and a run of records, each a type byte and fields; integers are varints, floats eight bytes.
// Variables and object names get numbers in the order in which their records stand, before those that use them.
//
// It outlives the rules that it was written with: whoever reads it may show the same variables otherwise. So it says what each
// series meant (recordShown), with which bounds observations were made, and has wraps for each object and element, however
// these are merged (restore.go). Version 1 had neither recordShown nor recordObserved, and is still read.
const (
	blobVersion = 2
	blobOldest  = 1

	// MaxBlob is the largest blob in bytes, by the protocol.
	MaxBlob = 64 << 10

	maxBlobName     = 1024    // bytes; variables with longer names are left out
	maxBlobElements = 1 << 18 // as many values as a sample may have
	maxNative       = 1024
)

// Types of records.
const (
	recordVariable     byte = iota + 1 // class, name
	recordObject                       // name
	recordCell                         // variable, object, element + 1, flags, then a number, float or time for each flag, in their order
	recordHandle                       // variable, object, handle, number of elements: element, wraps, quarter
	recordTimer                        // version 1: variable, object, element + 1, companion, seconds, events, buckets, native buckets
	recordClosed                       // monotonic nanoseconds
	recordBuckets                      // hash of the bounds of the timers that follow
	recordExcluding                    // recordHandle, with a hash of the origin before the elements, and what was excluded behind each quarter
	recordObserved                     // variable, object, element + 1, object's number, companion's hash, seconds, events, buckets, native buckets
	recordShown                        // hashes of the variable and of its series (4 bytes each), flags, then scale and time of the last change
	recordOwn                          // number of hashes: hash of a cell that has series of its own; they are numbered on from record to record
	recordFold                         // variable, object, element + 1, what was kept of values and of events, created, companion's hash, scale, number of runs: skipped, taken cells of recordOwn
	recordSplit                        // variable, object, element + 1, part of the value, of the events
	recordAdjusted                     // of a distribution: variable, object, element + 1, object's number, buckets: what is added to what the agent has counted
	recordFoldBuckets                  // the same of recordFold: variable, object, element + 1, buckets: what was kept of them
	recordSplitBuckets                 // and of recordSplit: variable, object, element + 1, buckets: part of them
)

// Flags of recordCell.
const (
	hasGone = 1 << iota // wraps: of this object and element, whatever they are merged with
	hasAdjust
	hasReset
	hasFloor  // of a high watermark
	hasLow    // of a low watermark
	hasBegun  // when the series began, which is no reset
	hasNumber // of the object, where those that share a name are not merged
	hasScale  // in which the correction is, and the value was shown: it has not been read since there is another one
	cellFlags = 1<<iota - 1
)

// Flags of recordShown.
const (
	shownOffset = 1 << iota
	shownSeparate
	shownObject
	shownPeer
	shownIndex
	shownScale // follows; else it is 1
	shownMoved // follows

	shownStructure = shownSeparate | shownObject | shownPeer | shownIndex
)

// Blob returns what the agent is to keep, at most MaxBlob bytes, and whether it has changed since the last call. The
// slice is the caller's to read; the Rank does not change it.
func (r *Rank) Blob() (blob []byte, changed bool) {
	if !r.dirty {
		return r.blob, false
	}
	r.dirty = false
	w := blobWriter{
		buf:       append(make([]byte, 0, len(r.blob)+256), blobVersion),
		variables: map[variableKey]uint64{}, objects: map[string]uint64{},
	}
	if r.hasClosed {
		w.begin(recordClosed)
		w.uint(uint64(r.closed))
		w.end()
	}
	// What keeps series from falling comes first; observations are dearer. Last is what nobody needs at present.
	r.writeShown(&w)
	r.writeFolds(&w)
	for _, v := range r.order {
		w.wraps(v)
		for _, c := range v.list {
			k := c.kept()
			if k.flags() != 0 {
				w.cell(v.key(), &k)
			}
			if k.buckets != nil {
				w.adjusted(v.key(), &k)
			}
		}
	}
	for _, h := range r.plan {
		w.handle(h)
	}
	if r.restored != nil {
		r.restored.write(&w, func(key variableKey) bool { v := r.named(key); return v != nil && v.held })
	}
	for _, v := range r.order {
		for _, c := range v.list {
			if c.timer != nil && c.timer.exact == nil && (c.timer.hist.Count > 0 || c.timer.events > 0) { // events that were before a reset are not to come again
				w.timer(v.key(), &kept{object: c.id.object, elem: int(c.id.elem), number: c.id.number, timer: c.observed()})
			}
		}
	}
	for _, v := range r.order {
		w.list(v.key(), v.had().kept)
	}
	if r.restored != nil {
		r.restored.write(&w, func(key variableKey) bool { v := r.named(key); return v == nil || !v.held })
	}
	if w.lost > 0 {
		r.dropped[ReasonBlobFull] += w.lost
	}
	r.blob = w.buf
	return r.blob, true
}

// writeShown says of all variables what their series mean, and of those that have been shown before.
func (r *Rank) writeShown(w *blobWriter) {
	keys, series := map[uint32]bool{}, map[uint32]bool{}
	for _, v := range r.order {
		if v.mode == modeCount && v.metric != nil {
			s := v.shownAs()
			if before := v.had().before; before != nil {
				if s = before.shown; !before.known {
					continue
				}
			}
			keys[v.key().hash()], series[s.series] = true, true
			w.shown(v.key().hash(), s)
		}
	}
	if r.restored == nil {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(r.restored.shown)) {
		if s := r.restored.shown[key]; !keys[key] && !series[s.series] {
			w.shown(key, s)
		}
	}
}

func boundsHash(bounds []float64) uint64 {
	h := uint64(14695981039346656037)
	for _, b := range bounds {
		h = mix(h, math.Float64bits(b))
	}
	return h
}

// originHash tells the values at an object's last rename from those at another one; 0 where there was none.
func originHash(origin []uint64) uint64 {
	if origin == nil {
		return 0
	}
	h := uint64(14695981039346656037)
	for _, w := range origin {
		h = mix(h, w)
	}
	return h
}

func mix(h, w uint64) uint64 {
	h = (h ^ w) * 1099511628211
	return h ^ h>>29
}

// blobWriter writes records whole or not at all.
type blobWriter struct {
	buf       []byte
	start     int
	failed    bool
	variables map[variableKey]uint64
	objects   map[string]uint64
	newVar    *variableKey
	newObject *string
	bounds    uint64 // hash of those that the last recordBuckets gave
	lost      uint64
}

func (w *blobWriter) begin(record byte) {
	w.start, w.failed, w.newVar, w.newObject = len(w.buf), false, nil, nil
	w.buf = append(w.buf, record)
}

func (w *blobWriter) end() {
	if !w.failed && len(w.buf) <= MaxBlob {
		return
	}
	w.buf = w.buf[:w.start]
	if w.newVar != nil {
		delete(w.variables, *w.newVar)
	}
	if w.newObject != nil {
		delete(w.objects, *w.newObject)
	}
	w.lost++
}

func (w *blobWriter) uint(x uint64) { w.buf = binary.AppendUvarint(w.buf, x) }
func (w *blobWriter) float(x float64) {
	w.buf = binary.LittleEndian.AppendUint64(w.buf, math.Float64bits(x))
}
func (w *blobWriter) text(s string) { w.uint(uint64(len(s))); w.buf = append(w.buf, s...) }

// place begins a record of a variable and an object; new ones get their own records first.
func (w *blobWriter) place(record byte, key variableKey, object string) {
	w.begin(record)
	w.buf = w.buf[:w.start]
	number, ok := w.variables[key]
	if !ok {
		if len(key.name) > maxBlobName {
			w.failed = true
		}
		number = uint64(len(w.variables))
		w.variables[key], w.newVar = number, &key
		w.buf = append(w.buf, recordVariable, byte(key.class))
		w.text(key.name[:min(len(key.name), maxBlobName)])
	}
	name, ok := w.objects[object]
	if !ok {
		name = uint64(len(w.objects))
		w.objects[object], w.newObject = name, &object
		w.buf = append(w.buf, recordObject)
		w.text(object)
	}
	w.buf = append(w.buf, record)
	w.uint(number)
	w.uint(name)
}

func (w *blobWriter) wraps(v *variable) {
	wraps := v.had().wraps
	keys := slices.SortedFunc(maps.Keys(wraps), func(a, b wrapped) int {
		return cmp.Or(cmp.Compare(a.object, b.object), cmp.Compare(a.elem, b.elem))
	})
	for _, key := range keys {
		w.cell(v.key(), &kept{object: key.object, elem: key.elem, gone: wraps[key]})
	}
}

func (w *blobWriter) cell(key variableKey, k *kept) {
	w.place(recordCell, key, k.object)
	w.uint(uint64(k.elem + 1))
	flags := k.flags()
	if k.number != 0 {
		flags |= hasNumber
	}
	w.uint(flags)
	if flags&hasGone != 0 {
		w.float(k.gone)
	}
	if flags&hasAdjust != 0 {
		w.float(k.adjust)
	}
	if flags&hasReset != 0 {
		w.uint(uint64(k.resetAt))
	}
	if flags&hasFloor != 0 {
		w.float(k.floor)
	}
	if flags&hasLow != 0 {
		w.float(k.low)
	}
	if flags&hasBegun != 0 {
		w.uint(uint64(k.begun))
	}
	if flags&hasNumber != 0 {
		w.uint(uint64(k.number))
	}
	if flags&hasScale != 0 {
		w.float(k.scale)
	}
	w.end()
}

func (w *blobWriter) shown(key uint32, s shown) {
	w.begin(recordShown)
	w.buf = binary.LittleEndian.AppendUint32(w.buf, key)
	w.buf = binary.LittleEndian.AppendUint32(w.buf, s.series)
	if s.scale != 1 {
		s.flags |= shownScale
	}
	if s.moved != 0 {
		s.flags |= shownMoved
	}
	w.buf = append(w.buf, s.flags)
	if s.scale != 1 {
		w.float(s.scale)
	}
	if s.moved != 0 {
		w.uint(uint64(s.moved))
	}
	w.end()
}

// list writes what has been kept of a variable's cells.
func (w *blobWriter) list(key variableKey, list []kept) {
	for i := range list {
		if list[i].flags() != 0 {
			w.cell(key, &list[i])
		}
		if list[i].buckets != nil {
			w.adjusted(key, &list[i])
		}
		if list[i].timer != nil {
			w.timer(key, &list[i])
		}
	}
}

// handle writes the elements that have wrapped, or stand in another quarter of their range than they began in: so the
// blob changes seldom, and a wrap that nobody saw is still found.
func (w *blobWriter) handle(h *handle) {
	if h.v.mode != modeCount || h.v.number == floating {
		return
	}
	begun := func(i int) uint8 {
		first := h.base(i)
		if !h.based && len(h.of.First) == int(h.n) {
			first = h.of.First[i]
		}
		return h.v.number.quarter(first, h.v.bits)
	}
	n, record, elems := 0, recordHandle, h.elems()
	if h.of.Origin != nil {
		record = recordExcluding
	}
	for i := range elems {
		if elems[i].wraps > 0 || elems[i].quarter != begun(i) {
			n++
			if elems[i].excluded != 0 {
				record = recordExcluding
			}
		}
	}
	if n == 0 {
		return
	}
	old := &restoredHandle{number: h.of.ID, variable: h.v.key(), object: h.name, excluding: record == recordExcluding}
	if old.excluding {
		old.origin = originHash(h.of.Origin)
	}
	for i := range elems {
		if e := &elems[i]; e.wraps > 0 || e.quarter != begun(i) {
			old.elems = append(old.elems, restoredElement{index: i, wraps: e.wraps, quarter: e.quarter, excluded: e.excluded})
		}
	}
	w.restored(old)
}

func (w *blobWriter) restored(h *restoredHandle) {
	record := recordHandle
	if h.excluding {
		record = recordExcluding
	}
	w.place(record, h.variable, h.object)
	w.uint(uint64(h.number))
	if h.excluding {
		w.uint(h.origin)
	}
	w.uint(uint64(len(h.elems)))
	for _, e := range h.elems {
		w.uint(uint64(e.index))
		w.uint(uint64(e.wraps))
		w.buf = append(w.buf, e.quarter)
		if h.excluding {
			w.buf = binary.AppendVarint(w.buf, int64(e.excluded))
		}
	}
	w.end()
}

func (w *blobWriter) timer(key variableKey, k *kept) {
	t := k.timer
	if w.bounds != t.bounds {
		w.begin(recordBuckets)
		w.uint(t.bounds)
		w.bounds = t.bounds
		if w.end(); w.failed || w.start == len(w.buf) {
			w.bounds = 0
			return
		}
	}
	w.place(recordObserved, key, k.object)
	w.uint(uint64(k.elem + 1))
	w.uint(uint64(k.number))
	w.uint(uint64(t.companion))
	w.float(t.seconds)
	w.float(t.events)
	w.uint(uint64(len(t.counts)))
	for _, b := range t.counts {
		w.uint(uint64(b.Index))
		w.uint(b.Count)
	}
	w.uint(t.zero)
	w.uint(uint64(len(t.native)))
	for _, b := range t.native {
		w.buf = binary.AppendVarint(w.buf, int64(b.Index))
		w.uint(b.Count)
	}
	w.end()
}

// adjusted writes what is added to the buckets of a distribution.
func (w *blobWriter) adjusted(key variableKey, k *kept) {
	w.place(recordAdjusted, key, k.object)
	w.uint(uint64(k.elem + 1))
	w.uint(uint64(k.number))
	writeBuckets(w, k.buckets)
	w.end()
}

// writeBuckets writes how many there are, how many of them are not 0, and of these each one's distance from the one before it, and its
// count.
func writeBuckets[T int64 | uint64](w *blobWriter, list []T) {
	n := 0
	for _, x := range list {
		if x != 0 {
			n++
		}
	}
	w.uint(uint64(len(list)))
	w.uint(uint64(n))
	next := 0
	for k, x := range list {
		if x != 0 {
			w.uint(uint64(k - next))
			w.buf = binary.AppendVarint(w.buf, int64(x))
			next = k + 1
		}
	}
}
