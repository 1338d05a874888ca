package exporter

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/mpit-exporter/mpit-exporter/exporter/exposition"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/clean"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/cvar"
	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// DefaultControlVariableInterval is Config.ControlVariableInterval where it is zero.
const DefaultControlVariableInterval = 5 * time.Minute

const (
	maxControls     = 256  // control variables of one rank on the page
	maxControlRows  = 8192 // series of one user, all his ranks together
	maxControlValue = 128  // bytes
)

// controlRow is a series of mpit_cvar_ranks. Ranks of two users are never counted together, whatever job they claim.
type controlRow struct {
	world       worldName
	name, value string
}

// controls is what a rank keeps of its control variables: the series that it is counted in.
type controls struct {
	rows []*held[controlRow]
	at   time.Time // when they were read; zero: not since it connected first
	told bool      // they are to be read as soon as possible
	left map[string]int
}

// checkControls checks what Config says of control variables.
func checkControls(cfg *Config) error {
	if cfg.ControlVariableInterval < 0 {
		return fmt.Errorf("Config.ControlVariableInterval is negative: %v", cfg.ControlVariableInterval)
	}
	if cfg.ControlVariableInterval == 0 {
		cfg.ControlVariableInterval = DefaultControlVariableInterval
	}
	if slices.Contains(cfg.ControlVariables, "") {
		return errors.New("Config.ControlVariables: a pattern is empty")
	}
	return nil
}

// controlsDue says whether a rank's control variables are to be read: once after its first answer, then from time to
// time, and when somebody says so. The caller holds mu.
func (e *Exporter) controlsDue(r *rank, now time.Time) bool {
	c := &r.controls
	return len(e.cfg.ControlVariables) > 0 && (c.told || c.at.IsZero() || now.Sub(c.at) >= e.cfg.ControlVariableInterval)
}

// takeControls takes a rank's control variables in. If they could not be read, the last ones stand.
func (e *Exporter) takeControls(r *rank, list []mpit.ControlVariable, err error) {
	var rows []controlRow
	var unreadable, over int
	if err == nil {
		rows, unreadable, over = e.controlRows(r, list)
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
		c.rows, more = e.controls.replace(r.peer.UID, c.rows, rows)
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
	r.controls.rows, _ = e.controls.replace(r.peer.UID, r.controls.rows, nil)
	r.controls.at = time.Time{}
}

// controlRows chooses from a rank's control variables. Of several that have one name, the first stands.
func (e *Exporter) controlRows(r *rank, list []mpit.ControlVariable) (rows []controlRow, unreadable, over int) {
	seen := map[string]bool{}
	for i := range list {
		v := &list[i]
		name := clean.Label(v.Name)
		named := func(pattern string) bool { return mapping.GlobMatches(pattern, v.Name) }
		if seen[name] || !slices.ContainsFunc(e.cfg.ControlVariables, named) {
			continue
		}
		seen[name] = true
		switch {
		case !v.HasValue:
			unreadable++
		case len(rows) == maxControls:
			over++
		default:
			rows = append(rows, controlRow{r.world.name(), name, clean.Text(cvar.Text(v), maxControlValue)})
		}
	}
	return rows, unreadable, over
}

// addControls makes mpit_cvar_ranks anew, if it has changed.
func (b *board) addControls(sums map[controlRow]int, generation uint64) {
	if b.controls == generation {
		return
	}
	b.controls = generation
	var rows []exposition.Row
	for r, n := range sums {
		labels := []mapping.Label{
			{Name: "jobid", Value: r.world.jobID}, {Name: "world", Value: r.world.world}, {Name: "user", Value: r.world.user},
			{Name: "name", Value: r.name}, {Name: "value", Value: r.value},
		}
		if r.world.dup > 0 {
			labels = append(labels, mapping.Label{Name: "dup", Value: strconv.Itoa(r.world.dup)})
		}
		rows = append(rows, exposition.Row{Value: float64(n), Labels: labels})
	}
	b.ReplaceShared(&familyControlRanks, rows)
}
