package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/exporter-toolkit/web"
	"github.com/prometheus/exporter-toolkit/web/kingpinflag"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/client"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/httpserver"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/node"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/own"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/page"
	"github.com/mpit-exporter/mpit-exporter/exporter/api"
)

// serveCommand is the exporter.
type serveCommand struct {
	web           *web.FlagConfig
	telemetryPath string
	allowedHosts  []string
	maxRequests   int
	maxConns      int
	addressFile   string
	pprof         bool
	lifecycle     bool

	private          bool
	scrapers, judges []string
	operators        []string

	flags *node.Flags

	own *own.Mode // nil: a node's exporter
}

func newServeCommand(app *kingpin.Application, do commands) *serveCommand {
	c := &serveCommand{}
	do["serve"] = c.run
	cmd := app.Command("serve", "Serve the metrics of this node's MPI processes (the default command).").Default()
	cmd.HelpLong("mpit-exporter\nmpit-exporter serve --web.listen-address=127.0.0.1:10093")
	c.web = kingpinflag.AddFlags(cmd, ":"+cli.DefaultPort)
	cmd.Flag("web.telemetry-path", "Path under which the metrics are served.").Default("/metrics").
		StringVar(&c.telemetryPath)
	cmd.Flag("web.allowed-host", "A name by which browsers and programs may know this node, besides its own; "+
		"addresses and localhost are always good, and the path of the metrics is served by any name.").
		PlaceHolder("NAME").StringsVar(&c.allowedHosts)
	cmd.Flag("web.max-requests", "How many scrapes are served at the same time, and as many requests for other pages; "+
		"one address may have half of them.").Default("40").IntVar(&c.maxRequests)
	cmd.Flag("web.max-connections", "How many connections of scrapers are open at the same time. One more costs the "+
		"one that has been without a request for longest; one address may have half of them.").
		Default("512").IntVar(&c.maxConns)
	cmd.Flag("web.address-file", "File to write the addresses to that are listened on, one in a line: of use with "+
		"port 0.").PlaceHolder("FILE").StringVar(&c.addressFile)
	cmd.Flag("web.enable-pprof", "Serve Go's profiles under /debug/pprof/.").BoolVar(&c.pprof)
	cmd.Flag("web.enable-lifecycle", "Let POST /-/reload read the rule files anew, as SIGHUP does.").
		BoolVar(&c.lifecycle)
	cmd.Flag("web.private", "Serve only the metrics, and /api/v1/report for judge, to clients that --web.config.file "+
		"lets in. Users see their own jobs, with top, list, report and page on this node.").BoolVar(&c.private)
	cmd.Flag("web.scraper", "With --web.private: a client that may have the metrics: one of basic_auth_users, or a name "+
		"in its certificate (default: all). Repeatable.").PlaceHolder("NAME").StringsVar(&c.scrapers)
	cmd.Flag("web.judge", "The same for /api/v1/report.").PlaceHolder("NAME").StringsVar(&c.judges)
	cmd.Flag("operator", "A user who sees all jobs through the control socket, as root does, or a group: @NAME. With "+
		"--web.private or --web.config.file others see their own. Repeatable.").PlaceHolder("NAME").
		StringsVar(&c.operators)
	c.flags = node.AddFlags(cmd, false)
	return c
}

// check finds what the flag parser can't.
func (c *serveCommand) check() error {
	if err := httpserver.CheckTelemetryPath(c.telemetryPath); err != nil {
		return err
	}
	switch {
	case c.maxRequests < 1:
		return cli.Usagef("--web.max-requests %d: must be at least 1", c.maxRequests)
	case c.maxConns < 1:
		return cli.Usagef("--web.max-connections %d: must be at least 1", c.maxConns)
	case !c.private && len(c.scrapers)+len(c.judges) > 0:
		return cli.Usagef("--web.scraper and --web.judge say which clients a private port serves: add --web.private")
	case len(c.operators) > 0 && !c.guarded():
		return cli.Usagef("--operator: without --web.private or --web.config.file every user sees all jobs: add one of them")
	}
	if err := c.flags.Check(); err != nil {
		return err
	}
	if err := web.Validate(*c.web.WebConfigFile); err != nil {
		return fmt.Errorf("--web.config.file %s: %w", *c.web.WebConfigFile, err)
	}
	of := node.WebConfig(*c.web.WebConfigFile)
	if c.private && len(of.Users) == 0 && !strings.Contains(of.TLSConfig.ClientAuth, "Verify") {
		return cli.Usagef("--web.private: --web.config.file must say which clients there are: basic_auth_users, or " +
			"client_auth_type: RequireAndVerifyClientCert")
	}
	return nil
}

