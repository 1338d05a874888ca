package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// maxCatalogueAnswer bounds all catalogues that are in one answer, in bytes.
const maxCatalogueAnswer = 64 << 20

const (
	maxCatalogues = 16 // in one answer
	maxCandidates = 3  // ranks that are tried for one catalogue
)

// Connected is a rank that can be asked.
type Connected struct {
	Session *mpit.Session
	Status  RankStatus
	Late    bool // it didn't answer in the last round
}

func (h *handler) serveCatalogue(w http.ResponseWriter, req *http.Request, which Selector) {
	chosen, left := choose(h.Connected(which), !which.All())
	if len(chosen) == 0 && !which.All() {
		h.answer.Error(w, http.StatusNotFound, errors.New("no connected rank has these labels"))
		return
	}
	// All at once, so that a rank that doesn't answer delays nobody else's catalogue.
	ctx, cancel := context.WithTimeout(req.Context(), timeout)
	defer cancel()
	read := make([]Catalogue, len(chosen))
	failed := make([]error, len(chosen))
	var wg sync.WaitGroup
	for i, candidates := range chosen {
		wg.Go(func() { read[i], failed[i] = readOne(ctx, candidates, h.Mapper()) })
	}
	wg.Wait()
	list := CatalogueList{Catalogues: []Catalogue{}, More: left}
	size := 0
	for i, c := range read {
		if failed[i] == nil {
			if n := sizeOf(c, maxCatalogueAnswer-size); size+n <= maxCatalogueAnswer {
				size += n
			} else {
				failed[i] = fmt.Errorf("the catalogue of rank %d of job %q, world %q, user %q, is left "+
					"out, for the answer would become too large; ask for it alone", c.Rank.Rank, c.Rank.JobID,
					c.Rank.World, c.Rank.User)
			}
		}
		if failed[i] != nil {
			list.Errors = append(list.Errors, failed[i].Error())
			continue
		}
		list.Catalogues = append(list.Catalogues, c)
	}
	if len(chosen) > 0 && len(list.Catalogues) == 0 {
		h.answer.Error(w, http.StatusGatewayTimeout, errors.Join(failed...))
		return
	}
	h.answer.JSON(w, http.StatusOK, list)
}

// readOne reads the catalogue of the first candidate that answers.
func readOne(ctx context.Context, candidates []Connected, mapper *variables.Mapper) (Catalogue, error) {
	var errs []error
	for _, r := range candidates {
		c, err := func() (Catalogue, error) {
			ctx, cancel := context.WithTimeout(ctx, timeout/maxCandidates)
			defer cancel()
			return CatalogueOf(ctx, r.Session, mapper)
		}()
		if err == nil {
			c.Rank = r.Status
			return c, nil
		}
		errs = append(errs, err)
	}
	return Catalogue{}, errors.Join(errs...)
}

// choose returns lists of ranks that answer the same, in the order in which to try them: each rank where ranks are
// named, else those of each MPI_COMM_WORLD, as its ranks have one library with the same settings. left is how many worlds
// there are besides.
func choose(ranks []Connected, named bool) (lists [][]Connected, left int) {
	type world struct {
		jobID, world, user string
		dup                int // where several have the same labels
	}
	byWorld := map[world]int{}
	const out = -1
	for _, r := range ranks {
		of := world{r.Status.JobID, r.Status.World, r.Status.User, r.Status.Dup}
		at, known := byWorld[of]
		switch {
		case !named && known && at == out:
		case !named && known && !r.Late && lists[at][0].Late:
			lists[at] = slices.Insert(lists[at], 0, r)[:min(len(lists[at])+1, maxCandidates)]
		case !named && known && len(lists[at]) < maxCandidates:
			lists[at] = append(lists[at], r)
		case !named && known:
		case len(lists) < maxCatalogues:
			byWorld[of] = len(lists)
			lists = append(lists, []Connected{r})
		case !named:
			byWorld[of] = out
			left++
		}
	}
	return lists, left
}
