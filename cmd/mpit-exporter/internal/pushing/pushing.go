// Package pushing is what every command that may push has of OTLP: its flags (Flags), and the pusher that comes of
// them and of the environment (Pushing).
//
// What is pushed and how is exporter/otlp's.
package pushing

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/version"

	"github.com/mpit-exporter/mpit-exporter/exporter"
	"github.com/mpit-exporter/mpit-exporter/exporter/otlp"
)

// Pushing is what a node needs to push.
type Pushing struct {
	Config otlp.Config
	reader *exporter.OTelReader
	Pusher *otlp.Pusher
	logger *slog.Logger
}

// New makes a pusher of what an exporter has, and extra, and lets it be asked for. instance is the agent socket's path.
// since is when no earlier exporter can have pushed any more: with deltas, what began then or later is sent in whole.
func New(
	ctx context.Context, flags *Flags, e *exporter.Exporter, extra prometheus.Gatherer, instance string,
	since time.Time, logger *slog.Logger,
) (*Pushing, error) {
	config, err := flags.complete(instance, version.Version, logger)
	if err != nil {
		return nil, err
	}
	config.Since = since
	reader := e.OTelReader(exporter.OTelConfig{
		Exponential: config.Histogram == otlp.HistogramExponential, Version: config.Version, Extra: extra,
	})
	p := &Pushing{Config: config, logger: logger, reader: reader}
	if p.Pusher, err = otlp.New(ctx, config, p.reader); err != nil {
		p.reader.Close()
		return nil, err
	}
	e.Control().OnPush(p.Pusher.Push)
	return p, nil
}

// Files are those that are read when a connection is made.
func (p *Pushing) Files() []string {
	return []string{p.Config.Certificate, p.Config.ClientCert, p.Config.ClientKey}
}

// Run pushes until ctx ends, and once more. That it fails keeps nobody from scraping, and is no error.
func (p *Pushing) Run(ctx context.Context) error {
	if err := p.Pusher.Run(ctx); err != nil {
		p.logger.Warn("The last push has failed", "err", err)
	}
	return nil
}

// Close lets go of what has not been pushed.
func (p *Pushing) Close() error {
	err := p.Pusher.Close()
	p.reader.Close()
	return err
}
