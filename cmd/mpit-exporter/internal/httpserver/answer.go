package httpserver

import (
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"

	"github.com/klauspost/compress/gzip"
	"golang.org/x/net/http/httpguts"
)

const (
	// plainBytes is how large an answer may be that is not worth compressing.
	plainBytes = 4 << 10
	// sendBytes is how much of an answer is uncompressed at a time for who doesn't take gzip.
	sendBytes = 32 << 10
	// pieceBytes is by how much an answer grows. A single piece would become twice as large, and be copied, whenever it
	// grows.
	pieceBytes = 64 << 10
)

// made serves what a handler says once it has said it all: nothing that it has taken for its answer, no lock and no
// turn, waits for a client that reads slowly. Until then the answer is compressed while it is written.
func made(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		t := w.(*tracked)
		a := &answer{header: w.Header(), visit: t.visit, status: http.StatusOK}
		next.ServeHTTP(a, req)
		if err := a.finish(); err != nil {
			clear(a.header)
			say(w, http.StatusServiceUnavailable, err.Error())
			return
		}
		_ = a.send(w, req) // the client has gone, or has been let go, which is counted
	})
}

// answer is one that is being made.
type answer struct {
	header http.Header
	visit  *visit
	status int
	plain  []byte       // as it has been written, until that is worth compressing
	body   net.Buffers  // compressed, in pieces of pieceBytes
	zip    *gzip.Writer // nil: it has not become large
	err    error        // why it can't be made
}

// Header is the client's own.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader notes the status.
func (a *answer) WriteHeader(status int) { a.status = status }

func (a *answer) Write(p []byte) (int, error) {
	switch {
	case a.err != nil:
		return 0, a.err
	case a.zip != nil:
		return a.zip.Write(p)
	case len(a.plain)+len(p) <= plainBytes:
		a.plain = append(a.plain, p...)
		return len(p), nil
	}
	a.zip = zippers.Get().(*gzip.Writer)
	a.zip.Reset((*held)(a))
	if _, err := a.zip.Write(a.plain); err != nil {
		return 0, err
	}
	return a.zip.Write(p)
}

// held is where an answer's compressed bytes go: they count before there is room for them.
type held answer

func (h *held) Write(p []byte) (n int, err error) {
	for len(p) > 0 && h.err == nil {
		at := len(h.body) - 1
		if at < 0 || len(h.body[at]) == pieceBytes {
			if h.err = h.visit.hold(pieceBytes); h.err == nil {
				h.body = append(h.body, make([]byte, 0, pieceBytes))
			}
			continue
		}
		more := p[:min(len(p), pieceBytes-len(h.body[at]))]
		h.body[at] = append(h.body[at], more...)
		n, p = n+len(more), p[len(more):]
	}
	return n, h.err
}

// zippers and unzippers are used again: a new one has its tables to allocate.
var (
	zippers = sync.Pool{New: func() any {
		z, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
		if err != nil {
			panic(err) // the level is a constant
		}
		return z
	}}
	unzippers = sync.Pool{New: func() any { return new(gzip.Reader) }}
)

// finish says that all has been written.
func (a *answer) finish() error {
	if a.zip == nil {
		return a.err
	}
	err := a.zip.Close()
	a.zip.Reset(nil) // not to hold on to the answer
	zippers.Put(a.zip)
	if a.err == nil {
		a.err = err
	}
	return a.err
}

// send writes it to the client.
func (a *answer) send(w http.ResponseWriter, req *http.Request) error {
	a.header.Add("Vary", "Accept-Encoding")
	takesGzip := httpguts.HeaderValuesContainsToken(req.Header.Values("Accept-Encoding"), "gzip")
	if a.zip != nil && !takesGzip {
		w.WriteHeader(a.status)
		z := unzippers.Get().(*gzip.Reader)
		defer unzippers.Put(z)
		if err := z.Reset(&a.body); err != nil {
			return err
		}
		_, err := io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{z}, make([]byte, sendBytes))
		return err
	}
	if a.zip != nil {
		a.header.Set("Content-Encoding", "gzip")
	} else {
		a.body = net.Buffers{a.plain}
	}
	length := 0
	for _, piece := range a.body {
		length += len(piece)
	}
	a.header.Set("Content-Length", strconv.Itoa(length))
	w.WriteHeader(a.status)
	_, err := a.body.WriteTo(w)
	return err
}
