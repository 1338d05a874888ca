package mapping

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// The blob is what the exporter adds to a rank's figures: wraps, corrections and observations of timers. The agent
// keeps it and returns it in its next HELLO.
//
// It is a version byte and a run of records, each a type byte and fields; integers are varints, floats eight bytes.
// Variables and object names get numbers in the order in which their records stand, before those that use them.
// Bounds of buckets are compared by a hash: observations made with other bounds are left out.
const (
	blobVersion = 1

	// MaxBlob is the largest blob in bytes, by the protocol.
	MaxBlob = 64 << 10

	maxBlobName     = 1024    // bytes; variables with longer names are left out
	maxBlobElements = 1 << 18 // as many values as a sample may have
	maxNative       = 1024
)

// Types of records.
const (
	recordVariable  byte = iota + 1 // class, name
	recordObject                    // name
	recordCell                      // variable, object, element + 1, flags, then a float or time for each flag
	recordHandle                    // variable, object, handle, number of elements: element, wraps, quarter
	recordTimer                     // variable, object, element + 1, companion, seconds, events, buckets, native buckets
	recordClosed                    // monotonic nanoseconds
	recordBuckets                   // hash of the bounds
	recordExcluding                 // recordHandle, with a hash of the origin before the elements, and what was excluded behind each quarter
	recordOwn                       // number of hashes: hash of a cell that has series of its own; they are numbered on from record to record
	recordFold                      // variable, object, element + 1, what was kept of values and of events, created, number of runs: skipped, taken cells of recordOwn
	recordSplit                     // variable, object, element + 1, part of the value, of the events
)

