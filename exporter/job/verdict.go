package job

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/exporter/units"
	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// verdict says what is to be said of the job.
func (r *Report) verdict() Verdict {
	v := Verdict{State: Unknown}
	observed := r.observed()
	if len(observed) > 0 {
		v.Efficiency = efficiency(observed)
	}
	if r.crashed(&v) || r.stuck(r.Ranks, &v) {
		return v
	}
	switch {
	case r.share(func(of *Rank) bool { return of.Unheard }) > 0.5: // as when the job was suspended for a while
		v.Efficiency, v.Text = nil, "its ranks have not answered for most of the time"
	case r.share((*Rank).isUnknown) > 0 || r.share((*Rank).hides) > few:
		v.Text = "ranks wait for messages, and what their other threads do isn't known"
	case len(observed) == 0:
		v.Text = "nothing is known of its time: no MPI call has been measured (exec --calls)"
	case r.hasJustStarted():
		v.Text = justStarted
	default:
		r.divide(observed, &v)
	}
	return v
}

// share is that of the ranks of which something is so.
func (r *Report) share(is func(of *Rank) bool) float64 {
	count := 0.0
	for i := range r.Ranks {
		if is(&r.Ranks[i]) {
			count++
		}
	}
	return count / float64(max(len(r.Ranks), 1))
}

const justStarted = "its ranks have just started"

// starting is how long it isn't said where time goes: ranks come one after the other.
const starting = 3 * time.Second

// hasJustStarted says that the job runs, and that its time so far may say nothing. One that began in the future is of
// another clock.
func (r *Report) hasJustStarted() bool {
	if r.Job.Ended != nil || r.Job.Started == nil {
		return false
	}
	age := r.Time.Sub(*r.Job.Started)
	return age >= 0 && age < starting
}

// observed are the ranks whose time says something: not those that were observed for a moment, and not those in which
// another thread than the one that is blocked, or polls, may be at work, if nothing is known of it.
func (r *Report) observed() (ranks []*Rank) {
	longest := 0.0
	for i := range r.Ranks {
		longest = max(longest, r.Ranks[i].Time.Sum())
	}
	for i := range r.Ranks {
		of := &r.Ranks[i]
		if time := of.Time.Sum(); time > 0 && time >= longest/2 && !of.isUnknown() && !of.hides() {
			ranks = append(ranks, of)
		}
	}
	return ranks
}

// divide says where the time of ranks goes that have been observed: of the part of them that is worst off, where they
// are several that have nothing to do with one another.
func (r *Report) divide(observed []*Rank, v *Verdict) {
	worst, of := v.State, []*Rank(nil)
	if r.cycle != "" { // that parts have nothing to do with one another isn't the point
		r.judge(observed, v)
		return
	}
	parts := r.parts(observed)
	calls := r.callsOf(parts)
	for i, part := range parts {
		in, alone := *v, *r
		alone.Calls = calls[i]
		alone.judge(part, &in)
		if of == nil || needs(in.State) < needs(worst) {
			worst, of = in.State, part
		}
	}
	if worst == Healthy || worst == NoCore { // which is of a node, not of what ranks do together
		of = observed
	}
	r.judge(of, v)
	if worst == Healthy && v.State != Healthy { // each part is
		v.State, v.Late, v.Text = Healthy, nil, Healthy+": "+units.Percent(v.Efficiency.Parallel)+" useful"
	}
	if len(of) < len(observed) {
		v.Text = ranksOf(of) + ": " + v.Text
	}
}

