package exporter

import (
	"errors"
	"io"
	"net"

	"github.com/mpit-exporter/mpit-exporter/exporter/internal/categories"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// learnCategories tells all ranks of a world its categories, as they are known now: figures that are made meanwhile
// find out themselves.
func (e *Exporter) learnCategories(w *world) {
	var ranks []*rank
	func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		for _, r := range e.table.ordered {
			if r.world == w {
				ranks = append(ranks, r)
			}
		}
	}()
	for _, r := range ranks {
		func() {
			c := r.contents.Lock()
			defer r.contents.Unlock()
			if c.figures != nil {
				e.guard(r, c, "telling it its categories", func() { e.tellCategories(r, c) })
			}
		}()
	}
}

// standingOfWorld returns what is known of the categories of a rank's world; false: nothing yet, or no rule wants to
// know.
func (e *Exporter) standingOfWorld(r *rank) (categories.Standing, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return r.world.standing, r.world.told && e.grouped()
}

// tellCategories tells a rank's figures the world's categories, if rules want to know and the world does.
func (e *Exporter) tellCategories(r *rank, c *contents) {
	s, told := e.standingOfWorld(r)
	switch {
	case !told:
		return
	case s == nil:
		c.figures.SetCategories(nil)
	default:
		c.figures.SetCategories(s.Of)
	}
	c.anew = true
}

// categoriesAtLast tells figures that are to take a rank's last sample that nobody can say what its categories are,
// if nobody has said by now: what waits for them would never be shown.
func (e *Exporter) categoriesAtLast(r *rank, c *contents) {
	if _, told := e.standingOfWorld(r); !told && e.grouped() {
		c.figures.SetCategories(nil)
		c.anew = true
	}
}

// connectionEnded says whether a question failed only because its connection ended.
func connectionEnded(err error) bool {
	return errors.Is(err, mpit.ErrFinal) || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed)
}