// guarded says that users see their own jobs only.
func (c *serveCommand) guarded() bool { return c.private || *c.web.WebConfigFile != "" }

// run serves until ctx ends. Nothing is logged before all is open: what fails until then is one line.
func (c *serveCommand) run(ctx context.Context, std cli.Stdio) (err error) {
	if err := c.check(); err != nil {
		return err
	}
	var listeners []net.Listener
	defer func() { httpserver.CloseAll(listeners) }()
	paged := c.own == nil || c.own.Paged()
	options := node.Options{
		Connections: c.maxConns,
		Listen: func() (err error) {
			if paged {
				listeners, err = httpserver.Listen(c.web)
			}
			return err
		},
	}
	if c.guarded() {
		if options.SeesAll, err = node.Operators(ctx, c.operators); err != nil {
			return err
		}
	}
	if c.own != nil {
		c.own.Options(&options)
	}
	n, err := node.Open(ctx, c.flags, options, std.Err)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	// By this the rules for MPITExporterDown know whose end is no fault.
	mark := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "mpit_exporter_own", Help: "1: a job's own exporter (exec --own), which ends with it. 0: a node's.",
	})
	if c.own != nil {
		mark.Set(1)
	}
	n.Registry.MustRegister(mark)
	f, needs := c.front(ctx, n, listeners), node.Needs{WebConfig: *c.web.WebConfigFile}
	if c.addressFile != "" {
		if err := httpserver.WriteAddresses(c.addressFile, listeners); err != nil {
			return err
		}
		defer os.Remove(c.addressFile)
		needs.Removed = append(needs.Removed, c.addressFile)
	}
	if c.own != nil {
		return c.own.Run(ctx, n, f, needs, own.Page{
			Listeners: listeners, TLS: len(node.TLSFiles(needs.WebConfig)) > 0, Path: c.telemetryPath,
		})
	}
	return n.Run(ctx, needs, f)
}

// runOwn is the exporter that exec --own starts for the launch that this directory belongs to.
func runOwn(ctx context.Context, dir string, std cli.Stdio) error {
	return own.Serve(dir, func(m *own.Mode) error {
		app := kingpin.New(cli.ProgramName, "")
		app.UsageWriter(io.Discard)
		app.ErrorWriter(io.Discard)
		serve := newServeCommand(app, commands{})
		if _, err := app.Parse(append([]string{"serve", "--log.level=warn"}, m.Arguments()...)); err != nil {
			return fmt.Errorf("settings of the exporter: %w", err)
		}
		serve.own = m
		return serve.run(ctx, std)
	})
}

// front is the HTTP server on the listeners.
func (c *serveCommand) front(ctx context.Context, n *node.Node, listeners []net.Listener) *node.Front {
	var place func(r *api.RankStatus) string
	if c.own != nil { // ranks of other users name files of theirs
		place = new(client.Callers).OfRank
	}
	config := httpserver.Config{
		TelemetryPath: c.telemetryPath, API: n.Exporter.API(),
		Metrics: n.Exporter.Handler(n.Registry, n.Runtime, n.Verdicts),
		// Turns of its own: whoever has one waits for ranks, which the API's don't.
		Live:  page.NewLive(n.Exporter.Window, place).Handler(api.NewTurns(), n.Logger),
		Pprof: c.pprof, Names: c.allowedHosts, MaxRequests: c.maxRequests, MaxConnections: n.Budget.Connections,
		Registerer: n.Registry, Logger: n.Logger, Command: n.ExecCommand(),
	}
	if c.lifecycle {
		config.Reload = n.Reload
	}
	if c.private {
		users := func() []string {
			return slices.Collect(maps.Keys(node.WebConfig(*c.web.WebConfigFile).Users))
		}
		config.Private = &httpserver.Private{Scrapers: c.scrapers, Judges: c.judges, Users: users}
	}
	server := httpserver.New(ctx, config)
	n.Exporter.Control().OnRead(server.Local)
	return &node.Front{
		What:  "HTTP",
		Serve: func(ctx context.Context) error { return server.Serve(ctx, listeners, c.web) },
		Ready: server.SetReady,
	}
}
