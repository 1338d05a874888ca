package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync/atomic"

	"github.com/alecthomas/kingpin/v2"
	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	versioncollector "github.com/prometheus/client_golang/prometheus/collectors/version"
	"github.com/prometheus/exporter-toolkit/web"
	"github.com/prometheus/exporter-toolkit/web/kingpinflag"
)

const (
	defaultPort = "10093"
	// maxHandshakes is how many connections one user may have that have not said HELLO.
	maxHandshakes = 1024
)

// serveCommand is the exporter.
type serveCommand struct {
	name string

	web           *web.FlagConfig
	telemetryPath string
	maxRequests   int
	maxConns      int
	addressFile   string
	created       bool
	pprof         bool
	lifecycle     bool

	*nodeFlags

	own *ownMode // nil: a node's exporter
}

func newServeCommand(app *kingpin.Application) *serveCommand {
	c := &serveCommand{name: "serve"}
	cmd := app.Command(c.name, "Serve the metrics of this node's MPI processes (the default command).").Default()
	c.web = kingpinflag.AddFlags(cmd, ":"+defaultPort)
	cmd.Flag("web.telemetry-path", "Path under which the metrics are served.").Default("/metrics").StringVar(&c.telemetryPath)
	cmd.Flag("web.max-requests", "How many scrapes are served at the same time.").Default("40").IntVar(&c.maxRequests)
	cmd.Flag("web.max-connections", "How many connections of scrapers are open at the same time. One more costs the one that has been without a request for longest; "+
		"one address may have half of them, and of the scrapes.").Default("512").IntVar(&c.maxConns)
	cmd.Flag("web.address-file", "File to write the addresses to that are listened on, one in a line: of use with port 0.").
		PlaceHolder("FILE").StringVar(&c.addressFile)
	cmd.Flag("web.created-timestamps", "Write _created lines in OpenMetrics text. Protobuf has created timestamps always.").BoolVar(&c.created)
	cmd.Flag("web.enable-pprof", "Serve Go's profiles under /debug/pprof/.").BoolVar(&c.pprof)
	cmd.Flag("web.enable-lifecycle", "Let POST /-/reload read the rule files anew, as SIGHUP does.").BoolVar(&c.lifecycle)
	c.nodeFlags = addNodeFlags(cmd, addOTLPFlags(cmd, false))
	return c
}

// check finds what the flag parser can't.
func (c *serveCommand) check() error {
	if err := checkTelemetryPath(c.telemetryPath); err != nil {
		return err
	}
	switch {
	case c.maxRequests < 1:
		return usageErrorf("--web.max-requests %d: must be at least 1", c.maxRequests)
	case c.maxConns < 1:
		return usageErrorf("--web.max-connections %d: must be at least 1", c.maxConns)
	}
	if err := c.nodeFlags.check(); err != nil {
		return err
	}
	if err := web.Validate(*c.web.WebConfigFile); err != nil {
		return fmt.Errorf("--web.config.file %s: %w", *c.web.WebConfigFile, err)
	}
	return nil
}

// run serves until ctx ends. Nothing is logged before all is open: what fails until then is one line.
func (c *serveCommand) run(ctx context.Context, std stdio) (err error) {
	if err := c.check(); err != nil {
		return err
	}
	var listeners []net.Listener
	defer func() { closeAll(listeners) }()
	n, err := openNode(ctx, c.nodeFlags, nodeOptions{
		connections: c.maxConns, requests: c.maxRequests, created: c.created,
		listen: func() (err error) {
			if c.own.paged() {
				listeners, err = listenWeb(c.web)
			}
			return err
		},
		own: c.own,
	}, std.err)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.close()) }()

	var ready atomic.Bool
	handler, err := pages{
		telemetryPath: c.telemetryPath,
		metrics:       hurried(shared(n.exporter.Handler(n.own), c.maxRequests, n.refused), sendTime),
		api:           hurried(n.exporter.API(), sendTime),
		ready:         ready.Load,
		pprof:         c.pprof,
		reload:        n.reload.now,
		lifecycle:     c.lifecycle,
	}.mux()
	if err != nil {
		return err
	}
	if c.addressFile != "" {
		if err := writeAddresses(c.addressFile, listeners); err != nil {
			return err
		}
		defer os.Remove(c.addressFile)
	}
	place := page{listeners, len(tlsFiles(*c.web.WebConfigFile)) > 0, c.telemetryPath}
	if err := c.own.prepare(place, n.logger); err != nil {
		return err
	}
	defer c.own.withdraw()
	if err := n.enclose(*c.web.WebConfigFile, c.addressFile); err != nil {
		return err
	}
	ctx = c.own.begin(ctx, n.exporter, place, n.logger)
	if !c.own.paged() {
		return n.run(ctx, nil)
	}
	server := newServer(handler, newConnections(n.shares.connections, n.refused), n.logger)
	return n.run(ctx, &front{
		what:  "HTTP",
		serve: func() error { return web.ServeMultiple(listeners, server, c.web, n.logger) },
		shutdown: func(ctx context.Context) {
			if server.Shutdown(ctx) != nil {
				_ = server.Close()
			}
		},
		ended: http.ErrServerClosed,
		ready: ready.Store,
	})
}

// errEnded stands for a server that returned without a reason, which it should not before it is told to.
func errEnded(err error) error {
	if err == nil {
		return errors.New("no reason given")
	}
	return nil
}

// notify tells systemd, if it wants to know.
func notify(logger *slog.Logger, state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		logger.Warn("Cannot notify systemd", "state", state, "err", err)
	}
}

// ownRegistry holds what is known of this process itself.
func ownRegistry(more ...prometheus.Collector) *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(more...)
	r.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		versioncollector.NewCollector("mpit_exporter"),
	)
	return r
}
