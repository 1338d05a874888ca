package body

import (
	"bytes"
	"io"

	"github.com/klauspost/compress/gzip"
)

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
