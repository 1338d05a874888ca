package otlptest

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
)

// The protocols, as OTEL_EXPORTER_OTLP_PROTOCOL names them.
const (
	GRPC = "grpc"
	HTTP = "http/protobuf"
)

// maxBytes is what receivers take by default: the limit of gRPC's Go library on a message before compression.
const maxBytes = 4 << 20

// Options say how a receiver behaves.
type Options struct {
	Protocol string                // GRPC, the default, or HTTP
	Addr     string                // host:port to listen at; default: a free port of 127.0.0.1
	TLS      *tls.Config           // nil: without
	Headers  map[string]string     // what each request must carry; one without is refused for good
	Path     string                // of HTTP, default /v1/metrics; others are not found
	MaxBytes int                   // of a message before compression, default 4 MiB; a larger one is refused for good
	Answer   func(*Request) Answer // called for each request, concurrently where clients are; nil: Accept
}

// Request is a message that has arrived. Nobody changes it afterwards.
type Request struct {
	Number    int                                    // from 1, of all that were readable
	Message   *collector.ExportMetricsServiceRequest // decoded
	Bytes     int                                    // of the message before compression
	WireBytes int                                    // as sent, perhaps compressed, without framing
	Encoding  string                                 // gzip, or empty
	Header    map[string][]string                    // keys in lower case
	Path      string                                 // of HTTP
	Query     string                                 // of HTTP
	Client    string                                 // common name in the client's certificate
	Points    int
	Accepted  bool // all of it or, where the answer was Partial, the rest
}

// Receiver listens until it is closed. Its methods may be called from any goroutine.
type Receiver struct {
	addr string
	opts Options

	state  sync.Mutex // held while starting and stopping
	server server     // nil: stopped
	end    chan struct{}

	mu       sync.Mutex
	answer   func(*Request) Answer
	requests []*Request
	changed  chan struct{} // closed at the next change
}

// server is one life of a receiver.
type server interface {
	shut() // lets requests end, then closes all connections
	kill() // closes all connections
}

// Start starts a receiver, to be closed by the caller.
func Start(opts Options) (*Receiver, error) {
	if opts.Protocol == "" {
		opts.Protocol = GRPC
	}
	if opts.Protocol != GRPC && opts.Protocol != HTTP {
		return nil, fmt.Errorf("protocol %q: write %s or %s", opts.Protocol, GRPC, HTTP)
	}
	if opts.Path == "" {
		opts.Path = "/v1/metrics"
	}
	if opts.MaxBytes == 0 {
		opts.MaxBytes = maxBytes
	}
	if opts.Addr == "" {
		opts.Addr = "127.0.0.1:0"
	}
	r := &Receiver{addr: opts.Addr, opts: opts, answer: opts.Answer, changed: make(chan struct{})}
	if err := r.Restart(); err != nil {
		return nil, err
	}
	return r, nil
}

// Addr is host:port, the same after a Restart.
func (r *Receiver) Addr() string { return r.addr }

// URL is what to write into OTEL_EXPORTER_OTLP_ENDPOINT, without a path.
func (r *Receiver) URL() string {
	if r.opts.TLS != nil {
		return "https://" + r.addr
	}
	return "http://" + r.addr
}

// Restart listens again after Stop or Kill, at the same address.
func (r *Receiver) Restart() error {
	r.state.Lock()
	defer r.state.Unlock()
	if r.server != nil {
		return errors.New("the receiver is running")
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", r.addr)
	if err != nil {
		return fmt.Errorf("receiver: %w", err)
	}
	r.addr, r.end = listener.Addr().String(), make(chan struct{})
	if r.opts.Protocol == HTTP {
		r.server = serveHTTP(r, listener, r.end)
	} else {
		r.server = serveGRPC(r, listener, r.end)
	}
	return nil
}

// Stop goes away in good order: requests that wait are refused as if for a moment, every answer is sent, then nobody
// listens. What the receiver has accepted, the client knows to be accepted.
func (r *Receiver) Stop() { r.stop(server.shut) }

// Kill goes away at once: an accepted request's answer may be lost, and a client will send it again.
func (r *Receiver) Kill() { r.stop(server.kill) }

// Close is Kill. It may be called more than once; what has arrived can still be read.
func (r *Receiver) Close() { r.Kill() }

func (r *Receiver) stop(how func(server)) {
	r.state.Lock()
	defer r.state.Unlock()
	if r.server == nil {
		return
	}
	close(r.end)
	how(r.server)
	r.server = nil
}

// Answer changes what requests are answered from now on; nil is Accept.
func (r *Receiver) Answer(answer func(*Request) Answer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

// Requests returns what has been accepted, in the order of arrival.
func (r *Receiver) Requests() []*Request {
	var accepted []*Request
	for _, request := range r.All() {
		if request.Accepted {
			accepted = append(accepted, request)
		}
	}
	return accepted
}

// All returns what has arrived: accepted, refused, or waiting for its answer, of which only the number and the points
// are known.
func (r *Receiver) All() []*Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]*Request(nil), r.requests...)
}

// Forget drops what has arrived so far.
func (r *Receiver) Forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests = nil
}

// Await waits until done says yes, asking it at the beginning, when a request has arrived and after each answer.
func (r *Receiver) Await(ctx context.Context, done func(*Receiver) bool) error {
	for {
		r.mu.Lock()
		changed := r.changed
		r.mu.Unlock()
		if done(r) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("receiver at %s, after %d requests: %w", r.addr, len(r.All()), ctx.Err())
		}
	}
}

// AwaitRequests waits until n requests have been accepted.
func (r *Receiver) AwaitRequests(ctx context.Context, n int) error {
	return r.Await(ctx, func(r *Receiver) bool { return len(r.Requests()) >= n })
}

// take decides what becomes of a request; end is closed when the receiver stops.
func (r *Receiver) take(ctx context.Context, end <-chan struct{}, request *Request) Answer {
	request.Points = points(request.Message)
	r.mu.Lock()
	r.requests = append(r.requests, nil) // keeps the order of arrival
	request.Number = len(r.requests)
	at, decide := request.Number-1, r.answer
	r.requests[at] = &Request{Number: request.Number, Points: request.Points}
	r.changes()
	r.mu.Unlock()

	answer := Accept()
	if missing := r.missingHeader(request); missing != "" {
		answer = Refuse("the header " + missing + " is missing or wrong")
		answer.unauthenticated = true
	} else if decide != nil {
		answer = decide(request)
	}
	if answer.wait != nil {
		select {
		case <-answer.wait:
		case <-ctx.Done():
			answer = Busy(0)
		case <-end:
			answer = Busy(0)
		}
	}
	kept := *request
	kept.Accepted = !answer.refused
	r.mu.Lock()
	if at < len(r.requests) && r.requests[at].Number == request.Number {
		r.requests[at] = &kept
	}
	r.changes()
	r.mu.Unlock()
	return answer
}

// changes wakes those who await something. r.mu is held.
func (r *Receiver) changes() {
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *Receiver) missingHeader(request *Request) string {
	for name, value := range r.opts.Headers {
		if have := request.Header[lower(name)]; len(have) != 1 || have[0] != value {
			return name
		}
	}
	return ""
}

// grace is how long Stop waits for clients to hang up.
const grace = 5 * time.Second
