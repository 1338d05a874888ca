package body

import (
	"encoding/binary"
	"hash/crc32"
	"sync"

	"github.com/klauspost/compress/flate"
)

// A page is never there as text: Prometheus asks for gzip, and who doesn't gets it uncompressed again while it is sent
// (coding.go). What comes to it for each client is compressed by itself and put between: deflate blocks may follow each
// other in one member if none refers to what is before its own segment, and checksums can be combined.

// pack is a body's segments, compressed.
type pack struct {
	out      []byte
	segments []segment
	now      segment       // under way
	z        *flate.Writer // nil: nothing is being written
}

// segment is compressed text that needs nothing before it.
type segment struct {
	first  string // name of its first family
	end    int    // in out
	crc    uint32 // of the text
	length int64  // of the text
}

// deflaters are used again, one after the other: a new one has a megabyte to allocate.
var deflaters = sync.Pool{New: func() any {
	// Level 1 costs a third of the default level and makes the body a few per cent larger.
	z, err := flate.NewWriter(nil, flate.BestSpeed)
	if err != nil {
		panic(err) // the level is a constant
	}
	return z
}}

// begin begins to compress, until finish.
func (p *pack) begin() {
	p.z = deflaters.Get().(*flate.Writer)
	p.z.Reset(p)
}

func (p *pack) finish() {
	p.z.Reset(nil) // not to hold on to p
	deflaters.Put(p.z)
	p.z = nil
}

// Write takes what the compressor has made. It never fails.
func (p *pack) Write(b []byte) (int, error) {
	p.out = append(p.out, b...)
	return len(b), nil
}

// add compresses text.
func (p *pack) add(text []byte) {
	_, _ = p.z.Write(text) // it fails if Write does
	p.now.crc = crc32.Update(p.now.crc, crc32.IEEETable, text)
	p.now.length += int64(len(text))
}

// end ends the segment, if there is anything in it, whose first family has this name.
func (p *pack) end(first string) {
	if p.now.length == 0 {
		return
	}
	_ = p.z.Flush() // to the next whole byte
	p.z.Reset(p)
	p.now.first, p.now.end = first, len(p.out)
	p.segments = append(p.segments, p.now)
	p.now = segment{}
}

// Response is a page as it is sent, as a member of gzip (RFC 1952).
type Response struct {
	segments [][]byte
	length   int64 // of what they say
}

// Response is a body with what else is on the page for one client, in the order of names as far as Gap allows it, and
// this end. Where a name stands in both, the body's stays. It is good until the body is released.
func (b *Body) Response(more *Extra, end string) *Response {
	var other pack
	other.begin()
	defer other.finish()
	var whole segment
	segments := [][]byte{{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255}}
	put := func(out []byte, s segment) {
		segments = append(segments, out)
		whole.crc = combine(whole.crc, s.crc, s.length)
		whole.length += s.length
	}
	rest, from := more.parts, 0
	before := func(name string) {
		for len(rest) > 0 && (name == "" || rest[0].name < name) {
			if !b.has(rest[0].name) {
				other.add(more.Bytes()[from:rest[0].end])
			}
			from, rest = rest[0].end, rest[1:]
		}
	}
	flush := func() {
		at := len(other.out)
		if other.end(""); len(other.out) > at {
			put(other.out[at:], other.segments[len(other.segments)-1])
		}
	}
	at := 0
	for _, s := range b.pack.segments {
		before(s.first)
		flush()
		put(b.pack.out[at:s.end], s)
		at = s.end
	}
	before("")
	other.add([]byte(end))
	flush()
	trailer := []byte{1, 0, 0, 0xff, 0xff} // an empty last block
	trailer = binary.LittleEndian.AppendUint32(trailer, whole.crc)
	segments = append(segments, binary.LittleEndian.AppendUint32(trailer, uint32(whole.length)))
	return &Response{segments: segments, length: whole.length}
}

// combine is the CRC-32 of two texts together, of which the second has this length. A checksum is a polynomial over
// GF(2), and what follows a text multiplies its own by x to the power of the length in bits.
func combine(first, second uint32, length int64) uint32 {
	power := uint32(1) << 23 // x^8, the highest coefficient being the last bit
	for ; length > 0; length >>= 1 {
		if length&1 == 1 {
			first = multiply(first, power)
		}
		power = multiply(power, power)
	}
	return first ^ second
}

// multiply multiplies polynomials modulo that of CRC-32.
func multiply(a, b uint32) (product uint32) {
	for bit := uint32(1) << 31; bit > 0; bit >>= 1 {
		if a&bit != 0 {
			product ^= b
		}
		if b&1 == 1 {
			b = b>>1 ^ crc32.IEEE
		} else {
			b >>= 1
		}
	}
	return product
}