// judge says where the time of ranks goes that work together.
func (r *Report) judge(part []*Rank, v *Verdict) {
	e, late := efficiency(part), ""
	use := usageOf(part, r.from(NoCore, queued), r.from(NoCore, starved), r.from(Idle, Efficient))
	useful := e.Parallel
	if l := r.late(part); r.cycle != "" { // what the others lose is little where some may never go on
		late = "; " + r.cycle
	} else if l != nil && (l.proved && l.Why != offCPU || l.Share >= r.from(LateRanks, Late)) {
		if late = l.text(); !l.waitsToo {
			v.Late = &l.LateRank
		}
	}
	isLate := v.Late != nil && v.Late.Share >= r.from(LateRanks, Late)
	where, total := "", 0.0
	for _, of := range part {
		total += of.Time.Sum()
	}
	call, share, _ := r.most(part, nil)
	if share /= total; call != nil {
		where = " in " + call.where()
	}
	v.Text = units.Percent(useful) + " useful"
	switch {
	case len(use.short) > 1 || len(use.short) > 0 && !isLate:
		v.State, v.Late = NoCore, nil
		which := units.Count(len(use.short), "rank")
		if len(use.short) < len(part) && (len(use.short) > 1 || r.suspects.allow(use.short[0])) {
			which = ranksOf(use.short)
		} else {
			late = ""
		}
		v.Text = fmt.Sprintf("%s got a core for %s of the time in which %s could run%s", which, units.Percent(use.got),
			plural(len(use.short), "it", "they"), late)
	case use.away > 0:
		v.State, v.Text = Idle, units.Percent(use.away)+" of the time ranks neither compute nor communicate"
		v.Late = nil
	case isLate:
		v.State, v.Text = LateRanks, v.Text+late
	case 1-useful <= r.from(Communication, 1-Efficient) || len(part) > 2 && use.losing < 2:
		v.State, v.Text = Healthy, Healthy+": "+v.Text+late
	case use.young && r.Job.Ended == nil: // whether they only wait for a core is known soon
		v.State, v.Late, v.Text = Unknown, nil, justStarted
	case late == "" && use.known && share >= r.from(LateInTurn, Late) &&
		call.isSlow() && call.isOfMost(part):
		v.State = LateInTurn
		v.Text += fmt.Sprintf("; %s of the time is waiting%s, for a different rank each time", units.Percent(share), where)
	default:
		v.State = Communication
		v.Text += fmt.Sprintf("; %s of the time is spent in MPI", units.Percent(1-useful))
		if where != "" {
			v.Text += ", mostly" + where
		}
		switch in := inCalls(part); {
		case late != "":
		case in != "":
			late = "; " + in
		case len(part) == 1:
		case len(r.Ranks) < r.Job.WorldSize:
			late = fmt.Sprintf(", and none of the %d ranks that are observed, of %d, is late", len(r.Ranks), r.Job.WorldSize)
		case e.LoadBalance < Efficient:
			late = ", and no single rank is late"
		default:
			late = ", and no rank is late"
		}
		v.Text += late
	}
}

// inCalls says what ranks are in if each has been in one call for longer than a second: of what hasn't moved nothing
// else is known.
func inCalls(part []*Rank) string {
	shortest := math.Inf(1)
	for _, of := range part {
		if shortest = min(shortest, of.Running); of.Running < api.LongCallTime.Seconds() || of.Long == nil ||
			!of.spendsItInside() {
			return ""
		}
	}
	place, _ := placeOf(part)
	return fmt.Sprintf("%s been in %s for %s", plural(len(part), "it has",
		fmt.Sprintf("all %d ranks have", len(part))), place, seconds(shortest))
}

// isOfMost says that the ranks, but for a few, are all members of the communicator that a call is on, and several.
func (c *Call) isOfMost(part []*Rank) bool {
	members, size := 0, 0
	for _, of := range part {
		if on := of.on(c.Called); on.size > 0 {
			members, size = members+1, on.size
		}
	}
	return members > 1 && members == size && float64(len(part)-members) <= max(1, few*float64(len(part)))
}

// lasts is the part of its threshold at which a state ends.
const lasts = 0.7

// from is the share from which on the job is in a state: it ends at less than that at which it begins.
func (r *Report) from(state string, share float64) float64 {
	if r.was == state || r.was == LateInTurn && state == Communication {
		return lasts * share
	}
	return share
}

