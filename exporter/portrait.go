package exporter

import (
	"slices"
	"strconv"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/mpit-exporter/mpit-exporter/exporter/exposition"
	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mapping/series"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// view is what a refresh of the page sees of a rank without its lock.
type view struct {
	rank  *rank
	state rankState
	end   mpit.EndReason
	lives int
	facts facts
}

// visible says whether the rank stands on the page at all.
func (v *view) visible() bool { return v.state != stateNew || v.facts.sampled }

// portrait is what the page has of a rank: a copy of what was in it when the page could look at it last. It is the
// owner of the rank's series.
type portrait struct {
	rank    *rank
	refresh uint64 // the last one that has seen the rank
	up      bool   // all its series stand on the page; else the lasting ones alone

	end       mpit.EndReason
	sampled   bool
	stats     mpit.AgentStats
	variables *mpit.Variables
	infos     []variables.Info
	shown     int // so many of infos stand in mpit_pvar_info, if nobody else has the same
	byState   [variableStates]int
	weight    int // of its series
	merged    *merged

	process, objects, series *sheet
	left                     map[string]int // left off the page, as counted
}

func (r *portrait) place() Identity { return r.rank.id }

// Compare puts owners of series into the order of their labels.
func (r *portrait) Compare(other exposition.Owner) int {
	return r.place().Compare(other.(owner).place())
}

// Labels are the rank's.
func (r *portrait) Labels() []*dto.LabelPair { return r.rank.labels }

// Begun is when the rank began.
func (r *portrait) Begun() time.Time { return r.rank.started }

// Live says whether all its series stand on the page.
func (r *portrait) Live() bool { return r.up }

// LeftOff is what of it does not come onto the page.
func (r *portrait) LeftOff() map[string]int { return r.left }

// controlled says whether the program has called MPI_Pcontrol.
func (r *portrait) controlled() bool { return r.stats.PcontrolCalls > 0 }

// merged is a copy of the series of a rank that stand in its group.
type merged struct {
	made, structure uint64
	rules           uint64 // by which they were made
	from, list      []*mapping.Series
}

// copyNumbers copies the numbers of series, which nobody changes meanwhile.
func (m *merged) copyNumbers() {
	for i, from := range m.from {
		to := m.list[i]
		histogram := to.Histogram
		*to = *from
		if from.Histogram == nil {
			continue
		}
		if histogram == nil {
			histogram = &mapping.Histogram{}
		}
		exposition.CopyHistogram(histogram, from.Histogram)
		to.Histogram = histogram
	}
}

// portrait returns what the page has of a rank, making it if need be.
func (b *board) portrait(r *rank) *portrait {
	of := b.ranks[r]
	if of == nil {
		of = &portrait{rank: r, left: map[string]int{}}
		b.ranks[r] = of
	}
	return of
}

// remove takes everything of a rank from the page.
func (b *board) remove(r *portrait) {
	b.clear(r.process)
	b.clear(r.objects)
	b.clear(r.series)
	b.outdated = b.outdated || r.shown > 0
	delete(b.ranks, r.rank)
}

// outdate takes a rank's series from the page if they are to be made anew. Where that is done for all ranks before
// any is updated, new rules may give a family another type: else whose turn comes first would find it in its way.
func (b *board) outdate(v *view) {
	if r := b.ranks[v.rank]; r != nil && r.series != nil && (!v.facts.figures || r.series.key != v.facts.seriesKey()) {
		b.clear(r.series)
		r.series = nil
	}
}

// describingRoom bounds what describes a rank: its objects first, then its variables, of which so many have their
// series already.
type describingRoom struct{ series, known int }

// update copies what is in a rank, making the sheets anew whose series have changed. Their series have been bounded
// before (package budget).
func (b *board) update(r *portrait, c *contents, room describingRoom) {
	r.sampled, r.stats, r.variables, r.byState, r.weight = c.sampled, c.stats, c.variables, c.byState, 0
	if c.figures == nil {
		b.clear(r.objects)
		b.clear(r.series)
		r.objects, r.series, r.merged = nil, nil, nil
	} else {
		r.weight = c.figures.Weight()
		b.updateSeries(r, c)
		objects := c.figures.Objects()
		taken := min(room.series, 2*len(objects))
		if key := (sheetKey{layout: c.layout, room: taken}); r.objects == nil || r.objects.key != key {
			b.clear(r.objects)
			r.objects = &sheet{exposition.NewSheet(r), key}
			b.addObjects(r.objects, objects, room.series)
		}
		room.series -= taken
	}
	shown := min(len(c.infos), room.known+room.series)
	others := len(c.infos) > 0 && (len(r.infos) == 0 || &r.infos[0] != &c.infos[0])
	if shown != r.shown || others {
		r.shown, b.outdated = shown, true
	}
	r.infos = c.infos
}

// updateSeries copies the rank's series. It has figures.
func (b *board) updateSeries(r *portrait, c *contents) {
	key := sheetKey{made: c.made, generation: c.figures.Structure()}
	if s := r.series; s != nil && s.key == key && !b.Roomier(s.Sheet) {
		b.CopyNumbers(s.Sheet)
		if r.merged != nil {
			r.merged.rules = c.epoch
			r.merged.copyNumbers()
		}
		return
	}
	b.clear(r.series)
	s := &sheet{exposition.NewSheet(r), key}
	r.series, r.merged = s, nil
	single := b.single[:0]
	m := &merged{made: c.made, structure: key.generation, rules: c.epoch}
	for _, series := range c.figures.Series() {
		if series.PerRank() {
			single = append(single, series)
		}
		if series.Grouped() {
			m.from = append(m.from, series)
		}
	}
	b.Fill(s.Sheet, single, Reserved)
	clear(single)
	b.single = single
	if len(m.from) > 0 {
		copies := make([]mapping.Series, len(m.from))
		for i := range copies {
			m.list = append(m.list, &copies[i])
		}
		m.copyNumbers()
		r.merged = m
	}
}

// conclude brings the rest of what stands on the page for a rank up to date, whether it could be looked at or not. It
// returns how many series describe it.
func (b *board) conclude(r *portrait, v *view, up bool) (describing int) {
	r.up, r.end = up, v.end
	key := sheetKey{end: r.end, sampled: r.sampled, controlled: r.controlled()}
	if r.process == nil || r.process.key != key {
		b.clear(r.process)
		r.process = &sheet{exposition.NewSheet(r), key}
		b.addProcess(r, r.process)
	}
	r.process.SetOwn()
	b.count(r)
	if r.objects != nil {
		describing = r.objects.key.room
	}
	return describing + r.shown
}

// count counts what of a rank does not come onto the page, unless that has been counted already: a page is built anew
// many times, but a scraper is told once.
func (b *board) count(r *portrait) {
	over := len(r.infos) - r.shown
	sheets := [...]*sheet{r.process, r.objects, r.series}
	if over == 0 && !slices.ContainsFunc(sheets[:], func(s *sheet) bool { return s != nil && s.Dropped() != nil }) {
		return
	}
	dropped := map[string]int{droppedBound: over}
	for _, s := range sheets {
		if s != nil {
			for reason, n := range s.Dropped() {
				dropped[reason] += n
			}
		}
	}
	for reason, n := range dropped {
		exposition.CountMore(b.drop, r.left, reason, n)
	}
}

// addProcess adds what describes the process.
func (b *board) addProcess(r *portrait, s *sheet) {
	a := &r.rank.about
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
	b.AddOwn(s.Sheet, &familyProcessInfo, false, exposition.Row{Value: 1, Labels: labels})
	for i := range rankFamilies {
		f := &rankFamilies[i]
		if f.when == always || f.when == onceSampled && r.sampled || f.when == onceControlled && r.controlled() {
			value := func(o exposition.Owner) float64 { return f.value(o.(*portrait)) }
			b.AddOwn(s.Sheet, &f.Family, f.liveOnly, exposition.Row{Number: value})
		}
	}
	if r.end != mpit.EndNone {
		reason := []mapping.Label{{Name: "reason", Value: r.end.String()}}
		b.AddOwn(s.Sheet, &familyRankEnd, false, exposition.Row{Value: 1, Labels: reason})
	}
}

// addObjects adds what describes the rank's MPI objects, each in up to two series.
func (b *board) addObjects(s *sheet, objects []series.ObjectInfo, room int) {
	if len(objects) > room/2 {
		s.Drop(droppedBound, len(objects)-room/2)
		objects = objects[:room/2]
	}
	infos := make([]exposition.Row, 0, len(objects))
	counts := make([]exposition.Row, 0, len(objects))
	for _, o := range objects {
		kind := mapping.Label{Name: "kind", Value: mapping.BindLabel(o.Kind)}
		name := mapping.Label{Name: "name", Value: o.Name}
		counts = append(counts, exposition.Row{Value: float64(o.Number), Labels: []mapping.Label{kind, name}})
		if o.Number == 1 {
			infos = append(infos, exposition.Row{Value: 1, Labels: append([]mapping.Label{kind, name}, objectLabels(&o)...)})
		}
	}
	b.AddOwn(s.Sheet, &familyObjectInfo, true, infos...)
	b.AddOwn(s.Sheet, &familyObjects, true, counts...)
}
