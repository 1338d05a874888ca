package main

import (
	"context"
	"fmt"
	"io"

	"github.com/alecthomas/kingpin/v2"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/own"
)

// runOwn is the exporter that exec --own starts for the launch that this directory belongs to.
func runOwn(ctx context.Context, dir string, std cli.Stdio) error {
	return own.Serve(dir, func(m *own.Mode) error {
		app := kingpin.New(cli.ProgramName, "")
		app.UsageWriter(io.Discard)
		app.ErrorWriter(io.Discard)
		serve := newServeCommand(app)
		if _, err := app.Parse(append([]string{serve.name, "--log.level=warn"}, m.Arguments()...)); err != nil {
			return fmt.Errorf("settings of the exporter: %w", err)
		}
		serve.own = m
		return serve.run(ctx, std)
	})
}