// crashed says whether ranks have ended without MPI_Finalize, or none answers, and writes it down.
func (r *Report) crashed(v *Verdict) bool {
	var gone []*Rank
	live, silent := 0, 0
	for i := range r.Ranks {
		switch of := &r.Ranks[i]; {
		case of.broken():
			gone = append(gone, of)
		case !of.ended():
			live++
			if of.silent() {
				silent++
			}
		}
	}
	by := cancelledBy(gone)
	switch {
	case by != "" && live > 0 && r.Time.Sub(last(gone)) < settles:
		return false
	case by != "" && live == 0:
		v.State = Cancelled
		v.Text = fmt.Sprintf("%s ended all %d ranks", by, len(gone))
		if len(r.Ranks) < r.Job.WorldSize {
			v.State = Unknown
			v.Text += fmt.Sprintf(" that are observed, of %d: cancelled, or another rank failed", r.Job.WorldSize)
		}
	case len(gone) > 0:
		v.State, v.Text = Crashed, crash(gone, len(r.Ranks))
	case live > 0 && silent == live:
		v.Text = "no rank answers, as if all were stopped"
		return true
	default:
		return false
	}
	// Where they were: a job that is stuck is killed in the end.
	if before, was := (Verdict{}), *r; live == 0 {
		was.Ranks = slices.Clone(r.Ranks)
		for i := range was.Ranks {
			if of := &was.Ranks[i]; of.broken() {
				of.State, of.Time[api.Ended] = "up", 0
			}
		}
		switch observed := was.observed(); {
		case was.stuck(was.Ranks, &before):
			v.Text += "; before that, " + before.Text
			v.Late = before.Late
		case v.State != Crashed && len(observed) > 0:
			before.Efficiency = efficiency(observed)
			was.divide(observed, &before)
			v.Text += "; before that, " + before.Sentence()
			v.Late = before.Late
		}
	}
	return true
}

// Believe has the verdict say what was said of the job while it ran, for a report whose figures alone don't tell who
// waits for whom, nor which rank ended first. Where nothing was said (nil), it names no rank.
func (r *Report) Believe(said *Verdict) {
	v, none := &r.Verdict, &LateRank{Rank: -1}
	switch {
	case v.State == Crashed:
		for i := range r.Ranks {
			r.Ranks[i].EndedAt = time.Time{}
		}
		r.crashed(v)
		v.Late = nil
		return
	case said == nil && (v.Efficiency == nil || v.State == Unknown):
		return
	case said == nil:
		said = &Verdict{State: Communication}
		if v.Efficiency.Parallel >= Efficient {
			said.State = Healthy
		}
	case said.State == v.State && cmp.Or(said.Late, none).Rank == cmp.Or(v.Late, none).Rank:
		return // it says the same in more words
	}
	v.State, v.Late, v.Text = said.State, said.Late, ""
	if e := v.Efficiency; e != nil {
		v.Text = units.Percent(e.Parallel) + " useful"
		if v.State == Communication && len(r.Calls) > 0 {
			v.Text += fmt.Sprintf("; %s of the time is spent in MPI, mostly in %s", units.Percent(1-e.Parallel),
				r.Calls[0].where())
		}
	}
	if v.Late != nil {
		v.Text += fmt.Sprintf("; the others wait for rank %d on %s", v.Late.Rank, mapping.OneLine(v.Late.Node))
	}
	if v.Text = strings.TrimPrefix(v.Text, "; "); v.Text == "" || v.State == Healthy {
		v.Text = strings.TrimSuffix(v.State+": "+v.Text, ": ")
	}
}

// settles is how far apart ends may be that one signal to all ranks has brought about: some take longer to end.
const settles = 2 * time.Second

// cancelledBy is the signal that ended ranks, if it was the same for all at about the same time, and one that
// schedulers, launchers and people at a terminal send: a program that fails sends none of these to itself. Empty: they
// ended otherwise.
func cancelledBy(gone []*Rank) (signal string) {
	first := time.Time{}
	for _, r := range gone {
		if first.IsZero() || r.EndedAt.Before(first) {
			first = r.EndedAt
		}
	}
	for _, r := range gone {
		isSent := r.Exit == "SIGTERM" || r.Exit == "SIGINT" || r.Exit == "SIGHUP" || r.Exit == "SIGXCPU"
		if !isSent || r.Exit != gone[0].Exit || r.EndedAt.Sub(first) > settles {
			return ""
		}
		signal = r.Exit
	}
	return signal
}

// last is when the last of some ranks ended.
func last(gone []*Rank) time.Time {
	return slices.MaxFunc(gone, func(a, b *Rank) int { return a.EndedAt.Compare(b.EndedAt) }).EndedAt
}

// stuck says whether ranks of the job are blocked, as they are or were at the end, and writes it down.
func (r *Report) stuck(ranks []Rank, v *Verdict) bool {
	all := make([]*Rank, len(ranks))
	for i := range ranks {
		all[i] = &ranks[i]
	}
	slices.SortStableFunc(all, func(a, b *Rank) int { return cmp.Compare(a.Rank, b.Rank) }) // for sentences
	g := newGraph(all, r.Calls, (*Rank).isBlocked)
	f, found := g.find()
	if len(g.suspects) > 0 {
		r.suspects = g.suspects
		r.cycle = g.short.chain(g.short.waitsOf(g.short.core()))
	}
	if found {
		v.State, v.Text = f.state, f.text
		if len(f.ranks) == 1 {
			by := all[f.ranks[0]]
			v.Late = new(lateRank(by, by.does(), 0))
		}
		return true
	}
	return r.blocked(all, v)
}

