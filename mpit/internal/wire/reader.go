package wire

import (
	"encoding/binary"
	"errors"
	"io"
)

const (
	firstBuffer = 4 << 10  // holds most samples
	keptBuffer  = 64 << 10 // a larger buffer is given back once its frame has been used
	// A smaller one is given back when a frame has come that firstBuffer would have held, and nothing behind it: a
	// catalogue fills a buffer once, and what a thousand connections then wait with is little.
)

// Reader reads frames. It is not safe for concurrent use.
type Reader struct {
	// Limit is how large a payload may be, in bytes.
	Limit int
	// Room is called before the buffer grows by so many bytes, and after it has shrunk, with a number below zero. Its
	// error is what Next returns. nil: the buffer's memory is not counted.
	Room func(bytes int) error

	src        io.Reader
	buf        []byte
	start, end int  // what is read and not yet used: buf[start:end]
	small      bool // firstBuffer would have held the last frame
}

// NewReader returns a Reader that refuses payloads of more than limit bytes.
func NewReader(src io.Reader, limit int) *Reader {
	return &Reader{src: src, Limit: limit}
}

func (r *Reader) grow(bytes int) error {
	if r.Room == nil {
		return nil
	}
	return r.Room(bytes)
}

// Next returns the next frame. Its payload is valid until Next is called again. The error is io.EOF where the stream
// ends between two frames, an *Error where a peer breaks the protocol, and otherwise what reading the source gave.
func (r *Reader) Next() (Frame, error) {
	if err := r.tidy(); err != nil {
		return Frame{}, err
	}
	if err := r.fill(HeaderBytes); err != nil {
		return Frame{}, err
	}
	h := r.buf[r.start:r.end]
	if [4]byte(h) != magic {
		return Frame{}, Errorf(ReasonBadMagic, "frame begins with % x instead of %q", h[:4], magic[:])
	}
	f := Frame{
		Type:    binary.LittleEndian.Uint16(h[4:]),
		Version: binary.LittleEndian.Uint16(h[6:]),
		Seq:     binary.LittleEndian.Uint32(h[12:]),
	}
	words := int64(binary.LittleEndian.Uint32(h[8:]))
	if f.Version == 0 {
		return Frame{}, Errorf(ReasonVersion, "frame of protocol version 0")
	}
	if words > int64(r.Limit/WordBytes) {
		return Frame{}, Errorf(ReasonTooLarge, "frame of type %d announces %d words, the limit is %d", f.Type, words,
			r.Limit/WordBytes)
	}
	size := HeaderBytes + int(words)*WordBytes
	if err := r.fill(size); err != nil {
		return Frame{}, err
	}
	r.small = size <= firstBuffer
	f.Payload = r.buf[r.start+HeaderBytes : r.start+size : r.start+size]
	r.start += size
	return f, nil
}

// tidy moves what is left to the beginning of the buffer, and gives a large buffer back.
func (r *Reader) tidy() error {
	rest := r.buf[r.start:r.end]
	switch {
	case cap(r.buf) > keptBuffer && len(rest) <= firstBuffer, len(r.buf) > firstBuffer && r.small && len(rest) == 0:
		small := make([]byte, firstBuffer)
		r.end = copy(small, rest)
		r.start = 0
		before := len(r.buf)
		r.buf = small
		return r.grow(len(small) - before)
	case r.start > 0:
		r.end = copy(r.buf, rest)
	}
	r.start = 0
	return nil
}

// fill reads until size bytes are there. The buffer grows with what has arrived, not with what was announced.
func (r *Reader) fill(size int) error {
	for r.end-r.start < size {
		if r.end == len(r.buf) {
			length := min(max(firstBuffer, 2*len(r.buf)), max(firstBuffer, r.start+size))
			if err := r.grow(length - len(r.buf)); err != nil {
				return err
			}
			bigger := make([]byte, length)
			copy(bigger, r.buf[:r.end])
			r.buf = bigger
		}
		n, err := r.src.Read(r.buf[r.end:])
		r.end += n
		if n > 0 {
			continue
		}
		switch {
		case err == nil:
			continue // allowed by io.Reader, and no end of file
		case errors.Is(err, io.EOF) && r.end > r.start:
			return Errorf(ReasonTruncated, "end of file after %d of %d bytes of a frame", r.end-r.start, size)
		default:
			return err
		}
	}
	return nil
}

// Partial reports whether the beginning of a frame has been read whose end has not.
func (r *Reader) Partial() bool { return r.end > r.start }
