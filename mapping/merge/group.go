// Package merge merges the series of the ranks of one MPI_COMM_WORLD on this node, where rules say so (`rank: node`).
//
// It knows neither rules nor MPI: what it merges are mapping's series, each with what becomes of it in several ranks
// (mapping.Together). Begin reading with Group.
package merge

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

const (
	maxDeparted = 4096 // members that a Group remembers
	maxGone     = 4096 // series that may stay although nobody contributes to them any more
)

// Member is one rank of a Group, at the moment of Group.Update.
type Member struct {
	Key       mpit.RankID // of the process: it stays when its connection or its figures are made anew
	Figures   any         // whose Structure and Series these are: the Rank itself. Comparable
	Structure uint64
	Rules     uint64            // by which the Series were made; newer rules have a higher number
	Series    []*mapping.Series // those that aren't Grouped are passed over; nil: none just now
	Live      bool              // answers: else its lasting series alone count
	Old       bool              // was there before this exporter: an earlier one may have shown what it has counted
}

// Group merges the series of the ranks of one MPI_COMM_WORLD on this node, each variable by its class. It belongs to
// one goroutine.
//
// What counts is never summed anew: a series gains what each member's gains (Count), so that it can't fall, and
// nothing is counted twice. So a member's end changes nothing, and neither does one that begins anew: it goes on from
// there. Levels, states and watermarks are merged anew at each Update.
//
// The numbers go this way: a member has a part for each of its series; the parts of one name and labels are merged in
// a cell, which is a series of the Group. Parts are linked to cells only when a member's set of series has changed
// (link.go).
type Group struct {
	cells   map[seriesKey]*cell
	ordered []*cell
	members map[mpit.RankID]*member
	present []*member // of the running Update
	update  uint64    // number of Updates
	rules   uint64    // the newest of any member
	relist  bool      // the set of cells may have changed

	// Members that have ended, the oldest first. What one counts that comes back has been counted up to where it is.
	departed []mpit.RankID
	wasHere  map[mpit.RankID]bool

	series    []*mapping.Series
	structure uint64
	renewed   bool // a cell has got another Metric

	weight      int
	limit       int // of weight; below zero: none
	limitReason mapping.Reason
	dropped     map[mapping.Reason]uint64
}

// NewGroup returns a Group without members and without a limit.
func NewGroup() *Group {
	return &Group{
		cells: map[seriesKey]*cell{}, members: map[mpit.RankID]*member{}, wasHere: map[mpit.RankID]bool{},
		limit: -1, dropped: map[mapping.Reason]uint64{},
	}
}

// SetLimit bounds the weight of the Group's series, from the next Update on. What is there keeps its place. The
// last eighth is for objects called other, into which the newest objects' series fold, variable by variable; what
// finds no place there either is left out and counted, for reason. Below zero: no limit.
func (g *Group) SetLimit(weight int, reason mapping.Reason) { g.limit, g.limitReason = weight, reason }

// Weight is the weight of the Group's series.
func (g *Group) Weight() int { return g.weight }

// Dropped counts what has been left out since NewGroup, by reason: members' series. nil: nothing. The map is the
// caller's.
func (g *Group) Dropped() map[mapping.Reason]uint64 {
	if len(g.dropped) == 0 {
		return nil
	}
	return maps.Clone(g.dropped)
}

// Update takes all members as they are at a moment of the exporter's clock. A member that is not among them any more
// has ended: what it has counted, and its watermarks, stay.
//
// A member that is Old, or one that had ended and comes back, contributes only what it counts from then on.
func (g *Group) Update(members []Member, now time.Time) {
	g.update++
	g.present = g.present[:0]
	for i := range members {
		m := &members[i]
		gm := g.members[m.Key]
		if gm == nil {
			gm = &member{parts: map[seriesKey]*part{}}
			g.members[m.Key] = gm
		}
		gm.live, gm.rules, gm.seen = m.Live, m.Rules, g.update
		if !gm.linked || gm.figures != m.Figures || gm.structure != m.Structure {
			g.link(gm, m)
		}
		g.present = append(g.present, gm)
	}
	clear(g.present[len(g.present):cap(g.present)]) // who has left is not to be held
	if len(g.members) > len(g.present) {
		for key, gm := range g.members {
			if gm.seen != g.update {
				g.leave(key, gm)
			}
		}
	}
	if g.relist {
		g.relist = false
		g.sweep()
		g.list()
	}
	for _, c := range g.ordered {
		c.begin()
	}
	for _, gm := range g.present {
		for _, p := range gm.active {
			p.take(gm, now.UnixNano())
		}
	}
	for _, c := range g.ordered {
		c.settle()
	}
}

// Series is all merged series, in a stable order, kept as those of a Rank: without rank, state and so on as in
// Series.Labels.
func (g *Group) Series() []*mapping.Series { return g.series }

// Structure is a number that changes when the set of series does.
func (g *Group) Structure() uint64 { return g.structure }

// seriesKey is what cells are known by, and the parts of one member.
type seriesKey struct {
	name   string // of the family
	kind   mapping.Kind
	labels string // names and values, each with a byte behind that no UTF-8 has
}

// member is a rank, for as long as it is among the members.
type member struct {
	live      bool
	rules     uint64
	seen      uint64 // the last Update with it
	figures   any
	structure uint64
	linked    bool // the two are set
	joined    bool // has had a series
	parts     map[seriesKey]*part
	active    []*part // those that have something to contribute
}

// mergeMode says how parts become one.
type mergeMode uint8

