package exporter

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// page is an exposition that is kept from round to round: names and labels are made when a rank comes or its set of series
// changes; a round only copies numbers, and writes them between names and labels. Each owner, a rank or a group of ranks, has sheets of
// entries, and in each family it has series in a block of them. It goes out as text (text.go), as messages for client_golang (messages.go),
// or as metric data of OpenTelemetry (otelpoints.go).
//
// What it shows of a rank is a copy (portrait.go): while it is written, ranks go on. It belongs to who holds pages.mu.
type page struct {
	byName   map[string]*family
	owned    map[string]*family // by each of mapping.OwnedNames
	families []*family          // sorted by name
	ranks    map[*rank]*portrait
	groups   map[*world]*group
	worlds   map[*world]*gathered
	joined   []*world          // of the running refresh
	shared   map[string]*sheet // of no owner: one for each family
	changed  map[*family]bool  // families whose blocks are to be put in order

	outdated             bool   // mpit_pvar_info is to be made anew
	categories, controls uint64 // of the Exporter's, when their families were made

	listing listing
	single  []*mapping.Series // of a rank, without those of its group; its memory is used again

	created bool // somebody wants to know when values began to count

	messages *messages // nil: nobody has gathered them
	series   int       // that the last rendering has found
	size     [ways]int // about, of a rendering as text

	drop func(reason string, n int) // counts what does not come onto the page
}

// owner is whom series belong to.
type owner interface {
	place() Identity                // on the page
	sharedLabels() []*dto.LabelPair // of all its series, sorted by name
	begun() time.Time               // zero: not known
	live() bool                     // else the lasting series alone stand on the page
	counted() map[string]int        // what is left off the page, by reason, as it has been counted
}

// family is a metric family with all owners' blocks, in their order.
type family struct {
	name, help, unit string
	kind             dto.MetricType
	otel             otelFamily
	liveOnly         bool // a block stands on the page only while its owner is live
	blocks           []block
	owners           int               // blocks that are not of a sheet that has gone
	message          *dto.MetricFamily // nil: nobody has gathered it
}

// block is what one owner has in one family: entries of a sheet, sorted by labels.
type block struct {
	sheet    *sheet
	from, to uint32
}

func newPage(drop func(reason string, n int)) *page {
	return &page{
		byName: map[string]*family{}, owned: map[string]*family{}, ranks: map[*rank]*portrait{}, groups: map[*world]*group{},
		worlds: map[*world]*gathered{},
		shared: map[string]*sheet{}, changed: map[*family]bool{}, outdated: true, drop: drop,
	}
}

// clear takes a sheet from the page. It is of no use afterwards.
func (p *page) clear(s *sheet) {
	if s == nil || s.gone {
		return
	}
	s.gone = true
	for _, part := range s.parts {
		f := part.family
		f.message = nil // it has these series
		p.changed[f] = true
		if f.owners--; f.owners > 0 {
			continue
		}
		delete(p.changed, f)
		delete(p.byName, f.name)
		for _, name := range ownedNames(f.name, f.kind) {
			delete(p.owned, name)
		}
		if i, found := p.find(f.name); found {
			p.families = slices.Delete(p.families, i, i+1)
		}
	}
}

// insert gives a family a part of a sheet.
func (p *page) insert(f *family, s *sheet, from int) {
	if from == len(s.entries) {
		return
	}
	f.blocks = append(f.blocks, block{s, uint32(from), uint32(len(s.entries))})
	f.owners++
	p.changed[f] = true
	s.parts = append(s.parts, section{f, uint32(from), uint32(len(s.entries))})
}

// settle puts the blocks of families in order, once for all that have come and gone.
func (p *page) settle() {
	for f := range p.changed {
		f.blocks = slices.DeleteFunc(f.blocks, func(b block) bool { return b.sheet.gone })
		byPlace := func(a, b block) int { return a.sheet.place().Compare(b.sheet.place()) }
		if !slices.IsSortedFunc(f.blocks, byPlace) {
			slices.SortStableFunc(f.blocks, byPlace)
		}
	}
	clear(p.changed)
}

// eachSheet calls do for all that stands on the page.
func (p *page) eachSheet(do func(s *sheet)) {
	for _, r := range p.ranks {
		for _, s := range []*sheet{r.process, r.objects, r.series} {
			if s != nil {
				do(s)
			}
		}
	}
	for _, g := range p.groups {
		if g.sheet != nil {
			do(g.sheet)
		}
	}
	for _, s := range p.shared {
		do(s)
	}
}

func (p *page) find(name string) (int, bool) {
	return slices.BinarySearchFunc(p.families, name, func(f *family, name string) int {
		return strings.Compare(f.name, name)
	})
}

// rival returns the family that keeps one of that name and type from standing on the page: of the same name with another type, or
// with a sample of the same name. What ranks have that ended before a reload, or have not answered since, was named by the rules of
// their time.
func (p *page) rival(name string, kind dto.MetricType) *family {
	if f := p.byName[name]; f != nil {
		if f.kind != kind {
			return f
		}
		return nil
	}
	for _, name := range ownedNames(name, kind) {
		if f := p.owned[name]; f != nil {
			return f
		}
	}
	return nil
}

