package exporter

import (
	"net/http"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/bounds"
	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// maxKeptAnswer bounds an answer with kept samples, about, in bytes.
const maxKeptAnswer = 16 << 20

// API serves what the exporter knows as JSON, for reading only: see api.Handler.
func (e *Exporter) API() http.Handler { return e.api }

// Ranks returns all ranks that are connected or kept, sorted by jobid, world, user and rank.
func (e *Exporter) Ranks() []api.RankStatus { return source{e}.Ranks() }

// source is an Exporter as the API has it.
type source struct{ e *Exporter }

// Mapper is the one whose rules are in force.
func (s source) Mapper() *mapping.Mapper { return s.e.mapper() }

// Ranks are all that stand on the page, or will.
func (s source) Ranks() []api.RankStatus {
	g := s.e.lock()
	defer g.unlock()
	list := make([]api.RankStatus, len(g.table.ordered))
	for i, r := range g.table.ordered {
		list[i] = r.status()
	}
	return list
}

// Connected are those that can be asked.
func (s source) Connected(which api.Selector) []api.Connected {
	g := s.e.lock()
	defer g.unlock()
	var list []api.Connected
	for _, r := range g.table.ordered {
		if r.line != nil && r.end == mpit.EndNone && which.Selects(r.ID) {
			list = append(list, api.Connected{
				Session: r.line.session, Status: r.status(), Late: r.state == stateLate, Library: r.version,
			})
		}
	}
	return list
}

// Kept returns what ranks kept at their last MPI_Pcontrol(2). Ranks that have ended are among them for as long as
// they stand on the page.
func (s source) Kept(which api.Selector) api.KeptList {
	type sample struct {
		status    api.RankStatus
		kept      bounds.Kept
		variables []mpit.Variable
		infos     []mapping.Info
	}
	var samples []sample
	list := api.KeptList{Kept: []api.KeptSample{}}
	s.e.with(func(g *registry) {
		size := 0
		for _, r := range g.table.ordered {
			f := &r.facts
			if f.kept.Kept == nil || f.variables == nil || !which.Selects(r.ID) {
				continue
			}
			if size += f.kept.Size; size > maxKeptAnswer {
				list.More++
				continue
			}
			samples = append(samples, sample{r.status(), f.kept, f.variables.ByID, f.infos})
		}
	})
	// What a rank has kept, and its catalogue, are never changed: nobody waits for what follows.
	for _, k := range samples {
		list.Kept = append(list.Kept, api.NewKeptSample(k.status, k.kept.Kept, k.kept.Cut, k.variables, k.infos))
	}
	return list
}

func (r *rank) status() api.RankStatus {
	s := r.About
	s.State = r.state.String()
	if r.end != mpit.EndNone {
		ended := r.ended
		s.EndReason, s.Ended = r.end.String(), &ended
	}
	return s
}
