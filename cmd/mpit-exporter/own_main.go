package main

import (
	"context"
	"fmt"
	"io"

	"github.com/alecthomas/kingpin/v2"
)

// runOwn is the exporter that exec --own starts, of the launch that has a directory.
func runOwn(ctx context.Context, dir string, std stdio) error {
	return serveOwn(dir, func(m *ownMode) error {
		app := kingpin.New(programName, "")
		app.UsageWriter(io.Discard)
		app.ErrorWriter(io.Discard)
		serve := newServeCommand(app)
		if _, err := app.Parse(append([]string{serve.name, "--log.level=warn"}, m.arguments()...)); err != nil {
			return fmt.Errorf("settings of the exporter: %w", err)
		}
		serve.own = m
		return serve.run(ctx, std)
	})
}
