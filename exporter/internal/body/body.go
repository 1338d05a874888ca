// Package body is the page as it is sent. Its families are compressed while they are written, once for all scrapers;
// what is added for one of them is put between when it is sent, in the coding that this scraper takes. It knows
// nothing of formats.
package body

import (
	"bytes"
	"slices"
	"sync"
	"sync/atomic"
)

// Body is the page's families as they are written, sorted by name. Its one writer appends to Text, says with End where
// each family ends, and at last Finish. From then on it is its readers'.
type Body struct {
	Text []byte // what has not been compressed yet

	names   []string // of the families
	pack    pack
	length  int // of what has been compressed
	begun   int // how many families are in ended segments
	readers atomic.Int32
}

// spillBytes is how much is written before it is compressed.
const spillBytes = 64 << 10

var bodies = sync.Pool{New: func() any { return new(Body) }}

// New returns an empty body that so many readers will release, with room for so many bytes when it is compressed.
func New(readers, room int) *Body {
	b := bodies.Get().(*Body)
	b.readers.Store(int32(readers))
	b.pack.out = slices.Grow(b.pack.out, room) // else it is copied again and again while it grows
	b.pack.begin()
	return b
}

// Spill compresses what has been written so far, if it is much. A writer of large families calls it in between.
func (b *Body) Spill() {
	if len(b.Text) >= spillBytes {
		b.spill()
	}
}

func (b *Body) spill() {
	b.pack.add(b.Text)
	b.length += len(b.Text)
	b.Text = b.Text[:0]
}

// End says that what has been written since the last one is the family of this name.
func (b *Body) End(name string) {
	b.names = append(b.names, name)
	b.Spill()
}

// Gap makes a place for what else is on the page: it comes before the next family, before all or behind all.
func (b *Body) Gap() {
	b.spill()
	if b.begun < len(b.names) {
		b.pack.end(b.names[b.begun])
		b.begun = len(b.names)
	}
}

// Finish says that all has been written.
func (b *Body) Finish() {
	b.Gap()
	b.pack.finish()
}

// Release gives up one reader's part in the body, whose memory is used again when all have.
func (b *Body) Release() {
	if b.readers.Add(-1) == 0 {
		b.Text, b.names, b.length, b.begun = b.Text[:0], b.names[:0], 0, 0
		b.pack = pack{out: b.pack.out[:0], segments: b.pack.segments[:0]}
		bodies.Put(b)
	}
}

// has says whether there is a family with this name.
func (b *Body) has(name string) bool {
	_, found := slices.BinarySearch(b.names, name)
	return found
}

// Length is how many bytes have been written, before they are compressed.
func (b *Body) Length() int { return b.length + len(b.Text) }

// Compressed is how many bytes that has become.
func (b *Body) Compressed() int { return len(b.pack.out) }

// Memory is how many bytes the body takes.
func (b *Body) Memory() int { return cap(b.Text) + cap(b.pack.out) }

// Extra is what comes to a page for one client: rendered families, sorted by name, as they are written to it.
type Extra struct {
	bytes.Buffer
	parts []part
}

// part is a family; it begins where the one before it ends.
type part struct {
	name string
	end  int
}

var extras = sync.Pool{New: func() any { return new(Extra) }}

// NewExtra returns an empty one. Its memory is used again once it is released.
func NewExtra() *Extra { return extras.Get().(*Extra) }

// Release gives its memory back.
func (e *Extra) Release() {
	e.Reset()
	e.parts = e.parts[:0]
	extras.Put(e)
}

// End says that what has been written since the last one is the family of this name.
func (e *Extra) End(name string) { e.parts = append(e.parts, part{name, e.Len()}) }
