package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/common/version"

	"github.com/mpit-exporter/mpit-exporter/exporter"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// node is an exporter whose sockets are open: all of it but the way on which its figures leave.
type node struct {
	flags *nodeFlags

	logs     *logWriter
	logger   *slog.Logger
	shares   shares
	socket   *agentSocket
	control  *mpit.Socket // nil: none
	exporter *exporter.Exporter
	reload   *reloader
	hangups  <-chan os.Signal
	refused  *prometheus.CounterVec
	own      *prometheus.Registry // what is known of this process
	otlp     *pushing             // nil: none
	job      *ownMode             // nil: it is not one job's own

	closers []func() error
}

// nodeOptions are what commands want of a node beside its flags.
type nodeOptions struct {
	connections, requests int          // of scrapers
	created               bool         // see exporter.Config
	single                bool         // for a single push: no control socket, whatever the flags say, and all that has been counted is pushed
	listen                func() error // opens what else is listened on; may be nil
	own                   *ownMode     // nil: it is not one job's own
}

// openNode opens all sockets and makes all parts. Nothing is logged of failures: they are one line of the caller's. Who gets a node must close it.
func openNode(ctx context.Context, flags *nodeFlags, options nodeOptions, log io.Writer) (n *node, err error) {
	n = &node{flags: flags, job: options.own}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.close())
			n = nil
		}
	}()
	n.logs = newLogWriter(log)
	n.closers = append(n.closers, func() error { n.logs.close(); return nil })
	resetCollector := tuneCollector(os.Getenv("GOGC"))
	n.closers = append(n.closers, func() error { resetCollector(); return nil })
	flags.log.Writer = n.logs
	n.logger = promslog.New(&flags.log)
	// Before all else: a SIGHUP that comes while the exporter starts is not its end, and not lost.
	hangups, stopHangups := notifyHangups()
	n.hangups = hangups
	n.closers = append(n.closers, func() error { stopHangups(); return nil })
	rules, _, err := loadRules(flags.configFiles, flags.timerInterval)
	if err != nil {
		return n, err
	}

	n.shares = shareDescriptors(n.logger, options.connections)
	n.socket, err = listenAgents(flags.socket, systemRunDir, os.Getenv("XDG_RUNTIME_DIR"),
		append(n.job.listenOptions(), mpit.WithHandshakeLimit(min(maxHandshakes, n.shares.ranks)))...)
	if err != nil {
		return n, err
	}
	n.closers = append(n.closers, n.socket.Close)
	if options.listen != nil {
		if err := options.listen(); err != nil {
			return n, err
		}
	}
	if !options.single && (flags.control != "" || !flags.controlNamed) {
		if n.control, err = listenControl(flags.control, n.socket.Path()); err != nil {
			return n, err
		}
		n.closers = append(n.closers, n.control.Close)
	}

	// The sockets are ours: whoever begins from here on, the exporter's own figures as well, no earlier exporter can have pushed.
	since := time.Now()
	if options.single {
		since = time.Unix(1, 0)
	}
	n.exporter, err = exporter.New(exporter.Config{
		Mapper:     rules.Mapper,
		Limits:     rules.Limits,
		Identity:   rules.Identity,
		Logger:     n.logger,
		Retention:  max(flags.retention, 1), // zero would mean the default
		MaxRanks:   n.shares.ranks,
		MaxScrapes: options.requests,
		Created:    options.created,
		UserName:   userName,

		ControlVariables:        flags.cvars,
		ControlVariableInterval: flags.cvarInterval,

		FinalTaken: n.job.finalTaken(),
	})
	if err != nil {
		return n, fmt.Errorf("exporter: %w", err)
	}
	n.reload = newReloader(flags.configFiles, flags.timerInterval, n.exporter, n.logger)
	n.refused = newRefusals()
	n.own = ownRegistry(n.refused, n.logs.lostLines())
	if flags.otlp.asked() {
		if n.otlp, err = newPushing(ctx, flags.otlp, n.exporter, n.socket.Path(), since, n.logger); err != nil {
			return n, err
		}
		n.closers = append(n.closers, n.otlp.close)
		if err := n.own.Register(n.otlp.pusher); err != nil {
			return n, fmt.Errorf("metrics of OTLP: %w", err)
		}
		n.job.pushes(n.otlp)
	}
	return n, nil
}

// close undoes what openNode has done, the last first.
func (n *node) close() error {
	var failed []error
	for i := len(n.closers) - 1; i >= 0; i-- {
		failed = append(failed, n.closers[i]())
	}
	n.closers = nil
	return errors.Join(failed...)
}

// controlPath is "none" where there is no control socket.
func (n *node) controlPath() string {
	if n.control == nil {
		return "none"
	}
	return n.control.Path()
}

