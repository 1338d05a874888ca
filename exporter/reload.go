package exporter

import (
	"errors"
	"fmt"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/exporter/identity"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/self"
	"github.com/mpit-exporter/mpit-exporter/mapping/rules"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
)

// Rules is what can change while an Exporter runs.
type Rules struct {
	Mapper   *variables.Mapper // a new one, not the one that is in force
	Limits   rules.Limits      // zero values stand for the defaults
	Identity []rules.Relabel
}

// Reload puts new rules into force. Each rank goes over to them with its next answer, and its agent is told which
// variables to read; ranks that have ended stay as they are. Identities are those of ranks that come from now on.
// Rules are not compared: those that say the same as before are new ones, too. With an error the old rules stay, and
// ReloadFailed need not be called.
func (e *Exporter) Reload(r Rules) error {
	e.reloading.Lock()
	defer e.reloading.Unlock()
	names, err := identity.Compile(r.Identity)
	if r.Mapper == nil {
		err = errors.New("Rules.Mapper is nil")
	}
	if err == nil {
		err = e.budgets.SetLimits(r.Limits)
	}
	if err != nil {
		err = fmt.Errorf("exporter: reloading the rules: %w", err)
		e.ReloadFailed(err)
		return err
	}
	e.rules.Store(&ruling{mapper: r.Mapper, identity: names, epoch: e.rules.Load().epoch + 1})
	e.self.ShowLimits(e.budgets.Limits())
	e.self.Reloads.WithLabelValues(self.ReloadSuccess).Inc()
	e.self.ReloadSucceeded(e.now())
	e.log.Info("New rules are in force")
	return nil
}

// ReloadFailed notes that there are no new rules because of err, for the metrics that say so, and logs each of its
// lines.
func (e *Exporter) ReloadFailed(err error) {
	e.self.Reloads.WithLabelValues(self.ReloadFailure).Inc()
	e.self.Reloaded.Set(0)
	for line := range strings.Lines(err.Error()) {
		e.log.Error("The rules could not be read anew; the old ones stay in force", "err", strings.TrimSpace(line))
	}
}
