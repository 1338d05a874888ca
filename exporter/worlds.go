package exporter

import (
	"slices"
	"sync"
	"time"

	"github.com/mpit-exporter/mpit-exporter/exporter/exposition"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/clean"
	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// maxCategoryRows bounds the series that say which categories there are, of one user: Open MPI has some hundred.
const maxCategoryRows = 8192

// maxCategoryEntries bounds what is looked at of one rank's: everybody waits meanwhile, and there may be the same two million times.
const maxCategoryEntries = 1 << 17

// categoryRow is a series of mpit_pvar_category_info, or, without a name, of mpit_category_parent_info.
type categoryRow struct {
	name, class string
	category    string
	parent      string
}

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

// world is the ranks of one MPI_COMM_WORLD. They have the same categories, so one of them is asked: the lowest that answers. It belongs to
// Exporter.mu, but for what never changes: key and dup.
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
	rows       []*held[categoryRow]
	left       map[string]int // left off the page, as counted

	shared sharedInfos

	told     bool     // standing is known: where rules match by category
	standing standing // nil: source could not say
}

// join makes a rank one of its world's. The caller holds mu.
func (e *Exporter) joinWorld(r *rank) {
	key := worldID{r.id.JobID, r.id.World, r.peer.UID}
	w := e.worlds[key]
	if w == nil {
		w = &world{key: key, user: r.id.User, left: map[string]int{}}
		for e.worldNames[w.name()] {
			w.dup++
		}
		e.worldNames[w.name()] = true
		e.worlds[key] = w
	}
	w.ranks++
	r.world = w
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

// leaveWorld is its reverse; the last rank takes the world's categories along. The caller holds mu.
func (e *Exporter) leaveWorld(r *rank) {
	w := r.world
	if w.source == r {
		// If it is being asked just now, nobody takes its answer.
		w.source, w.asking = nil, false
	}
	if w.ranks--; w.ranks == 0 {
		e.categories.replace(w.key.uid, w.rows, nil)
		delete(e.worlds, w.key)
		delete(e.worldNames, w.name())
	}
}

// begin notes that a rank is asked for the world's categories, and what it had by then.
func (w *world) begin(r *rank) {
	w.source, w.asking = r, true
	w.stamp, w.generation = r.facts.stamp, r.variablesGeneration()
}

// categoriesDue says whether a rank is to be asked for its world's categories: if nobody has answered who is still there, and
// again when it says that they have changed, or has new variables. The caller holds mu.
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
	rows, over := categoryRows(list, variables, infos)
	told := e.grouped()
	var s standing
	if told {
		var more int
		s, more = standingOf(list, variables)
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
		w.rows, more = e.categories.replace(w.key.uid, w.rows, rows)
		exposition.CountMore(e.drop, w.left, droppedBound, over+more)
	}()
	if told {
		e.learnCategories(w)
	}
}

// categoriesFailed notes that a rank could not say its categories, and whether its world is to be told that nobody can. The caller holds mu.
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

// categoryRows makes series of categories: at most maxCategoryRows, over says how many more there would be.
func categoryRows(list []mpit.Category, variables *mpit.Variables, infos []mapping.Info) (rows []categoryRow, over int) {
	described := map[int]*mapping.Info{} // by MPI_T's index
	if variables != nil {
		for i := range min(len(variables.ByID), len(infos)) {
			described[variables.ByID[i].Index] = &infos[i]
		}
	}
	names := map[int]string{}
	for i := range list {
		names[list[i].Index] = clean.Label(list[i].Name)
	}
	seen := map[categoryRow]bool{}
	entries := 0
	add := func(row categoryRow) {
		if entries++; entries > maxCategoryEntries {
			over++
			return
		}
		switch {
		case row.category == "" || seen[row]:
		case len(rows) == maxCategoryRows:
			over++
		default:
			seen[row] = true
			rows = append(rows, row)
		}
	}
	for i := range list {
		c := &list[i]
		name := names[c.Index]
		for _, index := range c.Variables {
			if info := described[index]; info != nil {
				add(categoryRow{name: info.Name, class: info.Class.String(), category: name})
			}
		}
		for _, index := range c.Subcategories {
			if name != "" && index != c.Index {
				add(categoryRow{category: names[index], parent: name})
			}
		}
	}
	return rows, over
}

// addCategories makes the families of categories anew, if they have changed.
func (b *board) addCategories(sums map[categoryRow]int, generation uint64) {
	if b.categories == generation {
		return
	}
	b.categories = generation
	var variables, parents []exposition.Row
	for r := range sums {
		if r.parent != "" {
			parents = append(parents, exposition.Row{Value: 1, Labels: []mapping.Label{{Name: "category", Value: r.category}, {Name: "parent", Value: r.parent}}})
			continue
		}
		variables = append(variables, exposition.Row{Value: 1, Labels: []mapping.Label{
			{Name: "name", Value: r.name}, {Name: "class", Value: r.class}, {Name: "category", Value: r.category},
		}})
	}
	b.ReplaceShared(&familyPvarCategory, variables)
	b.ReplaceShared(&familyCategoryParent, parents)
}
