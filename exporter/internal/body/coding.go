package body

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

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

// unpackers are used again: a new one has its window to allocate.
var unpackers = sync.Pool{New: func() any { return new(gzip.Reader) }}

// unpack writes what it says. Little of it is in memory at a time.
func (r *Response) unpack(w io.Writer) error {
	readers := make([]io.Reader, len(r.segments))
	for i, s := range r.segments {
		readers[i] = bytes.NewReader(s)
	}
	z := unpackers.Get().(*gzip.Reader)
	defer unpackers.Put(z) // it still refers to this page, whose memory is used again in any case
	if err := z.Reset(io.MultiReader(readers...)); err != nil {
		return err
	}
	_, err := z.WriteTo(w)
	return err
}

// TakesGzip says whether a client takes gzip, by Accept-Encoding (RFC 9110 §12.5.3).
func TakesGzip(header http.Header) bool {
	takes := map[string]bool{}
	for _, value := range header.Values("Accept-Encoding") {
		for part := range strings.SplitSeq(value, ",") {
			coding, weight, weighed := strings.Cut(strings.ToLower(part), ";")
			coding = strings.TrimSpace(coding)
			if _, known := takes[coding]; known {
				continue
			}
			q, err := strconv.ParseFloat(strings.TrimPrefix(strings.TrimSpace(weight), "q="), 64)
			takes[coding] = !weighed || err == nil && q > 0
		}
	}
	if gzip, named := takes["gzip"]; named {
		return gzip
	}
	return takes["*"]
}