// enclose says in the log what has been opened, and puts up the fence: before anybody else's word is listened to. webConfig and address may be empty.
func (n *node) enclose(webConfig, address string) error {
	endpoint := "none"
	var read []string
	if n.otlp != nil {
		endpoint, read = n.otlp.config.Target(), n.otlp.files()
	}
	n.logger.Info("Starting", "program", programName, "version", version.Info(), "agent_socket", n.socket.Path(), "control_socket", n.controlPath(), "otlp", endpoint,
		"config_files", strings.Join(n.flags.configFiles, ","))
	sockets := []string{n.socket.Path()}
	if n.control != nil {
		sockets = append(sockets, n.control.Path())
	}
	f := fenceOf(n.flags.configFiles, webConfig, sockets, n.socket.madeDir, address)
	if n.otlp != nil {
		f.addReceiver(read, resolverFiles, os.Getenv)
	}
	n.job.fence(&f)
	return raiseFence(n.flags.landlock, f, n.logger, n.own)
}

// front is a way on which figures leave a node, besides OTLP.
type front struct {
	what     string // for errors
	serve    func() error
	shutdown func(ctx context.Context) // lets go on what is under way until ctx ends; then serve returns ended
	ended    error
	ready    func(bool) // is told when it is ready, and when it is no more
}

// run serves everything until ctx or a server ends, then ends all in order: reloads, the requests and the scrapes under way and a last push, for which ranks
// are needed still, then the ranks.
func (n *node) run(ctx context.Context, f *front) error {
	detached := context.WithoutCancel(ctx)
	ranksCtx, stopRanks := context.WithCancel(detached)
	defer stopRanks()
	controlCtx, stopControl := context.WithCancel(detached)
	defer stopControl()
	pushCtx, stopPushing := context.WithCancel(detached)
	defer stopPushing()
	ranksDone, frontDone, controlDone, pushDone := make(chan error, 1), make(chan error, 1), make(chan error, 1), make(chan struct{})
	go func() { ranksDone <- n.exporter.Serve(ranksCtx, n.socket.Listener) }()
	if f != nil {
		go func() { frontDone <- f.serve() }()
	}
	go func() {
		if n.control == nil {
			<-controlCtx.Done()
			controlDone <- nil
			return
		}
		controlDone <- n.exporter.Control().Serve(controlCtx, n.control)
	}()
	go func() {
		defer close(pushDone)
		if n.otlp != nil {
			n.otlp.run(pushCtx)
		}
	}()

	if f != nil {
		f.ready(true)
	}
	notify(n.logger, daemon.SdNotifyReady)
	reloadsCtx, stopReloads := context.WithCancel(ctx)
	defer stopReloads()
	n.reload.begin()
	reloadsDone := make(chan struct{})
	go func() {
		defer close(reloadsDone)
		n.reload.onHangups(reloadsCtx, n.hangups)
	}()
	keepCtx, stopKeeping := context.WithCancel(ctx)
	defer stopKeeping()
	keepDone := make(chan struct{})
	go func() {
		defer close(keepDone)
		kept := []keptSocket{{"agent socket", "--agent.socket", n.socket.Path(), n.socket.Restore}}
		if n.control != nil {
			kept = append(kept, keptSocket{"control socket", "--control.socket", n.control.Path(), n.control.Restore})
		}
		keepSockets(keepCtx, n.logger, socketLook, kept...)
	}()

	var err error
	select {
	case <-ctx.Done():
	case err = <-ranksDone:
		ranksDone <- nil // waited for below
		err = fmt.Errorf("serving ranks on %s ended: %w", n.socket.Path(), errors.Join(err, errEnded(err)))
	case err = <-frontDone:
		frontDone <- f.ended
		err = fmt.Errorf("serving %s ended: %w", f.what, errors.Join(err, errEnded(err)))
	case err = <-controlDone:
		controlDone <- nil
		err = fmt.Errorf("serving the control socket ended: %w", errors.Join(err, errEnded(err)))
	}

	if f != nil {
		f.ready(false)
	}
	stopReloads()
	<-reloadsDone
	n.reload.end()
	stopKeeping()
	<-keepDone
	notify(n.logger, daemon.SdNotifyStopping)
	n.logger.Info("Ending")
	stopControl()
	stopPushing() // which goes on for as long as a push may take
	if f != nil {
		shutdownCtx, cancel := context.WithTimeout(detached, shutdownTimeout)
		defer cancel()
		f.shutdown(shutdownCtx)
	}
	if controlErr := <-controlDone; controlErr != nil {
		err = errors.Join(err, controlErr)
	}
	<-pushDone
	stopRanks()
	if f != nil {
		if frontErr := <-frontDone; frontErr != nil && !errors.Is(frontErr, f.ended) {
			err = errors.Join(err, frontErr)
		}
	}
	if ranksErr := <-ranksDone; ranksErr != nil && !errors.Is(ranksErr, context.Canceled) {
		err = errors.Join(err, ranksErr)
	}
	return err
}

// shutdownTimeout is how long scrapes under way may take when the exporter ends.
const shutdownTimeout = 5 * time.Second
