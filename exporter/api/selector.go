package api

import (
	"fmt"
	"net/url"
	"strconv"

	"github.com/mpit-exporter/mpit-exporter/exporter/identity"
)

// Selector selects ranks by their labels. A field that isn't set matches any.
type Selector struct {
	JobID, World, User string
	Rank               *int
}

// Selects says whether it selects a rank.
func (s *Selector) Selects(id identity.Identity) bool {
	return (s.JobID == "" || s.JobID == id.JobID) && (s.World == "" || s.World == id.World) &&
		(s.User == "" || s.User == id.User) && (s.Rank == nil || *s.Rank == id.Rank)
}

// All says whether it selects every rank.
func (s *Selector) All() bool { return *s == Selector{} }

// names says whether it names ranks, not only whose they are.
func (s *Selector) names() bool { return s.JobID != "" || s.World != "" || s.Rank != nil }

// selectorOf reads the parameters jobid, world, user and rank.
func selectorOf(query url.Values) (Selector, error) {
	s := Selector{JobID: query.Get("jobid"), World: query.Get("world"), User: query.Get("user")}
	if number := query.Get("rank"); number != "" {
		n, err := strconv.Atoi(number)
		if err != nil || n < 0 {
			return s, fmt.Errorf("parameter rank is no rank: %q", number)
		}
		s.Rank = &n
	}
	return s, nil
}
