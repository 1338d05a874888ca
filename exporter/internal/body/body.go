// Package body is the page as it is sent. Its families are compressed while they are written, once for all scrapers;
// what is added for one of them follows when it is sent, in the coding that this scraper takes. It knows nothing of
// formats.
package body

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
)

// A page is never there as text: Prometheus asks for gzip, and who doesn't gets it uncompressed again while it is sent
// (unpack). What comes to it for each client is compressed by itself and put behind: deflate blocks may follow each
// other in one member if none refers to what is before it.

// Body is the page's families as they are written, sorted by name. Its one writer appends to Text, says with End where
// each family ends, and at last Finish. From then on it is its readers'.
type Body struct {
	Text []byte // what has not been compressed yet

	names   []string // of the families
	out     []byte   // compressed
	crc     uint32   // of the text that has been
	length  int      // of that text
	z       *flate.Writer
	readers atomic.Int32
}

// spillBytes is how much is written before it is compressed.
const spillBytes = 64 << 10

var bodies = sync.Pool{New: func() any { return new(Body) }}

// deflaters are used again, one after the other: a new one has a megabyte to allocate.
var deflaters = sync.Pool{New: func() any {
	// Level 1 costs a third of the default level and makes the body a few per cent larger.
	z, err := flate.NewWriter(nil, flate.BestSpeed)
	if err != nil {
		panic(err) // the level is a constant
	}
	return z
}}

// packed appends what the compressor has made. It never fails.
type packed []byte

func (p *packed) Write(b []byte) (int, error) {
	*p = append(*p, b...)
	return len(b), nil
}

// New returns an empty body that so many readers will release, with room for so many bytes when it is compressed.
func New(readers, room int) *Body {
	b := bodies.Get().(*Body)
	b.readers.Store(int32(readers))
	b.out = slices.Grow(b.out, room) // else it is copied again and again while it grows
	b.begin()
	return b
}

// begin begins to compress, until Finish.
func (b *Body) begin() {
	b.z = deflaters.Get().(*flate.Writer)
	b.z.Reset((*packed)(&b.out))
}

// Spill compresses what has been written so far, if it is much. A writer of large families calls it in between.
func (b *Body) Spill() {
	if len(b.Text) >= spillBytes {
		b.spill()
	}
}

func (b *Body) spill() {
	_, _ = b.z.Write(b.Text) // it fails if packed does
	b.crc = crc32.Update(b.crc, crc32.IEEETable, b.Text)
	b.length += len(b.Text)
	b.Text = b.Text[:0]
}

// End says that what has been written since the last one is the family of this name.
func (b *Body) End(name string) {
	b.names = append(b.names, name)
	b.Spill()
}

// Finish says that all has been written.
func (b *Body) Finish() {
	b.spill()
	_ = b.z.Flush() // to the next whole byte
	b.z.Reset(nil)  // not to hold on to the body
	deflaters.Put(b.z)
	b.z = nil
}

// Release gives up one reader's part in the body, whose memory is used again when all have.
func (b *Body) Release() {
	if b.readers.Add(-1) == 0 {
		b.Text, b.names, b.out, b.crc, b.length = b.Text[:0], b.names[:0], b.out[:0], 0, 0
		bodies.Put(b)
	}
}

// Has says whether there is a family with this name.
func (b *Body) Has(name string) bool {
	_, found := slices.BinarySearch(b.names, name)
	return found
}

// Length is how many bytes have been written, before they are compressed.
func (b *Body) Length() int { return b.length + len(b.Text) }

// Compressed is how many bytes that has become.
func (b *Body) Compressed() int { return len(b.out) }

// Memory is how many bytes the body takes.
func (b *Body) Memory() int { return cap(b.Text) + cap(b.out) }

// Response is a page as it is sent, as a member of gzip (RFC 1952).
type Response struct {
	segments [][]byte
	length   int // of what they say
}

// Response is a body with what else is on the page for one client behind it. It is good until the body is released.
func (b *Body) Response(more []byte) *Response {
	rest := &Body{Text: more, crc: b.crc, length: b.length}
	rest.begin()
	rest.Finish()
	trailer := []byte{1, 0, 0, 0xff, 0xff} // an empty last block
	trailer = binary.LittleEndian.AppendUint32(trailer, rest.crc)
	trailer = binary.LittleEndian.AppendUint32(trailer, uint32(rest.length))
	header := []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255}
	return &Response{segments: [][]byte{header, b.out, rest.out, trailer}, length: rest.length}
}

// Length is how many bytes WriteTo writes.
func (r *Response) Length(gzipped bool) int {
	if !gzipped {
		return r.length
	}
	length := 0
	for _, s := range r.segments {
		length += len(s)
	}
	return length
}

// WriteTo writes the page, which is compressed already.
func (r *Response) WriteTo(w io.Writer, gzipped bool) error {
	if !gzipped {
		return r.unpack(w)
	}
	for _, s := range r.segments {
		if _, err := w.Write(s); err != nil {
			return err
		}
	}
	return nil
}

// unpack writes what it says. Little of it is in memory at a time.
func (r *Response) unpack(w io.Writer) error {
	readers := make([]io.Reader, len(r.segments))
	for i, s := range r.segments {
		readers[i] = bytes.NewReader(s)
	}
	z, err := gzip.NewReader(io.MultiReader(readers...))
	if err == nil {
		_, err = z.WriteTo(w)
	}
	return err
}
