package exporter

import (
	"fmt"
	"net/url"
	"strconv"
)

// Selector says which ranks are meant, by their labels. What is not set stands for any.
type Selector struct {
	JobID, World, User string
	Rank               *int
}

// selects says whether a rank is meant.
func (s *Selector) selects(id Identity) bool {
	return (s.JobID == "" || s.JobID == id.JobID) && (s.World == "" || s.World == id.World) &&
		(s.User == "" || s.User == id.User) && (s.Rank == nil || *s.Rank == id.Rank)
}

// any says whether all ranks are meant.
func (s *Selector) any() bool { return *s == Selector{} }

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
