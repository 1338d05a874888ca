// Package exposition is the page: metric families with the series of many owners, kept from scrape to scrape, and
// written as text 0.0.4, OpenMetrics, protobuf, or metric data of OpenTelemetry. All four say the same.
//
// It knows nothing of ranks, of where numbers come from or of who asks: an Owner has Sheets, a Sheet has entries, and
// an entry is a series with a copy of its numbers. Names and labels are made when a Sheet comes; a scrape copies
// numbers and writes them between.
//
// Begin reading with Page and Sheet, then text.go, which is the shortest way out.
package exposition

import (
	"slices"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/exporter/internal/body"
	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// Reasons why series do not come onto the page.
const (
	DroppedReserved  = "reserved_name"    // a series with a name of the exporter's own
	DroppedConflict  = "type_conflict"    // a series whose family has another type
	DroppedDuplicate = "duplicate_series" // a series that stands on the page already
)

// Page is metric families with the series of all owners. In each family an owner has its series in a block. It
// belongs to one goroutine at a time; what it has returned (a Body, metric data) is its readers'.
type Page struct {
	byName   map[string]*family
	owned    map[string]*family // by each of mapping.OwnedNames
	families []*family          // sorted by name
	shared   map[string]*Sheet  // of no owner: one for each family
	changed  map[*family]bool   // families whose blocks are to be put in order

	series int    // that the last rendering has found
	size   [3]int // about, of a body, compressed, by its format

	drop func(reason string, n int) // counts what does not come onto the page
}

// family is a metric family with all owners' blocks, in their order.
type family struct {
	name, help, unit string
	kind             mapping.Kind
	otel             otelFamily
	blocks           []block
	owners           int // blocks that are not of a sheet that has gone
}

// block is what one owner has in one family: entries of a sheet, sorted by labels.
type block struct {
	sheet    *Sheet
	from, to uint32
}

// New returns an empty page. drop counts what does not come onto it.
func New(drop func(reason string, n int)) *Page {
	return &Page{
		byName: map[string]*family{}, owned: map[string]*family{}, shared: map[string]*Sheet{},
		changed: map[*family]bool{}, drop: drop,
	}
}

// Format is what a page is written as.
type Format uint8

// The formats.
const (
	Text        Format = iota // 0.0.4
	OpenMetrics               // 1.0.0, without its end
	Protobuf                  // delimited messages, with native histograms
)

// Write writes the page, for so many readers who release it.
func (p *Page) Write(to Format, readers int) *body.Body {
	p.Arrange()
	p.series = 0
	size := &p.size[to]
	b := body.New(readers, *size)
	for _, f := range p.families {
		n := 0
		if to == Protobuf {
			n = f.writeMessage(b)
		} else {
			n = f.writeText(b, to)
		}
		if n > 0 {
			b.End(f.name)
			p.series += n
		}
	}
	b.Finish()
	*size = b.Compressed() + b.Compressed()/16
	return b
}

// Series is how many series stood on the page when it was written last, a histogram counting as one.
func (p *Page) Series() int { return p.series }

// Remove takes a sheet from the page. It is of no use afterwards.
func (p *Page) Remove(s *Sheet) {
	if s == nil || s.gone {
		return
	}
	s.gone = true
	for _, part := range s.parts {
		f := part.family
		p.changed[f] = true
		if f.owners--; f.owners > 0 {
			continue
		}
		delete(p.changed, f)
		delete(p.byName, f.name)
		for _, name := range mapping.OwnedNames(f.name, f.kind) {
			delete(p.owned, name)
		}
		if i, found := p.find(f.name); found {
			p.families = slices.Delete(p.families, i, i+1)
		}
	}
}

// insert gives a family a part of a sheet.
func (p *Page) insert(f *family, s *Sheet, from int) {
	if from == len(s.entries) {
		return
	}
	f.blocks = append(f.blocks, block{s, uint32(from), uint32(len(s.entries))})
	f.owners++
	p.changed[f] = true
	s.parts = append(s.parts, section{f, uint32(from), uint32(len(s.entries))})
}

// Arrange puts the blocks of families in order, once for all that have come and gone.
func (p *Page) Arrange() {
	for f := range p.changed {
		f.blocks = slices.DeleteFunc(f.blocks, func(b block) bool { return b.sheet.gone })
		byPlace := func(a, b block) int { return strings.Compare(a.sheet.owner.Place, b.sheet.owner.Place) }
		if !slices.IsSortedFunc(f.blocks, byPlace) {
			slices.SortStableFunc(f.blocks, byPlace)
		}
	}
	clear(p.changed)
}

func (p *Page) find(name string) (int, bool) {
	return slices.BinarySearchFunc(p.families, name, func(f *family, name string) int {
		return strings.Compare(f.name, name)
	})
}

// rival returns the family that keeps one of that name and type from standing on the page: of the same name with
// another type, or with a sample of the same name. What ranks have that ended before a reload, or have not answered
// since, was named by the rules of their time.
func (p *Page) rival(name string, kind mapping.Kind) *family {
	if f := p.byName[name]; f != nil {
		if f.kind != kind {
			return f
		}
		return nil
	}
	for _, name := range mapping.OwnedNames(name, kind) {
		if f := p.owned[name]; f != nil {
			return f
		}
	}
	return nil
}

// family returns the family of that name, making it if need be. It has no rival.
func (p *Page) family(name, help string, kind mapping.Kind, otel otelFamily) *family {
	if f := p.byName[name]; f != nil {
		return f
	}
	f := &family{name: name, help: help, kind: kind, otel: otel}
	// OpenMetrics wants a unit to be the end of the name.
	base := strings.TrimSuffix(name, "_total")
	for _, unit := range mapping.UnitWords() {
		if strings.HasSuffix(base, "_"+unit) {
			f.unit = unit
		}
	}
	p.byName[name] = f
	for _, name := range mapping.OwnedNames(name, kind) {
		p.owned[name] = f
	}
	i, _ := p.find(name)
	p.families = slices.Insert(p.families, i, f)
	return f
}

// CountMore counts what is left out time after time, once: by how much it is more than what left says.
func CountMore[R ~string, N int | uint64](drop func(reason string, n int), left map[string]int, reason R, n N) {
	if was := left[string(reason)]; int(n) > was {
		drop(string(reason), int(n)-was)
		left[string(reason)] = int(n)
	}
}
