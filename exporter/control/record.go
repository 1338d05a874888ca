package control

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/exporter/internal/clean"
	"github.com/mpit-exporter/mpit-exporter/exporter/units"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// record logs a request to set a variable, whatever its result.
func (s *Server) record(caller mpit.Peer, req *Request, answer *Answer) {
	wanted := ""
	if req.Value != nil {
		wanted = *req.Value
	}
	ranks := req.Ranks
	if len(answer.Ranks) > 0 {
		ranks = nil
		for _, r := range answer.Ranks {
			ranks = append(ranks, r.Rank)
		}
	}
	slices.Sort(ranks)
	attrs := []any{
		"uid", caller.UID, "user", s.cfg.User(caller.UID), "pid", caller.PID,
		"jobid", clean.Label(answer.JobID), "world", clean.Label(answer.World),
		"ranks", clean.Cut(cmp.Or(units.Ranks(ranks), "all"), clean.MaxLabel),
		"name", clean.Label(req.Name), "object", clean.Label(req.Object.String()), "value", clean.Label(wanted),
		"old", clean.Cut(logValues(answer.Ranks, func(r *RankAnswer) *string { return r.Old }), clean.MaxLabel),
		"now", clean.Cut(logValues(answer.Ranks, func(r *RankAnswer) *string { return r.Value }), clean.MaxLabel),
		"result", answer.Result,
	}
	if answer.Result == OK {
		s.cfg.Log.Info("Control variable set", attrs...)
		return
	}
	s.cfg.Log.Warn("Control variable not set", append(attrs, "err", clean.Text(answer.Error, 1024))...)
}

// logValues lists the ranks' values, or the one that all have.
func logValues(ranks []RankAnswer, of func(*RankAnswer) *string) string {
	values, each := map[string]bool{}, make([]string, len(ranks))
	last := ""
	for i := range ranks {
		last = "?"
		if v := of(&ranks[i]); v != nil {
			last = clean.Label(*v)
		}
		values[last] = true
		each[i] = fmt.Sprintf("%s (rank %d)", last, ranks[i].Rank)
	}
	if len(values) < 2 {
		return last
	}
	return strings.Join(each, ", ")
}
