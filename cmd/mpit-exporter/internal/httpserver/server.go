// Package httpserver is the exporter's HTTP server: its addresses (Listen), its pages (pages), and what keeps
// strangers from using up what others need (connections.go, admission.go) and from asking through another's browser
// (host.go).
//
// What a page says is made elsewhere: metrics and the API by package exporter, the live page by package page. Begin
// with pages.mux, and New for the server around it.
package httpserver

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/exporter-toolkit/web"
)

// How long a client may take. A scrape's own deadline is shorter; the write timeout bounds a client that does not
// read.
const (
	readHeaderTimeout = 10 * time.Second
	readTimeout       = 30 * time.Second
	writeTimeout      = 2 * time.Minute
	idleTimeout       = 3 * time.Minute // longer than usual scrape intervals, so that connections are kept
	maxHeaderBytes    = 16 << 10
	// shutdownTimeout is how long scrapes under way may take when the exporter ends.
	shutdownTimeout = 5 * time.Second
)

// Config is what a server is made of.
type Config struct {
	TelemetryPath string
	Metrics, API  http.Handler
	Live          http.Handler                    // what jobs do now
	Reload        func(ctx context.Context) error // reads the rules anew; nil: nobody may ask for that
	Pprof         bool
	Command       string   // that starts programs whose ranks come to this exporter
	Names         []string // by which browsers may know the node, besides its own
	Private       *Private // nil: every client may have every page

	MaxRequests, MaxConnections int
	Registerer                  prometheus.Registerer // of the metric of what is refused
	Logger                      *slog.Logger
}

// Server serves the exporter's pages.
type Server struct {
	// Local is the API for a socket of this node: its requests say in RemoteAddr who asks, and who shares places.
	Local http.Handler

	http   *http.Server
	ready  atomic.Bool
	logger *slog.Logger
}

// New makes a server, which is not ready yet. It may ask the name service for the node's name.
func New(ctx context.Context, c Config) *Server {
	refused := newRefusals()
	c.Registerer.MustRegister(refused)
	s, from := &Server{logger: c.Logger}, remembered(net.InterfaceAddrs)
	c.Names = append(ownNames(ctx), c.Names...)
	p := pages{c, newAdmission(c.MaxRequests, answerBytes, from, refused), s.ready.Load}
	s.Local = p.admission.of(other, p.api())
	s.http = newServer(p.mux(), newConnections(c.MaxConnections, from, refused), c.Logger)
	return s
}

// newServer returns a server whose every wait ends, and that has only so many connections.
func newServer(handler http.Handler, conns *connections, logger *slog.Logger) *http.Server {
	return &http.Server{
		ConnState:         conns.state,
		ConnContext:       conns.remember,
		Handler:           conns.requested(handler),
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		// Strangers can make it complain as often as they like.
		ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
	}
}

// SetReady sets what the server says of whether the exporter is ready.
func (s *Server) SetReady(ready bool) { s.ready.Store(ready) }

// Serve serves on the listeners until ctx ends, and then what is under way, though not for long.
func (s *Server) Serve(ctx context.Context, listeners []net.Listener, flags *web.FlagConfig) error {
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
		defer cancel()
		if s.http.Shutdown(ctx) != nil {
			_ = s.http.Close()
		}
	})
	err := web.ServeMultiple(listeners, s.http, flags, s.logger)
	if stop() {
		return err // nobody has asked for it
	}
	<-ended
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
