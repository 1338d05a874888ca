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
	// maxAsks is how many ranks are asked for a catalogue at once, maxAskedBytes how much the catalogues take that
	// requests have and have not answered with yet, about. A user's ranks have no more of either than they leave:
	// those that don't answer keep no other user's from being asked.
	maxAsks       = 8
	maxAskedBytes = 24 << 20
	// maxAskers is how many requests may wait for a user's ranks at the same time.
	maxAskers = 4
)

// Connected is a rank that can be asked.
type Connected struct {
	Session *mpit.Session
	Status  RankStatus
	Late    bool // it didn't answer in the last round
}

func (h *handler) serveCatalogue(w http.ResponseWriter, req *http.Request, which Selector) {
	chosen, out := choose(h.Connected(which), which.names())
	if len(chosen) == 0 && !which.All() {
		h.answer.Error(w, http.StatusNotFound, errors.New("no connected rank has these labels"))
		return
	}
	// All at once, so that a rank that doesn't answer delays nobody else's catalogue.
	ctx, cancel := context.WithTimeout(req.Context(), timeout)
	defer cancel()
	admitted := h.asks.come(chosen)
	defer h.asks.leave(admitted)
	read := make([]*ask, len(chosen))
	failed := make([]error, len(chosen))
	var wg sync.WaitGroup
	for i, candidates := range chosen {
		if first := &candidates[0].Status; !admitted[first.UID] {
			failed[i] = fmt.Errorf("%d requests are waiting for ranks of user %s already; try again soon", maxAskers, first.User)
			continue
		}
		wg.Go(func() { read[i], failed[i] = h.readOne(ctx, candidates) })
	}
	wg.Wait()
	list := CatalogueList{Catalogues: []Catalogue{}}
	for i := range out {
		list.More++
		list.LeftOut = leaveOut(list.LeftOut, &out[i])
	}
	size := 0
	for i, a := range read {
		if failed[i] == nil {
			defer h.asks.release(a)
			r := &chosen[i][0].Status
			if size+a.size > maxCatalogueAnswer {
				failed[i] = fmt.Errorf("the catalogue of rank %d of job %q, world %q, user %q, is left "+
					"out, for the answer would become too large; ask for it alone", r.Rank, r.JobID, r.World, r.User)
			}
		}
		if failed[i] != nil {
			list.Errors = append(list.Errors, failed[i].Error())
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

// readOne reads the catalogue of the first candidate that answers. It is to be released.
func (h *handler) readOne(ctx context.Context, candidates []Connected) (*ask, error) {
	var errs []error
	for _, r := range candidates {
		a, err := h.asks.catalogue(ctx, r, func(ctx context.Context) (Catalogue, error) {
			return CatalogueOf(ctx, r.Session, h.Mapper())
		})
		if err == nil {
			return a, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// asks are the ranks that are being asked for their catalogues: each once, for all who wait. It is safe for concurrent
// use.
type asks struct {
	mu      sync.Mutex
	pending map[*mpit.Session]*ask
	askers  map[uint32]int // requests that wait for a user's ranks
	under   share          // way
	held    share          // in bytes
	ended   chan struct{}  // closed when there is room for others
}

// ask is a rank's catalogue that some requests wait for, or have.
type ask struct {
	session *mpit.Session
	uid     uint32
	holders int // requests
	done    chan struct{}

	catalogue Catalogue
	size      int // about, as JSON
	err       error
}

func newAsks() *asks {
	return &asks{pending: map[*mpit.Session]*ask{}, askers: map[uint32]int{}, ended: make(chan struct{}),
		under: share{limit: maxAsks, users: map[uint32]int{}}, held: share{limit: maxAskedBytes, users: map[uint32]int{}}}
}

// share divides what there is only so much of. No user has more than all leave.
type share struct {
	limit, used int
	users       map[uint32]int
}

func (s *share) take(uid uint32, n int) bool {
	if left := s.limit - s.used - n; s.users[uid]+n > left {
		return false
	}
	s.used += n
	s.users[uid] += n
	return true
}

func (s *share) give(uid uint32, n int) {
	s.used -= n
	if s.users[uid] -= n; s.users[uid] == 0 {
		delete(s.users, uid)
	}
}

// come notes that a request is going to wait for ranks, and returns of which users they may be: where enough requests
// wait for a user's ranks already, which don't answer perhaps, it takes no place from requests for others.
func (as *asks) come(chosen [][]Connected) (admitted map[uint32]bool) {
	as.mu.Lock()
	defer as.mu.Unlock()
	admitted = map[uint32]bool{}
	for _, candidates := range chosen {
		uid := candidates[0].Status.UID
		if _, known := admitted[uid]; known {
			continue
		}
		if admitted[uid] = as.askers[uid] < maxAskers; admitted[uid] {
			as.askers[uid]++
		}
	}
	return admitted
}

// leave notes that the request has its answer.
func (as *asks) leave(admitted map[uint32]bool) {
	as.mu.Lock()
	defer as.mu.Unlock()
	for uid, is := range admitted {
		if !is {
			continue
		}
		if as.askers[uid]--; as.askers[uid] == 0 {
			delete(as.askers, uid)
		}
	}
}

// catalogue asks a rank with read, or waits for the answer to who has asked before. Without an error it is to be
// released.
func (as *asks) catalogue(ctx context.Context, r Connected, read func(context.Context) (Catalogue, error)) (*ask,
	error) {
	a, err := as.join(ctx, r, read)
	if err != nil {
		return nil, err
	}
	select {
	case <-a.done:
		err = a.err
	case <-ctx.Done():
		err = fmt.Errorf("waiting for rank %d: %w", r.Status.Rank, ctx.Err())
	}
	if err != nil {
		as.release(a)
		return nil, err
	}
	return a, nil
}

// join takes part in the asking of a rank, or begins it as soon as its user's ranks have room.
func (as *asks) join(ctx context.Context, r Connected, read func(context.Context) (Catalogue, error)) (*ask, error) {
	for {
		as.mu.Lock()
		a := as.pending[r.Session]
		if a == nil && as.under.take(r.Status.UID, 1) {
			a = &ask{session: r.Session, uid: r.Status.UID, done: make(chan struct{})}
			as.pending[r.Session] = a
			// What others wait for does not end with the request that was first.
			go as.run(context.WithoutCancel(ctx), a, r.Status, read)
		}
		if a != nil {
			a.holders++
			as.mu.Unlock()
			return a, nil
		}
		ended := as.ended
		as.mu.Unlock()
		select {
		case <-ended:
		case <-ctx.Done():
			return nil, fmt.Errorf("%d ranks of user %s are being asked already; try again soon", as.underWay(r.Status.UID),
				r.Status.User)
		}
	}
}

func (as *asks) underWay(uid uint32) int {
	as.mu.Lock()
	defer as.mu.Unlock()
	return as.under.users[uid]
}

// run asks.
func (as *asks) run(ctx context.Context, a *ask, status RankStatus, read func(context.Context) (Catalogue, error)) {
	ctx, cancel := context.WithTimeout(ctx, timeout/maxCandidates)
	defer cancel()
	c, err := read(ctx)
	c.Rank = status
	size := 0
	if err == nil {
		size = sizeOf(c, maxCatalogueBytes)
	}
	as.mu.Lock()
	defer as.mu.Unlock()
	if err == nil && !as.held.take(a.uid, size) {
		err, size = fmt.Errorf("catalogues of user %s's ranks are being read already, and take too much memory; try "+
			"again soon",
			status.User), 0
	}
	if err == nil {
		a.catalogue, a.size = c, size
	}
	a.err = err
	delete(as.pending, a.session)
	as.under.give(a.uid, 1)
	close(a.done)
	as.drop(a)
	close(as.ended)
	as.ended = make(chan struct{})
}

// release gives back what a request has.
func (as *asks) release(a *ask) {
	as.mu.Lock()
	defer as.mu.Unlock()
	a.holders--
	as.drop(a)
}

// drop gives back what is held for nobody any more. mu is held.
func (as *asks) drop(a *ask) {
	if as.pending[a.session] != a && a.holders == 0 {
		as.held.give(a.uid, a.size)
	}
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
