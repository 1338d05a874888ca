package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

const (
	maxCatalogues = 16 // in one answer
	maxCandidates = 3  // ranks that are tried for one catalogue
	// maxCatalogueAnswer bounds all catalogues that are in one answer, in bytes.
	maxCatalogueAnswer = 12 << 20
	// maxAskedBytes is how much the catalogues take that requests have and have not answered with yet, about. A user's
	// ranks have no more of it than they leave.
	maxAskedBytes = 24 << 20
	// maxAskers is how many requests may wait for a user's ranks at the same time, of which one is served: those that
	// don't answer keep no other user's from being asked, and take no place from requests for these.
	maxAskers = 4
)

// Connected is a rank that can be asked.
type Connected struct {
	Session *mpit.Session
	Status  RankStatus
	Layout  *mpit.Layout // its objects, as of its last answer; nil: it has given none
	Late    bool         // it didn't answer in the last round
}

func (h *handler) serveCatalogue(w http.ResponseWriter, req *http.Request, which Selector) {
	chosen, out := choose(h.Connected(which), which.names())
	if len(chosen) == 0 && !which.All() {
		h.answer.Error(w, http.StatusNotFound, errors.New("no connected rank has these labels"))
		return
	}
	ctx, cancel := context.WithTimeout(req.Context(), timeout)
	defer cancel()
	list := CatalogueList{Catalogues: []Catalogue{}}
	for i := range out {
		list.More++
		list.LeftOut = leaveOut(list.LeftOut, &out[i])
	}
	size := 0
	var failed []error
	for _, a := range h.readAll(ctx, chosen) {
		r := &a.catalogue.Rank
		defer h.held.Give(r.UID, a.size)
		if a.err == nil && size+a.size > maxCatalogueAnswer {
			a.err = fmt.Errorf("the catalogue of rank %d of job %q, world %q, user %q, is left "+
				"out, for the answer would become too large; ask for it alone", r.Rank, r.JobID, r.World, r.User)
		}
		if a.err != nil {
			failed = append(failed, a.err)
			list.Errors = append(list.Errors, a.err.Error())
			continue
		}
		size += a.size
		list.Catalogues = append(list.Catalogues, a.catalogue)
	}
	if len(chosen) > 0 && len(list.Catalogues) == 0 {
		h.answer.Error(w, http.StatusGatewayTimeout, errors.Join(failed...))
		return
	}
	h.inTurn(w, req, func() { h.answer.JSON(w, http.StatusOK, list) })
}

// asked is what came of asking for a catalogue. Its size, in bytes as JSON, about, is held.
type asked struct {
	catalogue Catalogue
	size      int
	err       error
}

// readAll reads a catalogue from one of each list of candidates: all at once, so that a rank that doesn't answer delays
// no other's, but of one user's ranks for one request after the other.
func (h *handler) readAll(ctx context.Context, chosen [][]Connected) []asked {
	all := make([]asked, len(chosen))
	byUser := map[uint32][]int{} // places in chosen
	for i, candidates := range chosen {
		uid := candidates[0].Status.UID
		byUser[uid] = append(byUser[uid], i)
	}
	var users sync.WaitGroup
	for uid, places := range byUser {
		users.Go(func() {
			leave, err := h.turnOf(ctx, uid)
			if err != nil {
				for _, i := range places {
					all[i].err = err
				}
				return
			}
			defer leave()
			var reads sync.WaitGroup
			for _, i := range places {
				reads.Go(func() { all[i] = h.readOne(ctx, chosen[i]) })
			}
			reads.Wait()
		})
	}
	users.Wait()
	return all
}

// turnOf waits until no other request is served by ranks of a user; leave ends the turn.
func (h *handler) turnOf(ctx context.Context, uid uint32) (leave func(), err error) {
	if n := h.users.Users(uid); n >= maxAskers {
		return nil, fmt.Errorf("%d requests are waiting for ranks of user %d already; try again soon", n, uid)
	}
	if leave, err = h.users.Take(ctx, uid); err != nil {
		return nil, fmt.Errorf("waiting for other requests for ranks of user %d: %w", uid, err)
	}
	return leave, nil
}

// readOne reads the catalogue of the first candidate that answers.
func (h *handler) readOne(ctx context.Context, candidates []Connected) (a asked) {
	var failed []error
	for _, r := range candidates {
		ctx, cancel := context.WithTimeout(ctx, timeout/maxCandidates)
		c, err := CatalogueOf(ctx, r.Session, h.Mapper())
		cancel()
		if err == nil {
			c.Rank = r.Status
			return h.hold(c)
		}
		failed = append(failed, err)
	}
	return asked{err: errors.Join(failed...)}
}

// hold takes the room for a catalogue until its request is answered.
func (h *handler) hold(c Catalogue) asked {
	a := asked{catalogue: c, size: sizeOf(c, maxCatalogueBytes)}
	if !h.held.Take(c.Rank.UID, a.size) {
		return asked{err: fmt.Errorf("catalogues of user %s's ranks are being read already, and take too much memory; try "+
			"again soon", c.Rank.User)}
	}
	return a
}

// choose returns lists of ranks that answer the same, in the order in which to try them: each rank where ranks are
// named, else those of each MPI_COMM_WORLD, as its ranks have one library with the same settings. Users take turns. out
// has a rank of each world that there is no room for.
func choose(ranks []Connected, named bool) (lists [][]Connected, out []RankStatus) {
	type world struct {
		jobID, world string
		uid          uint32
		dup          int // where several have the same labels
	}
	type place struct{ user, list int }
	var users [][][]Connected // by user, in the order in which they come
	byUser, byWorld := map[uint32]int{}, map[world]place{}
	for _, r := range ranks {
		user, known := byUser[r.Status.UID]
		if !known {
			user = len(users)
			byUser[r.Status.UID] = user
			users = append(users, nil)
		}
		of := world{r.Status.JobID, r.Status.World, r.Status.UID, r.Status.Dup}
		at, known := byWorld[of]
		if named || !known {
			byWorld[of] = place{user, len(users[user])}
			users[user] = append(users[user], []Connected{r})
			continue
		}
		switch list := &users[at.user][at.list]; {
		case !r.Late && (*list)[0].Late:
			*list = slices.Insert(*list, 0, r)[:min(len(*list)+1, maxCandidates)]
		case len(*list) < maxCandidates:
			*list = append(*list, r)
		}
	}
	for turn := 0; ; turn++ {
		before := len(lists) + len(out)
		for _, of := range users {
			switch {
			case turn >= len(of):
			case len(lists) < maxCatalogues:
				lists = append(lists, of[turn])
			default:
				out = append(out, of[turn][0].Status)
			}
		}
		if len(lists)+len(out) == before {
			return lists, out
		}
	}
}
