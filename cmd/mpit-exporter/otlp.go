package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/common/version"

	"github.com/mpit-exporter/mpit-exporter/exporter"
	"github.com/mpit-exporter/mpit-exporter/exporter/otlp"
)

// pushing is what a node needs to push.
type pushing struct {
	config otlp.Config
	reader *exporter.OTelReader
	pusher *otlp.Pusher
	logger *slog.Logger
}

// newPushing makes a pusher of what an exporter has, and lets it be asked for. instance is the agent socket's path.
// since is when no earlier exporter can have pushed any more: with deltas, what began then or later is sent in whole.
func newPushing(ctx context.Context, flags *otlpFlags, e *exporter.Exporter, instance string, since time.Time, logger *slog.Logger) (*pushing, error) {
	config, err := flags.config(instance, version.Version, logger)
	if err != nil {
		return nil, err
	}
	config.Since = since
	p := &pushing{config: config, logger: logger, reader: e.OTelReader(exporter.OTelConfig{Exponential: config.Exponential, Version: config.Version})}
	if p.pusher, err = otlp.New(ctx, config, p.reader); err != nil {
		p.reader.Close()
		return nil, err
	}
	e.Control().OnPush(p.pusher.Push)
	return p, nil
}

// files are those that are read when a connection is made.
func (p *pushing) files() []string {
	return []string{p.config.Certificate, p.config.ClientCert, p.config.ClientKey}
}

// run pushes until ctx ends, and once more. That it fails keeps nobody from scraping.
func (p *pushing) run(ctx context.Context) {
	if err := p.pusher.Run(ctx); err != nil {
		p.logger.Warn("The last push has failed", "err", err)
	}
}

// close lets go of what has not been pushed.
func (p *pushing) close() error {
	err := p.pusher.Close()
	p.reader.Close()
	return err
}
