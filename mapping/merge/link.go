package merge

import (
	"slices"

	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// link brings a member's parts up to date with its series.
func (g *Group) link(gm *member, m *Member) {
	g.relist = true
	gm.figures, gm.structure, gm.linked = m.Figures, m.Structure, true
	g.rules = max(g.rules, m.Rules)
	late := false
	if !gm.joined && len(m.Series) > 0 {
		gm.joined = true
		late = m.Old || g.wasHere[m.Key]
	}
	for _, p := range gm.parts {
		p.unlink()
	}
	gm.active = gm.active[:0]
	for _, s := range m.Series {
		if !s.Grouped {
			continue
		}
		if p := g.linkPart(gm, s, m.Rules, late); p.cell != nil {
			gm.active = append(gm.active, p)
		}
	}
	gm.tidy(len(m.Series) > 0)
}

// unlink takes a part's series away.
func (p *part) unlink() {
	if p.series != nil && p.cell != nil {
		p.cell.parts--
	}
	p.series = nil
}

// retire leaves in the cell what stays of a part that goes. What it has counted is there already.
func (p *part) retire() {
	if p.cell != nil && p.cell.mode == modeWatermark && p.known {
		p.cell.keep(p.last)
	}
}

// linkPart finds the part that stands for a series, and its cell: none, where there is no room.
func (g *Group) linkPart(gm *member, s *mapping.Series, rules uint64, late bool) *part {
	key := keyOf(s)
	p := gm.parts[key]
	if p == nil {
		p = &part{late: late}
		gm.parts[key] = p
	}
	p.series = s
	if p.cell == nil || p.cell.removed {
		p.cell = g.place(key, s)
		if p.cell == nil {
			if !p.refused {
				p.refused = true
				g.dropped[g.limitReason]++
			}
			return p
		}
		// What it had while there was no place for it doesn't come all at once.
		p.late = p.late || p.refused
		p.turn, p.count, p.known, p.hist = p.cell.turn, mapping.Count{}, false, nil
		if rules < p.cell.rules && p.cell.meaning != s.Meaning {
			p.turn-- // it waits for the newer rules (take)
		}
	}
	c := p.cell
	if rules > c.rules && c.meaning != s.Meaning {
		g.restart(c, s)
	}
	if rules > c.rules || c.parts == 0 {
		g.renew(c, s)
		c.rules = max(c.rules, rules)
	}
	c.parts++
	if c.mode != modeCount {
		c.since(s.Since)
	}
	return p
}

// tidy goes through the parts whose series the member hasn't got. Those that count, and watermarks, stay: when the
// member's figures are made anew, their series come back, all of them at once: so while it has none at all, there is
// no limit to them.
func (gm *member) tidy(has bool) {
	idle := 0
	for key, p := range gm.parts {
		switch {
		case p.series != nil:
		case p.cell == nil || p.cell.removed || p.cell.mode == modePresent:
			delete(gm.parts, key)
		default:
			idle++
		}
	}
	for key, p := range gm.parts {
		switch {
		case p.series != nil:
		case has && idle > maxGone:
			// A Rank keeps that many itself for objects that were freed: these don't come back.
			p.retire()
			delete(gm.parts, key)
		case p.cell.mode == modeWatermark:
			gm.active = append(gm.active, p)
		}
	}
}

// place returns the cell for a part: that of its key, made if there is room; nil if there is none.
func (g *Group) place(key seriesKey, s *mapping.Series) *cell {
	if c := g.cells[key]; c != nil {
		return c
	}
	if g.limit >= 0 && g.weight+s.Weight() > g.limit {
		return nil
	}
	c := &cell{key: key, series: mapping.Series{Labels: slices.Clone(s.Labels)}}
	c.mean(s)
	g.renew(c, s)
	g.cells[key] = c
	return c
}

// restart lets a cell begin at zero: newer rules make its series mean something else. Its parts begin anew as well.
func (g *Group) restart(c *cell, s *mapping.Series) {
	c.turn++
	c.value, c.known, c.keptKnown = 0, false, false
	c.series.Valid, c.series.Since = false, 0
	c.mean(s)
	g.renewed = true
}

// mean gives a cell the meaning of a series, and the histogram that goes with it.
func (c *cell) mean(s *mapping.Series) {
	c.meaning, c.series.Histogram = s.Meaning, nil
	if s.Histogram != nil {
		bounds := s.Histogram.Bounds
		c.series.Histogram = &mapping.Histogram{Bytes: s.Histogram.Bytes, Schema: s.Histogram.Schema, Bounds: bounds,
			Counts: make([]uint64, len(bounds)+1)}
	}
}

// renew makes a cell follow a series that is new to it: rules may have changed what is said of a family, and how it
// is merged.
func (g *Group) renew(c *cell, s *mapping.Series) {
	if c.series.Metric != s.Metric {
		c.series.Metric, g.renewed = s.Metric, true
	}
	g.weight += s.Weight() - c.weight
	c.weight = s.Weight()
	c.series.Lasting = s.Lasting
	if merge := mergeOf(s); c.series.Merge() != merge {
		c.series.Together, c.keptKnown = mapping.NewTogether(mapping.RankKeep, merge), false
	}
	c.mode = modeOf(s)
}

func modeOf(s *mapping.Series) mergeMode {
	switch {
	case s.Metric.Kind == mapping.KindCounter || s.Metric.Kind == mapping.KindHistogram:
		return modeCount
	case s.Lasting:
		return modeWatermark
	}
	return modePresent
}

func mergeOf(s *mapping.Series) mapping.Merge {
	if modeOf(s) == modeCount {
		return mapping.MergeSum
	}
	return s.Merge()
}

// sweep takes out the cells that no member has a series for, except for what has been counted there, and the highest
// or lowest. Where newer rules are in force than a cell was made by, it is the rules that have done away with it.
func (g *Group) sweep() {
	gone := 0
	for _, c := range g.ordered {
		if c.parts > 0 {
			continue
		}
		if c.mode != modePresent && c.rules >= g.rules && (c.known || c.keptKnown || c.n > 0) {
			if gone++; gone <= maxGone {
				continue
			}
			g.dropped[mapping.ReasonRemainsLost]++
		}
		g.remove(c)
	}
}

func (g *Group) remove(c *cell) {
	c.removed = true
	delete(g.cells, c.key)
	g.weight -= c.weight
}

// list makes the lists of series anew, and a new structure if they aren't the same.
func (g *Group) list() {
	same := !g.renewed && len(g.ordered) == len(g.cells)
	for _, c := range g.ordered {
		same = same && !c.removed
	}
	if same {
		return
	}
	g.renewed = false
	g.structure++
	g.ordered = g.ordered[:0]
	for _, c := range g.cells {
		g.ordered = append(g.ordered, c)
	}
	slices.SortFunc(g.ordered, func(a, b *cell) int { return a.key.compare(b.key) })
	// Whoever holds the old slice may still read it.
	g.series = make([]*mapping.Series, 0, len(g.ordered))
	for _, c := range g.ordered {
		g.series = append(g.series, &c.series)
	}
}
