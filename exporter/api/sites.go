package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

const (
	maxSiteAskers = 16 // ranks that are asked for their call sites at once
	// maxSites bounds those in one profile, of which each takes about a kilobyte while it is made, one profile at a time.
	maxSites = 1 << 16
)

var (
	errNoSites  = errors.New("no call site has been counted: start the program with exec --calls=sites")
	errOldAgent = errors.New("its agent is older and doesn't count call sites")
)

// Site is calls of a function on an object from one place in the program, of all ranks of an MPI_COMM_WORLD.
type Site struct {
	Function string `json:"function"`
	Kind     string `json:"kind,omitempty"`   // of the object; absent: none
	Object   string `json:"object,omitempty"` // its name
	// Module is the file of the code that calls, and Offset where in it the call returns to; absent: not known. BuildID is
	// of the file, absent where it has none.
	Module  string  `json:"module,omitempty"`
	Offset  uint64  `json:"offset,omitempty"`
	BuildID string  `json:"build_id,omitempty"`
	Waited  float64 `json:"waited_seconds"` // since MPI_Init, for others, as far as collectives show it
	Calls   float64 `json:"calls"`
}

// SiteList is the answer to GET /api/v1/sites.
type SiteList struct {
	Sites []Site `json:"sites"` // the five at which most time was waited; none: none is counted, or nothing was waited
	// Errors say which ranks are missing, and why.
	Errors []string `json:"errors,omitempty"`
}

// withSites has an answer made of the sites of the one MPI_COMM_WORLD that is meant. failed is of ranks without.
func (h *handler) withSites(w http.ResponseWriter, req *http.Request, which Selector,
	answer func(sites []rankSites, failed []error),
) {
	ctx, cancel := context.WithTimeout(req.Context(), timeout)
	defer cancel()
	if err := h.Refresh(ctx, which); err != nil { // for the names of objects
		h.answer.Error(w, http.StatusInternalServerError, err)
		return
	}
	ranks := h.Connected(which)
	if len(ranks) == 0 {
		h.answer.Error(w, http.StatusNotFound, errors.New("no connected rank has these labels"))
		return
	}
	first := &ranks[0].Status
	if slices.ContainsFunc(ranks, func(r Connected) bool { return !sameWorld(&r.Status, first) }) {
		h.answer.Error(w, http.StatusBadRequest,
			errors.New("there are several MPI_COMM_WORLDs: choose one with jobid, world and user"))
		return
	}
	leave, err := h.turnOf(ctx, first.UID)
	if err != nil {
		h.answer.Error(w, http.StatusServiceUnavailable, err)
		return
	}
	defer leave()
	sites, failed := readSites(ctx, ranks)
	h.inTurn(w, req, func() { answer(sites, failed) })
}

func (h *handler) serveSites(w http.ResponseWriter, req *http.Request, which Selector) {
	h.withSites(w, req, which, func(sites []rankSites, failed []error) {
		list := SiteList{Sites: mostWaited(sites)}
		for _, err := range failed {
			list.Errors = append(list.Errors, err.Error())
		}
		h.answer.JSON(w, http.StatusOK, list)
	})
}

func (h *handler) servePprof(w http.ResponseWriter, req *http.Request, which Selector) {
	h.withSites(w, req, which, func(sites []rankSites, failed []error) {
		if len(failed) < len(sites) {
			h.writeProfile(w, sites, failed)
			return
		}
		code := http.StatusGatewayTimeout
		if errors.Is(failed[0], errOldAgent) {
			code = http.StatusNotFound
		}
		h.answer.Error(w, code, errors.Join(failed...))
	})
}

func (h *handler) writeProfile(w http.ResponseWriter, sites []rankSites, failed []error) {
	p := profileOf(sites, time.Now())
	if len(p.Sample) == 0 {
		h.answer.Error(w, http.StatusNotFound, errors.Join(append(failed, errNoSites)...))
		return
	}
	for _, err := range failed {
		p.Comments = append(p.Comments, err.Error())
	}
	var text bytes.Buffer
	if err := p.Write(&text); err != nil {
		h.answer.Error(w, http.StatusInternalServerError, err)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", `attachment; filename="mpi.pb.gz"`)
	if _, err := w.Write(text.Bytes()); err != nil {
		h.answer.Log.Debug("sending a profile failed", "err", err)
	}
}

func sameWorld(a, b *RankStatus) bool {
	return a.JobID == b.JobID && a.World == b.World && a.UID == b.UID && a.Dup == b.Dup
}

// rankSites is a rank with its call sites.
type rankSites struct {
	Connected
	sites []mpit.Site
}

// readSites asks all ranks, some at once. failed is of those that have not answered, and of those for which there is no
// room.
func readSites(ctx context.Context, ranks []Connected) (all []rankSites, failed []error) {
	all, errs := make([]rankSites, len(ranks)), make([]error, len(ranks))
	var asking errgroup.Group
	asking.SetLimit(maxSiteAskers)
	for i, r := range ranks {
		asking.Go(func() error {
			all[i].Connected = r
			all[i].sites, errs[i] = r.Session.Sites(ctx)
			if refused := (*mpit.RequestError)(nil); errors.As(errs[i], &refused) {
				errs[i] = fmt.Errorf("rank %d: %w", r.Status.Rank, errOldAgent)
			}
			return nil
		})
	}
	_ = asking.Wait() // errs has them
	errs = append(errs, bound(all)...)
	return all, slices.DeleteFunc(errs, func(err error) bool { return err == nil })
}

// bound leaves ranks out whose sites have no room in a profile.
func bound(all []rankSites) (out []error) {
	room := maxSites
	for i := range all {
		if n := len(all[i].sites); n > room {
			all[i].sites = nil
			out = append(out, fmt.Errorf("rank %d is left out, for the profile would become too large: ask for rank=%[1]d alone",
				all[i].Status.Rank))
		} else {
			room -= n
		}
	}
	return out
}
