package otlptest

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	"google.golang.org/protobuf/proto"
)

const protobuf = "application/x-protobuf"

type httpServer struct {
	receiver *Receiver
	end      <-chan struct{}
	server   *http.Server
	served   chan struct{}
	conns    sync.WaitGroup
}

func serveHTTP(r *Receiver, listener net.Listener, end <-chan struct{}) server {
	s := &httpServer{receiver: r, end: end, served: make(chan struct{})}
	s.server = &http.Server{Handler: http.HandlerFunc(s.handle), TLSConfig: r.opts.TLS, ReadHeaderTimeout: time.Minute}
	s.server.ErrorLog = log.New(io.Discard, "", 0) // of clients, who are told
	s.server.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			s.conns.Add(1) // within Serve
		case http.StateClosed:
			s.conns.Done()
		}
	}
	go func() {
		defer close(s.served)
		if r.opts.TLS != nil {
			_ = s.server.ServeTLS(listener, "", "") // ends with stop
			return
		}
		_ = s.server.Serve(listener) // ends with stop
	}()
	return s
}

func (s *httpServer) shut() {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	_ = s.server.Shutdown(ctx) // what is left is killed
	s.kill()
}

func (s *httpServer) kill() {
	_ = s.server.Close() // of a socket
	<-s.served
	s.conns.Wait()
}

func (s *httpServer) handle(w http.ResponseWriter, r *http.Request) {
	request, code, err := s.read(r)
	if err != nil {
		http.Error(w, err.Error(), code)
		return
	}
	answer := s.receiver.take(r.Context(), s.end, request)
	switch {
	case answer.unauthenticated:
		http.Error(w, answer.message, http.StatusUnauthorized)
	case answer.refused && answer.retry:
		w.Header().Set("Retry-After", strconv.Itoa(int((answer.after+time.Second-1)/time.Second)))
		code := http.StatusTooManyRequests
		if answer.unavailable {
			code = http.StatusServiceUnavailable
		}
		http.Error(w, answer.message, code)
	case answer.refused:
		http.Error(w, answer.message, http.StatusBadRequest)
	default:
		body, err := proto.Marshal(response(answer))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", protobuf)
		_, _ = w.Write(body) //nolint:gosec // protobuf, which no browser shows; the client may be gone
	}
}

// read decodes a request, or says with which status it is refused.
func (s *httpServer) read(r *http.Request) (*Request, int, error) {
	switch {
	case r.URL.Path != s.receiver.opts.Path:
		return nil, http.StatusNotFound, fmt.Errorf("no such path: %s", r.URL.Path)
	case r.Method != http.MethodPost:
		return nil, http.StatusMethodNotAllowed, errors.New("only POST")
	case r.Header.Get("Content-Type") != protobuf:
		return nil, http.StatusUnsupportedMediaType, fmt.Errorf("Content-Type %q", r.Header.Get("Content-Type"))
	}
	limit := int64(s.receiver.opts.MaxBytes)
	sent, err := io.ReadAll(io.LimitReader(r.Body, limit+1))
	if err != nil {
		return nil, http.StatusBadRequest, err
	}
	body := sent
	switch encoding := r.Header.Get("Content-Encoding"); encoding {
	case "":
	case "gzip":
		unpacked, err := gzip.NewReader(bytes.NewReader(sent))
		if err != nil {
			return nil, http.StatusBadRequest, err
		}
		if body, err = io.ReadAll(io.LimitReader(unpacked, limit+1)); err != nil {
			return nil, http.StatusBadRequest, err
		}
	default:
		return nil, http.StatusUnsupportedMediaType, fmt.Errorf("Content-Encoding %q", encoding)
	}
	if int64(len(body)) > limit {
		return nil, http.StatusRequestEntityTooLarge, fmt.Errorf("more than %d bytes", limit)
	}
	request := &Request{
		Message: &collector.ExportMetricsServiceRequest{}, Bytes: len(body), WireBytes: len(sent),
		Encoding: r.Header.Get("Content-Encoding"),
		Header:   map[string][]string{}, Path: r.URL.Path, Query: r.URL.RawQuery,
	}
	if err := proto.Unmarshal(body, request.Message); err != nil {
		return nil, http.StatusBadRequest, err
	}
	for name, values := range r.Header {
		request.Header[lower(name)] = values
	}
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		request.Client = r.TLS.PeerCertificates[0].Subject.CommonName
	}
	return request, 0, nil
}

func lower(s string) string { return strings.ToLower(s) }
