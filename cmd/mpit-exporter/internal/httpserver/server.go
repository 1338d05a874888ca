// Package httpserver is the exporter's HTTP server: its addresses (Listen), its pages (Pages), and what keeps strangers
// from using up what others need (limits.go).
//
// What a page says is made elsewhere: metrics and the API by package exporter, the live page by package page. Begin with
// Pages.Handler, and New for the server around it.
package httpserver

import (
	"context"
	"errors"
	"log"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/exporter-toolkit/web"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/logs"
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

// New returns a server whose every wait ends, and that has only so many connections.
func New(handler http.Handler, conns *connections, logger *slog.Logger) *http.Server {
	return &http.Server{
		ConnState:         conns.state,
		Handler:           handler,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog: log.New(logs.NewRepeats(slog.NewLogLogger(logger.Handler(), slog.LevelWarn).Writer()), "",
			0),
	}
}

// Serve serves until ctx ends, and then what is under way, though not for long.
func Serve(
	ctx context.Context, server *http.Server, listeners []net.Listener, flags *web.FlagConfig, logger *slog.Logger,
) error {
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
		defer cancel()
		if server.Shutdown(ctx) != nil {
			_ = server.Close()
		}
	})
	err := web.ServeMultiple(listeners, server, flags, logger)
	if stop() {
		return err // nobody has asked for it
	}
	<-ended
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