// Flags of recordCell.
const (
	hasGone = 1 << iota
	hasAdjust
	hasReset
	hasFloor
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
	// What keeps series from falling comes first; observations are dearer.
	r.writeFolds(&w)
	for _, v := range r.order {
		for _, c := range v.list {
			w.cell(c)
		}
	}
	for _, h := range r.plan {
		w.handle(h)
	}
	w.begin(recordBuckets)
	w.uint(boundsHash(r.mapper.buckets))
	w.end()
	for _, v := range r.order {
		for _, c := range v.list {
			if c.timer != nil && (c.timer.hist.Count > 0 || c.timer.events > 0) { // events that were before a reset are not to come again
				w.timer(c)
			}
		}
	}
	if w.lost > 0 {
		r.dropped[ReasonBlobFull] += w.lost
	}
	r.blob = w.buf
	return r.blob, true
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

func (w *blobWriter) cell(c *cell) {
	var flags uint64
	if c.v.mode == modeCount {
		if c.count.gone != 0 {
			flags |= hasGone
		}
		if c.count.adjust != 0 {
			flags |= hasAdjust
		}
		if c.count.resetAt != 0 {
			flags |= hasReset
		}
	}
	if c.floorKnown && c.v.mode == modeWatermark {
		flags |= hasFloor
	}
	if flags == 0 {
		return
	}
	w.place(recordCell, c.v.key, c.id.object)
	w.uint(uint64(c.id.elem + 1))
	w.uint(flags)
	if flags&hasGone != 0 {
		w.float(c.count.gone)
	}
	if flags&hasAdjust != 0 {
		w.float(c.count.adjust)
	}
	if flags&hasReset != 0 {
		w.uint(uint64(c.count.resetAt))
	}
	if flags&hasFloor != 0 {
		w.float(c.floor)
	}
	w.end()
}

// handle writes the elements that have wrapped, or stand in another quarter of their range than they began in: so the
// blob changes seldom, and a wrap that nobody saw is still found.
func (w *blobWriter) handle(h *handle) {
	if h.v.mode != modeCount || h.v.number == floating {
		return
	}
	begun := func(i int) uint8 {
		var first uint64
		if h.base != nil {
			first = h.base[i]
		} else if h.first != nil {
			first = h.first[i]
		}
		return h.v.number.quarter(first, h.v.bits)
	}
	n, record := 0, recordHandle
	if h.origin != nil {
		record = recordExcluding
	}
	for i := range h.elems {
		if h.elems[i].wraps > 0 || h.elems[i].quarter != begun(i) {
			n++
			if h.elems[i].excluded != 0 {
				record = recordExcluding
			}
		}
	}
	if n == 0 {
		return
	}
	w.place(record, h.v.key, h.name)
	w.uint(uint64(h.id))
	if record == recordExcluding {
		w.uint(originHash(h.origin))
	}
	w.uint(uint64(n))
	for i := range h.elems {
		if e := &h.elems[i]; e.wraps > 0 || e.quarter != begun(i) {
			w.uint(uint64(i))
			w.uint(uint64(e.wraps))
			w.buf = append(w.buf, e.quarter)
			if record == recordExcluding {
				w.buf = binary.AppendVarint(w.buf, int64(e.excluded))
			}
		}
	}
	w.end()
}

func (w *blobWriter) timer(c *cell) {
	t := c.timer
	w.place(recordTimer, c.v.key, c.id.object)
	w.uint(uint64(c.id.elem + 1))
	companion := uint64(0)
	if c.v.with != nil {
		companion = 1
	}
	w.uint(companion)
	w.float(t.seconds)
	w.float(t.events)
	filled := 0
	for _, n := range t.hist.Counts {
		if n > 0 {
			filled++
		}
	}
	w.uint(uint64(filled))
	for i, n := range t.hist.Counts {
		if n > 0 {
			w.uint(uint64(i))
			w.uint(n)
		}
	}
	w.uint(t.hist.NativeZero)
	w.uint(uint64(len(t.hist.Native)))
	for _, b := range t.hist.Native {
		w.buf = binary.AppendVarint(w.buf, int64(b.Index))
		w.uint(b.Count)
	}
	w.end()
}

// restored is what a blob held.
type restored struct {
	closed    time.Duration
	hasClosed bool
	cells     map[restoredKey]*restoredCell
	handles   map[uint32]*restoredHandle
	folds     restoredFolds
}

type restoredKey struct {
	variable variableKey
	object   string
	elem     int
}

type restoredCell struct {
	gone, adjust, floor float64
	floorKnown          bool
	resetAt             int64
	timer               *timer
	companion           bool
}

type restoredHandle struct {
	variable variableKey
	object   string
	origin   uint64 // hash; 0 none
	elems    []restoredElement
}

type restoredElement struct {
	index    int
	wraps    uint32
	quarter  uint8
	excluded uint64
}

var errBlob = errors.New("blob is damaged")

// blobReader reads with one error for all: after the first, everything is zero.
type blobReader struct {
	b   []byte
	bad bool
}

func (r *blobReader) fail() { r.b, r.bad = nil, true }

func (r *blobReader) byte() byte {
	if len(r.b) == 0 {
		r.fail()
		return 0
	}
	x := r.b[0]
	r.b = r.b[1:]
	return x
}

func (r *blobReader) uint(limit uint64) uint64 {
	x, n := binary.Uvarint(r.b)
	if n <= 0 || x > limit {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return x
}

func (r *blobReader) int64() int64 {
	x, n := binary.Varint(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return x
}

func (r *blobReader) int32() int32 {
	x := r.int64()
	if x != int64(int32(x)) {
		r.fail()
		return 0
	}
	return int32(x)
}

func (r *blobReader) float() float64 {
	if len(r.b) < 8 {
		r.fail()
		return 0
	}
	x := math.Float64frombits(binary.LittleEndian.Uint64(r.b))
	r.b = r.b[8:]
	if !finite(x) {
		r.fail()
		return 0
	}
	return x
}

func (r *blobReader) text(limit int) string {
	n := int(r.uint(uint64(limit)))
	if n > len(r.b) {
		r.fail()
		return ""
	}
	s := string(r.b[:n])
	r.b = r.b[n:]
	return s
}

// maxEvents bounds counts, so that sums of them cannot overflow.
const maxEvents = 1 << 53

// decodeBlob reads a blob. What it makes is bounded by the blob's length, for each thing made has bytes of its own.
func decodeBlob(b []byte, bounds []float64) (*restored, error) {
	if len(b) > MaxBlob {
		return nil, fmt.Errorf("reading the blob that the agent kept: %d bytes, at most %d are allowed", len(b), MaxBlob)
	}
	if len(b) == 0 || b[0] != blobVersion {
		return nil, fmt.Errorf("reading the blob that the agent kept: %w: not version %d", errBlob, blobVersion)
	}
	out := &restored{cells: map[restoredKey]*restoredCell{}, handles: map[uint32]*restoredHandle{}}
	var variables []variableKey
	var objects []string
	sameBounds := false
	r := &blobReader{b: b[1:]}
	place := func() (key restoredKey) {
		v, o := int(r.uint(MaxBlob)), int(r.uint(MaxBlob))
		if r.bad || v >= len(variables) || o >= len(objects) {
			r.fail()
			return restoredKey{}
		}
		return restoredKey{variable: variables[v], object: objects[o], elem: -1}
	}
	cellAt := func(key restoredKey) *restoredCell {
		c := out.cells[key]
		if c == nil {
			c = &restoredCell{}
			out.cells[key] = c
		}
		return c
	}
	for len(r.b) > 0 && !r.bad {
		switch record := r.byte(); record {
		case recordVariable:
			class := mpit.Class(r.byte())
			variables = append(variables, variableKey{r.text(maxBlobName), class})
		case recordObject:
			objects = append(objects, r.text(4*maxObjectName))
		case recordCell:
			key := place()
			key.elem = int(r.uint(maxBlobElements+1)) - 1
			flags := r.uint(hasGone | hasAdjust | hasReset | hasFloor)
			var c restoredCell
			if flags&hasGone != 0 {
				c.gone = r.float()
			}
			if flags&hasAdjust != 0 {
				c.adjust = r.float()
			}
			if flags&hasReset != 0 {
				c.resetAt = int64(r.uint(math.MaxInt64))
			}
			if flags&hasFloor != 0 {
				c.floor, c.floorKnown = r.float(), true
			}
			if !r.bad {
				*cellAt(key) = c
			}
		case recordHandle, recordExcluding:
			key := place()
			id := uint32(r.uint(math.MaxUint32))
			h := &restoredHandle{variable: key.variable, object: key.object}
			if record == recordExcluding {
				h.origin = r.uint(math.MaxUint64)
			}
			for range r.uint(maxBlobElements) {
				e := restoredElement{index: int(r.uint(maxBlobElements)), wraps: uint32(r.uint(math.MaxUint32)), quarter: r.byte()}
				if record == recordExcluding {
					e.excluded = uint64(r.int64())
				}
				if r.bad || e.quarter > 4 {
					r.fail()
					break
				}
				h.elems = append(h.elems, e)
			}
			if !r.bad {
				out.handles[id] = h
			}
		case recordTimer:
			key := place()
			key.elem = int(r.uint(maxBlobElements+1)) - 1
			companion := r.uint(1) == 1
			t := r.timer(bounds, sameBounds)
			if !r.bad && t != nil && sameBounds {
				c := cellAt(key)
				c.timer, c.companion = t, companion
			}
		case recordClosed:
			out.closed, out.hasClosed = time.Duration(r.uint(math.MaxInt64)), true
		case recordBuckets:
			sameBounds = r.uint(math.MaxUint64) == boundsHash(bounds)
		case recordOwn:
			out.folds.readOwn(r)
		case recordFold:
			out.folds.readFold(r, place())
		case recordSplit:
			out.folds.readSplit(r, place())
		default:
			r.fail()
		}
	}
	if r.bad {
		return nil, fmt.Errorf("reading the blob that the agent kept: %w", errBlob)
	}
	return out, nil
}

// timer reads the rest of a timer's record; nil, if it does not fit the bounds.
func (r *blobReader) timer(bounds []float64, sameBounds bool) *timer {
	t := &timer{seconds: r.float(), events: r.float()}
	t.hist = Histogram{Bounds: bounds, Counts: make([]uint64, len(bounds)+1)}
	good := t.seconds >= 0 && t.events >= 0
	for range r.uint(maxBuckets + 1) {
		i, n := r.uint(maxBuckets), r.uint(maxEvents)
		if r.bad {
			return nil
		}
		if i >= uint64(len(t.hist.Counts)) {
			good = false
			continue
		}
		t.hist.Counts[i] = n
	}
	for _, n := range t.hist.Counts {
		t.hist.Count += n
	}
	t.hist.NativeZero = r.uint(maxEvents)
	native := t.hist.NativeZero
	for range r.uint(maxNative) {
		b := NativeBucket{Index: r.int32(), Count: r.uint(maxEvents)}
		if r.bad {
			return nil
		}
		if k := len(t.hist.Native); k > 0 && t.hist.Native[k-1].Index >= b.Index {
			r.fail()
			return nil
		}
		t.hist.Native = append(t.hist.Native, b)
		native += b.Count
	}
	if r.bad || !good || !sameBounds || native != t.hist.Count || t.hist.Count > maxEvents {
		return nil
	}
	return t
}

// cell gives a new cell what it had.
func (rs *restored) cell(c *cell) {
	key := restoredKey{c.v.key, c.id.object, c.id.elem}
	rs.folds.cell(c, key)
	old := rs.cells[key]
	if old == nil || c.id.number != 0 {
		return
	}
	delete(rs.cells, key)
	switch c.v.mode {
	case modeCount:
		c.count.gone, c.count.adjust, c.count.resetAt = old.gone, old.adjust, old.resetAt
		if c.timer != nil && old.timer != nil && old.companion == (c.v.with != nil) {
			*c.timer = *old.timer
		}
	case modeWatermark:
		c.floor, c.floorKnown = old.floor, old.floorKnown
	}
}

// handle gives a new handle what it had, unless its object has been renamed since: back to the same name even.
func (rs *restored) handle(h *handle, origin []uint64) {
	old := rs.handles[h.id]
	if old == nil || old.variable != h.v.key || old.object != h.name || old.origin != originHash(origin) || h.v.number == floating {
		return
	}
	delete(rs.handles, h.id)
	for _, o := range old.elems {
		if o.index >= len(h.elems) || o.quarter > 3 {
			continue
		}
		e := &h.elems[o.index]
		e.wraps, e.quarter, e.excluded, e.earlier = o.wraps, o.quarter, o.excluded, true
		e.last = h.v.number.bottom(o.quarter, h.v.bits)
	}
}

// takeRestored takes from the blob what no handle and no remains have called for: of objects freed or renamed while no
// exporter was there, and of contributions that were lost.
func (r *Rank) takeRestored() {
	rs := r.restored
	for _, h := range rs.handles {
		v := r.byKey[h.variable]
		if v == nil || !v.wanted || v.mode != modeCount {
			continue
		}
		for _, e := range h.elems {
			if e.wraps == 0 || v.relative(h.origin != 0) {
				continue
			}
			id := cellID{object: h.object, elem: -1}
			if v.each != "" {
				id.elem = e.index
			}
			r.cell(v, id).count.gone += float64(e.wraps) * v.span()
			r.dirty = true
		}
	}
	for key := range rs.cells {
		v := r.byKey[key.variable]
		if v == nil {
			v = r.ratios[key.variable]
		}
		if v == nil || v.reason != "" && !v.wanted || v.mode != modeCount && v.mode != modeWatermark || (v.each == "") != (key.elem < 0) {
			continue
		}
		r.cell(v, cellID{object: key.object, elem: key.elem})
	}
	r.takeFolds(&rs.folds)
	r.restored = nil
}
