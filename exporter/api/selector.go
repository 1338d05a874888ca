package api

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"github.com/mpit-exporter/mpit-exporter/exporter/identity"
)

// Selector selects ranks by their labels. A field that isn't set matches any.
type Selector struct {
	JobID, World, User string
	Rank               *int
	UID                *uint32 // whose ranks the one who asks may see
}

// Selects says whether it selects a user's rank.
func (s *Selector) Selects(id identity.Identity, uid uint32) bool {
	return (s.UID == nil || *s.UID == uid) && (s.JobID == "" || s.JobID == id.JobID) &&
		(s.World == "" || s.World == id.World) && (s.User == "" || s.User == id.User) && (s.Rank == nil || *s.Rank == id.Rank)
}

// All says whether it selects every rank that may be seen.
func (s *Selector) All() bool { return !s.names() && s.User == "" }

// names says whether it names ranks, not only whose they are.
func (s *Selector) names() bool { return s.JobID != "" || s.World != "" || s.Rank != nil }

// selectorOf reads the parameters jobid, world, user and rank of a request.
func selectorOf(req *http.Request) (Selector, error) {
	query := req.URL.Query()
	s := Selector{JobID: query.Get("jobid"), World: query.Get("world"), User: query.Get("user"),
		UID: Viewer(req.Context())}
	if number := query.Get("rank"); number != "" {
		n, err := strconv.Atoi(number)
		if err != nil || n < 0 {
			return s, fmt.Errorf("parameter rank is no rank: %q", number)
		}
		s.Rank = &n
	}
	return s, nil
}

type viewerKey struct{}

// WithViewer returns a context whose requests see the ranks of one user, as if there were no others.
func WithViewer(ctx context.Context, uid uint32) context.Context {
	return context.WithValue(ctx, viewerKey{}, &uid)
}

// Viewer returns the user whose ranks alone may be seen; nil: all may.
func Viewer(ctx context.Context) *uint32 {
	uid, _ := ctx.Value(viewerKey{}).(*uint32)
	return uid
}
