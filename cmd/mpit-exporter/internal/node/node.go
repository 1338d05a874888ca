// Package node is an exporter as a process of its node: it opens the sockets, puts up the sandbox, runs all parts
// beside each other and ends them in order. serve and push are a node each; what a scrape is, package exporter knows,
// and HTTP is a Front that the command brings.
//
// Begin with Open. Node.Run (run.go) raises the sandbox (sandbox.go) before anything is served. The other files are its
// parts: the log, files that may be open, Go's collector, users' names, flags of OTLP, reloads.
package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	versioncollector "github.com/prometheus/client_golang/prometheus/collectors/version"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/common/version"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/judge"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/sockets"
	"github.com/mpit-exporter/mpit-exporter/exporter"
	"github.com/mpit-exporter/mpit-exporter/exporter/otlp"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// maxHandshakes is how many connections one user may have that have not said HELLO.
const maxHandshakes = 1024

// Node is an exporter whose sockets are open, without HTTP.
type Node struct {
	flags *Flags

	logs     *logWriter
	Logger   *slog.Logger
	Budget   Budget
	socket   *sockets.AgentSocket
	control  *mpit.Socket // nil: none
	Exporter *exporter.Exporter
	reloads  chan struct{} // has a value unless a reload is under way; empty before Run, closed at its end
	hangups  <-chan os.Signal
	Registry *prometheus.Registry // what is known of this process, which OTLP gets too
	Verdicts *judge.Node          // on the jobs of this node, likewise
	Runtime  *prometheus.Registry // Go's figures of it
	Pusher   *otlp.Pusher         // nil: nothing is

	closers []func() error
}

// Options are what commands want of a node beside its flags.
type Options struct {
	Connections int                       // of scrapers
	Listen      func() error              // opens what else is listened on; may be nil
	AgentSocket []mpit.ListenOption       // of the ranks' socket
	FinalTaken  func(ctx context.Context) // see exporter.Config

	SeesAll func(uid uint32, groups []uint32) bool // likewise
}

// Open opens all sockets and makes all parts. Failures are not logged, only returned. The caller must close the node.
func Open(ctx context.Context, flags *Flags, options Options, log io.Writer) (n *Node, err error) {
	n = &Node{flags: flags, logs: newLogWriter(log)}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.Close())
			n = nil
		}
	}()
	n.atEnd(n.logs.Close)
	n.atEnd(tuneCollector(os.Getenv))
	flags.log.Writer = n.logs
	n.Logger = promslog.New(&flags.log)
	// Before all else: a SIGHUP that comes while the exporter starts must neither end it nor be lost.
	hangups, stopHangups := notifyHangups()
	n.hangups = hangups
	n.atEnd(stopHangups)
	rules, _, err := LoadRules("--config.file", flags.configFiles, flags.timerInterval)
	if err != nil {
		return n, err
	}
	n.Budget = budgetOfProcess(n.Logger, options.Connections)
	if err := n.openSockets(options); err != nil {
		return n, err
	}
	n.Exporter, err = exporter.New(exporter.Config{
		Mapper:    rules.Mapper,
		Limits:    rules.Limits,
		Identity:  rules.Identity,
		Logger:    n.Logger,
		Retention: max(flags.retention, 1), // zero would mean the default
		MaxRanks:  n.Budget.Ranks,
		UserName:  UserName,

		ControlVariables:        flags.cvars,
		ControlVariableInterval: flags.cvarInterval,

		FinalTaken: options.FinalTaken,
		SeesAll:    options.SeesAll,
	})
	if err != nil {
		return n, fmt.Errorf("exporter: %w", err)
	}
	n.reloads = make(chan struct{}, 1)
	n.Registry, n.Runtime = prometheus.NewRegistry(), prometheus.NewRegistry()
	n.Registry.MustRegister(n.logs.LostLines(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		versioncollector.NewCollector("mpit_exporter"))
	n.Runtime.MustRegister(collectors.NewGoCollector())
	n.Verdicts = judge.NewNode(n.Exporter.CallTimes)
	if flags.OTLP.Asked() {
		return n, n.openPushing(ctx)
	}
	return n, nil
}