const (
	modeCount     mergeMode = iota // what only grows
	modeWatermark                  // also of those who don't answer
	modePresent                    // of those who answer
)

// cell is one series of the Group.
type cell struct {
	key     seriesKey
	series  mapping.Series
	mode    mergeMode
	rules   uint64 // the newest that a part was made by
	parts   int    // that have a series
	weight  int
	removed bool

	meaning uint32  // of its parts; see variables.Variable
	turn    uint32  // how often that has changed
	gain    float64 // modeCount: of the running Update
	value   float64 // modeCount: in all
	known   bool    // modeCount: there has been a value

	// Of the running Update, but of modeCount.
	merged float64
	n      int

	// The watermark of members that have ended, with MergeMax and MergeMin.
	kept      float64
	keptKnown bool
}

func (c *cell) begin() {
	c.gain, c.merged, c.n = 0, 0, 0
	if c.keptKnown {
		c.add(c.kept)
	}
}

// add merges a gauge's value of one rank.
func (c *cell) add(x float64) {
	if c.n > 0 {
		x = c.series.Merge().Combine(c.merged, x)
	}
	c.merged = x
	c.n++
}

// keep holds on to the watermark of a member that has ended. A sum is one of those who are there.
func (c *cell) keep(x float64) {
	merge := c.series.Merge()
	if merge != mapping.MergeMax && merge != mapping.MergeMin {
		return
	}
	if c.keptKnown {
		x = merge.Combine(c.kept, x)
	}
	c.kept, c.keptKnown = x, true
}

func (c *cell) settle() {
	s := &c.series
	if c.mode == modeCount {
		if mapping.Finite(c.value + c.gain) {
			c.value += c.gain
		}
		s.Valid = c.known
		if s.Histogram != nil {
			s.Histogram.Sum = c.value
		} else {
			s.Value = c.value
		}
		return
	}
	s.Valid, s.Value = c.n > 0 && mapping.Finite(c.merged), c.merged
}

// since moves the beginning of a cell that counts to that of a part, if that is earlier and nobody has seen another:
// who adds up takes a beginning that moves for a reset.
func (c *cell) since(at int64) {
	if c.series.Valid && c.series.Since != 0 {
		return
	}
	if at != 0 && (c.series.Since == 0 || at < c.series.Since) {
		c.series.Since = at
	}
}

// part is what one series of a member contributes to a cell.
type part struct {
	cell   *cell
	turn   uint32          // of the cell, when it began to contribute
	series *mapping.Series // nil: the member hasn't got it just now
	count  mapping.Count   // modeCount: only its last value matters
	last   float64         // of a watermark: what is in the cell
	known  bool            // there is a last
	late   bool            // what it has when it is read first is not in the cell

	refused bool // there was no room for it: counted
	hist    *buckets
}

// take merges what a member has now.
func (p *part) take(gm *member, now int64) {
	if c := p.cell; p.turn != c.turn {
		if gm.rules < c.rules {
			return // by older rules it means something else
		}
		p.turn, p.count, p.hist, p.known, p.late = c.turn, mapping.Count{}, nil, false, false
	}
	switch s, c := p.series, p.cell; {
	case c.mode == modeCount:
		if s.Valid {
			p.add(now)
		}
	case c.mode == modeWatermark:
		if s != nil && s.Valid {
			p.last, p.known = s.Value, true
		}
		if p.known {
			c.add(p.last)
		}
	case gm.live && s.Valid:
		c.add(s.Value)
	}
}

// add adds what a series has gained to the cell.
func (p *part) add(now int64) {
	s, c := p.series, p.cell
	x := s.Value
	if s.Histogram != nil {
		x = s.Histogram.Sum
	}
	skip := p.late && !p.count.Known()
	if skip {
		p.count.Skip(x)
		c.since(now)
	} else {
		c.gain += p.count.Take(x)
		c.since(s.Since)
	}
	if s.Histogram != nil {
		if !p.hist.fits(s.Histogram) {
			p.hist = newBuckets(s.Histogram, c.series.Histogram.Bounds)
		}
		p.hist.take(c.series.Histogram, s.Histogram, skip)
	}
	c.known = true
}

// keyOf is the key of a member's series, and with object the same for another object.
func keyOf(s *mapping.Series, object string) seriesKey {
	var b strings.Builder
	for _, l := range s.Labels {
		value := l.Value
		if object != "" && isObjectLabel(l.Name) {
			value = object
		}
		b.WriteString(l.Name)
		b.WriteByte(0xff)
		b.WriteString(value)
		b.WriteByte(0xff)
	}
	return seriesKey{s.Metric.Name, s.Metric.Kind, b.String()}
}

func isObjectLabel(name string) bool {
	_, ok := mpit.BindOfLabel(name)
	return ok
}

func (k seriesKey) compare(o seriesKey) int {
	return cmp.Or(strings.Compare(k.name, o.name), strings.Compare(k.labels, o.labels), cmp.Compare(k.kind, o.kind))
}

// leave takes a member out. What it has counted is in the cells.
func (g *Group) leave(key mpit.RankID, gm *member) {
	g.relist = true
	delete(g.members, key)
	for _, p := range gm.parts {
		p.unlink()
		p.retire()
	}
	if !gm.joined || g.wasHere[key] {
		return
	}
	if len(g.departed) == maxDeparted {
		delete(g.wasHere, g.departed[0])
		g.departed = slices.Delete(g.departed, 0, 1)
	}
	g.departed = append(g.departed, key)
	g.wasHere[key] = true
}
