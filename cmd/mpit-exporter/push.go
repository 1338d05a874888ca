package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/client"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/node"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/sockets"
	"github.com/mpit-exporter/mpit-exporter/exporter/control"
	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// pushCommand is an exporter that only pushes, or a single push.
type pushCommand struct {
	name string

	isOnce    bool
	wait      time.Duration
	waitNamed bool

	flags *node.Flags
}

func newPushCommand(app *kingpin.Application) *pushCommand {
	c := &pushCommand{name: "push"}
	cmd := app.Command(c.name, "Push the metrics of this node's MPI processes to a receiver of OpenTelemetry's "+
		"protocol, and serve no HTTP. With --once, push them once: where an exporter serves this node, that one is "+
		"asked to do so now, by root or its own user; where none does, this command is the exporter for as long as "+
		"--wait. Exits with 0 when all messages were accepted, with 1 when nothing was, with 3 when only a part, "+
		"with 2 after a mistake in the command line.")
	cmd.Flag("once", "Push once, and end.").BoolVar(&c.isOnce)
	cmd.Flag("wait", "With --once, where no exporter serves this node: how long ranks have to connect, which look "+
		"for an exporter every 2 seconds.").Default("5s").IsSetByUser(&c.waitNamed).DurationVar(&c.wait)
	c.flags = node.AddFlags(cmd, true)
	return c
}

// check finds what the flag parser can't.
func (c *pushCommand) check() error {
	switch {
	case c.wait < 0:
		return cli.Usagef("push: --wait %s: must not be negative", c.wait)
	case c.waitNamed && !c.isOnce:
		return cli.Usagef("push: --wait is of no use without --once")
	}
	return c.flags.Check()
}

// run pushes until ctx ends, or once.
func (c *pushCommand) run(ctx context.Context, std cli.Stdio) error {
	if err := c.check(); err != nil {
		return err
	}
	if !c.isOnce {
		return c.always(ctx, std)
	}
	points, err := c.once(ctx, std)
	switch {
	case err == nil && points == 0:
		return errors.New("push: the receiver has accepted none of the points; its log, and the exporter's, may say " +
			"why")
	case err == nil:
		fmt.Fprintf(std.Out, "%d points delivered\n", points)
		return nil
	case points > 0:
		return cli.Errorf(cli.Partial, "push: %d points delivered, but not all: %w", points, err)
	}
	return fmt.Errorf("push: %w", err)
}

// always is serve without HTTP.
func (c *pushCommand) always(ctx context.Context, std cli.Stdio) (err error) {
	n, err := node.Open(ctx, c.flags, node.Options{}, std.Err)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	enclosed, err := n.Enclose(node.Needs{})
	if err != nil {
		return err
	}
	return enclosed.Run(ctx, nil)
}

// once lets the exporter of this node push, or is one itself.
func (c *pushCommand) once(ctx context.Context, std cli.Stdio) (points int, err error) {
	control := client.NewControl()
	control.Socket = c.controlOf()
	conn, err := control.Dial(ctx)
	if missing := (*client.NoExporterError)(nil); errors.As(err, &missing) {
		return c.alone(ctx, std)
	}
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }()
	if c.flags.OTLP.Named() {
		return 0, fmt.Errorf("the exporter at %s pushes where and how it has been told when it was started: leave "+
			"the flags of --otlp… out", conn.RemoteAddr())
	}
	return c.ask(ctx, &control)
}

// controlOf is the path of the control socket; empty: the usual places.
func (c *pushCommand) controlOf() string {
	if c.flags.Control != "" {
		return c.flags.Control
	}
	if c.flags.Socket != "" {
		return sockets.ControlBeside(c.flags.Socket)
	}
	return ""
}

// ask asks the exporter of this node to push now.
func (c *pushCommand) ask(ctx context.Context, over *client.Control) (points int, err error) {
	answer := &control.PushAnswer{}
	err = over.Ask(ctx, http.MethodPost, "/api/v1/push", nil, func(text []byte) bool {
		return json.Unmarshal(text, answer) == nil && answer.Result != ""
	})
	if err == nil && answer.Result != control.OK {
		err = fmt.Errorf("the exporter of this node: %s: %s", answer.Result, mapping.OneLine(answer.Error))
	}
	return answer.Points, err
}

// alone is the exporter of this node for one push. It logs only if a log level was asked for: what is wrong is said
// in the command's own line.
func (c *pushCommand) alone(ctx context.Context, std cli.Stdio) (points int, err error) {
	log := std.Err
	if !c.flags.LogLevel {
		log = io.Discard
	}
	if c.flags.Socket == "" {
		c.flags.Socket = os.Getenv(sockets.EnvSocket) // where the ranks look
	}
	n, err := node.Open(ctx, c.flags, node.Options{Single: true}, log)
	if inUse := (*sockets.InUseError)(nil); errors.As(err, &inUse) {
		return 0, fmt.Errorf("an exporter listens at the agent socket %s that has no control socket, over which it "+
			"could be asked to push; start it with one, or wait for its end",
			cmp.Or(c.flags.Socket, "in its usual place"))
	}
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	enclosed, err := n.Enclose(node.Needs{})
	if err != nil {
		return 0, err
	}
	return enclosed.PushOnce(ctx, c.wait)
}
