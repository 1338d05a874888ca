package exporter

import (
	"strconv"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/mpit-exporter/mpit-exporter/exporter/exposition"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/budget"
	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mapping/merge"
)

// groupRank stands for a rank's number in the Identity of a group: it comes before the ranks of its world.
const groupRank = -1

// group is the ranks of one world that are shown together: an owner of series, whose ranks have ended or not. It
// belongs to the page.
type group struct {
	id      Identity
	labels  []*dto.LabelPair // of id, but its rank
	figures *merge.Group
	account *budget.Account           // of its series
	dropped map[mapping.Reason]uint64 // by the figures, as counted in mpit_exporter_series_dropped_total
	left    map[string]int            // left off the page, as counted there
	sheet   *sheet
}

func newGroup(id Identity) *group {
	g := &group{id: id, figures: merge.NewGroup(), dropped: map[mapping.Reason]uint64{}, left: map[string]int{}}
	labels := []mapping.Label{
		{Name: "jobid", Value: id.JobID}, {Name: "user", Value: id.User}, {Name: "world", Value: id.World},
	}
	if id.Dup > 0 {
		labels = append([]mapping.Label{{Name: "dup", Value: strconv.Itoa(id.Dup)}}, labels...)
	}
	g.labels = exposition.LabelPairs(nil, labels)
	return g
}

func (g *group) place() Identity { return g.id }

// Compare puts owners of series into the order of their labels.
func (g *group) Compare(other exposition.Owner) int { return g.place().Compare(other.(owner).place()) }

// Labels are the world's.
func (g *group) Labels() []*dto.LabelPair { return g.labels }

// Begun is not known.
func (g *group) Begun() time.Time { return time.Time{} }

// LeftOff is what of it does not come onto the page.
func (g *group) LeftOff() map[string]int { return g.left }

// Live is always true: which of its ranks' values count is in its figures.
func (g *group) Live() bool { return true }

// gathered is the ranks of one world, while groups are brought up to date.
type gathered struct {
	refresh uint64 // the running one
	members []merge.Member
	grouped bool // one of them has series to be merged
}

// updateGroup brings the sheet of a group up to date.
func (p *board) updateGroup(g *group) {
	key := sheetKey{generation: g.figures.Structure()}
	if s := g.sheet; s != nil && s.key == key && !p.Roomier(s.Sheet) {
		p.CopyNumbers(s.Sheet)
	} else {
		p.clear(s)
		g.sheet = &sheet{exposition.NewSheet(g), key}
		whose := g.figures.Extremes() // of the watermarks
		p.Fill(g.sheet.Sheet, g.figures.Series(), reservedToGroups, whose...)
	}
	for reason, n := range g.sheet.Dropped() {
		exposition.CountMore(p.drop, g.left, reason, n)
	}
}

// reservedToGroups says whether not even the series of ranks together may have this name.
func reservedToGroups(name string) bool {
	return Reserved(name) && (!strings.HasPrefix(name, mapping.NodePrefix) || name == mapping.ExtremeName)
}

// owner is whom series on the page belong to: a rank, or those of a world together.
type owner interface {
	exposition.Owner
	place() Identity
}

var _, _ owner = (*portrait)(nil), (*group)(nil)
