package exposition

import (
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"go.opentelemetry.io/otel/attribute"

	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// Sheet is some of an owner's series, which come and go together: entries, one part of them for each family. What
// readers of messages and of metric data need besides is made when they come, and kept.
type Sheet struct {
	owner Owner // nil: nobody
	live  bool  // else the lasting series alone stand on the page
	gone  bool  // from the page

	entries    []entry
	plain      int                 // so many of them are no histograms; those follow
	histograms []mapping.Histogram // the numbers of the others
	// when the numbers of each entry began to count, in Unix nanoseconds; nil: nobody wants to know
	since   []int64
	own     []ownNumber // entries of the exporter's own families whose numbers change
	figures bool        // the entries are series of figures, whose numbers are copied

	parts    []section
	inTheWay []*family      // of another type, so that series of the same name found no place
	dropped  map[string]int // what was left out, by reason; nil: nothing

	messages []message       // of the entries; nil: nobody has gathered them
	pairs    []string        // labels of the entries as protobuf; nil: nobody has read that
	sets     []attribute.Set // of the entries; nil: nobody has read metric data
}

// section is the entries of a sheet that are in one family.
type section struct {
	family   *family
	from, to uint32
}

// entry is one series: of a performance variable, or one of the exporter's own families. It has a copy of its number.
type entry struct {
	// as text: what stands between a name and a value. Many entries of an owner share it
	labels         string
	series         *mapping.Series // whose Labels and Metric never change; its numbers belong to the rank
	value          float64         // not of histograms
	valid, lasting bool
}

// ownNumber is where a number of the exporter's own stands, and what it is.
type ownNumber struct {
	at    int
	value func(o Owner) float64
}

// shown says whether the entry stands on the page now; live, whether its sheet is.
func (e *entry) shown(live bool) bool { return e.valid && (live || e.lasting) }

// NewSheet returns an empty sheet of an owner; nil is nobody. All its series stand on the page.
func NewSheet(o Owner) *Sheet { return &Sheet{owner: o, live: true} }

// SetLive says whether all series stand on the page, or the lasting ones alone.
func (s *Sheet) SetLive(live bool) { s.live = live }

// compare puts sheets into the order of their owners; what is nobody's has a family for itself.
func (s *Sheet) compare(other *Sheet) int {
	if s.owner == nil || other.owner == nil {
		return 0
	}
	return s.owner.Compare(other.owner)
}

func (s *Sheet) sharedLabels() []*dto.LabelPair {
	if s.owner == nil {
		return nil
	}
	return s.owner.Labels()
}

// histogram is the numbers of an entry of a histogram's family.
func (s *Sheet) histogram(i int) *mapping.Histogram { return &s.histograms[i-s.plain] }

// created is when an entry's number began to count; the zero time: not known.
func (s *Sheet) created(i int) time.Time {
	switch {
	case i < len(s.since) && s.since[i] != 0:
		return time.Unix(0, s.since[i])
	case !s.figures && s.owner != nil:
		return s.owner.Begun()
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

// CopyNumbers copies the numbers of a sheet's series, which nobody changes meanwhile.
func (p *Page) CopyNumbers(s *Sheet) {
	for i := range s.entries[:s.plain] {
		e := &s.entries[i]
		e.value, e.valid, e.lasting = e.series.Value, e.series.Valid, e.series.Lasting
	}
	for i := range s.histograms {
		e := &s.entries[s.plain+i]
		e.valid, e.lasting = e.series.Valid && e.series.Histogram != nil, e.series.Lasting
		CopyHistogram(&s.histograms[i], e.series.Histogram)
	}
	if !p.created {
		return
	}
	if s.since == nil {
		s.since = make([]int64, len(s.entries))
	}
	for i := range s.entries {
		s.since[i] = s.entries[i].series.Since
	}
}

// CopyHistogram copies from's numbers, using the memory that to has. Bounds never change.
func CopyHistogram(to, from *mapping.Histogram) {
	if from == nil {
		return
	}
	counts, native := append(to.Counts[:0], from.Counts...), append(to.Native[:0], from.Native...)
	*to = *from
	to.Counts, to.Native = counts, native
}

// SetOwn sets the numbers of the exporter's own families.
func (s *Sheet) SetOwn() {
	for _, o := range s.own {
		s.entries[o.at].value = o.value(s.owner)
	}
}

// sort orders the entries of a part, from one on to the last, by their own labels (the others are the same) and
// leaves out those that stand twice: one of them would make a scraper refuse the whole page.
func (s *Sheet) sort(from int) {
	entries := s.entries[from:]
	byLabels := func(a, b entry) int { return compareLabels(a.series.Labels, b.series.Labels) }
	slices.SortStableFunc(entries, byLabels)
	unique := slices.CompactFunc(entries, func(a, b entry) bool { return byLabels(a, b) == 0 })
	s.Drop(DroppedDuplicate, len(entries)-len(unique))
	s.entries = s.entries[:from+len(unique)]
}

// listing gathers series by their families. Its memory is used again.
type listing struct {
	families []*family
	number   map[*family]int32 // in families
	series   []*mapping.Series
	of       []int32 // number of each one's family
	next     []int32 // by the families' numbers: where the next one of each stands in sorted
	sorted   []*mapping.Series
}

// begin gathers for another sheet.
func (l *listing) begin() {
	if l.number == nil {
		l.number = map[*family]int32{}
	}
	clear(l.number)
	clear(l.families)
	clear(l.series)
	clear(l.sorted)
	l.families, l.series, l.of, l.next, l.sorted = l.families[:0], l.series[:0], l.of[:0], l.next[:0], l.sorted[:0]
}

// Fill makes entries of all series of performance variables of a new sheet, and copies their numbers, which nobody
// changes meanwhile. refused says which names are not theirs; unless they are beyond doubt, as those of more are.
func (p *Page) Fill(s *Sheet, all []*mapping.Series, refused func(name string) bool, more ...*mapping.Series) {
	p.listing.begin()
	p.list(s, all, refused)
	p.list(s, more, func(string) bool { return false })
	p.add(s)
}

// list gathers series for a sheet, but those whose family's name is refused or taken.
func (p *Page) list(s *Sheet, all []*mapping.Series, refused func(name string) bool) {
	l := &p.listing
	for _, series := range all {
		m := series.Metric
		if refused(m.Name) {
			s.Drop(DroppedReserved, 1)
			continue
		}
		if rival := p.rival(m.Name, metricType(m.Kind)); rival != nil {
			s.Drop(DroppedConflict, 1)
			if !slices.Contains(s.inTheWay, rival) {
				s.inTheWay = append(s.inTheWay, rival)
			}
			continue
		}
		f := p.family(m.Name, m.Help, metricType(m.Kind), otelOfMetric(m))
		number, known := l.number[f]
		if !known {
			number = int32(len(l.families))
			l.number[f] = number
			l.families = append(l.families, f)
			l.next = append(l.next, 0)
		}
		l.series, l.of = append(l.series, series), append(l.of, number)
		l.next[number]++
	}
}

// sort puts the series of each family together, and returns where those of a family end.
func (l *listing) sort() (ends []int32) {
	at := int32(0)
	for i, n := range l.next {
		l.next[i] = at
		at += n
	}
	l.sorted = slices.Grow(l.sorted, len(l.series))[:len(l.series)]
	for i, series := range l.series {
		n := &l.next[l.of[i]]
		l.sorted[*n] = series
		*n++
	}
	return l.next
}

// add makes entries of what has been gathered, and copies the numbers, which nobody changes meanwhile.
func (p *Page) add(s *Sheet) {
	l := &p.listing
	ends := l.sort()
	s.figures = true
	s.entries = make([]entry, 0, len(l.sorted))
	s.parts = make([]section, 0, len(l.families))
	texts := newLabelTexts(s.owner)
	for _, histograms := range []bool{false, true} {
		begin := int32(0)
		for i, f := range l.families {
			list := l.sorted[begin:ends[i]]
			begin = ends[i]
			if histograms != (f.kind == dto.MetricType_HISTOGRAM) {
				continue
			}
			from := len(s.entries)
			for _, series := range list {
				s.entries = append(s.entries, entry{labels: texts.of(series.Labels), series: series})
			}
			s.sort(from)
			p.insert(f, s, from)
		}
		if !histograms {
			s.plain = len(s.entries)
		}
	}
	s.histograms = make([]mapping.Histogram, len(s.entries)-s.plain)
	p.CopyNumbers(s)
	l.begin() // nothing is held
}

// Roomier says whether a family that was in the way of a sheet's series has left, so that it is to be made anew.
func (p *Page) Roomier(s *Sheet) bool {
	return slices.ContainsFunc(s.inTheWay, func(f *family) bool { return p.byName[f.name] != f })
}

// Shown is what an owner has in one family, and stands on the page now.
type Shown struct {
	family *family
	sheet  *Sheet
	places []int
}

// Shown lists what of a sheet stands on the page now, by the families' names.
func (s *Sheet) Shown() []Shown {
	var all []Shown
	for _, part := range s.parts {
		of := Shown{family: part.family, sheet: s}
		for i := part.from; i < part.to; i++ {
			if s.entries[i].shown(s.live) {
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
	if s.family.kind != dto.MetricType_HISTOGRAM {
		return nil
	}
	return s.sheet.histogram(s.places[i])
}
