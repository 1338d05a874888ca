package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	versioncollector "github.com/prometheus/client_golang/prometheus/collectors/version"
	"github.com/prometheus/common/promslog"
	promslogflag "github.com/prometheus/common/promslog/flag"
	"github.com/prometheus/common/version"
	"github.com/prometheus/exporter-toolkit/web"
	"github.com/prometheus/exporter-toolkit/web/kingpinflag"

	"github.com/mpit-exporter/mpit-exporter/exporter"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

const (
	defaultPort = "10093"
	// shutdownTimeout is how long scrapes under way may take when the exporter ends.
	shutdownTimeout = 5 * time.Second
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

	configFiles []string
	landlock    bool

	socket                   string
	control                  string
	controlNamed             bool // an empty path means none
	retention, timerInterval time.Duration
	cvars                    []string
	cvarInterval             time.Duration

	log promslog.Config
}

func newServeCommand(app *kingpin.Application) *serveCommand {
	c := &serveCommand{name: "serve", log: promslog.Config{Level: promslog.NewLevel(), Format: promslog.NewFormat()}}
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
	cmd.Flag("config.file", configFileHelp+" SIGHUP reads them anew.").PlaceHolder("PATH").StringsVar(&c.configFiles)
	cmd.Flag("landlock", "Let the kernel refuse whatever this process has no business with in the file system, once it serves: it reads its configuration "+
		"and /proc and makes its sockets (docs/security.md). Where the kernel can't, the log says so.").Default("true").BoolVar(&c.landlock)
	cmd.Flag("agent.socket", "Unix socket that the ranks connect to (default: /run/mpit-exporter/agent.sock, or "+
		"$XDG_RUNTIME_DIR/mpit-exporter/agent.sock where /run can't be written). Ranks need MPIT_SOCKET for any other.").
		PlaceHolder("PATH").StringVar(&c.socket)
	cmd.Flag("control.socket", "Unix socket on which mpit-exporter cvar sets control variables (default: control.sock beside the agent socket; empty: none). "+
		"Every user may connect; the kernel says who he is, and root or the job's owner may write where the job allows it.").
		PlaceHolder("PATH").IsSetByUser(&c.controlNamed).StringVar(&c.control)
	cmd.Flag("retention", "How long the last values of an ended rank are kept at least; longer, until they have been scraped.").
		Default("2m").DurationVar(&c.retention)
	cmd.Flag("timer-interval", "Shortest interval that makes an event in the histogram of a timer.").
		Default("10s").DurationVar(&c.timerInterval)
	cmd.Flag("cvar.name", "Control variables that stand on mpit_cvar_ranks, by name; * and ? stand for any characters. Repeatable.").
		PlaceHolder("GLOB").StringsVar(&c.cvars)
	cmd.Flag("cvar.interval", "How often their values are read again, at scrapes.").Default("5m").DurationVar(&c.cvarInterval)
	cmd.Flag(promslogflag.LevelFlagName, promslogflag.LevelFlagHelp).Default("info").HintOptions(promslog.LevelFlagOptions...).SetValue(c.log.Level)
	cmd.Flag(promslogflag.FormatFlagName, promslogflag.FormatFlagHelp).Default("logfmt").HintOptions(promslog.FormatFlagOptions...).SetValue(c.log.Format)
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
	case c.retention < 0:
		return usageErrorf("--retention %s: must not be negative", c.retention)
	case c.timerInterval <= 0:
		return usageErrorf("--timer-interval %s: must be more than nothing, such as 10s", c.timerInterval)
	case c.cvarInterval <= 0:
		return usageErrorf("--cvar.interval %s: must be more than nothing, such as 5m", c.cvarInterval)
	case slices.Contains(c.cvars, ""):
		return usageErrorf("--cvar.name: must not be empty")
	}
	if err := checkPaths("--config.file", c.configFiles); err != nil {
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
	logs := newLogWriter(std.err)
	defer logs.close()
	c.log.Writer = logs
	logger := promslog.New(&c.log)
	// Before all else: a SIGHUP that comes while the exporter starts is not its end, and not lost.
	hangups, stopHangups := notifyHangups()
	defer stopHangups()
	rules, _, err := loadRules(c.configFiles, c.timerInterval)
	if err != nil {
		return err
	}

	shares := shareDescriptors(logger, c.maxConns)
	socket, err := listenAgents(c.socket, systemRunDir, os.Getenv("XDG_RUNTIME_DIR"), mpit.WithHandshakeLimit(min(maxHandshakes, shares.ranks)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, socket.Close()) }()
	listeners, err := listenWeb(c.web)
	if err != nil {
		return err
	}
	defer closeAll(listeners)
	var control *mpit.Socket
	if c.control != "" || !c.controlNamed {
		if control, err = listenControl(c.control, socket.Path()); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, control.Close()) }()
	}

	e, err := exporter.New(exporter.Config{
		Mapper:     rules.Mapper,
		Limits:     rules.Limits,
		Identity:   rules.Identity,
		Logger:     logger,
		Retention:  max(c.retention, 1), // zero would mean the default
		MaxRanks:   shares.ranks,
		MaxScrapes: c.maxRequests,
		Created:    c.created,
		UserName:   userName,

		ControlVariables:        c.cvars,
		ControlVariableInterval: c.cvarInterval,
	})
	if err != nil {
		return fmt.Errorf("exporter: %w", err)
	}

	reload := newReloader(c.configFiles, c.timerInterval, e, logger)
	var ready atomic.Bool
	refused := newRefusals()
	own := ownRegistry(refused, logs.lostLines())
	handler, err := pages{
		telemetryPath: c.telemetryPath,
		metrics:       hurried(shared(e.Handler(own), c.maxRequests, refused), sendTime),
		api:           hurried(e.API(), sendTime),
		ready:         ready.Load,
		pprof:         c.pprof,
		reload:        reload.now,
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

	controlPath, sockets := "none", []string{socket.Path()}
	if control != nil {
		controlPath = control.Path()
		sockets = append(sockets, controlPath)
	}
	logger.Info("Starting", "program", programName, "version", version.Info(), "agent_socket", socket.Path(), "control_socket", controlPath,
		"config_files", strings.Join(c.configFiles, ","))
	// Before anybody else's word is listened to.
	if err := raiseFence(c.landlock, fenceOf(c.configFiles, *c.web.WebConfigFile, sockets, socket.madeDir, c.addressFile), logger, own); err != nil {
		return err
	}
	server := newServer(handler, newConnections(shares.connections, refused), logger)
	return c.serve(ctx, &ready, reload, hangups, e, socket, control, listeners, server, logger)
}

