package mapping

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

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
func decodeBlob(b []byte) (*restored, error) {
	if len(b) > MaxBlob {
		return nil, fmt.Errorf("reading the blob that the agent kept: %d bytes, at most %d are allowed", len(b), MaxBlob)
	}
	if len(b) == 0 || b[0] < blobOldest || b[0] > blobVersion {
		return nil, fmt.Errorf("reading the blob that the agent kept: %w: not version %d to %d", errBlob, blobOldest, blobVersion)
	}
	out := &restored{
		shown: map[uint32]shown{}, series: map[uint32]bool{},
		variables: map[variableKey]*history{}, handles: map[uint32]*restoredHandle{},
	}
	var variables []variableKey
	var objects []string
	var bounds uint64
	r := &blobReader{b: b[1:]}
	// place reads variable and object, and of cells the element.
	place := func(cell bool) (key variableKey, k kept) {
		v, o := int(r.uint(MaxBlob)), int(r.uint(MaxBlob))
		if r.bad || v >= len(variables) || o >= len(objects) {
			r.fail()
			return variableKey{}, kept{}
		}
		k = kept{object: objects[o], elem: -1}
		if cell {
			k.elem = int(r.uint(maxBlobElements+1)) - 1
		}
		return variables[v], k
	}
	for len(r.b) > 0 && !r.bad {
		switch record := r.byte(); record {
		case recordVariable:
			class := mpit.Class(r.byte())
			variables = append(variables, variableKey{r.text(maxBlobName), class})
		case recordObject:
			objects = append(objects, r.text(4*maxObjectName))
		case recordCell:
			key, k := place(true)
			flags := r.uint(cellFlags)
			if flags&hasGone != 0 {
				k.gone = r.float()
			}
			if flags&hasAdjust != 0 {
				k.adjust = r.float()
			}
			if flags&hasReset != 0 {
				k.resetAt = int64(r.uint(math.MaxInt64))
			}
			if flags&hasFloor != 0 {
				k.floor, k.floorKnown = r.float(), true
				if b[0] == 1 { // of a low one as well
					k.low, k.lowKnown = k.floor, true
				}
			}
			if flags&hasLow != 0 {
				k.low, k.lowKnown = r.float(), true
			}
			if flags&hasBegun != 0 {
				k.begun = int64(r.uint(math.MaxInt64))
			}
			if flags&hasNumber != 0 {
				k.number = uint32(r.uint(math.MaxUint32))
			}
			if flags&hasScale != 0 {
				if k.scale = r.float(); !(k.scale > 0) {
					r.fail()
				}
			}
			if !r.bad {
				out.of(key).add(k)
			}
		case recordHandle, recordExcluding:
			key, k := place(false)
			h := &restoredHandle{
				number: uint32(r.uint(math.MaxUint32)), variable: key, object: k.object, excluding: record == recordExcluding,
			}
			if h.excluding {
				h.origin = r.uint(math.MaxUint64)
			}
			for range r.uint(maxBlobElements) {
				e := restoredElement{index: int(r.uint(maxBlobElements)), wraps: uint32(r.uint(math.MaxUint32)), quarter: r.byte()}
				if h.excluding {
					e.excluded = uint64(r.int64())
				}
				if r.bad || e.quarter > 4 {
					r.fail()
					break
				}
				h.elems = append(h.elems, e)
			}
			if !r.bad && out.handles[h.number] == nil {
				out.handles[h.number] = h
				of := out.of(key)
				of.handles = append(of.handles, h.number)
			}
		case recordTimer, recordObserved:
			key, k := place(true)
			var companion uint32
			if record == recordObserved {
				k.number, companion = uint32(r.uint(math.MaxUint32)), uint32(r.uint(math.MaxUint32))
			} else if r.uint(1) == 1 {
				companion = anyCompanion
			}
			if k.timer = r.timer(); k.timer != nil && !r.bad {
				k.timer.bounds, k.timer.companion = bounds, companion
				out.of(key).add(k)
			}
		case recordClosed:
			out.closed, out.hasClosed = time.Duration(r.uint(math.MaxInt64)), true
		case recordBuckets:
			bounds = r.uint(math.MaxUint64)
		case recordShown:
			key := r.uint32()
			s := shown{series: r.uint32(), flags: r.byte(), scale: 1}
			if s.flags&shownScale != 0 {
				s.scale = r.float()
			}
			if s.flags&shownMoved != 0 {
				s.moved = int64(r.uint(math.MaxInt64))
			}
			s.flags &= shownOffset | shownStructure
			if !(s.scale > 0) {
				r.fail()
			}
			if !r.bad {
				out.shown[key], out.series[s.series] = s, true
			}
		case recordOwn:
			out.folds.readOwn(r)
		case recordFold:
			key, k := place(false)
			out.folds.readFold(r, restoredKey{key, k.object, k.elem})
		case recordSplit:
			key, k := place(false)
			out.folds.readSplit(r, restoredKey{key, k.object, k.elem})
		case recordAdjusted:
			key, k := place(true)
			k.number = uint32(r.uint(math.MaxUint32))
			if k.buckets = r.buckets(-maxEvents); !r.bad {
				out.of(key).add(k)
			}
		case recordFoldBuckets:
			key, k := place(false)
			out.folds.readFoldBuckets(r, restoredKey{key, k.object, k.elem})
		case recordSplitBuckets:
			key, k := place(false)
			out.folds.readSplitBuckets(r, restoredKey{key, k.object, k.elem})
		default:
			r.fail()
		}
	}
	if r.bad {
		return nil, fmt.Errorf("reading the blob that the agent kept: %w", errBlob)
	}
	return out, nil
}

func (r *blobReader) uint32() uint32 {
	if len(r.b) < 4 {
		r.fail()
		return 0
	}
	x := binary.LittleEndian.Uint32(r.b)
	r.b = r.b[4:]
	return x
}

// timer reads the rest of a timer's record; nil, if its parts do not fit one another.
func (r *blobReader) timer() *observed {
	t := &observed{seconds: r.float(), events: r.float()}
	good := t.seconds >= 0 && t.events >= 0
	var count uint64
	for range r.uint(maxBuckets + 1) {
		b := NativeBucket{Index: int32(r.uint(maxBuckets)), Count: r.uint(maxEvents)}
		if r.bad {
			return nil
		}
		t.counts = append(t.counts, b)
		count += b.Count
	}
	t.zero = r.uint(maxEvents)
	native := t.zero
	for range r.uint(maxNative) {
		b := NativeBucket{Index: r.int32(), Count: r.uint(maxEvents)}
		if r.bad {
			return nil
		}
		if k := len(t.native); k > 0 && t.native[k-1].Index >= b.Index {
			r.fail()
			return nil
		}
		t.native = append(t.native, b)
		native += b.Count
	}
	if r.bad || !good || native != count || count > maxEvents {
		return nil
	}
	return t
}

// buckets reads those of a distribution, each from least to maxEvents.
func (r *blobReader) buckets(least int64) []int64 {
	list := make([]int64, r.uint(maxDistribution-1))
	next := 0
	for range r.uint(uint64(len(list))) {
		at := next + int(r.uint(maxDistribution))
		x := r.int64()
		if r.bad || at >= len(list) || x < least || x > maxEvents {
			r.fail()
			return nil
		}
		list[at], next = x, at+1
	}
	if len(list) == 0 {
		r.fail()
		return nil
	}
	return list
}

// counts is buckets that are not below zero.
func (r *blobReader) counts() (list []uint64) {
	for _, x := range r.buckets(0) {
		list = append(list, uint64(x))
	}
	return list
}
