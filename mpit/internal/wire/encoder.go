package wire

import (
	"encoding/binary"
	"slices"
	"time"
)

// Encoder builds frames, one behind the other, in one buffer. It checks no limits.
type Encoder struct {
	b     []byte
	frame int // where the present frame begins
}

// Begin starts a frame. Finish ends it.
func (e *Encoder) Begin(typ uint16, seq uint32) {
	e.frame = len(e.b)
	e.b = append(e.b, make([]byte, HeaderBytes)...)
	putHeader(e.b[e.frame:], typ, Version, 0, seq)
}

// Finish writes the length of the present frame.
func (e *Encoder) Finish() {
	words := (len(e.b) - e.frame - HeaderBytes) / WordBytes
	binary.LittleEndian.PutUint32(e.b[e.frame+8:], uint32(words))
}

// keptRequest is how large a buffer may be that Reset keeps, in bytes: most requests fit.
const keptRequest = 256

// Reset forgets all frames.
func (e *Encoder) Reset() {
	e.b = e.b[:0]
	if cap(e.b) > keptRequest {
		e.b = nil
	}
}

// Bytes returns all frames. They belong to the Encoder until the next Begin or Reset.
func (e *Encoder) Bytes() []byte { return e.b }

// Append appends what another Encoder has.
func (e *Encoder) Append(more *Encoder) { e.b = append(e.b, more.b...) }

// Word appends a word.
func (e *Encoder) Word(w uint64) { e.b = binary.LittleEndian.AppendUint64(e.b, w) }

// Int appends a signed word.
func (e *Encoder) Int(i int) { e.Word(uint64(int64(i))) }

// Time appends a time of the wall clock, 0 for time.Time{}.
func (e *Encoder) Time(t time.Time) {
	if t.IsZero() {
		e.Word(0)
		return
	}
	e.Word(uint64(t.UnixNano()))
}

// String appends a string.
func (e *Encoder) String(s string) {
	e.Word(uint64(len(s)))
	e.b = append(e.b, s...)
	if odd := len(s) % WordBytes; odd != 0 {
		e.b = append(e.b, make([]byte, WordBytes-odd)...)
	}
}

// Words appends words without their number.
func (e *Encoder) Words(words []uint64) {
	e.b = slices.Grow(e.b, len(words)*WordBytes)
	for _, w := range words {
		e.Word(w)
	}
}

// Array appends the number of words, then the words.
func (e *Encoder) Array(words []uint64) {
	e.Word(uint64(len(words)))
	e.Words(words)
}

// Record appends a record whose fields are appended by fields.
func (e *Encoder) Record(fields func()) {
	at := len(e.b)
	e.Word(0)
	fields()
	binary.LittleEndian.PutUint64(e.b[at:], uint64((len(e.b)-at)/WordBytes-1))
}
