package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
	"github.com/mpit-exporter/mpit-exporter/exporter"
	"github.com/mpit-exporter/mpit-exporter/mapping/rules"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
)

// notifyHangups gathers SIGHUPs. Several before a reload count as one.
func notifyHangups() (hangups <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGHUP)
	return c, func() { signal.Stop(c) }
}

// onHangups reloads at each SIGHUP until ctx ends. Mistakes are logged.
func (n *Node) onHangups(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-n.hangups:
			if err := n.Reload(ctx); err != nil {
				n.Logger.Debug("Reloading at SIGHUP failed", "err", err)
			}
		}
	}
}

// Reload reads the rule files anew and puts them into force, one reload at a time: ctx bounds the wait for another. An
// error has a line for each mistake, and is noted in the log and in the metrics: the old rules stay.
func (n *Node) Reload(ctx context.Context) error {
	select {
	case _, open := <-n.reloads:
		if !open {
			return errors.New("the exporter is ending")
		}
	case <-ctx.Done():
		return fmt.Errorf("waiting for another reload: %w", ctx.Err())
	}
	defer func() { n.reloads <- struct{}{} }()
	// A service of Type=notify-reload says when, so that systemd can tell this from an earlier reload.
	notify(n.Logger, daemon.SdNotifyReloading+"\n"+daemon.SdNotifyMonotonicUsec())
	defer notify(n.Logger, daemon.SdNotifyReady) // with the old rules, if need be
	rules, _, err := LoadRules("--config.file", n.flags.configFiles, n.flags.timerInterval)
	if err != nil {
		n.Exporter.ReloadFailed(err)
		return err
	}
	return n.Exporter.Reload(rules)
}

// LoadRules reads and compiles rule files; what is the flag or command that names them. Beside the rules for an
// exporter it returns what the files say, which these are made from. If one of them is bad, the error is rules.Problems
// with everything that is wrong in any of them.
func LoadRules(what string, paths []string, timerInterval time.Duration) (exporter.Rules, *rules.Settings, error) {
	if slices.Contains(paths, "") { // a script's variable that isn't set
		return exporter.Rules{}, nil, cli.Usagef("%s: the name of a file is empty", what)
	}
	settings, err := rules.Load(paths)
	if err != nil {
		return exporter.Rules{}, nil, err
	}
	mapper, err := variables.New(variables.Config{Rules: settings.Rules, TimerInterval: timerInterval})
	return exporter.Rules{Mapper: mapper, Limits: settings.Limits, Identity: settings.Identity}, settings, err
}
