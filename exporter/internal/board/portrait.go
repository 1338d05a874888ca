package board

import (
	"fmt"
	"slices"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/exporter/exposition"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/self"
	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mapping/series"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// portrait is a copy of a rank's numbers, series and state, made when the page could take the rank's lock last. The
// page is written from it, without locks. It is the owner of the rank's series.
type portrait struct {
	exposition.Owner
	rank *Rank
	left map[string]int // left off the page, as counted in mpit_exporter_series_dropped_total
	up   bool           // all its series stand on the page; else the lasting ones alone

	end   mpit.EndReason
	since api.StateSeconds // its end
	*Facts
	summands []summand
	sums     sums
	shown    int // so many of Alike stand in mpit_pvar_info, if nobody else has the same

	process, objects, series *sheet
}

// sheets are those of the rank; nil: there is none.
func (r *portrait) sheets() [3]*sheet { return [...]*sheet{r.process, r.objects, r.series} }

// long is the call that mpit_call_running_info tells of; zero: none.
func (r *portrait) long() api.LongCall {
	if r.Calls == nil || r.Calls.Long == nil {
		return api.LongCall{}
	}
	return *r.Calls.Long
}

// portrait returns what the page has of a rank, making it if need be.
func (b *Board) portrait(of *Rank) *portrait {
	r := b.ranks[of]
	if r == nil {
		id := of.ID // in whose order ranks stand on the page
		place := fmt.Sprintf("%s\x00%s\x00%s\x00%010d\x00%010d", id.JobID, id.World, id.User, id.Rank, id.Dup)
		r = &portrait{Owner: exposition.Owner{Place: place, Labels: of.Labels, Begun: of.Started}, rank: of,
			left: map[string]int{}, Facts: &Facts{}}
		b.ranks[of] = r
	}
	return r
}

// Forget takes everything of a rank from the page.
func (b *Board) Forget(of *Rank) { b.remove(b.portrait(of)) }

func (b *Board) remove(r *portrait) {
	b.clear(r.process)
	b.clear(r.objects)
	b.clear(r.series)
	b.outdated = b.outdated || r.shown > 0
	delete(b.ranks, r.rank)
}

// OutOfDate takes a rank's series from the page if they are to be made anew, because there are other figures, or none,
// or they have another structure. Where that is done for all ranks before any is updated, new rules may give a family
// another type: else whose turn comes first would find it in its way.
func (b *Board) OutOfDate(of *Rank, f *Facts) {
	r, key := b.ranks[of], sheetKey{made: f.Made, generation: f.Structure}
	if r != nil && r.series != nil && (!f.Figured || r.series.key != key) {
		b.clear(r.series)
		r.series = nil
	}
}

// describing bounds what describes ranks, in one refresh: of each its objects first, then its variables.
type describing struct {
	perRank   int
	perUser   int
	described map[uint32]int // series that describe each user's ranks
	// of the last rank's variables, as far as they are on the page: a world's ranks share them
	infos []variables.Info
}

func (d *describing) begin(ranks []*Rank, perRank, all int) {
	clear(d.described)
	for _, r := range ranks {
		d.described[r.UID] = 0
	}
	d.perRank, d.perUser, d.infos = perRank, all/max(1, len(d.described)), nil
}

// room is how many series may describe a rank.
func (d *describing) room(r *Rank) int { return min(d.perRank, d.perUser-d.described[r.UID]) }

// known is how many of these stand on the page already, for the rank before.
func (d *describing) known(infos []variables.Info) int {
	if len(infos) == 0 || len(d.infos) == 0 || &infos[0] != &d.infos[0] {
		return 0
	}
	return min(len(infos), len(d.infos))
}

// note notes how many series describe a rank, and which.
func (d *describing) note(r *Rank, n int, infos []variables.Info) {
	d.described[r.UID] += n - d.known(infos)
	d.infos = infos
}

// Update copies the numbers of a rank's series and shows these facts with them, making the sheets anew whose series
// have changed. They have been bounded before (package budget). Without figures, nil, the rank has no series.
func (b *Board) Update(of *Rank, figures Figures, f *Facts) {
	r, room := b.portrait(of), b.describing.room(of)
	others := len(f.Alike) > 0 && (len(r.Alike) == 0 || &r.Alike[0] != &f.Alike[0])
	r.Facts = f
	if figures == nil {
		b.clear(r.objects)
		b.clear(r.series)
		r.objects, r.series = nil, nil
	} else {
		b.updateSeries(r, figures)
		objects := figures.Objects()
		if of.Light {
			objects = nil
		}
		taken := min(room, 2*len(objects))
		if key := (sheetKey{layout: f.Layout, room: taken}); r.objects == nil || r.objects.key != key {
			b.clear(r.objects)
			r.objects = &sheet{exposition.NewSheet(&r.Owner), key}
			b.addObjects(r.objects, objects, room)
		}
		room -= taken
	}
	shown := min(len(f.Alike), b.describing.known(f.Alike)+room)
	if shown != r.shown || others {
		r.shown, b.outdated = shown, true
	}
}

// updateSeries copies the rank's series.
func (b *Board) updateSeries(r *portrait, figures Figures) {
	key := sheetKey{made: r.Made, generation: figures.Structure()}
	if s := r.series; s != nil && s.key == key && !b.Roomier(s.Sheet) {
		s.CopyNumbers()
		r.sum()
		return
	}
	b.clear(r.series)
	s := &sheet{exposition.NewSheet(&r.Owner), key}
	if r.rank.Light {
		s.Unlisted = ofFunctions
	}
	r.series = s
	b.Fill(s.Sheet, figures.Series(), Reserved)
	r.summands = summands(figures.Series())
	r.sum()
}

// Conclude brings the rest of what stands on the page for a rank up to date, whether it could be copied or not. since
// is its time since its end.
func (b *Board) Conclude(of *Rank, end mpit.EndReason, up bool, since api.StateSeconds) {
	r := b.portrait(of)
	r.up, r.end, r.since = up, end, since
	key := sheetKey{end: r.end, sampled: r.Sampled, controlled: controlled(r), profiled: profiled(r), long: r.long()}
	if r.process == nil || r.process.key != key {
		b.clear(r.process)
		r.process = &sheet{exposition.NewSheet(&r.Owner), key}
		b.addProcess(r, r.process)
	}
	r.process.SetOwn()
	for _, s := range r.sheets() {
		if s != nil {
			s.Live = up
		}
	}
	b.count(r)
	describing := r.shown
	if r.objects != nil {
		describing += r.objects.key.room
	}
	b.describing.note(of, describing, r.Alike[:r.shown])
}

// count counts what of a rank does not come onto the page, unless that has been counted already: a page is built anew
// many times, but a scraper is told once.
func (b *Board) count(r *portrait) {
	dropped := map[string]int{self.DroppedBound: len(r.Alike) - r.shown}
	for _, s := range r.sheets() {
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
func (b *Board) addProcess(r *portrait, s *sheet) {
	labels := slices.DeleteFunc(processLabelled(&r.rank.About),
		func(l mapping.Label) bool { return l.Value == "" && slices.Contains(leftOut, l.Name) })
	b.AddOwn(s.Sheet, &familyProcessInfo, false, exposition.Row{Value: 1, Labels: labels})
	for i := range rankFamilies {
		f := &rankFamilies[i]
		if f.when == nil || f.when(r) {
			b.AddOwn(s.Sheet, &f.Family, f.liveOnly, exposition.Row{Number: func() float64 { return f.value(r) }})
		}
	}
	if profiled(r) {
		b.AddOwn(s.Sheet, &familyRankSeconds, false, stateRows(r)...)
	}
	if long := r.long(); long != (api.LongCall{}) {
		b.AddOwn(s.Sheet, &familyCallRunning, true, exposition.Row{Value: 1, Labels: longCallLabels(&long)})
	}
	if r.end != mpit.EndNone {
		reason := []mapping.Label{{Name: "reason", Value: r.end.String()}}
		b.AddOwn(s.Sheet, &familyRankEnd, false, exposition.Row{Value: 1, Labels: reason})
	}
}

// addObjects adds what describes the rank's MPI objects, each in up to two series.
func (b *Board) addObjects(s *sheet, objects []series.ObjectInfo, room int) {
	if len(objects) > room/2 {
		s.Drop(self.DroppedBound, len(objects)-room/2)
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
