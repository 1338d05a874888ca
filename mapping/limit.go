package mapping

import (
	"cmp"
	"slices"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// Defaults of Limits.
const (
	DefaultSeries            = 500_000
	DefaultSeriesPerJob      = 200_000
	DefaultSeriesPerUser     = 250_000
	DefaultSeriesPerRank     = 20_000
	DefaultSeriesPerVariable = 2_000
)

// SetLimit bounds the weight of the rank's series, from the next Update on. Over it, the newest objects' series become one
// called other, variable by variable; if that is not enough, variables are left out, those of the highest verbosity first. What
// is over is counted as dropped, for reason. Below zero: no limit, which is also what a new Rank has.
//
// Who has series keeps them as long as the limit allows. Room that becomes free is given out when the objects or variables of
// the rank change, or the limit has grown by more than a sixteenth; a variable that was left out comes back when there is an
// eighth of the limit to spare.
func (r *Rank) SetLimit(weight int, reason Reason) {
	r.limits.rank = newBound(weight, reason)
}

// SetVariableLimit bounds, in the same way, the weight of the series of each variable by itself.
func (r *Rank) SetVariableLimit(weight int) {
	l := newBound(weight, ReasonVariableOverLimit)
	r.limits.stale = r.limits.stale || l != r.limits.variable
	r.limits.variable = l
}

// Weight is how many series the rank has on the page for itself (RankKeep, RankBoth), as Prometheus counts them: a histogram
// is as many as it has lines. Room that is kept for a value outside of a STATE's enumeration counts as well.
func (r *Rank) Weight() int { return r.limits.weight }

// limits is what bounds a rank's series, and how they stand to it since fit was called last.
type limits struct {
	rank, variable bound
	fitted         bound // rank, at the last fit
	stale          bool  // variable has changed since
	active         bool  // something is folded or left out, or has been
	weight         int   // of what stands on the page
	full           int   // of what would without limits
}

// bound is a bound of weights. The zero bound is none.
type bound struct {
	set    bool
	weight int
	reason Reason
}

func newBound(weight int, reason Reason) bound {
	if weight < 0 {
		return bound{}
	}
	return bound{set: true, weight: weight, reason: reason}
}

func (l bound) allows(weight int) bool { return !l.set || weight <= l.weight }

// standing is how a cell stands to the limits.
type standing struct {
	owns bool // has series of its own, as of the last fit
	lost bool // has none, and has been counted
}

// born notes an object that contributes to the cell. Objects get rising numbers as the program makes them.
func (c *cell) born(object uint32) {
	if c.birth == 0 || object < c.birth {
		c.birth = object
	}
}

// unit is the weight of one cell of the variable.
func (r *Rank) unit(v *variable) int {
	switch {
	case v.mode == modeState:
		return len(v.items) + 1
	case v.metric.Kind == KindHistogram:
		return len(v.buckets) + 3 // +Inf, sum and count
	}
	return 1
}

// due says whether the limits have changed so that it matters.
func (l *limits) due() bool {
	switch {
	case l.stale || !l.rank.allows(l.weight):
		return true
	case !l.active || !l.fitted.set:
		return false
	case !l.rank.set:
		return true
	}
	return l.rank.weight >= l.full && l.fitted.weight < l.full || l.rank.weight > l.fitted.weight+l.rank.weight/16
}

// refit is for an Update in which nothing but the limits can have changed.
func (r *Rank) refit() {
	if r.limits.due() {
		r.fit()
		r.relist = true
	}
}

// share is what a variable gets.
type share struct {
	v      *variable
	unit   int
	charge int   // what one cell takes of the rank's limit
	other  *cell // where cells fold into, if it is there
	stays  bool  // and has to stay
	n      int   // cells besides other
	own    int   // so many of them have series of their own
	most   int   // cells that the variable's limit allows; below zero: any number
	off    bool
	reason Reason // of off
}

func (r *Rank) newShare(v *variable) share {
	s := share{v: v, unit: r.unit(v), n: len(v.list), most: -1}
	if v.ranks != RankNode { // else its group has the series
		s.charge = s.unit
	}
	if l := r.limits.variable; l.set {
		s.most = l.weight / s.unit
	}
	if v.separate {
		return s
	}
	if s.other = v.find(v.otherID()); s.other != nil {
		s.n--
		// An object may really have that name. What counts never falls, so that it stays once it is there.
		s.stays = s.other.rest() == nil || s.other.seen == r.generation || v.mode == modeCount || v.mode == modeWatermark
	}
	return s
}

// cells is how many cells stand on the page, if own have series of their own. It is never less with more of them.
func (s *share) cells(own int) int {
	switch {
	case s.v.separate:
		return min(s.n, max(own, 1))
	case own < s.n || s.stays:
		return own + 1
	}
	return own
}

// fit decides which cells have series of their own, which fold into other, and which variables are left out.
func (r *Rank) fit() {
	l := &r.limits
	l.stale, l.fitted = false, l.rank
	weight, fits := 0, true
	for _, v := range r.order {
		if v.metric == nil {
			continue
		}
		n := len(v.list) * r.unit(v)
		if v.ranks != RankNode {
			weight += n
		}
		fits = fits && l.variable.allows(n)
	}
	if !l.active && fits && l.rank.allows(weight) {
		l.weight, l.full = weight, weight
		if l.rank.set || l.variable.set {
			for _, v := range r.order {
				for _, c := range v.list {
					c.owns = true
					r.expose(c)
				}
			}
		}
		return
	}
	shares := make([]share, 0, len(r.order))
	for _, v := range r.order {
		if v.metric != nil {
			shares = append(shares, r.newShare(v))
		}
	}
	l.full = 0
	for i := range shares {
		l.full += shares[i].charge * shares[i].cells(shares[i].n)
	}
	room := r.leaveOut(shares)
	r.giveOut(shares, room)
	l.weight, l.active = 0, false
	for i := range shares {
		r.apply(&shares[i])
		if s := &shares[i]; !s.off {
			l.weight += s.charge * s.cells(s.own)
		}
	}
}

// leaveOut decides which variables are left out, and returns the room beyond what the others need at least.
func (r *Rank) leaveOut(shares []share) (room int) {
	l := r.limits.rank
	least, have := 0, 0 // what those who were there need, and what they have
	staying := make([]*share, 0, len(shares))
	var returning []*share
	for i := range shares {
		s := &shares[i]
		switch {
		case s.most == 0:
			s.off, s.reason = true, ReasonVariableOverLimit
		case s.v.off && l.set:
			s.off, s.reason = true, l.reason
			returning = append(returning, s)
		default:
			staying = append(staying, s)
			least += s.charge * s.cells(0)
			owned := 0
			for _, c := range s.v.list {
				if c.owns && c != s.other {
					owned++
				}
			}
			have += s.charge * s.cells(owned)
		}
	}
	if !l.set {
		return 0
	}
	if least > l.weight {
		r.byVerbosity(staying)
		for i := len(staying) - 1; i >= 0 && least > l.weight; i-- {
			s := staying[i]
			if s.n == 0 && s.other == nil {
				continue // takes no room
			}
			s.off, s.reason = true, l.reason
			least -= s.charge * s.cells(0)
		}
		for _, s := range staying { // what would have fitted without a larger one that had to go as well
			if need := s.charge * s.cells(0); s.off && least+need <= l.weight {
				s.off = false
				least += need
			}
		}
		have = least
	}
	r.byVerbosity(returning)
	for _, s := range returning {
		need := s.charge * s.cells(0)
		if max(least, have)+need+l.weight/8 > l.weight {
			break
		}
		s.off = false
		least += need
		have += need
	}
	return l.weight - least
}

// byVerbosity sorts variables from those to be kept to those to be left out; they stand in the order in which they came.
func (r *Rank) byVerbosity(shares []*share) {
	slices.SortStableFunc(shares, func(a, b *share) int { return cmp.Compare(r.verbosity(a.v), r.verbosity(b.v)) })
}

// verbosity is the variable's, unknown ones being the highest. A ratio has that of its parts.
func (r *Rank) verbosity(v *variable) mpit.Verbosity {
	const highest = ^mpit.Verbosity(0)
	if v.info.Class != highRatio && v.info.Class != levelRatio {
		if v.info.Verbosity == mpit.VerbosityUnknown {
			return highest
		}
		return v.info.Verbosity
	}
	var most mpit.Verbosity
	for class := range mpit.Class(len(classWords)) {
		if part := r.named(variableKey{v.info.Name, class}); part != nil && part.metric != nil {
			most = max(most, r.verbosity(part))
		}
	}
	return most
}

// giveOut gives cells series of their own while there is room: first those that have them, then by age, the predefined objects'
// before all others.
func (r *Rank) giveOut(shares []share, room int) {
	predefined := map[uint32]bool{}
	if r.layout != nil {
		for i := range r.layout.Objects {
			if o := &r.layout.Objects[i]; o.Predefined {
				predefined[o.ID] = true
			}
		}
	}
	type candidate struct {
		c     *cell
		share int
		owned bool
		birth uint32
	}
	var candidates []candidate
	for i := range shares {
		s := &shares[i]
		if s.off {
			continue
		}
		for _, c := range s.v.list {
			if c == s.other {
				continue
			}
			birth := c.birth - 1 // not known: the highest
			if s.v.label == "" || predefined[c.birth] {
				birth = 0
			}
			candidates = append(candidates, candidate{c, i, c.owns, birth})
			c.owns = false
		}
	}
	slices.SortStableFunc(candidates, func(a, b candidate) int {
		if a.owned != b.owned {
			if a.owned {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.birth, b.birth)
	})
	for _, k := range candidates {
		s := &shares[k.share]
		cells := s.cells(s.own + 1)
		if s.most >= 0 && cells > s.most {
			s.reason = ReasonVariableOverLimit
			continue
		}
		if cost := s.charge * (cells - s.cells(s.own)); r.limits.rank.set && cost > 0 {
			if cost > room {
				if s.reason == "" {
					s.reason = r.limits.rank.reason
				}
				continue
			}
			room -= cost
		}
		s.own++
		k.c.owns = true
		r.dirty = r.dirty || !k.owned && s.v.mode == modeCount
	}
}

// apply makes a variable's series what its share is.
func (r *Rank) apply(s *share) {
	v, l := s.v, &r.limits
	v.off = s.off
	if v.off {
		l.active = true
		for _, c := range v.list {
			r.lose(c, s)
			c.owns = false
		}
		return
	}
	if !v.separate {
		r.ensureOther(s)
	}
	for _, c := range v.list {
		switch {
		case c == v.other || c == s.other:
			c.lost = false
			r.expose(c)
		case c.owns:
			c.lost = false
			r.unfold(c)
			r.expose(c)
		default:
			l.active = true
			r.lose(c, s)
			if !v.separate {
				r.fold(c)
			}
		}
	}
	l.active = l.active || v.other != nil
}

// lose takes a cell's series from the page, and counts them once.
func (r *Rank) lose(c *cell, s *share) {
	c.hide()
	if !c.lost {
		c.lost = true
		r.dropped[s.reason] += uint64(s.unit)
	}
}

// idle is the variables that need not be read for the time being: left out, and no companion of a timer that is shown.
func (r *Rank) idle() map[*variable]bool {
	if !r.limits.active {
		return nil
	}
	idle := map[*variable]bool{}
	for _, v := range r.byID {
		if v.off {
			idle[v] = true
		}
	}
	for _, v := range r.byID {
		if v.with != nil && v.metric != nil && !v.off {
			delete(idle, v.with)
		}
	}
	return idle
}
