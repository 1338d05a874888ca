package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/configuration"
	"github.com/mpit-exporter/mpit-exporter/exporter"
)

// reloader reads the rule files again for a running exporter, at SIGHUP and when asked over HTTP, one reload at a
// time.
type reloader struct {
	flags    *Flags
	exporter *exporter.Exporter
	logger   *slog.Logger

	turn  chan struct{} // holds a token while nobody reloads; none before begin
	ended bool          // guarded by turn
}

// notifyHangups gathers SIGHUPs. Several before a reload count as one.
func notifyHangups() (hangups <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGHUP)
	return c, func() { signal.Stop(c) }
}

// begin lets reloads happen: systemd has been told that the exporter is ready, and may now be told that it is
// reloading.
func (r *reloader) begin() { r.turn <- struct{}{} }

// end waits for a reload that is under way; there is none afterwards.
func (r *reloader) end() {
	<-r.turn
	r.ended = true
	r.turn <- struct{}{}
}

// onHangups reloads at each of them until ctx ends. Mistakes are logged.
func (r *reloader) onHangups(ctx context.Context, hangups <-chan os.Signal) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangups:
			if err := r.now(ctx); err != nil {
				r.logger.Debug("Reloading at SIGHUP failed", "err", err)
			}
		}
	}
}

var errEnding = errors.New("the exporter is ending")

// now reads the files and puts them into force. ctx bounds the wait for another reload. An error has a line for each
// mistake, and is noted in the log and in the metrics: the old rules stay.
func (r *reloader) now(ctx context.Context) error {
	select {
	case <-r.turn:
	case <-ctx.Done():
		return fmt.Errorf("waiting for another reload: %w", ctx.Err())
	}
	defer func() { r.turn <- struct{}{} }()
	if r.ended {
		return errEnding
	}
	// A service of Type=notify-reload says when, so that systemd can tell this from an earlier reload.
	notify(r.logger, daemon.SdNotifyReloading+"\n"+daemon.SdNotifyMonotonicUsec())
	defer notify(r.logger, daemon.SdNotifyReady) // with the old rules, if need be
	rules, _, err := configuration.Load(r.flags.configFiles, r.flags.timerInterval)
	if err != nil {
		r.exporter.ReloadFailed(err)
		return err
	}
	return r.exporter.Reload(rules)
}
