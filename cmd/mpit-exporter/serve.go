package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/exporter-toolkit/web"
	"github.com/prometheus/exporter-toolkit/web/kingpinflag"
)

const ()

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
	paged := c.own == nil || c.own.paged()
	options := nodeOptions{
		connections: c.maxConns, requests: c.maxRequests, created: c.created,
		listen: func() (err error) {
			if paged {
				listeners, err = listenWeb(c.web)
			}
			return err
		},
	}
	if c.own != nil {
		options.agentSocket, options.finalTaken = c.own.listenOptions(), c.own.finalTaken()
	}
	n, err := openNode(ctx, c.nodeFlags, options, std.err)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	f, err := c.front(n, listeners)
	if err != nil {
		return err
	}

	needs := fenceNeeds{webConfig: *c.web.WebConfigFile}
	if c.addressFile != "" {
		if err := writeAddresses(c.addressFile, listeners); err != nil {
			return err
		}
		defer os.Remove(c.addressFile)
		needs.removed = append(needs.removed, c.addressFile)
	}
	if c.own == nil {
		if err := n.enclose(needs); err != nil {
			return err
		}
		return n.run(ctx, f)
	}

	if n.pushing != nil {
		c.own.pushes(n.pushing.pusher.PushEnded, n.pushing.config.Endpoint, n.logger)
	}
	if err := c.own.prepare(page{listeners, len(tlsFiles(needs.webConfig)) > 0, c.telemetryPath}, n.logger); err != nil {
		return err
	}
	defer c.own.withdraw()
	dirs, removed := c.own.removes()
	needs.dirs, needs.removed = dirs, append(needs.removed, removed...)
	if err := n.enclose(needs); err != nil {
		return err
	}
	ctx = c.own.begin(ctx, n.exporter.Remaining, n.logger)
	if !paged {
		f = nil
	}
	return n.run(ctx, f)
}

// front is the HTTP server on the listeners.
func (c *serveCommand) front(n *node, listeners []net.Listener) (*front, error) {
	refused := newRefusals()
	if err := n.registry.Register(refused); err != nil {
		return nil, fmt.Errorf("metric of refused requests: %w", err)
	}
	var ready atomic.Bool
	p := pages{
		telemetryPath: c.telemetryPath,
		metrics:       hurried(shared(n.exporter.Handler(n.registry), c.maxRequests, refused), sendTime),
		api:           hurried(n.exporter.API(), sendTime),
		ready:         ready.Load,
		pprof:         c.pprof,
	}
	if c.lifecycle {
		p.reload = n.reload.now
	}
	handler, err := p.mux()
	if err != nil {
		return nil, err
	}
	server := newServer(handler, newConnections(n.shares.connections, refused), n.logger)
	return &front{
		what:  "HTTP",
		serve: func(ctx context.Context) error { return serveWeb(ctx, server, listeners, c.web, n.logger) },
		ready: ready.Store,
	}, nil
}
