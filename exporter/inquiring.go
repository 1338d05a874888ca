package exporter

import (
	"context"

	"github.com/mpit-exporter/mpit-exporter/exporter/exposition"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/board"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/categories"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/cvar"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/self"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// begin takes an inquiry out of the rank's outbox; 0: there is none.
func (c *connection) begin() inquiry {
	g := c.lock()
	defer g.unlock()
	if !c.rank.send.inquiry {
		return 0
	}
	c.rank.send.inquiry = false
	return c.rank.inquiry
}

// inquire makes an inquiry.
func (c *connection) inquire(ctx context.Context, what inquiry) {
	ctx, cancel := context.WithTimeout(ctx, inquiryTimeout)
	defer cancel()
	var list []mpit.Category
	var controls []mpit.ControlVariable
	var err, controlsErr error
	if what&askCategories != 0 {
		list, err = c.session.Categories(ctx)
	}
	if what&askControls != 0 {
		controls, controlsErr = c.session.ControlVariables(ctx)
	}
	defer func() {
		if p := recover(); p != nil {
			c.panicked("panic on a rank's account", p, append(c.rank.attrs(), "doing", "taking in what it was asked for")...)
		}
		g := c.lock()
		defer g.unlock()
		g.conclude(c.rank)
	}()
	if what&askCategories != 0 {
		c.takeCategories(c.rank, list, err)
	}
	if what&askControls != 0 {
		c.takeControls(c.rank, controls, controlsErr)
	}
}

// takeCategories takes the answer in. A rank that did not give one leaves what is known, and lets another be asked.
func (rs *ranks) takeCategories(r *rank, list []mpit.Category, err error) {
	w, g := r.world, rs.lock()
	known, variables, infos := g.table.byID[r.Key] == r, r.facts.variables, r.facts.infos
	tell := known && err != nil && g.categoriesFailed(r, err)
	g.unlock()
	if tell {
		rs.tellCategories(w)
	}
	if !known || err != nil {
		return
	}
	rows, over := categories.Rows(list, variables, infos)
	told := rs.grouped()
	var where categories.Standing
	if told {
		var more int
		where, more = categories.StandingOf(list, variables)
		over += more
	}
	func() {
		g := rs.lock()
		defer g.unlock()
		if g.table.byID[r.Key] != r {
			return // the world may have gone with it
		}
		var more int
		w.asking = false
		w.shared.tell(where, told)
		w.rows, more = rs.categories.Replace(w.UID, w.rows, rows)
		exposition.CountMore(rs.drop, w.left, self.DroppedBound, over+more)
	}()
	if told {
		rs.tellCategories(w)
	}
}

// tellCategories tells all ranks of a world its categories, as they are known now: figures that are made meanwhile
// find out themselves.
func (rs *ranks) tellCategories(w *world) {
	var list []*rank
	func() {
		g := rs.lock()
		defer g.unlock()
		for _, r := range g.table.ordered {
			if r.world == w {
				list = append(list, r)
			}
		}
	}()
	for _, r := range list {
		func() {
			c := r.contents.Lock()
			defer r.contents.Unlock()
			if c.figures != nil {
				c.guard("telling it its categories", c.learnCategories)
			}
		}()
	}
}

// takeControls takes a rank's control variables in. If they could not be read, the last ones stand.
func (rs *ranks) takeControls(r *rank, list []mpit.ControlVariable, err error) {
	chosen, unreadable, over := cvar.Rows(list, rs.cfg.ControlVariables)
	rows := make([]board.ControlRow, len(chosen))
	for i, c := range chosen {
		rows[i] = board.ControlRow{World: r.world.WorldName, Row: c}
	}
	g := rs.lock()
	defer g.unlock()
	switch {
	case g.table.byID[r.Key] != r || r.end != mpit.EndNone:
	case err != nil:
		g.controlsFailed(r, err)
	default:
		c := &r.controls
		c.at = g.now()
		var more int
		c.rows, more = rs.controls.Replace(r.UID, c.rows, rows)
		exposition.CountMore(rs.drop, c.left, self.DroppedControl, unreadable)
		exposition.CountMore(rs.drop, c.left, self.DroppedBound, over+more)
	}
}