// openSockets opens the ranks' socket, what the command listens on, and the control socket.
func (n *Node) openSockets(options Options) (err error) {
	n.socket, err = sockets.ListenAgents(n.flags.Socket, sockets.SystemRunDir, os.Getenv("XDG_RUNTIME_DIR"),
		append(options.AgentSocket, mpit.WithLimits(mpit.Limits{Handshakes: min(maxHandshakes, n.Budget.Ranks)}))...)
	if err != nil {
		return err
	}
	n.closers = append(n.closers, n.socket.Close)
	if options.Listen != nil {
		if err := options.Listen(); err != nil {
			return err
		}
	}
	if n.flags.Control == "" && n.flags.controlNamed {
		return nil
	}
	if n.control, err = sockets.ListenControl(n.flags.Control, n.socket.Path()); err != nil {
		return err
	}
	n.closers = append(n.closers, n.control.Close)
	return nil
}

// openPushing makes the pusher, and lets it be asked for.
func (n *Node) openPushing(ctx context.Context) (err error) {
	instance := n.socket.Path()
	if instance == filepath.Join(sockets.SystemRunDir, sockets.Dir, sockets.AgentFile) {
		instance = "" // the node's exporter: others have a socket of their own
	}
	reader := n.Exporter.OTelReader(exporter.OTelConfig{
		Version: version.Version, Extra: prometheus.Gatherers{n.Registry, n.Verdicts},
	})
	n.atEnd(reader.Close)
	config := n.flags.OTLP.complete(instance, version.Version, n.Logger)
	if n.Pusher, err = otlp.New(ctx, config, reader, n.Registry); err != nil {
		return err
	}
	n.closers = append(n.closers, n.Pusher.Close)
	n.Exporter.Control().OnPush(n.Pusher.Push)
	return nil
}

// atEnd lets close call a function that can't fail.
func (n *Node) atEnd(undo func()) {
	n.closers = append(n.closers, func() error { undo(); return nil })
}

// Close undoes what Open has done, the last first.
func (n *Node) Close() error {
	var failed []error
	for _, undo := range slices.Backward(n.closers) {
		failed = append(failed, undo())
	}
	n.closers = nil
	return errors.Join(failed...)
}

// enclose logs what has been opened, and raises the sandbox. needs are those of the command, besides what the node
// needs itself.
func (n *Node) enclose(needs Needs) {
	control, endpoint := "none", "none"
	needs.Rules = n.flags.configFiles
	needs.Sockets = append(needs.Sockets, n.socket.Path())
	if n.control != nil {
		control = n.control.Path()
		needs.Sockets = append(needs.Sockets, control)
	}
	if n.socket.MadeDir != "" {
		needs.Dirs = append(needs.Dirs, n.socket.MadeDir)
	}
	if n.Pusher != nil {
		endpoint, needs.Receiver, needs.Certificates = n.Pusher.Target(), true, n.Pusher.Files()
	}
	n.Logger.Info("Starting", "program", cli.ProgramName, "version", version.Info(), "agent_socket", n.socket.Path(),
		"control_socket", control, "otlp", endpoint, "config_files", strings.Join(n.flags.configFiles, ","))
	raiseFence(n.flags.landlock, needs, n.Logger, n.Registry)
}

// ExecCommand returns the command that starts programs whose ranks come to this exporter.
func (n *Node) ExecCommand() string {
	command := cli.ProgramName + " exec --calls "
	if path := n.socket.Named(); path != "" {
		command += "--socket=" + path + " "
	}
	return command + "--"
}

// gcPercent is how much garbage there may be, in percent of what is in use, before it is looked for. Go's 100 would
// be more than half of what the exporter takes of a node; a scrape makes little garbage, so that looking more often
// costs little (docs/performance.md).
const gcPercent = 40

// tuneCollector sets it, unless the environment says what it should be ($GOGC). restore sets what was there.
func tuneCollector(getenv func(string) string) (restore func()) {
	if getenv("GOGC") != "" {
		return func() {}
	}
	old := debug.SetGCPercent(gcPercent)
	return func() { debug.SetGCPercent(old) }
}