// serve runs all servers until ctx or one of them ends, then ends them in order: the scrapes and the writing under way, then the ranks.
func (c *serveCommand) serve(ctx context.Context, ready *atomic.Bool, reload *reloader, hangups <-chan os.Signal, e *exporter.Exporter, socket *agentSocket, control *mpit.Socket,
	listeners []net.Listener, server *http.Server, logger *slog.Logger) error {
	// Scrapes that are under way at a SIGTERM still need the ranks.
	ranksCtx, stopRanks := context.WithCancel(context.WithoutCancel(ctx))
	defer stopRanks()
	controlCtx, stopControl := context.WithCancel(context.WithoutCancel(ctx))
	defer stopControl()
	ranksDone, webDone, controlDone := make(chan error, 1), make(chan error, 1), make(chan error, 1)
	go func() { ranksDone <- e.Serve(ranksCtx, socket.Listener) }()
	go func() { webDone <- web.ServeMultiple(listeners, server, c.web, logger) }()
	go func() {
		if control == nil {
			<-controlCtx.Done()
			controlDone <- nil
			return
		}
		controlDone <- e.ServeControl(controlCtx, control)
	}()

	ready.Store(true)
	notify(logger, daemon.SdNotifyReady)
	reloadsCtx, stopReloads := context.WithCancel(ctx)
	defer stopReloads()
	reload.begin()
	reloadsDone := make(chan struct{})
	go func() {
		defer close(reloadsDone)
		reload.onHangups(reloadsCtx, hangups)
	}()
	keepCtx, stopKeeping := context.WithCancel(ctx)
	defer stopKeeping()
	keepDone := make(chan struct{})
	go func() {
		defer close(keepDone)
		kept := []keptSocket{{"agent socket", "--agent.socket", socket.Path(), socket.Restore}}
		if control != nil {
			kept = append(kept, keptSocket{"control socket", "--control.socket", control.Path(), control.Restore})
		}
		keepSockets(keepCtx, logger, socketLook, kept...)
	}()

	var err error
	select {
	case <-ctx.Done():
	case err = <-ranksDone:
		ranksDone <- nil // waited for below
		err = fmt.Errorf("serving ranks on %s ended: %w", socket.Path(), errors.Join(err, errEnded(err)))
	case err = <-webDone:
		webDone <- http.ErrServerClosed
		err = fmt.Errorf("serving HTTP ended: %w", errors.Join(err, errEnded(err)))
	case err = <-controlDone:
		controlDone <- nil
		err = fmt.Errorf("serving the control socket ended: %w", errors.Join(err, errEnded(err)))
	}

	ready.Store(false)
	stopReloads()
	<-reloadsDone
	reload.end()
	stopKeeping()
	<-keepDone
	notify(logger, daemon.SdNotifyStopping)
	logger.Info("Ending")
	stopControl()
	shutdownCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if server.Shutdown(shutdownCtx) != nil {
		_ = server.Close()
	}
	if controlErr := <-controlDone; controlErr != nil {
		err = errors.Join(err, controlErr)
	}
	stopRanks()
	if webErr := <-webDone; webErr != nil && !errors.Is(webErr, http.ErrServerClosed) {
		err = errors.Join(err, webErr)
	}
	if ranksErr := <-ranksDone; ranksErr != nil && !errors.Is(ranksErr, context.Canceled) {
		err = errors.Join(err, ranksErr)
	}
	return err
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
