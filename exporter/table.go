package exporter

import (
	"cmp"
	"maps"
	"slices"
	"sort"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/mpit-exporter/mpit-exporter/exporter/identity"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/board"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/tally"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// table holds all ranks that are on the page or may come onto it, and keeps books of them, so that nothing that a
// connection does takes longer the more there are. It belongs to the registry.
type table struct {
	byID    map[mpit.RankID]*rank
	ordered []*rank // by Identity
	arrived uint64  // ranks so far
	users   map[uint32]*userBooks
	ended   int // ranks without a connection
	held    int // bytes that ranks without a connection hold
}

// userBooks is what one user's ranks are.
type userBooks struct {
	ranks int
	alive int // have not ended
	ended int // have, and have no connection
	held  int // bytes that those without a connection hold

	taking *semaphore.Weighted // held by who takes one of them in; safe for concurrent use
}

func newTable() table { return table{byID: map[mpit.RankID]*rank{}, users: map[uint32]*userBooks{}} }

// add puts a new rank into the table, with the lowest dup that is free for its labels.
func (t *table) add(b *base, h mpit.Hello, peer mpit.Peer, w identity.Process) *rank {
	i, _ := t.find(w.ID)
	w.ID.Dup = sort.Search(len(t.ordered)-i, func(dup int) bool { // those with the same labels follow one another
		id, same := t.ordered[i+dup].ID, w.ID
		same.Dup = id.Dup
		return id != same || id.Dup > dup
	})
	r := newRank(b, h, peer, w, len(t.ordered))
	t.arrived++
	r.arrived = t.arrived
	t.byID[h.ID] = r
	t.ordered = slices.Insert(t.ordered, i+r.ID.Dup, r)
	books := t.users[peer.UID]
	if books == nil {
		books = &userBooks{taking: semaphore.NewWeighted(maxTaking)}
		t.users[peer.UID] = books
	}
	books.ranks++
	books.alive++
	r.taking = books.taking
	r.entered.alive = true
	t.enter(r)
	return r
}

func (t *table) remove(r *rank) {
	delete(t.byID, r.Key)
	if i, found := t.find(r.ID); found {
		t.ordered = slices.Delete(t.ordered, i, i+1)
	}
	books := t.users[r.UID]
	t.count(r.entered, books, -1)
	if books.ranks--; books.ranks == 0 {
		delete(t.users, r.UID)
	}
}

// find returns a rank's place in ordered, or where it would be.
func (t *table) find(id Identity) (int, bool) {
	return slices.BinarySearchFunc(t.ordered, id, func(r *rank, id Identity) int { return r.ID.Compare(id) })
}

// connected is the ranks that can be asked.
func (t *table) connected() []*rank {
	list := make([]*rank, 0, len(t.ordered))
	for _, r := range t.ordered {
		if r.line != nil && r.end == mpit.EndNone {
			list = append(list, r)
		}
	}
	return list
}

// alive counts the ranks of one user that have not ended.
func (t *table) alive(uid uint32) int {
	if books := t.users[uid]; books != nil {
		return books.alive
	}
	return 0
}

// enter brings the books up to date after a change of a rank's end, connection or size, if it stands in the table.
func (t *table) enter(r *rank) {
	if t.byID[r.Key] != r {
		return
	}
	now := account{alive: r.end == mpit.EndNone, away: r.line == nil}
	if now.away {
		left := r.ended
		if now.alive {
			left = r.gone
		}
		now.at, now.size = left.UnixNano(), r.facts.Load().Size
	}
	if now == r.entered {
		return
	}
	books := t.users[r.UID]
	t.count(r.entered, books, -1)
	r.entered = now
	t.count(now, books, 1)
}

// count adds so many of what a rank counts for.
func (t *table) count(a account, books *userBooks, n int) {
	switch {
	case a.alive:
		books.alive += n
	case a.away:
		books.ended += n
		t.ended += n
	}
	books.held += n * a.size
	t.held += n * a.size
}

// surplus returns the rank to be given up when there are more ended ones than limit, or they and those that have lost
// their connection hold more than so many bytes: the oldest of the user who has most of it, so that nobody pushes out
// somebody else's. nil: not too many.
func (t *table) surplus(limit, bytes int) (oldest *rank) {
	large := t.held > bytes
	if !large && t.ended <= limit {
		return nil
	}
	of := func(uid uint32) int {
		if large {
			return t.users[uid].held
		}
		return t.users[uid].ended
	}
	uid := slices.MaxFunc(slices.Collect(maps.Keys(t.users)), func(a, b uint32) int {
		return cmp.Or(cmp.Compare(of(a), of(b)), cmp.Compare(b, a))
	})
	for _, r := range t.ordered {
		is := r.UID == uid && r.entered.away && (large && r.entered.size > 0 || !large && !r.entered.alive)
		if is && (oldest == nil || r.leftBefore(oldest)) {
			oldest = r
		}
	}
	return oldest
}

// leftBefore says of ranks that are away which one left first.
func (r *rank) leftBefore(other *rank) bool {
	return cmp.Or(cmp.Compare(r.entered.at, other.entered.at), cmp.Compare(r.arrived, other.arrived)) < 0
}

// worldID tells MPI_COMM_WORLDs apart. Any user's rank can claim any job.
type worldID struct {
	jobID, world string
	uid          uint32
}

// world is the ranks of one MPI_COMM_WORLD. They have the same categories, so one of them is asked: the lowest that
// answers. It belongs to the registry, except what stands on the page, which never changes, and shared.
type world struct {
	board.WorldName // its Dup is 0: no other uid has claimed it before under that name
	uid             uint32

	ranks  int       // in the table
	most   int       // of these, so far
	here   int       // that its launcher starts on this node; 0: not known
	ran    time.Time // when one of them was last known to run
	warned bool      // that its labels are others' too

	source     *rank // who was asked last, and answered; nil: nobody
	asking     bool
	stamp      uint64 // of source, when it was asked
	generation uint64 // of its variables, then
	rows       []*tally.Held[board.CategoryRow]
	left       map[string]int // left off the page, as counted

	shared shared
}

// worlds is all that there are. It belongs to the registry.
type worlds struct {
	byID  map[worldID]*world
	names map[board.WorldName]bool
}

func newWorlds() worlds { return worlds{map[worldID]*world{}, map[board.WorldName]bool{}} }

// join makes a rank one of its world's, of which its launcher starts so many on this node.
func (ws *worlds) join(r *rank, here int) {
	key := worldID{r.ID.JobID, r.ID.World, r.UID}
	w := ws.byID[key]
	if w == nil {
		name := board.WorldName{JobID: r.ID.JobID, Name: r.ID.World, User: r.ID.User}
		for ws.names[name] {
			name.Dup++
		}
		w = &world{WorldName: name, uid: r.UID, left: map[string]int{}}
		ws.names[name] = true
		ws.byID[key] = w
	}
	w.ranks++
	w.most, w.here = max(w.most, w.ranks), max(w.here, here)
	r.world = w
}

// unseen is how many ranks launchers have started here that have never connected.
func (ws *worlds) unseen() (n int) {
	for _, w := range ws.byID {
		n += max(w.here-w.most, 0)
	}
	return n
}

// leave is the reverse of join. It reports whether the rank was the last one: then the world's categories go as well.
func (ws *worlds) leave(r *rank) (last bool) {
	w := r.world
	if w.source == r {
		// If it is being asked just now, nobody takes its answer.
		w.source, w.asking = nil, false
	}
	if w.ranks--; w.ranks > 0 {
		return false
	}
	delete(ws.byID, worldID{w.JobID, w.Name, w.uid})
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
