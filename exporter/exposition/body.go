package exposition

import (
	"io"
	"sync"
	"sync/atomic"
)

// Body is the page's families as they are written, sorted by name, and compressed meanwhile.
type Body struct {
	text    []byte   // what has not been compressed yet
	names   []string // of the families
	pack    pack
	length  int // of what has been compressed
	begun   int // how many families are in ended segments
	readers atomic.Int32
}

var bodies = sync.Pool{New: func() any { return new(Body) }}

// newBody returns an empty body that so many readers will release.
func newBody(readers int) *Body {
	b := bodies.Get().(*Body)
	b.readers.Store(int32(readers))
	return b
}

// Release gives up one reader's part in the body, whose memory is used again when all have.
func (b *Body) Release() {
	if b.readers.Add(-1) == 0 {
		b.text, b.names, b.length, b.begun = b.text[:0], b.names[:0], 0, 0
		b.pack = pack{out: b.pack.out[:0], segments: b.pack.segments[:0]}
		bodies.Put(b)
	}
}

// Length is how many bytes have been written, before they are compressed.
func (b *Body) Length() int { return b.length + len(b.text) }

// Memory is how many bytes the body takes.
func (b *Body) Memory() int { return cap(b.text) + cap(b.pack.out) }

// Extra is what comes to a page for one client: rendered families, sorted by name, as they are.
type Extra struct {
	text  []byte
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
	e.text, e.parts = e.text[:0], e.parts[:0]
	extras.Put(e)
}

// Write appends to it. It never fails.
func (e *Extra) Write(p []byte) (int, error) {
	e.text = append(e.text, p...)
	return len(p), nil
}

// EndPart says that what has been written since the last part is a family.
func (e *Extra) EndPart(name string) { e.parts = append(e.parts, part{name, len(e.text)}) }

var _ io.Writer = (*Extra)(nil)
