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

	"github.com/mpit-exporter/mpit-exporter/exporter/control"
)

// pushCommand is an exporter that only pushes, or a single push.
type pushCommand struct {
	name string

	isOnce    bool
	wait      time.Duration
	waitNamed bool

	*nodeFlags
}

func newPushCommand(app *kingpin.Application) *pushCommand {
	c := &pushCommand{name: "push"}
	cmd := app.Command(c.name, "Push the metrics of this node's MPI processes to a receiver of OpenTelemetry's protocol, and serve no HTTP. "+
		"With --once, push them once: where an exporter serves this node, that one is asked to do so now, by root or its own user; where none does, this command is the "+
		"exporter for as long as --wait. Exits with 0 when all messages were accepted, with 1 when nothing was, with 3 when only a part, with 2 after a mistake in the command line.")
	cmd.Flag("once", "Push once, and end.").BoolVar(&c.isOnce)
	cmd.Flag("wait", "With --once, where no exporter serves this node: how long ranks have to connect, which look for an exporter every 2 seconds.").
		Default("5s").IsSetByUser(&c.waitNamed).DurationVar(&c.wait)
	c.nodeFlags = addNodeFlags(cmd, addOTLPFlags(cmd, true))
	return c
}

// check finds what the flag parser can't.
func (c *pushCommand) check() error {
	switch {
	case c.wait < 0:
		return usageErrorf("push: --wait %s: must not be negative", c.wait)
	case c.waitNamed && !c.isOnce:
		return usageErrorf("push: --wait is of no use without --once")
	}
	return c.nodeFlags.check()
}

// run pushes until ctx ends, or once.
func (c *pushCommand) run(ctx context.Context, std stdio) error {
	if err := c.check(); err != nil {
		return err
	}
	if !c.isOnce {
		return c.always(ctx, std)
	}
	points, err := c.once(ctx, std)
	switch {
	case err == nil && points == 0:
		return errors.New("push: the receiver has accepted none of the points; its log, and the exporter's, may say why")
	case err == nil:
		fmt.Fprintf(std.out, "%d points delivered\n", points)
		return nil
	case points > 0:
		return &exitError{exitPartial, fmt.Errorf("push: %d points delivered, but not all: %w", points, err)}
	}
	return fmt.Errorf("push: %w", err)
}

// always is serve without HTTP.
func (c *pushCommand) always(ctx context.Context, std stdio) (err error) {
	n, err := openNode(ctx, c.nodeFlags, nodeOptions{}, std.err)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	if err := n.enclose("", ""); err != nil {
		return err
	}
	return n.run(ctx, nil)
}

// once lets the exporter of this node push, or is one itself.
func (c *pushCommand) once(ctx context.Context, std stdio) (points int, err error) {
	client := newControlClient()
	client.socket = c.controlOf()
	conn, err := client.dial(ctx, "", "")
	if missing := (*noExporterError)(nil); errors.As(err, &missing) {
		return c.alone(ctx, std)
	}
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }()
	if c.otlp.named() {
		return 0, fmt.Errorf("the exporter at %s pushes where and how it has been told when it was started: leave the flags of --otlp… out", conn.RemoteAddr())
	}
	return c.ask(ctx, &client)
}

// controlOf is where the control socket is to be looked for; empty: in the usual places.
func (c *pushCommand) controlOf() string {
	if c.control != "" {
		return c.control
	}
	if c.socket != "" {
		return controlBeside(c.socket)
	}
	return ""
}

// ask asks the exporter of this node to push now.
func (c *pushCommand) ask(ctx context.Context, client *controlClient) (points int, err error) {
	answer := &control.PushAnswer{}
	err = client.ask(ctx, http.MethodPost, "/api/v1/push", nil, func(text []byte) bool {
		return json.Unmarshal(text, answer) == nil && answer.Result != ""
	})
	if err == nil && answer.Result != control.OK {
		err = fmt.Errorf("the exporter of this node: %s: %s", answer.Result, clean(answer.Error))
	}
	if err != nil {
		return answer.Points, err
	}
	return answer.Points, nil
}

// socketName is what the ranks' socket is called in a message.
func (c *pushCommand) socketName() string { return cmp.Or(c.socket, "in its usual place") }

// alone is the exporter of this node for one push. It is quiet but for a log level that was asked for: what is wrong is the command's own line.
func (c *pushCommand) alone(ctx context.Context, std stdio) (points int, err error) {
	log := std.err
	if !c.logLevel {
		log = io.Discard
	}
	if c.socket == "" {
		c.socket = os.Getenv(envSocket) // where the ranks look
	}
	n, err := openNode(ctx, c.nodeFlags, nodeOptions{single: true}, log)
	if inUse := (*inUseError)(nil); errors.As(err, &inUse) {
		return 0, fmt.Errorf("an exporter listens at the agent socket %s that has no control socket, over which it could be asked to push; start it with one, or wait for its end",
			c.socketName())
	}
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	if err := n.enclose("", ""); err != nil {
		return 0, err
	}

	ranksCtx, stopRanks := context.WithCancel(context.WithoutCancel(ctx))
	ranksDone := make(chan error, 1)
	go func() { ranksDone <- n.exporter.Serve(ranksCtx, n.socket.Listener) }()
	defer func() {
		stopRanks()
		if ranksErr := <-ranksDone; ranksErr != nil && !errors.Is(ranksErr, context.Canceled) {
			err = errors.Join(err, ranksErr)
		}
	}()
	timer := time.NewTimer(c.wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return 0, errors.New("interrupted while ranks had time to connect; nothing was pushed")
	case err := <-ranksDone:
		ranksDone <- nil
		return 0, errors.Join(err, errEnded(err))
	}
	if len(n.exporter.Ranks()) == 0 {
		return 0, fmt.Errorf("no rank has connected to %s within %s, so there is nothing to push; are there jobs under mpit-exporter exec on this node, and do they look there (%s)?",
			n.socket.Path(), c.wait, envSocket)
	}
	return n.otlp.pusher.Push(ctx)
}
