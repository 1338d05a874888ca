package exporter

import (
	"strconv"

	"github.com/mpit-exporter/mpit-exporter/exporter/exposition"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/categories"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/tally"
	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// board is the page with all that stands on it: of ranks (portrait.go), of those of a world together (group.go), and
// what belongs to nobody. What it shows of a rank is a copy: while it is written, ranks go on. It belongs to the page.
type board struct {
	*exposition.Page
	ranks  map[*rank]*portrait
	groups map[*world]*group
	worlds map[*world]*gathered
	joined []*world // of the running refresh

	outdated             bool   // mpit_pvar_info is to be made anew
	categories, controls uint64 // of the Exporter's, when their families were made

	single []*mapping.Series // of a rank, without those of its group; its memory is used again

	drop func(reason string, n int) // counts what does not come onto the page
}

func newBoard(drop func(reason string, n int)) *board {
	return &board{
		Page: exposition.New(drop), ranks: map[*rank]*portrait{}, groups: map[*world]*group{}, worlds: map[*world]*gathered{},
		outdated: true, drop: drop,
	}
}

// sheet is some of what stands on the page of a rank or group, with what it has been made of.
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
}

// seriesKey changes with the rank's series, which has figures.
func (f *facts) seriesKey() sheetKey { return sheetKey{made: f.made, generation: f.structure} }

// clear takes a sheet from the page; nil is none.
func (b *board) clear(s *sheet) {
	if s != nil {
		b.Remove(s.Sheet)
	}
}

// addInfos makes mpit_pvar_info anew: what any rank on the page has, once each.
func (b *board) addInfos(ranks []view) {
	if !b.outdated {
		return
	}
	b.outdated = false
	type key struct {
		name, class, unit, bind, verbosity string
		bits                               int
	}
	seen := map[key]bool{}
	var rows []exposition.Row
	for i := range ranks {
		r := b.ranks[ranks[i].rank]
		if r == nil {
			continue
		}
		for _, info := range r.infos[:r.shown] {
			k := key{info.Name, info.Class.String(), info.Unit, info.Bind.String(), info.Verbosity.String(), info.Bits}
			if seen[k] {
				continue
			}
			seen[k] = true
			rows = append(rows, exposition.Row{Value: 1, Labels: []mapping.Label{
				{Name: "name", Value: k.name}, {Name: "class", Value: k.class}, {Name: "unit", Value: k.unit},
				{Name: "bind", Value: k.bind}, {Name: "verbosity", Value: k.verbosity}, {Name: "bits", Value: strconv.Itoa(k.bits)},
			}})
		}
	}
	b.ReplaceShared(&familyPvarInfo, rows)
}

// addCategories makes the families of categories anew, if they have changed.
func (b *board) addCategories(all *tally.Tally[categories.Row]) {
	var sums map[categories.Row]int
	if sums, b.categories = all.Since(b.categories); sums == nil {
		return
	}
	var variables, parents []exposition.Row
	for r := range sums {
		if r.Parent != "" {
			parents = append(parents, exposition.Row{Value: 1, Labels: []mapping.Label{
				{Name: "category", Value: r.Category}, {Name: "parent", Value: r.Parent},
			}})
			continue
		}
		variables = append(variables, exposition.Row{Value: 1, Labels: []mapping.Label{
			{Name: "name", Value: r.Name}, {Name: "class", Value: r.Class}, {Name: "category", Value: r.Category},
		}})
	}
	b.ReplaceShared(&familyPvarCategory, variables)
	b.ReplaceShared(&familyCategoryParent, parents)
}

// addControls makes mpit_cvar_ranks anew, if it has changed.
func (b *board) addControls(all *tally.Tally[controlRow]) {
	var sums map[controlRow]int
	if sums, b.controls = all.Since(b.controls); sums == nil {
		return
	}
	var rows []exposition.Row
	for r, n := range sums {
		labels := []mapping.Label{
			{Name: "jobid", Value: r.world.jobID}, {Name: "world", Value: r.world.world}, {Name: "user", Value: r.world.user},
			{Name: "name", Value: r.Name}, {Name: "value", Value: r.Value},
		}
		if r.world.dup > 0 {
			labels = append(labels, mapping.Label{Name: "dup", Value: strconv.Itoa(r.world.dup)})
		}
		rows = append(rows, exposition.Row{Value: float64(n), Labels: labels})
	}
	b.ReplaceShared(&familyControlRanks, rows)
}
