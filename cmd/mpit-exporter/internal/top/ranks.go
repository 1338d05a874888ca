package top

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/exporter/job"
	"github.com/mpit-exporter/mpit-exporter/exporter/units"
)

// silent is the state of a rank that hasn't answered in time. The exporter calls it late; here that is one that the
// others wait for.
const silent = "no answer"

func stateOf(r *job.Rank) string {
	switch {
	case r.State == "late":
		return silent
	case r.End != "":
		return r.End
	}
	return r.State
}

// sharesOf are the shares of a rank's time.
func sharesOf(r *job.Rank) (shares api.StateSeconds) {
	for state := range shares {
		shares[state] = r.Share(api.TimeState(state))
	}
	return shares
}

// group is ranks that behave alike.
type group struct {
	first     *job.Rank
	ranks     []*job.Rank
	sums      api.StateSeconds // of shares
	low, high float64          // of the useful shares
}

func (g *group) add(r *job.Rank) {
	shares := sharesOf(r)
	for i := range shares {
		g.sums[i] += shares[i]
	}
	g.low, g.high = min(g.low, shares[api.Outside]), max(g.high, shares[api.Outside])
	g.ranks = append(g.ranks, r)
}

// like says whether a rank does as a group's first does: no share of its time is further away.
func (g *group) like(r *job.Rank, within float64) bool {
	if stateOf(r) != stateOf(g.first) || (r.Time.Sum() > 0) != (g.first.Time.Sum() > 0) {
		return false
	}
	a, b := sharesOf(g.first), sharesOf(r)
	for i := range a {
		if math.Abs(a[i]-b[i]) > within {
			return false
		}
	}
	return true
}

// fold puts ranks together that behave alike, until there is room for them. Where there is room for each, those that
// behave alike stand together all the same, by their numbers: so lines keep their places from look to look.
func fold(ranks []job.Rank, room int) (groups []*group) {
	for _, within := range []float64{0.1, 0.2, 0.5, 1} {
		if groups = alike(ranks, within); len(groups) <= room {
			break
		}
	}
	if len(ranks) > room {
		return groups
	}
	var each []*group
	for _, g := range groups {
		slices.SortFunc(g.ranks, func(a, b *job.Rank) int {
			return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Dup, b.Dup))
		})
		for _, r := range g.ranks {
			each = append(each, newGroup(r))
		}
	}
	return each
}

func alike(ranks []job.Rank, within float64) (groups []*group) {
	for i := range ranks {
		at := slices.IndexFunc(groups, func(g *group) bool { return g.like(&ranks[i], within) })
		if at < 0 {
			groups = append(groups, newGroup(&ranks[i]))
		} else {
			groups[at].add(&ranks[i])
		}
	}
	return groups
}

func newGroup(r *job.Rank) *group {
	g := &group{first: r, low: 1}
	g.add(r)
	return g
}

// ranks are the groups, from late to early.
func ranks(r *job.Report, groups []*group, columns int) grid {
	g := grid{heads: []string{"RANKS", ">USEFUL", ">SEND", ">WAIT", ">COLLECTIVE", ">FILE", ">POLL", ">FINALIZE", ">ENDED",
		"STATE", "HOST"}}
	// Most jobs' ranks are not in the last two states; where no call is measured, in none that is known.
	states, end := 0, 1+len(api.StateSeconds{})
	if r.Verdict.Efficiency != nil {
		states = end - 1
		if !slices.ContainsFunc(groups, func(g *group) bool { return g.sums[api.Finalize]+g.sums[api.Ended] >= 0.005 }) {
			states -= 2
		}
	}
	g.heads = slices.Delete(g.heads, 1+states, end)
	isLate := func(of *group) bool {
		late := r.Verdict.Late
		return late != nil && len(of.ranks) == 1 && late.Rank == of.first.Rank && late.Dup == of.first.Dup
	}
	for _, of := range groups {
		tone, state := Usual, stateOf(of.first)
		switch {
		case of.first.End != "" && of.first.End != "finalize":
			tone = Bad
		case of.first.State == "late":
			tone = Poor
		case isLate(of):
			tone, state = Poor, "late"
		}
		row := cells(tone, of.name(), "", "", "", "", "", "", "", "", state, of.host())
		if of.first.Time.Sum() > 0 {
			for i, sum := range of.sums {
				row[1+i] = Piece{Text: units.Percent(sum / float64(len(of.ranks))), Tone: tone}
			}
			if of.high-of.low > 0.05 {
				row[1].Text = fmt.Sprintf("%.0f-%s", 100*of.low, units.Percent(of.high))
			}
		}
		g.rows = append(g.rows, slices.Delete(row, 1+states, end))
	}
	if width := min(columns-g.width()-2, 30); width >= 8 && r.Verdict.Efficiency != nil { // there is room for strips
		g.heads = slices.Insert(g.heads, 1, "")
		for i, of := range groups {
			g.rows[i] = slices.Insert(g.rows[i], 1, Piece{Text: of.strip(width), Tone: g.rows[i][0].Tone})
		}
	}
	return g
}

// strip is the time of the mean rank.
func (g *group) strip(width int) string {
	if g.first.Time.Sum() <= 0 {
		return ""
	}
	n := float64(len(g.ranks))
	waited := g.sums[api.Wait] + g.sums[api.Collective] + g.sums[api.Poll]
	full, inside, waits := strip(width, g.sums[api.Outside]/n, waited/n)
	return full + inside + waits
}

// name is the numbers of a group's ranks.
func (g *group) name() string {
	if r := g.first; len(g.ranks) == 1 && r.Dup > 0 {
		return fmt.Sprintf("%d (dup %d)", r.Rank, r.Dup)
	}
	all := make([]int, len(g.ranks))
	for i, r := range g.ranks {
		all[i] = r.Rank
	}
	return numbers(all)
}

// host is where they run.
func (g *group) host() string {
	hosts := map[string]bool{}
	for _, r := range g.ranks {
		hosts[r.Node] = true
	}
	if len(hosts) > 1 {
		return strconv.Itoa(len(hosts)) + " hosts"
	}
	return g.first.Node
}

// strip is time as a bar of so many characters: useful, in MPI, and in MPI to wait for others.
func strip(width int, useful, waiting float64) (full, inside, waits string) {
	of := func(share float64) int { return int(math.Round(min(max(share, 0), 1) * float64(width))) }
	a := of(useful)
	c := min(of(waiting), width-a)
	return strings.Repeat("█", a), strings.Repeat("▒", width-a-c), strings.Repeat("░", c)
}
