package body

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// The content codings that are offered, by their names in HTTP; "" is none.
const (
	codingGzip = "gzip" // which it has already
	codingZstd = "zstd"
)

// Length is how many bytes WriteTo writes in this coding; -1: that is not known before.
func (r *Response) Length(coding string) int {
	switch coding {
	case "":
		return int(r.length)
	case codingGzip:
		length := 0
		for _, s := range r.segments {
			length += len(s)
		}
		return length
	}
	return -1
}

// WriteTo writes the page in this coding.
func (r *Response) WriteTo(w io.Writer, coding string) error {
	switch coding {
	case "":
		return r.unpack(w)
	case codingZstd:
		return r.recode(w)
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

// zstdWindow is how far back a zstd encoder looks for what it has seen: some thousand lines, which are enough as
// lines are like their neighbours. Encoder and reader each need a few times that memory; the default takes 8 MiB.
const zstdWindow = 256 << 10

// encoders are used again: a new one has hundreds of kilobytes to allocate.
var encoders = sync.Pool{New: func() any {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(zstdWindow), zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic(err) // the options are constants
	}
	return z
}}

// recode writes what it says as zstd.
func (r *Response) recode(w io.Writer) error {
	z := encoders.Get().(*zstd.Encoder)
	defer encoders.Put(z)
	defer z.Reset(nil) // not to hold on to w
	z.Reset(w)
	return errors.Join(r.unpack(z), z.Close())
}

// NegotiateCoding chooses a content coding by Accept-Encoding (RFC 9110 §12.5.3): what the client likes best, gzip
// where it likes both as much. "" is none.
func NegotiateCoding(header http.Header) string {
	weights := map[string]float64{}
	for _, value := range header.Values("Accept-Encoding") {
		for part := range strings.SplitSeq(value, ",") {
			coding, params, _ := strings.Cut(part, ";")
			coding = strings.ToLower(strings.TrimSpace(coding))
			if _, known := weights[coding]; known {
				continue
			}
			weight := 1.0
			if q, found := strings.CutPrefix(strings.ToLower(strings.TrimSpace(params)), "q="); found {
				var err error
				if weight, err = strconv.ParseFloat(q, 64); err != nil || !(weight > 0) {
					weight = 0
				}
			}
			if coding == codingGzip || coding == codingZstd || coding == "*" {
				weights[coding] = weight
			}
		}
	}
	weight := func(coding string) float64 {
		if w, ok := weights[coding]; ok {
			return w
		}
		return weights["*"]
	}
	switch gzip, zstd := weight(codingGzip), weight(codingZstd); {
	case gzip == 0 && zstd == 0:
		return ""
	case gzip >= zstd:
		return codingGzip
	}
	return codingZstd
}
