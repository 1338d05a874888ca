package exporter

import (
	"time"

	"github.com/mpit-exporter/mpit-exporter/exporter/exposition"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/cvar"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/tally"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// maxControlRows bounds the series of control variables of one user, of all ranks together.
const maxControlRows = 8192

// controlRow is a series of mpit_cvar_ranks. Ranks of two users are never counted together, whatever job they claim.
type controlRow struct {
	world worldName
	cvar.Row
}

// controls is what a rank keeps of its control variables: the series that it is counted in.
type controls struct {
	rows []*tally.Held[controlRow]
	at   time.Time // when they were read; zero: not since it connected first
	told bool      // they are to be read as soon as possible
	left map[string]int
}

// controlsDue says whether a rank's control variables are to be read: once after its first answer, then from time to
// time, and when somebody says so. The caller holds mu.
func (e *Exporter) controlsDue(r *rank, now time.Time) bool {
	c := &r.controls
	return len(e.cfg.ControlVariables) > 0 && (c.told || c.at.IsZero() || now.Sub(c.at) >= e.cfg.ControlVariableInterval)
}

// takeControls takes a rank's control variables in. If they could not be read, the last ones stand.
func (e *Exporter) takeControls(r *rank, list []mpit.ControlVariable, err error) {
	chosen, unreadable, over := cvar.Rows(list, e.cfg.ControlVariables)
	rows := make([]controlRow, len(chosen))
	for i, c := range chosen {
		rows[i] = controlRow{r.world.name(), c}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.table.byID[r.key] != r || r.end != mpit.EndNone:
	case err != nil:
		e.controlsFailed(r, err)
	default:
		c := &r.controls
		c.at = e.now()
		var more int
		c.rows, more = e.controls.Replace(r.peer.UID, c.rows, rows)
		exposition.CountMore(e.drop, c.left, droppedControl, unreadable)
		exposition.CountMore(e.drop, c.left, droppedBound, over+more)
	}
}

// controlsFailed notes that a rank's control variables could not be read. The caller holds mu.
func (e *Exporter) controlsFailed(r *rank, err error) {
	r.controls.at = e.now().Add(min(inquiryRetry, e.cfg.ControlVariableInterval) - e.cfg.ControlVariableInterval)
	e.log.Debug("asking a rank for its control variables failed", append(rankAttrs(r), "err", err)...)
}

// dropControls takes a rank that has ended out of all counts. The caller holds mu.
func (e *Exporter) dropControls(r *rank) {
	r.controls.rows, _ = e.controls.Replace(r.peer.UID, r.controls.rows, nil)
	r.controls.at = time.Time{}
}
