package exposition

import (
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"

	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// Family describes one metric family of the exporter's own: everything on the page that is not a performance variable.
type Family struct {
	Name string
	Help string
	Type dto.MetricType
	// what its values count, as OpenTelemetry annotates a unit: {rank}; "": nothing, or the name has its unit
	Counts string
	Labels []string // besides the scraper's, and besides `dup` on what stands once per rank or world
}

// Row is one series of the exporter's own families. With Number its value is taken at each SetOwn, else it stays.
type Row struct {
	Labels []mapping.Label
	Value  float64
	Number func(o Owner) float64
}

// AddOwn adds a part to one of the exporter's own families. Counters have an owner. liveOnly says that it stands on
// the page only while the sheet is live.
func (p *Page) AddOwn(s *Sheet, of *Family, liveOnly bool, rows ...Row) {
	if len(rows) == 0 {
		return
	}
	from := len(s.entries)
	if len(rows) == 1 && len(rows[0].Labels) == 0 {
		s.addUnlabelled(&rows[0], !liveOnly)
	} else {
		s.addLabelled(rows, !liveOnly)
	}
	s.plain = len(s.entries)
	f := p.byName[of.Name]
	if f == nil {
		f = p.family(of.Name, of.Help, of.Type, otelOfOwn(of))
	}
	p.insert(f, s, from)
}

// unlabelled is what all rows are that have no labels of their own, as most have none.
var unlabelled mapping.Series

// addUnlabelled adds an entry without labels of its own. All of a sheet have the same text.
func (s *Sheet) addUnlabelled(r *Row, lasting bool) {
	e := entry{series: &unlabelled, value: r.Value, valid: true, lasting: lasting}
	if i := slices.IndexFunc(s.entries, func(e entry) bool { return e.series == &unlabelled }); i >= 0 {
		e.labels = s.entries[i].labels
	} else {
		e.labels = newLabelTexts(s.owner).of(nil)
	}
	if r.Number != nil {
		s.own = append(s.own, ownNumber{len(s.entries), r.Number})
	}
	s.entries = append(s.entries, e)
}

func (s *Sheet) addLabelled(rows []Row, lasting bool) {
	texts := newLabelTexts(s.owner)
	labels := make([]mapping.Series, len(rows))
	numbers := map[*mapping.Series]func(o Owner) float64{}
	from := len(s.entries)
	for i, r := range rows {
		slices.SortFunc(r.Labels, func(a, b mapping.Label) int { return strings.Compare(a.Name, b.Name) })
		labels[i].Labels = r.Labels
		s.entries = append(s.entries, entry{labels: texts.of(r.Labels), series: &labels[i], value: r.Value,
			valid: true, lasting: lasting})
		if r.Number != nil {
			numbers[&labels[i]] = r.Number
		}
	}
	s.sort(from)
	for at := from; at < len(s.entries); at++ {
		if number := numbers[s.entries[at].series]; number != nil {
			s.own = append(s.own, ownNumber{at, number})
		}
	}
}

// ReplaceShared makes a family anew that belongs to nobody.
func (p *Page) ReplaceShared(f *Family, rows []Row) {
	p.Remove(p.shared[f.Name])
	delete(p.shared, f.Name)
	if len(rows) == 0 {
		return
	}
	s := NewSheet(nil)
	p.AddOwn(s, f, false, rows...)
	p.shared[f.Name] = s
}

// SampleNames are the names that samples of the family have, in both text formats.
func (f *Family) SampleNames() []string { return ownedNames(f.Name, f.Type) }
