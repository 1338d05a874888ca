package exporter

import (
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"go.opentelemetry.io/otel/attribute"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// sheet is some of an owner's series, which come and go together: entries, one part of them for each family. What readers of messages and of
// metric data need besides is made when they come, and kept.
type sheet struct {
	owner owner // nil: nobody
	key   sheetKey
	gone  bool // from the page

	entries    []entry
	plain      int                 // so many of them are no histograms; those follow
	histograms []mapping.Histogram // the numbers of the others
	since      []int64             // when the numbers of each entry began to count, in Unix nanoseconds; nil: nobody wants to know
	own        []ownNumber         // entries of the exporter's own families whose numbers change
	figures    bool                // the entries are series of figures, whose numbers are copied

	parts    []section
	inTheWay []*family      // of another type, so that series of the same name found no place
	dropped  map[string]int // what was left out, by reason; nil: nothing

	messages []message       // of the entries; nil: nobody has gathered them
	sets     []attribute.Set // of the entries; nil: nobody has read metric data
}

// section is the entries of a sheet that are in one family.
type section struct {
	family   *family
	from, to uint32
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

// entry is one series: of a performance variable, or one of the exporter's own families. It has a copy of its number.
type entry struct {
	labels         string          // as text: what stands between a name and a value. Many entries of an owner share it
	series         *mapping.Series // whose Labels and Metric never change; its numbers belong to the rank
	value          float64         // not of histograms
	valid, lasting bool
}

// ownNumber is where a number of the exporter's own stands, and what it is.
type ownNumber struct {
	at    int
	value func(r *portrait) float64
}

// shown says whether the entry stands on the page now; live, whether its owner is.
func (e *entry) shown(live bool) bool { return e.valid && (live || e.lasting) }

// place is where the sheet's blocks stand in their families.
func (s *sheet) place() Identity {
	if s.owner == nil {
		return Identity{}
	}
	return s.owner.place()
}

func (s *sheet) live() bool { return s.owner == nil || s.owner.live() }

func (s *sheet) sharedLabels() []*dto.LabelPair {
	if s.owner == nil {
		return nil
	}
	return s.owner.sharedLabels()
}

// histogram is the numbers of an entry of a histogram's family.
func (s *sheet) histogram(i int) *mapping.Histogram { return &s.histograms[i-s.plain] }

// created is when an entry's number began to count; the zero time: not known.
func (s *sheet) created(i int) time.Time {
	switch {
	case i < len(s.since) && s.since[i] != 0:
		return time.Unix(0, s.since[i])
	case !s.figures && s.owner != nil:
		return s.owner.begun()
	}
	return time.Time{}
}

func (s *sheet) drop(reason string, n int) {
	if n <= 0 {
		return
	}
	if s.dropped == nil {
		s.dropped = map[string]int{}
	}
	s.dropped[reason] += n
}

// copyNumbers copies the numbers of series, which nobody changes meanwhile.
func (s *sheet) copyNumbers(created bool) {
	for i := range s.entries[:s.plain] {
		e := &s.entries[i]
		e.value, e.valid, e.lasting = e.series.Value, e.series.Valid, e.series.Lasting
	}
	for i := range s.histograms {
		e := &s.entries[s.plain+i]
		e.valid, e.lasting = e.series.Valid && e.series.Histogram != nil, e.series.Lasting
		copyHistogram(&s.histograms[i], e.series.Histogram)
	}
	if !created {
		return
	}
	if s.since == nil {
		s.since = make([]int64, len(s.entries))
	}
	for i := range s.entries {
		s.since[i] = s.entries[i].series.Since
	}
}

// copyHistogram copies from's numbers, using the memory that to has. Bounds never change.
func copyHistogram(to, from *mapping.Histogram) {
	if from == nil {
		return
	}
	counts, native := append(to.Counts[:0], from.Counts...), append(to.Native[:0], from.Native...)
	*to = *from
	to.Counts, to.Native = counts, native
}

// setOwn sets the numbers of the exporter's own families.
func (s *sheet) setOwn(r *portrait) {
	for _, o := range s.own {
		s.entries[o.at].value = o.value(r)
	}
}

// sort orders the entries of a part, from one on to the last, by their own labels (the others are the same) and leaves out those that stand
// twice: one of them would make a scraper refuse the whole page.
func (s *sheet) sort(from int) {
	entries := s.entries[from:]
	byLabels := func(a, b entry) int { return compareLabels(a.series.Labels, b.series.Labels) }
	slices.SortStableFunc(entries, byLabels)
	unique := slices.CompactFunc(entries, func(a, b entry) bool { return byLabels(a, b) == 0 })
	s.drop(droppedDuplicate, len(entries)-len(unique))
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

// list gathers series of performance variables for a sheet, but those whose family's name is refused.
func (p *page) list(s *sheet, all []*mapping.Series, refused func(name string) bool) {
	l := &p.listing
	for _, series := range all {
		m := series.Metric
		if refused(m.Name) {
			s.drop(droppedReserved, 1)
			continue
		}
		if rival := p.rival(m.Name, metricType(m.Kind)); rival != nil {
			s.drop(droppedConflict, 1)
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
func (p *page) add(s *sheet) {
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
	s.copyNumbers(p.created)
	l.begin() // nothing is held
}

// roomier says whether a family that was in the way of series has left.
func (p *page) roomier(s *sheet) bool {
	return slices.ContainsFunc(s.inTheWay, func(f *family) bool { return p.byName[f.name] != f })
}

// shown lists what of a sheet stands on the page now, by the families' names; but the one that says whose a value is.
func (s *sheet) shown() []entries {
	var all []entries
	live := s.live()
	for _, part := range s.parts {
		if part.family.name == mapping.ExtremeName {
			continue
		}
		of := entries{family: part.family, sheet: s}
		for i := part.from; i < part.to; i++ {
			if s.entries[i].shown(live) {
				of.list = append(of.list, int(i))
			}
		}
		if len(of.list) > 0 {
			all = append(all, of)
		}
	}
	slices.SortFunc(all, func(a, b entries) int { return strings.Compare(a.family.name, b.family.name) })
	return all
}
