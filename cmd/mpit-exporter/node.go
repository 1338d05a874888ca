package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	versioncollector "github.com/prometheus/client_golang/prometheus/collectors/version"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/common/version"

	"github.com/mpit-exporter/mpit-exporter/exporter"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// maxHandshakes is how many connections one user may have that have not said HELLO.
const maxHandshakes = 1024

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
	registry *prometheus.Registry // what is known of this process
	pushing  *pushing             // nil: none

	closers []func() error
}

// nodeOptions are what commands want of a node beside its flags.
type nodeOptions struct {
	connections, requests int                       // of scrapers
	created               bool                      // see exporter.Config
	listen                func() error              // opens what else is listened on; may be nil
	agentSocket           []mpit.ListenOption       // of the ranks' socket
	finalTaken            func(ctx context.Context) // see exporter.Config
	// single is for a single push: no control socket, whatever the flags say, and all that has been counted is pushed.
	single bool
}

// openNode opens all sockets and makes all parts. Nothing is logged of failures: they are one line of the caller's. Who
// gets a node must close it.
func openNode(ctx context.Context, flags *nodeFlags, options nodeOptions, log io.Writer) (n *node, err error) {
	n = &node{flags: flags, logs: newLogWriter(log)}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.close())
			n = nil
		}
	}()
	n.atEnd(n.logs.close)
	n.atEnd(tuneCollector(os.Getenv("GOGC")))
	flags.log.Writer = n.logs
	n.logger = promslog.New(&flags.log)
	// Before all else: a SIGHUP that comes while the exporter starts is not its end, and not lost.
	hangups, stopHangups := notifyHangups()
	n.hangups = hangups
	n.atEnd(stopHangups)
	rules, _, err := loadRules(flags.configFiles, flags.timerInterval)
	if err != nil {
		return n, err
	}
	n.shares = shareDescriptors(n.logger, options.connections)
	if err := n.openSockets(options); err != nil {
		return n, err
	}
	// The sockets are ours: whoever begins from here on, the exporter's own figures as well, no earlier exporter can have
	// pushed.
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

		FinalTaken: options.finalTaken,
	})
	if err != nil {
		return n, fmt.Errorf("exporter: %w", err)
	}
	n.reload = newReloader(flags.configFiles, flags.timerInterval, n.exporter, n.logger)
	n.registry = newRegistry(n.logs.lostLines())
	if flags.otlp.asked() {
		return n, n.openPushing(ctx, since)
	}
	return n, nil
}

// openSockets opens the ranks' socket, what the command listens on, and the control socket.
func (n *node) openSockets(options nodeOptions) (err error) {
	n.socket, err = listenAgents(n.flags.socket, systemRunDir, os.Getenv("XDG_RUNTIME_DIR"),
		append(options.agentSocket, mpit.WithHandshakeLimit(min(maxHandshakes, n.shares.ranks)))...)
	if err != nil {
		return err
	}
	n.closers = append(n.closers, n.socket.Close)
	if options.listen != nil {
		if err := options.listen(); err != nil {
			return err
		}
	}
	if options.single || n.flags.control == "" && n.flags.controlNamed {
		return nil
	}
	if n.control, err = listenControl(n.flags.control, n.socket.Path()); err != nil {
		return err
	}
	n.closers = append(n.closers, n.control.Close)
	return nil
}

func (n *node) openPushing(ctx context.Context, since time.Time) (err error) {
	if n.pushing, err = newPushing(ctx, n.flags.otlp, n.exporter, n.socket.Path(), since, n.logger); err != nil {
		return err
	}
	n.closers = append(n.closers, n.pushing.close)
	if err := n.registry.Register(n.pushing.pusher); err != nil {
		return fmt.Errorf("metrics of OTLP: %w", err)
	}
	return nil
}

// atEnd lets close call a function that can't fail.
func (n *node) atEnd(undo func()) {
	n.closers = append(n.closers, func() error { undo(); return nil })
}

// close undoes what openNode has done, the last first.
func (n *node) close() error {
	var failed []error
	for _, undo := range slices.Backward(n.closers) {
		failed = append(failed, undo())
	}
	n.closers = nil
	return errors.Join(failed...)
}

// enclose says in the log what has been opened, and puts up the fence: before anybody else's word is listened to. needs
// are those of the command beside what the node has opened itself.
func (n *node) enclose(needs fenceNeeds) error {
	control, endpoint := "none", "none"
	needs.rules = n.flags.configFiles
	needs.sockets = append(needs.sockets, n.socket.Path())
	if n.control != nil {
		control = n.control.Path()
		needs.sockets = append(needs.sockets, control)
	}
	if n.socket.madeDir != "" {
		needs.dirs = append(needs.dirs, n.socket.madeDir)
	}
	f := fenceOf(needs)
	if n.pushing != nil {
		endpoint = n.pushing.config.Target()
		f.addReceiver(n.pushing.files(), resolverFiles, os.Getenv)
	}
	n.logger.Info("Starting", "program", programName, "version", version.Info(), "agent_socket", n.socket.Path(),
		"control_socket", control, "otlp", endpoint, "config_files", strings.Join(n.flags.configFiles, ","))
	return raiseFence(n.flags.landlock, f, n.logger, n.registry)
}

// newRegistry holds what is known of this process itself.
func newRegistry(more ...prometheus.Collector) *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(more...)
	r.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		versioncollector.NewCollector("mpit_exporter"),
	)
	return r
}
