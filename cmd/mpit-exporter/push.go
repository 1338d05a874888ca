package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/alecthomas/kingpin/v2"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/client"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/node"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/sockets"
	"github.com/mpit-exporter/mpit-exporter/exporter/control"
	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// pushCommand is an exporter that only pushes, or has the node's exporter push now.
type pushCommand struct {
	isOnce bool
	flags  *node.Flags
}

func newPushCommand(app *kingpin.Application, do commands) {
	c := &pushCommand{}
	do["push"] = c.run
	cmd := app.Command("push", "Push the metrics of this node's MPI processes to a receiver of OpenTelemetry's "+
		"protocol, and serve no HTTP. With --once, ask the exporter that serves this node to push now, as root or its "+
		"own user. Exits with 0 when all messages were accepted, with 1 when nothing was, with 3 when only a part, "+
		"with 2 after a mistake in the command line.")
	cmd.HelpLong("mpit-exporter push --otlp.endpoint=http://collector:4318\nmpit-exporter push --once")
	cmd.Flag("once", "Let the exporter of this node push once, and end.").BoolVar(&c.isOnce)
	c.flags = node.AddFlags(cmd, true)
}

// run pushes until ctx ends, or once.
func (c *pushCommand) run(ctx context.Context, std cli.Stdio) error {
	if err := c.flags.Check(); err != nil {
		return err
	}
	if !c.isOnce {
		return c.always(ctx, std)
	}
	if c.flags.OTLP.Named() {
		return cli.Usagef("push: the exporter of this node pushes where and how it has been told when it was started: " +
			"leave the flags of --otlp… out")
	}
	points, err := c.once(ctx)
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
	return n.Run(ctx, node.Needs{}, nil)
}

// once asks the exporter of this node to push now.
func (c *pushCommand) once(ctx context.Context) (points int, err error) {
	over := client.Control{Socket: c.flags.Control}
	if over.Socket == "" && c.flags.Socket != "" {
		over.Socket = sockets.ControlBeside(c.flags.Socket)
	}
	answer := &control.PushAnswer{}
	err = over.Ask(ctx, http.MethodPost, "/api/v1/push", nil, func(text []byte) bool {
		return json.Unmarshal(text, answer) == nil && answer.Result != ""
	})
	if err == nil && answer.Result != control.OK {
		err = fmt.Errorf("the exporter of this node: %s: %s", answer.Result, mapping.OneLine(answer.Error))
	}
	return answer.Points, err
}
