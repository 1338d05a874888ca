package wire

import (
	"encoding/binary"
	"iter"
	"math"
	"time"
)

// Decoder reads the fields of a payload or a record, one after the other. What is missing at the end reads as zero or
// empty, for an older peer did not know it; what is more is left alone. The first breach is kept, and
// everything reads as zero after it.
type Decoder struct {
	b   []byte
	err *error // shared with the decoders of inner records
}

// NewDecoder returns a Decoder of payload, which must be whole words. It keeps its error in err.
func NewDecoder(payload []byte, err *error) Decoder {
	return Decoder{b: payload, err: err}
}

// Fail records a breach, if it is the first.
func (d *Decoder) Fail(reason, format string, args ...any) {
	if *d.err == nil {
		*d.err = Errorf(reason, format, args...)
	}
	d.b = nil
}

// Remaining returns how many words are left.
func (d *Decoder) Remaining() int { return len(d.b) / WordBytes }

// Word returns the next word.
func (d *Decoder) Word() uint64 {
	if len(d.b) < WordBytes || *d.err != nil {
		return 0
	}
	w := binary.LittleEndian.Uint64(d.b)
	d.b = d.b[WordBytes:]
	return w
}

// Has says whether there is a next word, and it isn't none. It goes on behind it if it is.
func (d *Decoder) Has(none uint64) bool {
	if len(d.b) >= WordBytes && binary.LittleEndian.Uint64(d.b) != none {
		return true
	}
	d.Word()
	return false
}

// Uint32 returns a word that must fit in 32 bits.
func (d *Decoder) Uint32(what string) uint32 {
	w := d.Word()
	if w > math.MaxUint32 {
		d.Fail(ReasonMalformed, "%s %d has more than 32 bits", what, w)
		return 0
	}
	return uint32(w)
}

// Int returns a signed word that must fit in 32 bits.
func (d *Decoder) Int(what string) int {
	w := int64(d.Word())
	if w < math.MinInt32 || w > math.MaxInt32 {
		d.Fail(ReasonMalformed, "%s %d has more than 32 bits", what, w)
		return 0
	}
	return int(w)
}

// Count returns a word that must not be more than limit.
func (d *Decoder) Count(what string, limit int) int {
	w := d.Word()
	if w > uint64(limit) {
		d.Fail(ReasonTooLarge, "%d %s, the limit is %d", w, what, limit)
		return 0
	}
	return int(w)
}

// Time returns a time of the wall clock; zero is time.Time{}.
func (d *Decoder) Time(what string) time.Time {
	ns := d.Duration(what)
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, int64(ns))
}

// Duration returns a duration, which is never negative.
func (d *Decoder) Duration(what string) time.Duration {
	w := d.Word()
	if w > math.MaxInt64 {
		d.Fail(ReasonMalformed, "%s %d is not a time", what, w)
		return 0
	}
	return time.Duration(w)
}

// Bytes returns the bytes of a string of at most limit bytes. They belong to the payload.
func (d *Decoder) Bytes(what string, limit int) []byte {
	n := d.Word()
	if n > uint64(limit) {
		d.Fail(ReasonTooLarge, "%s of %d bytes, the limit is %d", what, n, limit)
		return nil
	}
	padded := (int(n) + WordBytes - 1) &^ (WordBytes - 1)
	if padded > len(d.b) {
		d.Fail(ReasonMalformed, "%s of %d bytes where %d are left", what, n, len(d.b))
		return nil
	}
	s := d.b[:n:n]
	d.b = d.b[padded:]
	return s
}

// String returns a string of at most MaxString bytes.
func (d *Decoder) String(what string) string {
	return string(d.Bytes(what, MaxString))
}

// Words returns n words, nil for none.
func (d *Decoder) Words(what string, n int) []uint64 {
	if n == 0 || *d.err != nil {
		return nil
	}
	if n < 0 || n > d.Remaining() {
		d.Fail(ReasonMalformed, "%s: %d words where %d are left", what, n, d.Remaining())
		return nil
	}
	words := make([]uint64, n)
	b := d.b[:n*WordBytes]
	for i := range words {
		words[i] = binary.LittleEndian.Uint64(b[i*WordBytes:])
	}
	d.b = d.b[n*WordBytes:]
	return words
}

// Array returns an array with its length before it, of at most limit words.
func (d *Decoder) Array(what string, limit int) []uint64 {
	return d.Words(what, d.Count(what, limit))
}

// Records reads a list of records, at most limit; what names them. It ends with the first breach, also one in a record.
// A record's Decoder is good until the next one.
func (d *Decoder) Records(what string, limit int) iter.Seq[*Decoder] {
	return func(yield func(r *Decoder) bool) {
		n := d.Count(what, limit)
		if n > d.Remaining() { // each takes at least a word
			d.Fail(ReasonMalformed, "a list of %d %s where %d words are left", n, what, d.Remaining())
		}
		var r Decoder
		for range n {
			if r = d.Record(what); *d.err != nil || !yield(&r) || *d.err != nil {
				return
			}
		}
	}
}

// Optional returns a Decoder of the record in a list of at most one, of an empty one where there is none.
func (d *Decoder) Optional(what string) (r Decoder, ok bool) {
	if d.Count(what, 1) == 0 {
		return Decoder{err: d.err}, false
	}
	return d.Record(what), true
}

// Record returns a Decoder of the next record's fields, and goes on behind it; what names the list that it is in.
func (d *Decoder) Record(what string) Decoder {
	if len(d.b) == 0 {
		d.Fail(ReasonMalformed, "%s: a record is missing", what)
	}
	n := d.Word()
	if n > uint64(d.Remaining()) {
		d.Fail(ReasonMalformed, "%s: a record of %d words where %d are left", what, n, d.Remaining())
	}
	if *d.err != nil {
		return Decoder{err: d.err}
	}
	r := Decoder{b: d.b[:n*WordBytes], err: d.err}
	d.b = d.b[n*WordBytes:]
	return r
}
