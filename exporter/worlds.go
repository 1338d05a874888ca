package exporter

import (
	"slices"
	"sync"
	"time"

	"github.com/mpit-exporter/mpit-exporter/exporter/exposition"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/categories"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/tally"
	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// worldID tells MPI_COMM_WORLDs apart. Any user's rank can claim any job.
type worldID struct {
	jobID, world string
	uid          uint32
}

// worldName is what a world is called on the page: where two uids with one name claim one, the later one's has a dup.
type worldName struct {
	jobID, world, user string
	dup                int
}

// world is the ranks of one MPI_COMM_WORLD. They have the same categories, so one of them is asked: the lowest that
// answers. Exporter.mu guards it, except key and dup, which never change.
type world struct {
	key   worldID
	user  string
	ranks int // in the table
	dup   int // 0: no other uid has claimed it before under that name

	warned bool // that its labels are others' too

	source     *rank // who was asked last, and answered; nil: nobody
	asking     bool
	stamp      uint64 // of source, when it was asked
	generation uint64 // of its variables, then
	rows       []*tally.Held[categories.Row]
	left       map[string]int // left off the page, as counted

	shared sharedInfos

	told     bool                // standing is known: where rules match by category
	standing categories.Standing // nil: source could not say
}

// worlds is all that there are. It belongs to Exporter.mu.
type worlds struct {
	byID  map[worldID]*world
	names map[worldName]bool
}

func newWorlds() worlds { return worlds{map[worldID]*world{}, map[worldName]bool{}} }

// join makes a rank one of its world's.
func (ws *worlds) join(r *rank) {
	key := worldID{r.id.JobID, r.id.World, r.peer.UID}
	w := ws.byID[key]
	if w == nil {
		w = &world{key: key, user: r.id.User, left: map[string]int{}}
		for ws.names[w.name()] {
			w.dup++
		}
		ws.names[w.name()] = true
		ws.byID[key] = w
	}
	w.ranks++
	r.world = w
}

// leave is its reverse. It reports whether the rank was the last one: then the world's categories go as well.
func (ws *worlds) leave(r *rank) (last bool) {
	w := r.world
	if w.source == r {
		// If it is being asked just now, nobody takes its answer.
		w.source, w.asking = nil, false
	}
	if w.ranks--; w.ranks > 0 {
		return false
	}
	delete(ws.byID, w.key)
	delete(ws.names, w.name())
	return true
}

// sharedInfos is the variables of the rank of a world that described them last. It is safe for concurrent use.
type sharedInfos struct {
	mu    sync.Mutex
	infos []mapping.Info
}

// describe returns the same as infos: what another rank of the world has, if that is equal, as it mostly is.
func (w *world) describe(infos []mapping.Info) []mapping.Info {
	w.shared.mu.Lock()
	defer w.shared.mu.Unlock()
	if !slices.Equal(infos, w.shared.infos) {
		w.shared.infos = infos
	}
	return w.shared.infos
}

func (w *world) name() worldName { return worldName{w.key.jobID, w.key.world, w.user, w.dup} }

// begin notes that a rank is asked for the world's categories, and what it had by then.
func (w *world) begin(r *rank) {
	w.source, w.asking = r, true
	w.stamp, w.generation = r.facts.stamp, r.variablesGeneration()
}

// categoriesDue says whether a rank is to be asked for its world's categories: if nobody has answered who is still
// there, and again when it says that they have changed, or has new variables. The caller holds mu.
func (e *Exporter) categoriesDue(r *rank, now time.Time) bool {
	w := r.world
	switch {
	case w.asking || now.Before(r.categoriesNotBefore):
		return false
	case w.source == r:
		return w.stamp != r.facts.stamp || w.generation != r.variablesGeneration() || !w.told && e.grouped()
	}
	return w.source == nil || w.source.session == nil || w.source.end != mpit.EndNone
}

func (r *attendance) variablesGeneration() uint64 {
	if r.facts.variables == nil {
		return 0
	}
	return r.facts.variables.Generation
}

// takeCategories takes the answer in. A rank that did not give one leaves what is known, and lets another be asked.
func (e *Exporter) takeCategories(r *rank, list []mpit.Category, err error) {
	w := r.world
	e.mu.Lock()
	known, variables, infos := e.table.byID[r.key] == r, r.facts.variables, r.facts.infos
	e.mu.Unlock()
	if !known {
		return
	}
	if err != nil {
		e.mu.Lock()
		learn := e.categoriesFailed(r, err)
		e.mu.Unlock()
		if learn {
			e.learnCategories(w)
		}
		return
	}
	rows, over := categories.Rows(list, variables, infos)
	told := e.grouped()
	var s categories.Standing
	if told {
		var more int
		s, more = categories.StandingOf(list, variables)
		over += more
	}
	func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.table.byID[r.key] != r {
			return // the world may have gone with it
		}
		var more int
		w.asking, w.told, w.standing = false, told, s
		w.rows, more = e.categories.Replace(w.key.uid, w.rows, rows)
		exposition.CountMore(e.drop, w.left, droppedBound, over+more)
	}()
	if told {
		e.learnCategories(w)
	}
}

// categoriesFailed notes that a rank could not say its categories, and whether its world is to be told that nobody
// can. The caller holds mu.
func (e *Exporter) categoriesFailed(r *rank, err error) (learn bool) {
	w := r.world
	w.asking, w.source, r.categoriesNotBefore = false, nil, e.now().Add(inquiryRetry)
	e.log.Debug("asking a rank for its categories failed", append(rankAttrs(r), "err", err)...)
	if w.told || connectionEnded(err) { // another rank will say, or this one when it is back
		return false
	}
	w.told, w.standing = true, nil
	return true
}
