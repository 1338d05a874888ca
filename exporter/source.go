package exporter

import (
	"net/http"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// API serves what the exporter knows as JSON, for reading only: see api.Handler.
func (e *Exporter) API() http.Handler { return e.api }

// Ranks returns all ranks that are connected or kept, sorted by jobid, world, user and rank.
func (e *Exporter) Ranks() []api.RankStatus { return source{e}.Ranks() }

// source is an Exporter as the API has it.
type source struct{ e *Exporter }

// Mapper is the one whose rules are in force.
func (s source) Mapper() *variables.Mapper { return s.e.mapper() }

// Ranks are all that stand on the page, or will.
func (s source) Ranks() []api.RankStatus {
	s.e.mu.Lock()
	defer s.e.mu.Unlock()
	list := make([]api.RankStatus, len(s.e.table.ordered))
	for i, r := range s.e.table.ordered {
		list[i] = r.status()
	}
	return list
}

// Connected are those that can be asked.
func (s source) Connected(which api.Selector) []api.Connected {
	s.e.mu.Lock()
	defer s.e.mu.Unlock()
	var list []api.Connected
	for _, r := range s.e.table.ordered {
		if r.session != nil && r.end == mpit.EndNone && which.Selects(r.id) {
			list = append(list, api.Connected{
				Session: r.session, Status: r.status(), Late: r.state == stateLate, Library: r.version,
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
		kept      kept
		variables []mpit.Variable
		infos     []variables.Info
	}
	var samples []sample
	list := api.KeptList{Kept: []api.KeptSample{}}
	func() {
		s.e.mu.Lock()
		defer s.e.mu.Unlock()
		size := 0
		for _, r := range s.e.table.ordered {
			f := &r.facts
			if f.kept.Kept == nil || f.variables == nil || !which.Selects(r.id) {
				continue
			}
			if size += f.kept.size; size > maxKeptAnswer {
				list.More++
				continue
			}
			samples = append(samples, sample{r.status(), f.kept, f.variables.ByID, f.infos})
		}
	}()
	// What a rank has kept, and its catalogue, are never changed: nobody waits for what follows.
	for _, k := range samples {
		list.Kept = append(list.Kept, api.NewKeptSample(k.status, k.kept.Kept, k.kept.cut, k.variables, k.infos))
	}
	return list
}

func (r *rank) status() api.RankStatus {
	s := r.about
	s.State = r.state.String()
	if r.end != mpit.EndNone {
		ended := r.ended
		s.EndReason, s.Ended = r.end.String(), &ended
	}
	return s
}
