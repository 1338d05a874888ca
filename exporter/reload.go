package exporter

import "github.com/mpit-exporter/mpit-exporter/mapping"

// Rules is what can change while an Exporter runs.
type Rules struct {
	Mapper   *mapping.Mapper
	Limits   mapping.Limits // zero values stand for the defaults
	Identity []mapping.Relabel
}

// Reload puts new rules into force. Each rank goes over to them with its next answer, without losing what was counted, and its
// agent is told which variables to read; who has ended stays as he is. Identities are those of ranks that come from now on.
// With an error the old rules stay.
func (e *Exporter) Reload(r Rules) error { return nil }

// ReloadFailed notes that there are no new rules because of err, for the metrics that say so.
func (e *Exporter) ReloadFailed(err error) {}
