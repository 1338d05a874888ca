package exporter

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// Rules is what can change while an Exporter runs.
type Rules struct {
	Mapper   *mapping.Mapper // a new one, not the one that is in force
	Limits   mapping.Limits  // zero values stand for the defaults
	Identity []mapping.Relabel
}

// Reload puts new rules into force. Each rank goes over to them with its next answer, and its
// agent is told which variables to read; who has ended stays as he is. Identities are those of ranks that come from now on.
// With an error the old rules stay, and ReloadFailed need not be called.
func (e *Exporter) Reload(r Rules) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	relabel, err := r.check()
	if err == nil {
		err = e.setLimits(r.Limits)
	}
	if err != nil {
		err = fmt.Errorf("exporter: reloading the rules: %w", err)
		e.ReloadFailed(err)
		return err
	}
	r.Identity = slices.Clone(r.Identity)
	e.rules = r
	e.relabel.Store(relabel)
	e.epoch++
	e.self.reloads.WithLabelValues(reloadSuccess).Inc()
	e.self.reloadSucceeded(e.now())
	e.log.Info("New rules are in force")
	return nil
}

func (r *Rules) check() (*relabeler, error) {
	if r.Mapper == nil {
		return nil, errors.New("Rules.Mapper is nil")
	}
	return newRelabeler(r.Identity)
}

// ReloadFailed notes that there are no new rules because of err, for the metrics that say so, and logs each of its lines.
func (e *Exporter) ReloadFailed(err error) {
	e.self.reloads.WithLabelValues(reloadFailure).Inc()
	e.self.reloaded.Set(0)
	for line := range strings.Lines(err.Error()) {
		e.log.Error("The rules could not be read anew; the old ones stay in force", "err", strings.TrimSpace(line))
	}
}

// mapper returns the one that is in force.
func (e *Exporter) mapper() *mapping.Mapper {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.rules.Mapper
}

// outdated says whether a rank's figures are to go over to newer rules, with a sample that can fill them. A passive rank may answer with
// what it had before. The caller holds mu.
func (e *Exporter) outdated(r *rank, s *mpit.Sample) bool {
	return r.epoch != e.epoch && s.Layout != nil && (s.Values != nil || s.Layout.Values == 0) && s.Monotonic >= r.clock
}

// renew puts the rules that are in force into a rank's figures. The caller holds mu.
func (e *Exporter) renew(r *rank) {
	r.figures.Reload(e.rules.Mapper, e.now())
	r.epoch, r.anew, r.reselect = e.epoch, true, true
	e.tellCategories(r)
}
