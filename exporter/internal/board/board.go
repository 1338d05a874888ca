// Package board has what stands on the page: of each rank (portrait.go), and what belongs to nobody. What it shows of a
// rank is a copy: while the page is written, ranks go on.
//
// It doesn't know how ranks come, answer and go (package exporter), or how a page is written (exposition).
//
// Begin reading at Board.
package board

import (
	"strconv"
	"time"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/exporter/exposition"
	"github.com/mpit-exporter/mpit-exporter/exporter/identity"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/tally"
	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mapping/series"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// Rank is what of a rank never changes.
type Rank struct {
	Key     mpit.RankID
	ID      identity.Identity
	UID     uint32
	Started time.Time // zero: not known
	About   api.RankStatus
	Old     bool            // it was there before this exporter
	Light   bool            // the page has sums of its call profile and no objects, the API all of it
	Labels  []mapping.Label // of ID, sorted by name; shared by all its series
}

// Labels are those of a rank, by its Identity.
func Labels(id identity.Identity) []mapping.Label {
	labels := []mapping.Label{{Name: "jobid", Value: id.JobID}, {Name: "user", Value: id.User},
		{Name: "world", Value: id.World}, {Name: "rank", Value: strconv.Itoa(id.Rank)}}
	if id.Dup > 0 {
		labels = append(labels, mapping.Label{Name: "dup", Value: strconv.Itoa(id.Dup)})
	}
	exposition.SortLabels(labels)
	return labels
}

// WorldName is what a world is called on the page: where two uids with one name claim one, the later one's has a dup.
type WorldName struct {
	JobID, Name, User string
	Dup               int
}

// Figures is what the page needs of a series.Rank.
type Figures interface {
	Structure() uint64
	Series() []*mapping.Series
	Objects() []series.ObjectInfo
}

// Facts are what is known of a rank since a sample has been taken in, but the values of its series. They never change:
// the next sample makes others, and who has these may read them without a lock.
//
// To show one more, give it a field here or in mpit.AgentStats, which contents.count fills in package exporter, and an
// entry in rankFamilies.
type Facts struct {
	Sampled   bool // it has answered
	Stats     mpit.AgentStats
	Calls     *api.Calls // nil: it has no call profile
	Variables *mpit.Variables
	ByState   [VariableStates]int // variables by their state
	Layout    *mpit.Layout
	Infos     []variables.Info
	Alike     []variables.Info // those that stand in mpit_pvar_info
	Size      int              // about how many bytes the rank holds of what it has sent

	Figured   bool   // it has figures
	Made      uint64 // how often they have been made
	Rules     uint64 // by which they were made
	Structure uint64 // of them
	Series    int    // how many they have
}

// Generation is that of the rank's variables; 0: none are known.
func (f *Facts) Generation() uint64 {
	if f.Variables == nil {
		return 0
	}
	return f.Variables.Generation
}

// VariableStates is how many states a variable may be in.
const VariableStates = int(mpit.VariableOnRequest) + 1

// Board is the page with all that stands on it.
//
// It is brought up to date in a refresh: Begin, then OutOfDate for all ranks, then Update (of those that can be
// copied) and Conclude for each, then End.
type Board struct {
	*exposition.Page
	drop  func(reason string, n int)
	ranks map[*Rank]*portrait

	there      map[*Rank]bool // those of the running refresh
	order      []*Rank        // the same
	describing describing

	outdated             bool   // mpit_pvar_info is to be made anew
	categories, controls uint64 // of the tallies, when their families were made
}

// New returns a Board on which nothing stands. drop counts what does not come onto the page.
func New(drop func(reason string, n int)) *Board {
	return &Board{
		Page: exposition.New(drop), drop: drop, ranks: map[*Rank]*portrait{}, there: map[*Rank]bool{},
		describing: describing{described: map[uint32]int{}}, outdated: true,
	}
}

// Begin begins a refresh, with all ranks that there are. perRank is how many series may describe one rank, all how
// many may describe all ranks: each user with ranks may have an equal part of these.
func (b *Board) Begin(ranks []*Rank, perRank, all int) {
	b.order = ranks
	b.describing.begin(ranks, perRank, all)
	clear(b.there)
	for _, of := range ranks {
		b.there[of] = true
	}
	for of, r := range b.ranks {
		if !b.there[of] {
			b.remove(r)
		}
	}
}

// End ends a refresh.
func (b *Board) End(all *tally.Tally[CategoryRow], controls *tally.Tally[ControlRow]) {
	b.addInfos()
	b.addCategories(all)
	b.addControls(controls)
	b.Arrange()
}

// Variables is how many variables of live ranks are in each state.
func (b *Board) Variables() (byState [VariableStates]int) {
	for _, r := range b.ranks {
		if r.up {
			for state, n := range r.ByState {
				byState[state] += n
			}
		}
	}
	return byState
}

// Of is what stands on the page for a rank's variables.
func (b *Board) Of(of *Rank) (variables *mpit.Variables, infos []variables.Info, shown []exposition.Shown) {
	r := b.ranks[of]
	if r == nil {
		return nil, nil, nil // it has just come
	}
	if r.series != nil {
		shown = r.series.Shown()
	}
	return r.Variables, r.Infos, shown
}

// sheet is some of what stands on the page of a rank, with what it has been made of.
type sheet struct {
	*exposition.Sheet
	key sheetKey
}

// sheetKey changes when a sheet has to be built anew.
type sheetKey struct {
	made       uint64 // which figures the generation is of
	generation uint64
	layout     *mpit.Layout
	room       int
	end        mpit.EndReason
	sampled    bool
	controlled bool
	profiled   bool
	long       api.LongCall // zero: none
}

// clear takes a sheet from the page; nil is none.
func (b *Board) clear(s *sheet) {
	if s != nil {
		b.Remove(s.Sheet)
	}
}

// labelled are the labels of a row of a family that belongs to nobody, which has all of them.
func labelled(f *exposition.Family, values ...string) (labels []mapping.Label) {
	for i, value := range values {
		labels = append(labels, mapping.Label{Name: f.Labels[i], Value: value})
	}
	return labels
}

// addInfos makes mpit_pvar_info anew: what any rank on the page has, once each.
func (b *Board) addInfos() {
	if !b.outdated {
		return
	}
	b.outdated = false
	seen := map[[6]string]bool{}
	var rows []exposition.Row
	for _, of := range b.order {
		r := b.ranks[of]
		if r == nil {
			continue
		}
		for _, info := range r.Alike[:r.shown] {
			values := [...]string{info.Name, info.Class.String(), info.Unit, info.Bind.String(), info.Verbosity.String(),
				strconv.Itoa(info.Bits)}
			if !seen[values] {
				seen[values] = true
				rows = append(rows, exposition.Row{Value: 1, Labels: labelled(&familyPvarInfo, values[:]...)})
			}
		}
	}
	b.ReplaceShared(&familyPvarInfo, rows)
}

// addCategories makes mpit_pvar_category_info anew, if it has changed.
func (b *Board) addCategories(all *tally.Tally[CategoryRow]) {
	var sums map[CategoryRow]int
	if sums, b.categories = all.Since(b.categories); sums == nil {
		return
	}
	var rows []exposition.Row
	for r := range sums {
		rows = append(rows, exposition.Row{Value: 1, Labels: labelled(&familyPvarCategory, r.Name, r.Class, r.Category)})
	}
	b.ReplaceShared(&familyPvarCategory, rows)
}

// addControls makes mpit_cvar_ranks anew, if it has changed.
func (b *Board) addControls(all *tally.Tally[ControlRow]) {
	var sums map[ControlRow]int
	if sums, b.controls = all.Since(b.controls); sums == nil {
		return
	}
	var rows []exposition.Row
	for r, n := range sums {
		labels := labelled(&familyControlRanks, r.World.JobID, r.World.Name, r.World.User, r.Name, r.Value)
		if r.World.Dup > 0 {
			labels = append(labels, mapping.Label{Name: "dup", Value: strconv.Itoa(r.World.Dup)})
		}
		rows = append(rows, exposition.Row{Value: float64(n), Labels: labels})
	}
	b.ReplaceShared(&familyControlRanks, rows)
}
