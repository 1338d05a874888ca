package exporter

import (
	"slices"
	"sync"

	"github.com/mpit-exporter/mpit-exporter/exporter/internal/categories"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/cvar"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/tally"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
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

// controlRow is a series of mpit_cvar_ranks. Ranks of two users are never counted together, whatever job they claim.
type controlRow struct {
	world worldName
	cvar.Row
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
	infos []variables.Info
}

// describe returns the same as infos: what another rank of the world has, if that is equal, as it mostly is.
func (w *world) describe(infos []variables.Info) []variables.Info {
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

func (r *attendance) variablesGeneration() uint64 {
	if r.facts.variables == nil {
		return 0
	}
	return r.facts.variables.Generation
}
