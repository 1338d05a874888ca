package exposition

import "github.com/mpit-exporter/mpit-exporter/mapping"

// Row is one series of the exporter's own families. With Number its value is taken at each SetOwn, else it stays.
type Row struct {
	Labels []mapping.Label
	Value  float64
	Number func() float64
}

// unlabelled is what all rows are that have no labels of their own, as most have none.
var unlabelled mapping.Series

// AddOwn adds a part to one of the exporter's own families, and may put rows into another order. Counters have an
// owner. liveOnly says that it stands on the page only while the sheet is live.
func (p *Page) AddOwn(s *Sheet, of *Family, liveOnly bool, rows ...Row) {
	if len(rows) == 0 {
		return
	}
	for _, r := range rows {
		SortLabels(r.Labels)
	}
	rows = unique(s, rows, func(a, b Row) int { return compareLabels(a.Labels, b.Labels) })
	from, maker := len(s.entries), newLabelMaker(s.owner)
	if s.bare == nil {
		s.bare = maker.of(nil)
	}
	for _, r := range rows {
		e := entry{series: &unlabelled, labels: s.bare, value: r.Value, valid: true, lasting: !liveOnly}
		if len(r.Labels) > 0 {
			e.series, e.labels = &mapping.Series{Labels: r.Labels}, maker.of(r.Labels)
		}
		if r.Number != nil {
			s.own = append(s.own, ownNumber{len(s.entries), r.Number})
		}
		e.text = e.labels.text
		s.entries = append(s.entries, e)
	}
	s.plain = len(s.entries)
	f := p.byName[of.Name]
	if f == nil {
		name, unit := of.OTel()
		f = p.family(of.Name, of.Help, of.Type, otelFamily{name: name, unit: unit})
	}
	p.insert(f, s, from)
}

// ReplaceShared makes a family anew that belongs to nobody.
func (p *Page) ReplaceShared(f *Family, rows []Row) {
	p.Remove(p.shared[f.Name])
	delete(p.shared, f.Name)
	if len(rows) > 0 {
		s := NewSheet(&Owner{})
		p.AddOwn(s, f, false, rows...)
		p.shared[f.Name] = s
	}
}
