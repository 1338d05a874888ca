package exposition

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// Sheet is some of an owner's series, which come and go together: entries, one part of them for each family. What
// readers of protobuf and of metric data need besides is made when they come, and kept.
type Sheet struct {
	// Unlisted says which of its series, by their names, stand on no page, and only Shown has them; nil: none.
	Unlisted func(name string) bool

	Live  bool // all its series stand on the page, else the lasting ones alone
	owner *Owner
	gone  bool // from the page

	entries    []entry
	plain      int                 // so many of them are no histograms; those follow
	histograms []mapping.Histogram // the numbers of the others
	own        []ownNumber         // entries of the exporter's own families whose numbers change
	bare       *labels             // of entries of the exporter's own without labels but the owner's; nil: none yet
	figures    bool                // the entries are series of figures, whose numbers are copied

	parts    []section
	inTheWay []*family      // of another type, so that series of the same name found no place
	dropped  map[string]int // what was left out, by reason; nil: nothing
}

// section is the entries of a sheet that are in one family.
type section struct {
	family   *family
	from, to uint32
}

// entry is one series: of a performance variable, or one of the exporter's own families. It has a copy of its number.
type entry struct {
	text           string          // that of labels: one place less to look at for each line
	labels         *labels         // many entries of an owner share them
	series         *mapping.Series // whose Labels and Metric never change; its numbers belong to the rank
	value          float64         // not of histograms
	since          int64           // when it began to count, in Unix nanoseconds; 0: not known
	valid, lasting bool
	unlisted       bool // it stands on no page; Shown has it
}

// ownNumber is where a number of the exporter's own stands, and what it is.
type ownNumber struct {
	at    int
	value func() float64
}

// known says whether the entry has a number now, shown whether it stands on the page; live, whether its sheet is.
func (e *entry) known(live bool) bool { return e.valid && (live || e.lasting) }

func (e *entry) shown(live bool) bool { return e.known(live) && !e.unlisted }

// NewSheet returns an empty sheet of an owner. All its series stand on the page.
func NewSheet(o *Owner) *Sheet { return &Sheet{owner: o, Live: true} }

// histogram is the numbers of an entry of a histogram's family.
func (s *Sheet) histogram(i int) *mapping.Histogram { return &s.histograms[i-s.plain] }

// created is when an entry's number began to count; the zero time: not known.
func (s *Sheet) created(i int) time.Time {
	switch since := s.entries[i].since; {
	case since != 0:
		return time.Unix(0, since)
	case !s.figures:
		return s.owner.Begun
	}
	return time.Time{}
}

// Drop counts so many series that find no place in the sheet. Whoever shows it counts them for all.
func (s *Sheet) Drop(reason string, n int) {
	if n <= 0 {
		return
	}
	if s.dropped == nil {
		s.dropped = map[string]int{}
	}
	s.dropped[reason] += n
}

// Dropped is what found no place, by reason; nil: nothing.
func (s *Sheet) Dropped() map[string]int { return s.dropped }

// CopyNumbers copies the numbers of the sheet's series, which nobody changes meanwhile.
func (s *Sheet) CopyNumbers() {
	for i := range s.entries {
		e := &s.entries[i]
		e.value, e.valid, e.lasting, e.since = e.series.Value, e.series.Valid, e.series.Lasting, e.series.Since
	}
	for i := range s.histograms {
		e, to := &s.entries[s.plain+i], &s.histograms[i]
		from := e.series.Histogram
		if e.valid = e.valid && from != nil; from == nil {
			continue
		}
		counts, native := append(to.Counts[:0], from.Counts...), append(to.Native[:0], from.Native...)
		*to = *from // whose bounds never change
		to.Counts, to.Native = counts, native
	}
}

// CountOfAll is the count of a histogram's observations: never less than what the buckets with a bound hold, whatever
// came from the rank.
func CountOfAll(h *mapping.Histogram) uint64 {
	sum := uint64(0)
	for _, n := range h.Counts[:len(h.Bounds)] {
		sum += n
	}
	return max(sum, h.Count)
}

// SetOwn sets the numbers of the exporter's own families.
func (s *Sheet) SetOwn() {
	for _, o := range s.own {
		s.entries[o.at].value = o.value()
	}
}

