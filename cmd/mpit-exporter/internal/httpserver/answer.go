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
	// sendBytes is how much of an answer is uncompressed at a time for who doesn't take gzip.
	sendBytes = 32 << 10
	// pieceBytes is by how much an answer grows. A single piece would become twice as large, and be copied, whenever it
	// grows.
	pieceBytes = 64 << 10
)

// zippers are used again: a new one has its tables to allocate.
var zippers = sync.Pool{New: func() any {
	z, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic(err) // the level is a constant
	}
	return z
}}

// made serves what a handler says once it has said it all: nothing that it has taken for its answer, no lock and no
// turn, waits for a client that reads slowly. Until then the answer is compressed while it is written.
func made(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		a := &answer{Writer: zippers.Get().(*gzip.Writer), header: w.Header(), status: http.StatusOK}
		a.body.visit = w.(*tracked).visit
		a.Reset(&a.body)
		next.ServeHTTP(a, req)
		err := a.Close()
		a.Reset(nil) // not to hold on to the answer
		zippers.Put(a.Writer)
		if err != nil {
			clear(a.header)
			say(w, http.StatusServiceUnavailable, err.Error())
			return
		}
		_ = a.send(w, req) // the client has gone, or has been let go, which is counted
	})
}

// answer is one that is being made.
type answer struct {
	*gzip.Writer // into body
	header       http.Header
	status       int
	body         held
}

// Header is the client's own.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader notes the status.
func (a *answer) WriteHeader(status int) { a.status = status }

// held is an answer's compressed bytes: they count before there is room for them.
type held struct {
	net.Buffers // in pieces of pieceBytes
	visit       *visit
}

func (h *held) Write(p []byte) (n int, err error) {
	for len(p) > 0 {
		at := len(h.Buffers) - 1
		if at < 0 || len(h.Buffers[at]) == pieceBytes {
			if err := h.visit.hold(pieceBytes); err != nil {
				return n, err
			}
			h.Buffers = append(h.Buffers, make([]byte, 0, pieceBytes))
			continue
		}
		more := p[:min(len(p), pieceBytes-len(h.Buffers[at]))]
		h.Buffers[at] = append(h.Buffers[at], more...)
		n, p = n+len(more), p[len(more):]
	}
	return n, nil
}

// send writes it to the client.
func (a *answer) send(w http.ResponseWriter, req *http.Request) error {
	a.header.Add("Vary", "Accept-Encoding")
	if !httpguts.HeaderValuesContainsToken(req.Header.Values("Accept-Encoding"), "gzip") {
		w.WriteHeader(a.status)
		z, err := gzip.NewReader(&a.body.Buffers)
		if err == nil {
			_, err = io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{z}, make([]byte, sendBytes))
		}
		return err
	}
	length := 0
	for _, piece := range a.body.Buffers {
		length += len(piece)
	}
	a.header.Set("Content-Encoding", "gzip")
	a.header.Set("Content-Length", strconv.Itoa(length))
	w.WriteHeader(a.status)
	_, err := a.body.WriteTo(w)
	return err
}
