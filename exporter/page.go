package exporter

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"go.opentelemetry.io/otel/attribute"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// page is an exposition that is kept from round to round: names and labels are made when a rank comes or its set of series
// changes; a round only writes numbers between them. Each owner, a rank or a group of ranks, has a block of entries in each family
// it has series in. It goes out as text (text.go), as messages for client_golang (messages.go),
// or as metric data of OpenTelemetry (otelpoints.go).
//
// A page belongs to Exporter.mu.
type page struct {
	byName   map[string]*family
	owned    map[string]*family // by each of mapping.OwnedNames
	families []*family          // sorted by name
	sheets   map[*rank]*sheets
	groups   map[*group]*sheet
	infos    uint64 // Exporter.infos of which mpit_pvar_info was built; 0: to be built

	categories, controls uint64 // the same of Exporter.categories and .controls

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

// sheets is what of a rank stands on the page, in three parts that change at different times.
type sheets struct {
	process, objects, series sheet
	infos                    int // so many of rank.infos stand in mpit_pvar_info, if nobody else has the same
}

// sheet is one part: the families in which it has a block.
type sheet struct {
	key      sheetKey
	families []*family
	inTheWay []*family      // of another type, so that series of the same name found no place
	dropped  map[string]int // what was left out, by reason; nil: nothing

	grouped bool // of a rank's series some stand in its group
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

// sheetKey changes when a sheet has to be built anew. The zero key stands for a sheet that was never built.
type sheetKey struct {
	built      bool
	made       uint64 // which figures the generation is of
	generation uint64
	layout     *mpit.Layout
	room       int
	end        mpit.EndReason
	sampled    bool
	controlled bool
}

// family is a metric family with all owners' blocks, in their order.
type family struct {
	name, help, unit string
	kind             dto.MetricType
	otel             otelFamily
	liveOnly         bool // a block stands on the page only while its owner is live
	blocks           []block
	message          *dto.MetricFamily // nil: nobody has gathered it
}

// block is what one owner has in one family, sorted by labels.
type block struct {
	owner    owner // nil: nobody
	entries  []entry
	messages *[]message       // of the entries; nil: nobody has gathered them
	sets     *[]attribute.Set // of the entries; nil: nobody has read metric data
}

// entry is one series: of a performance variable, or one of the exporter's own families.
type entry struct {
	labels string // as text: what stands between a name and a value. Many entries of an owner share it
	series *mapping.Series
	row    *row
}

// own is the entry's own labels, besides those that its owner's all have.
func (e *entry) own() []mapping.Label {
	if e.series != nil {
		return e.series.Labels
	}
	return e.row.labels
}

// shown says whether the entry stands on the page now; live, whether its owner is.
func (e *entry) shown(live bool) bool {
	return e.series == nil || e.series.Valid && (live || e.series.Lasting)
}

// value is the entry's number. It is no histogram.
func (e *entry) value() float64 {
	switch {
	case e.series != nil:
		return e.series.Value
	case e.row.own != nil:
		return e.row.own()
	}
	return e.row.value
}

// created is when the entry's number began to count; the zero time: not known.
func (e *entry) created(o owner) time.Time {
	switch {
	case e.series != nil:
		return e.series.Created()
	case o != nil:
		return o.begun()
	}
	return time.Time{}
}

func newPage(drop func(reason string, n int)) *page {
	return &page{
		byName: map[string]*family{}, owned: map[string]*family{}, sheets: map[*rank]*sheets{}, groups: map[*group]*sheet{}, drop: drop,
	}
}

// update brings the sheets of a rank up to date, making anew what has changed. room bounds what describes the rank: its objects
// first, then its variables; update returns how much of it the rank takes. Their series have been bounded before (limits.go).
func (p *page) update(r *rank, room int) (took int) {
	given := room
	s := p.sheets[r]
	if s == nil {
		s = &sheets{}
		p.sheets[r] = s
	}
	if key := (sheetKey{built: true, end: r.end, sampled: r.sampled, controlled: r.controlled()}); s.process.key != key {
		p.clear(r, &s.process)
		p.addProcess(r, &s.process)
		s.process.key = key
	}
	if r.figures == nil {
		p.clear(r, &s.objects)
		p.clear(r, &s.series)
	} else {
		if key := r.seriesKey(); s.series.key != key || p.roomier(&s.series) {
			p.clear(r, &s.series)
			p.addSeries(r, &s.series)
			s.series.key = key
		}
		all := 2 * len(r.figures.Objects())
		if key := (sheetKey{built: true, layout: r.layout, room: min(room, all)}); s.objects.key != key {
			p.clear(r, &s.objects)
			p.addObjects(r, &s.objects, room)
			s.objects.key = key
		}
		room -= min(room, all)
	}
	if shown := min(len(r.infos), room); shown != s.infos {
		s.infos, p.infos = shown, 0
	}
	p.count(r, s)
	return given - room + s.infos
}

// seriesKey changes with the rank's series. The rank has figures.
func (r *rank) seriesKey() sheetKey {
	return sheetKey{built: true, made: r.made, generation: r.figures.Structure()}
}

// outdate takes a rank's series from the page if they are to be made anew. Where that is done for all ranks before any is
// updated, new rules may give a family another type: else whose turn comes first would find it in its way.
func (p *page) outdate(r *rank) {
	if s := p.sheets[r]; s != nil && (r.figures == nil || s.series.key != r.seriesKey()) {
		p.clear(r, &s.series)
	}
}

// roomier says whether a family that was in the way of series has left.
func (p *page) roomier(s *sheet) bool {
	return slices.ContainsFunc(s.inTheWay, func(f *family) bool { return p.byName[f.name] != f })
}

// count counts what of a rank does not come onto the page, unless that has been counted already: a page is built anew many
// times, but a scraper is told once.
func (p *page) count(r *rank, s *sheets) {
	over := len(r.infos) - s.infos
	if over == 0 && s.process.dropped == nil && s.objects.dropped == nil && s.series.dropped == nil {
		return
	}
	dropped := map[string]int{droppedBound: over}
	for _, part := range []*sheet{&s.process, &s.objects, &s.series} {
		for reason, n := range part.dropped {
			dropped[reason] += n
		}
	}
	for reason, n := range dropped {
		countMore(p.drop, r.left, reason, n)
	}
}

// remove takes everything of a rank from the page.
func (p *page) remove(r *rank) {
	if s := p.sheets[r]; s != nil {
		p.clear(r, &s.process)
		p.clear(r, &s.objects)
		p.clear(r, &s.series)
		delete(p.sheets, r)
	}
}

func (p *page) clear(o owner, s *sheet) {
	for _, f := range s.families {
		f.blocks = slices.DeleteFunc(f.blocks, func(b block) bool { return b.owner == o })
		f.message = nil // it has these series
		if len(f.blocks) == 0 {
			delete(p.byName, f.name)
			for _, name := range ownedNames(f.name, f.kind) {
				delete(p.owned, name)
			}
			if i, found := p.find(f.name); found {
				p.families = slices.Delete(p.families, i, i+1)
			}
		}
	}
	*s = sheet{}
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

// insert puts a block into its owner's place.
func (f *family) insert(b block) {
	i := len(f.blocks)
	if b.owner != nil {
		i, _ = slices.BinarySearchFunc(f.blocks, b.owner.place(), func(b block, id Identity) int { return b.owner.place().compare(id) })
	}
	f.blocks = slices.Insert(f.blocks, i, b)
}

// row is one series of the exporter's own families. With own its number is filled in at each round, else it stays.
type row struct {
	labels []mapping.Label
	value  float64
	own    func() float64
}

// addOwn adds a block to one of the exporter's own families. Counters have an owner.
func (p *page) addOwn(o owner, s *sheet, f Family, liveOnly bool, rows ...row) {
	if len(rows) == 0 {
		return
	}
	texts := newLabelTexts(o)
	entries := make([]entry, len(rows))
	for i := range rows {
		slices.SortFunc(rows[i].labels, func(a, b mapping.Label) int { return strings.Compare(a.Name, b.Name) })
		entries[i] = entry{labels: texts.of(rows[i].labels), row: &rows[i]}
	}
	fam := p.family(f.Name, f.Help, f.Type, otelOfOwn(f.Name, f.Type))
	fam.liveOnly = liveOnly
	fam.insert(block{owner: o, entries: s.sorted(entries)})
	s.families = append(s.families, fam)
}

// addProcess adds what describes the process.
func (p *page) addProcess(r *rank, s *sheet) {
	a := &r.about
	labels := []mapping.Label{
		{Name: "pid", Value: strconv.Itoa(a.PID)},
		{Name: "uid", Value: strconv.FormatUint(uint64(a.UID), 10)},
		{Name: "host", Value: a.Host},
		{Name: "executable", Value: a.Executable},
		{Name: "library", Value: a.Library},
		{Name: "library_version", Value: a.LibraryVersion},
		{Name: "world_size", Value: strconv.Itoa(a.WorldSize)},
		{Name: "thread_level", Value: a.ThreadLevel},
		{Name: "agent_version", Value: a.AgentVersion},
		{Name: "jobname", Value: a.JobName},
		{Name: "partition", Value: a.Partition},
		{Name: "jobid_source", Value: a.JobIDSource},
		{Name: "jobid_check", Value: a.JobIDCheck},
	}
	if a.CgroupJobID != "" {
		labels = append(labels, mapping.Label{Name: "cgroup_jobid", Value: a.CgroupJobID})
	}
	p.addOwn(r, s, familyProcessInfo, false, row{value: 1, labels: labels})
	for _, f := range rankFamilies {
		if f.when == always || f.when == onceSampled && r.sampled || f.when == onceControlled && r.controlled() {
			p.addOwn(r, s, f.Family, f.liveOnly, row{own: func() float64 { return f.value(r) }})
		}
	}
	if r.end != mpit.EndNone {
		p.addOwn(r, s, familyRankEnd, false, row{value: 1, labels: []mapping.Label{{Name: "reason", Value: r.end.String()}}})
	}
}

// addObjects adds what describes the rank's MPI objects, each in up to two series.
func (p *page) addObjects(r *rank, s *sheet, room int) {
	objects := r.figures.Objects()
	if len(objects) > room/2 {
		s.drop(droppedBound, len(objects)-room/2)
		objects = objects[:room/2]
	}
	infos := make([]row, 0, len(objects))
	counts := make([]row, 0, len(objects))
	for _, o := range objects {
		kind, name := mapping.Label{Name: "kind", Value: mapping.BindLabel(o.Kind)}, mapping.Label{Name: "name", Value: o.Name}
		counts = append(counts, row{value: float64(o.Number), labels: []mapping.Label{kind, name}})
		if o.Number == 1 {
			infos = append(infos, row{value: 1, labels: append([]mapping.Label{kind, name}, objectLabels(&o)...)})
		}
	}
	p.addOwn(r, s, familyObjectInfo, true, infos...)
	p.addOwn(r, s, familyObjects, true, counts...)
}

// addSeries adds the series of the rank's performance variables, but those that stand in its group alone.
func (p *page) addSeries(r *rank, s *sheet) {
	all := r.figures.Series()
	list := make([]*mapping.Series, 0, len(all))
	for _, series := range all {
		s.grouped = s.grouped || series.Grouped()
		if series.PerRank() {
			list = append(list, series)
		}
	}
	p.addList(r, s, list, Reserved)
}

// addList adds series of performance variables, but those whose family's name is refused.
func (p *page) addList(o owner, s *sheet, all []*mapping.Series, refused func(name string) bool) {
	byFamily := map[*family][]*mapping.Series{}
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
		if byFamily[f] == nil {
			s.families = append(s.families, f)
		}
		byFamily[f] = append(byFamily[f], series)
	}
	texts := newLabelTexts(o)
	for _, f := range s.families {
		list := byFamily[f]
		entries := make([]entry, len(list))
		for i, series := range list {
			entries[i] = entry{labels: texts.of(series.Labels), series: series}
		}
		f.insert(block{owner: o, entries: s.sorted(entries)})
	}
}

// addInfos makes mpit_pvar_info anew: what any rank on the page has, once each.
func (p *page) addInfos(ranks []*rank, generation uint64) {
	if p.infos == generation {
		return
	}
	p.infos = generation
	type key struct {
		name, class, unit, bind, verbosity string
		bits                               int
	}
	seen := map[key]bool{}
	var rows []row
	for _, r := range ranks {
		s := p.sheets[r]
		if s == nil {
			continue
		}
		for _, info := range r.infos[:s.infos] {
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

// replaceShared makes a family anew that belongs to no rank.
func (p *page) replaceShared(f Family, rows []row) {
	if old := p.byName[f.Name]; old != nil {
		p.clear(nil, &sheet{families: []*family{old}})
	}
	p.addOwn(nil, &sheet{}, f, false, rows...)
}

// sorted orders a block's entries by their own labels (the others are the same) and leaves out those that stand twice: one of them would make a scraper
// refuse the whole page.
func (s *sheet) sorted(entries []entry) []entry {
	byLabels := func(a, b entry) int { return compareLabels(a.own(), b.own()) }
	slices.SortStableFunc(entries, byLabels)
	unique := slices.CompactFunc(entries, func(a, b entry) bool { return byLabels(a, b) == 0 })
	s.drop(droppedDuplicate, len(entries)-len(unique))
	return unique
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
