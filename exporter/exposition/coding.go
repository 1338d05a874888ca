package exposition

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// The content codings that are offered, by their names in HTTP. Few ask for zstd.
const (
	CodingGzip = "gzip" // pack.go
	codingZstd = "zstd"
)

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

// CompressZstd writes the segments to w as zstd.
func CompressZstd(w io.Writer, segments [][]byte) (err error) {
	z := encoders.Get().(*zstd.Encoder)
	defer encoders.Put(z)
	defer z.Reset(nil) // not to hold on to w
	z.Reset(w)
	for _, s := range segments {
		if _, err := z.Write(s); err != nil {
			return errors.Join(err, z.Close())
		}
	}
	return z.Close()
}

// NegotiateCoding chooses a content coding by Accept-Encoding (RFC 9110 §12.5.3): what the client likes best, zstd
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
			if coding == CodingGzip || coding == codingZstd || coding == "*" {
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
	switch gzip, zstd := weight(CodingGzip), weight(codingZstd); {
	case gzip == 0 && zstd == 0:
		return ""
	case gzip > zstd:
		return CodingGzip
	}
	return codingZstd
}
