package exposition

import (
	"io"
	"sync"
	"sync/atomic"
)

// Body is rendered families, in parts of one each, sorted by name.
type Body struct {
	text    []byte // all of it, unless it is compressed
	parts   []part
	packed  bool // what has been written is in pack
	pack    pack
	length  int // of what has been compressed
	begun   int // how many parts are in ended segments
	readers atomic.Int32
	pool    *sync.Pool // that it came from
}

// part is a family; it begins where the one before it ends.
type part struct {
	name string
	end  int
}

// Pages are large and what comes to them is not: neither is to get the other's memory.
var pageBodies, extraBodies = newBodies(), newBodies()

func newBodies() *sync.Pool { return &sync.Pool{New: func() any { return new(Body) }} }

// NewExtraBody returns an empty body for what comes to a page, for one reader who releases it.
func NewExtraBody() *Body { return newBody(extraBodies, 1) }

// newBody returns an empty body that so many readers will release.
func newBody(pool *sync.Pool, readers int) *Body {
	b := pool.Get().(*Body)
	b.pool = pool
	b.readers.Store(int32(readers))
	return b
}

// Release gives up one reader's part in the body, whose memory is used again when all have.
func (b *Body) Release() {
	if b.readers.Add(-1) == 0 {
		b.text, b.parts, b.length, b.begun = b.text[:0], b.parts[:0], 0, 0
		b.packed, b.pack = false, pack{out: b.pack.out[:0], segments: b.pack.segments[:0]}
		b.pool.Put(b)
	}
}

// Write appends to the body. It never fails.
func (b *Body) Write(p []byte) (int, error) {
	b.text = append(b.text, p...)
	return len(p), nil
}

// EndPart says that what has been written since the last part is a family.
func (b *Body) EndPart(name string) { b.parts = append(b.parts, part{name, len(b.text)}) }

// Text is what has been written, unless it is compressed. It is good until the body is released.
func (b *Body) Text() []byte { return b.text }

// Length is how many bytes have been written, before they are compressed.
func (b *Body) Length() int { return b.length + len(b.text) }

// Memory is how many bytes the body takes.
func (b *Body) Memory() int { return cap(b.text) + cap(b.pack.out) }

var _ io.Writer = (*Body)(nil)

// Interleave returns the text of both bodies, sorted by name. Where a name stands in both, a's stays.
func Interleave(a, b *Body) (segments [][]byte) {
	var at, bt int // what has been taken
	before := 0    // where a's family begins
	bs := b.parts
	for _, p := range a.parts {
		end := bt
		for len(bs) > 0 && bs[0].name < p.name {
			end, bs = bs[0].end, bs[1:]
		}
		if end > bt {
			segments, at = cut(segments, a, at, before)
			segments, bt = cut(segments, b, bt, end)
		}
		if len(bs) > 0 && bs[0].name == p.name {
			bt, bs = bs[0].end, bs[1:]
		}
		before = p.end
	}
	segments, _ = cut(segments, a, at, len(a.text))
	segments, _ = cut(segments, b, bt, len(b.text))
	return segments
}

// cut appends what lies between from and to, and returns to.
func cut(segments [][]byte, b *Body, from, to int) ([][]byte, int) {
	if to > from {
		segments = append(segments, b.text[from:to])
	}
	return segments, to
}
