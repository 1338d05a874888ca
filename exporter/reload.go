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
	if err := e.enforce(r, e.rules.Load().epoch+1); err != nil {
		err = fmt.Errorf("exporter: reloading the rules: %w", err)
		e.ReloadFailed(err)
		return err
	}
	e.self.Reloads.WithLabelValues(self.ReloadSuccess).Inc()
	e.log.Info("New rules are in force")
	return nil
}

// enforce puts rules into force, if nothing is wrong with them.
func (b *base) enforce(r Rules, epoch uint64) error {
	if r.Mapper == nil {
		return errors.New("Mapper is nil")
	}
	names, err := identity.Compile(r.Identity)
	if err != nil {
		return err
	}
	if err := b.budgets.SetLimits(r.Limits); err != nil {
		return err
	}
	b.rules.Store(&ruling{mapper: r.Mapper, identity: names, epoch: epoch})
	b.self.ShowLimits(b.budgets.Limits())
	b.self.Reloaded.Set(1)
	b.self.ReloadTime.Set(self.Seconds(b.now()))
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