// family returns the family of that name, making it if need be. It has no rival.
func (p *page) family(name, help string, kind dto.MetricType, otel otelFamily) *family {
	if f := p.byName[name]; f != nil {
		return f
	}
	f := &family{name: name, help: help, kind: kind, otel: otel}
	// OpenMetrics wants a unit to be the end of the name.
	base := strings.TrimSuffix(name, "_total")
	for _, unit := range []string{"bytes", "seconds", "ratio", "joules", "watts", "volts", "amperes", "hertz", "celsius"} {
		if strings.HasSuffix(base, "_"+unit) {
			f.unit = unit
		}
	}
	p.byName[name] = f
	for _, name := range ownedNames(name, kind) {
		p.owned[name] = f
	}
	i, _ := p.find(name)
	p.families = slices.Insert(p.families, i, f)
	return f
}

func ownedNames(name string, kind dto.MetricType) []string {
	switch kind {
	case dto.MetricType_COUNTER:
		return mapping.OwnedNames(name, mapping.KindCounter)
	case dto.MetricType_HISTOGRAM:
		return mapping.OwnedNames(name, mapping.KindHistogram)
	}
	return mapping.OwnedNames(name, mapping.KindGauge)
}

// row is one series of the exporter's own families. With own its number is taken at each round, else it stays.
type row struct {
	labels []mapping.Label
	value  float64
	own    func(r *portrait) float64
}

// addOwn adds a part to one of the exporter's own families. Counters have an owner.
func (p *page) addOwn(s *sheet, f Family, liveOnly bool, rows ...row) {
	if len(rows) == 0 {
		return
	}
	texts := newLabelTexts(s.owner)
	labels := make([]mapping.Series, len(rows))
	from := len(s.entries)
	for i := range rows {
		slices.SortFunc(rows[i].labels, func(a, b mapping.Label) int { return strings.Compare(a.Name, b.Name) })
		labels[i].Labels = rows[i].labels
		s.entries = append(s.entries, entry{labels: texts.of(rows[i].labels), series: &labels[i], value: rows[i].value, valid: true, lasting: true})
		if rows[i].own != nil {
			s.own = append(s.own, ownNumber{len(s.entries) - 1, rows[i].own})
		}
	}
	s.sort(from)
	s.plain = len(s.entries)
	fam := p.family(f.Name, f.Help, f.Type, otelOfOwn(f.Name, f.Type))
	fam.liveOnly = liveOnly
	p.insert(fam, s, from)
}

// replaceShared makes a family anew that belongs to no rank.
func (p *page) replaceShared(f Family, rows []row) {
	p.clear(p.shared[f.Name])
	delete(p.shared, f.Name)
	if len(rows) == 0 {
		return
	}
	s := &sheet{}
	p.addOwn(s, f, false, rows...)
	p.shared[f.Name] = s
}

// addInfos makes mpit_pvar_info anew: what any rank on the page has, once each.
func (p *page) addInfos(ranks []view) {
	if !p.outdated {
		return
	}
	p.outdated = false
	type key struct {
		name, class, unit, bind, verbosity string
		bits                               int
	}
	seen := map[key]bool{}
	var rows []row
	for i := range ranks {
		r := p.ranks[ranks[i].rank]
		if r == nil {
			continue
		}
		for _, info := range r.infos[:r.shown] {
			k := key{info.Name, info.Class.String(), info.Unit, info.Bind.String(), info.Verbosity.String(), info.Bits}
			if seen[k] {
				continue
			}
			seen[k] = true
			rows = append(rows, row{value: 1, labels: []mapping.Label{
				{Name: "name", Value: k.name}, {Name: "class", Value: k.class}, {Name: "unit", Value: k.unit},
				{Name: "bind", Value: k.bind}, {Name: "verbosity", Value: k.verbosity}, {Name: "bits", Value: strconv.Itoa(k.bits)},
			}})
		}
	}
	p.replaceShared(familyPvarInfo, rows)
}

func metricType(kind mapping.Kind) dto.MetricType {
	switch kind {
	case mapping.KindCounter:
		return dto.MetricType_COUNTER
	case mapping.KindGauge:
		return dto.MetricType_GAUGE
	case mapping.KindHistogram:
		return dto.MetricType_HISTOGRAM
	}
	return dto.MetricType_UNTYPED
}

func compareLabels(a, b []mapping.Label) int {
	for i := range min(len(a), len(b)) {
		if c := cmp.Or(
			strings.Compare(a[i].Name, b[i].Name),
			compareValues(a[i].Value, b[i].Value),
		); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(a), len(b))
}

// compareValues orders numbers (the elements of an array) as numbers, before everything else, which is ordered as text.
func compareValues(a, b string) int {
	x, errX := strconv.ParseUint(a, 10, 64)
	y, errY := strconv.ParseUint(b, 10, 64)
	switch {
	case errX == nil && errY == nil:
		return cmp.Or(cmp.Compare(x, y), strings.Compare(a, b))
	case errX == nil:
		return -1
	case errY == nil:
		return 1
	}
	return strings.Compare(a, b)
}

// seconds is a time since the epoch in seconds, to the microsecond that a float64 can hold.
func seconds(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return math.Round(float64(t.UnixNano())/1e3) / 1e6
}