// unique sorts what is to become entries, and leaves out what stands twice: it would make a scraper refuse the whole
// page.
func unique[T any](s *Sheet, list []T, compare func(a, b T) int) []T {
	slices.SortStableFunc(list, compare)
	once := slices.CompactFunc(list, func(a, b T) bool { return compare(a, b) == 0 })
	s.Drop(DroppedDuplicate, len(list)-len(once))
	return once
}

// Fill makes entries of all series of performance variables of a new sheet, and copies their numbers, which nobody
// changes meanwhile. refused says which names are not theirs.
func (p *Page) Fill(s *Sheet, all []*mapping.Series, refused func(name string) bool) {
	var families []*family
	series := map[*family][]*mapping.Series{}
	for _, of := range all {
		if refused(of.Metric.Name) {
			s.Drop(DroppedReserved, 1)
			continue
		}
		f := p.place(s, of.Metric)
		if f == nil {
			continue
		}
		if series[f] == nil {
			families = append(families, f)
		}
		series[f] = append(series[f], of)
	}
	// Histograms follow the others: theirs is the last kind.
	slices.SortStableFunc(families, func(a, b *family) int { return cmp.Compare(a.kind, b.kind) })
	s.figures = true
	s.entries = make([]entry, 0, len(all))
	s.parts = make([]section, 0, len(families))
	maker := newLabelMaker(s.owner)
	for _, f := range families {
		from, unlisted := len(s.entries), s.Unlisted != nil && s.Unlisted(f.name)
		for _, of := range unique(s, series[f], func(a, b *mapping.Series) int { return compareLabels(a.Labels, b.Labels) }) {
			l := maker.of(of.Labels)
			s.entries = append(s.entries, entry{text: l.text, labels: l, series: of, unlisted: unlisted})
		}
		p.insert(f, s, from)
		if f.kind != mapping.KindHistogram {
			s.plain = len(s.entries)
		}
	}
	s.histograms = make([]mapping.Histogram, len(s.entries)-s.plain)
	s.CopyNumbers()
}

// place finds the family of a sheet's series; nil: there is no place.
func (p *Page) place(s *Sheet, m *mapping.Metric) *family {
	rival := p.rival(m.Name, m.Kind)
	if rival == nil {
		return p.family(m.Name, m.Help, m.Kind,
			otelFamily{name: m.OTelName, unit: m.Unit, adds: m.OTelKind == mapping.OTelSum})
	}
	s.Drop(DroppedConflict, 1)
	if !slices.Contains(s.inTheWay, rival) {
		s.inTheWay = append(s.inTheWay, rival)
	}
	return nil
}

// Roomier says whether a family that was in the way of a sheet's series has left, so that it is to be made anew.
func (p *Page) Roomier(s *Sheet) bool {
	return slices.ContainsFunc(s.inTheWay, func(f *family) bool { return p.byName[f.name] != f })
}

// Shown is what an owner has in one family, and stands on the page now or is unlisted.
type Shown struct {
	family *family
	sheet  *Sheet
	places []int
}

// Shown lists what of a sheet stands on the page now or is unlisted, by the families' names.
func (s *Sheet) Shown() []Shown {
	var all []Shown
	for _, part := range s.parts {
		of := Shown{family: part.family, sheet: s}
		for i := part.from; i < part.to; i++ {
			if s.entries[i].known(s.Live) {
				of.places = append(of.places, int(i))
			}
		}
		if len(of.places) > 0 {
			all = append(all, of)
		}
	}
	slices.SortFunc(all, func(a, b Shown) int { return strings.Compare(a.family.name, b.family.name) })
	return all
}

// Name is the family's.
func (s *Shown) Name() string { return s.family.name }

// Len is how many series there are.
func (s *Shown) Len() int { return len(s.places) }

// Series is one of them: what it is, not its numbers.
func (s *Shown) Series(i int) *mapping.Series { return s.sheet.entries[s.places[i]].series }

// Value is the number of one that is no histogram.
func (s *Shown) Value(i int) float64 { return s.sheet.entries[s.places[i]].value }

// Histogram is the numbers of one; nil: it is none.
func (s *Shown) Histogram(i int) *mapping.Histogram {
	if s.family.kind != mapping.KindHistogram {
		return nil
	}
	return s.sheet.histogram(s.places[i])
}
