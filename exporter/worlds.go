package exporter

import (
	"slices"
	"sync"
	"time"

	"github.com/mpit-exporter/mpit-exporter/exporter/internal/board"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/categories"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/tally"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
)

// worldID tells MPI_COMM_WORLDs apart. Any user's rank can claim any job.
type worldID struct {
	jobID, world string
	uid          uint32
}

// world is the ranks of one MPI_COMM_WORLD. They have the same categories, so one of them is asked: the lowest that
// answers. It belongs to the registry, except what stands on the page, which never changes, and shared.
type world struct {
	board.World // its Dup is 0: no other uid has claimed it before under that name

	ranks  int       // in the table
	ran    time.Time // when one of them was last known to run
	warned bool      // that its labels are others' too

	source     *rank // who was asked last, and answered; nil: nobody
	asking     bool
	stamp      uint64 // of source, when it was asked
	generation uint64 // of its variables, then
	rows       []*tally.Held[categories.Row]
	left       map[string]int // left off the page, as counted

	shared shared
}

// worlds is all that there are. It belongs to the registry.
type worlds struct {
	byID  map[worldID]*world
	names map[board.WorldName]bool
}

func newWorlds() worlds { return worlds{map[worldID]*world{}, map[board.WorldName]bool{}} }

// join makes a rank one of its world's.
func (ws *worlds) join(r *rank) {
	key := worldID{r.ID.JobID, r.ID.World, r.UID}
	w := ws.byID[key]
	if w == nil {
		name := board.WorldName{JobID: r.ID.JobID, Name: r.ID.World, User: r.ID.User}
		for ws.names[name] {
			name.Dup++
		}
		w = &world{World: board.World{WorldName: name, UID: r.UID}, left: map[string]int{}}
		ws.names[name] = true
		ws.byID[key] = w
	}
	w.ranks++
	r.world, r.World = w, &w.World
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
	delete(ws.byID, worldID{w.JobID, w.Name, w.UID})
	delete(ws.names, w.WorldName)
	return true
}

// shared is what the contents of a world's ranks have in common. It is safe for concurrent use.
type shared struct {
	mu    sync.Mutex
	infos []variables.Info // of the rank that described its variables last
	alike []variables.Info // likewise, without those by peer
}

// describe returns the same as infos: what another rank of the world has, if that is equal, as it mostly is. Variables
// by peer, of which each rank has others, are left out of alike.
func (s *shared) describe(infos []variables.Info) (all, alike []variables.Info) {
	byPeer := func(i variables.Info) bool { return i.ByPeer() }
	alike = infos
	if slices.ContainsFunc(infos, byPeer) {
		alike = slices.DeleteFunc(slices.Clone(infos), byPeer)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(infos, s.infos) {
		s.infos = infos
	}
	if !slices.Equal(alike, s.alike) {
		s.alike = alike
	}
	return s.infos, s.alike
}

// begin notes that a rank is asked for the world's categories, and what it had by then.
func (w *world) begin(r *rank) {
	w.source, w.asking = r, true
	f := r.facts.Load()
	w.stamp, w.generation = f.Stats.CategoryStamp, f.Generation()
}