// atOnce is how close two ends are of which nobody can say which was first: launchers kill the other ranks within
// milliseconds.
const atOnce = 20 * time.Millisecond

// crash says how ranks ended, of so many. It names the one that called MPI_Abort, which is known, or as a hint the one
// that ended by itself while all others were killed, or whose end its exporter saw first.
func crash(gone []*Rank, of int) string {
	many := fmt.Sprintf("%d of %d ranks ended without MPI_Finalize", len(gone), of)
	slices.SortStableFunc(gone, func(a, b *Rank) int { return a.EndedAt.Compare(b.EndedAt) })
	first, reasons, nodes := gone[0], map[string]bool{}, map[string]bool{}
	var aborting, alone []*Rank
	killed := 0
	for _, r := range gone {
		reasons[cmp.Or(r.Exit, r.End)], nodes[r.Node] = true, true
		switch {
		case r.End == endsByAbort:
			aborting = append(aborting, r)
		case r.Exit == "SIGTERM" || r.Exit == "SIGKILL":
			killed++
		case r.Exit != "":
			alone = append(alone, r)
		}
	}
	why := strings.Join(slices.Sorted(maps.Keys(reasons)), ", ")
	switch {
	case len(aborting) == 1 && len(gone) == 1:
		return first.name() + " called MPI_Abort"
	case len(aborting) == 1:
		return aborting[0].name() + " called MPI_Abort; " + many
	case len(gone) == 1:
		return fmt.Sprintf("%s ended without MPI_Finalize (%s)", first.name(), why)
	case len(alone) == 1 && killed == len(gone)-1 && !endedAfter(alone[0], gone):
		return fmt.Sprintf("%s, probably %s (%s) first", many, alone[0].name(), alone[0].Exit)
	case len(nodes) == 1 && !first.EndedAt.IsZero() && gone[1].EndedAt.Sub(first.EndedAt) > atOnce:
		return fmt.Sprintf("%s, probably %s (%s) first", many, first.name(), cmp.Or(first.Exit, first.End))
	}
	return fmt.Sprintf("%s (%s); which was the first isn't known", many, why)
}

// endedAfter says that a rank has ended clearly later than another one of its node: each node has its own clock.
func endedAfter(of *Rank, gone []*Rank) bool {
	return slices.ContainsFunc(gone, func(r *Rank) bool {
		return r.Node == of.Node && !r.EndedAt.IsZero() && of.EndedAt.Sub(r.EndedAt) > atOnce
	})
}

func efficiency(observed []*Rank) *Efficiency {
	e := &Efficiency{Ranks: len(observed)}
	type sum struct{ useful, ranks float64 }
	nodes := map[string]sum{}
	for _, r := range observed {
		useful := r.Useful()
		e.Parallel += useful / float64(len(observed))
		e.Communication = max(e.Communication, useful)
		n := nodes[r.Node]
		nodes[r.Node] = sum{n.useful + useful, n.ranks + 1}
	}
	most := 0.0 // useful time of the mean rank of the node on which it is highest
	for _, n := range nodes {
		most = max(most, n.useful/n.ranks)
	}
	if most > 0 {
		e.LoadBalance, e.BetweenNodes, e.WithinNodes = e.Parallel/e.Communication, e.Parallel/most, most/e.Communication
	}
	return e
}

// ByNeed are the reports, those first that need attention.
func ByNeed(reports []*Report) []*Report {
	return slices.SortedStableFunc(slices.Values(reports), func(a, b *Report) int {
		return cmp.Compare(a.needs(), b.needs())
	})
}

// needs is smaller the sooner the job needs attention. One that has ended badly comes just before the healthy ones.
func (r *Report) needs() int {
	switch ended, word := r.Job.Ended != nil, r.Verdict.State; {
	case !ended:
		return needs(word)
	case word == Crashed:
		return needs(Healthy) - 1
	}
	return math.MaxInt // it is too late
}
