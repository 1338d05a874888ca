package job

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// finding is what a graph shows.
type finding struct {
	state, text string
	ranks       []int // whom the others wait for, by their indices; none: it isn't known, or each for another
}

// find returns the worst of what holds ranks up; false: nothing does that can be told.
func (g *graph) find() (finding, bool) {
	g.suspect()
	for _, look := range []func() (finding, bool){g.wrongProgram, g.deadlock, g.waiting} {
		if f, found := look(); found {
			return f, true
		}
	}
	return finding{}, false
}

// suspect finds ranks that may be deadlocked.
func (g *graph) suspect() {
	if !slices.ContainsFunc(g.ranks, (*Rank).mayBeBlocked) {
		return
	}
	g.short = newGraph(g.ranks, nil, (*Rank).mayBeBlocked)
	for _, i := range g.short.core() {
		g.suspects[g.ranks[i]] = true
	}
}

// wrongProgram finds ranks that are in different functions, or have different roots, as the same collective of a
// communicator. That is an error whenever it is seen.
func (g *graph) wrongProgram() (finding, bool) {
	type place struct {
		comm   string
		number uint64
	}
	in, wrong := map[place]map[string][]int{}, place{}
	for i, r := range g.ranks {
		for t := range r.Threads {
			c := r.Threads[t].Call
			if r.ended() || r.silent() || c == nil || c.Number == 0 || g.groups[c.Comm] == nil ||
				c.Seconds < api.LongCallTime.Seconds() || c.Root == nil && isRooted(c.Function) {
				continue
			}
			at, what := place{c.Comm, c.Number}, mapping.OneLine(binding(cmp.Or(c.Of, c.Function)))
			// Of a request that others wait for the root isn't known.
			if c.Root != nil && !g.groups[c.Comm].Inter && !strings.HasPrefix(c.Function, "MPI_I") {
				what += fmt.Sprintf(" with root %d", *c.Root)
			}
			if in[at] == nil {
				in[at] = map[string][]int{}
			}
			if in[at][what] = append(in[at][what], i); len(in[at]) > 1 {
				wrong = at
			}
		}
	}
	if wrong.number == 0 {
		return finding{}, false
	}
	whats := slices.SortedFunc(maps.Keys(in[wrong]), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(in[wrong][a]), len(in[wrong][b])), strings.Compare(a, b))
	})
	f, verb := finding{state: WrongProgram}, plural(len(in[wrong][whats[0]]), " is", " are")
	for _, what := range whats {
		f.text += g.list(in[wrong][what]) + verb + " in " + what + ", "
		verb = ""
	}
	f.text += fmt.Sprintf("as collective %d on %s", wrong.number, mapping.OneLine(g.groups[wrong.comm].Name))
	// Of those that have left, or aren't seen, it isn't known what they were in.
	if 2*len(in[wrong][whats[len(whats)-1]]) > g.groups[wrong.comm].Size {
		f.ranks = in[wrong][whats[0]]
	}
	return f, true
}

// deadlock finds ranks of which none can go on before another one does.
func (g *graph) deadlock() (finding, bool) {
	in := g.core()
	if len(in) == 0 {
		return finding{}, false
	}
	waits, probably, shortest := g.waitsOf(in), "", math.Inf(1)
	for _, w := range waits {
		shortest = min(shortest, w.shortest)
		if !w.certain || slices.ContainsFunc(w.ranks, g.mayHaveMore) {
			probably = "probably: "
		}
		// A large message over a slow network looks the same, the longer if it may be on its way beside the calls. A rank in
		// MPI_Finalize never comes back.
		least := Cycle
		if w.isMessage() && slices.ContainsFunc(w.targets, func(i int) bool { return g.ranks[i].Ahead }) {
			least = Hung
		}
		if w.call.Number == 0 && w.call.Function != finalizes && w.shortest < least.Seconds() {
			return finding{}, false
		}
	}
	f := finding{state: Deadlock}
	if w, blamed := g.blamed(waits); w == nil {
		f.text = probably + g.chain(waits)
	} else {
		f.ranks = blamed
		f.text = probably + g.isBehind(blamed, w)
	}
	f.text += ", for " + seconds(shortest)
	return f, true
}

// blamed are the ranks that should have come to a collective, and that one, of which most wait for them: those that
// never come, or else those that most of its members have outrun. nil: that isn't known, or is said of several.
func (g *graph) blamed(waits []*wait) (most *wait, ranks []int) {
	for _, blames := range []func(w *wait) bool{g.waitsForGone, g.isOutrun} {
		for _, w := range waits {
			if w.call.Number == 0 || !blames(w) {
				continue
			}
			first := g.first(g.behind(w))
			if most != nil && !slices.Equal(first, ranks) {
				return nil, nil
			}
			if most == nil || len(w.ranks) > len(most.ranks) {
				most, ranks = w, first
			}
		}
		if most != nil {
			break
		}
	}
	return most, ranks
}

// waitsForGone says that those that a collective waits for have ended, or are in MPI_Finalize.
func (g *graph) waitsForGone(w *wait) bool { return !slices.ContainsFunc(g.behind(w), g.mayComeBack) }

// isOutrun says that those that a collective waits for are in others, and most of its members, all of which are seen,
// are in it. Of one that waits for a message it isn't known whether that should have been sent.
func (g *graph) isOutrun(w *wait) bool {
	of := g.groups[w.call.Comm]
	return 2*len(w.ranks) > of.Size && of.complete(false) && !slices.ContainsFunc(g.behind(w), func(i int) bool {
		return slices.ContainsFunc(g.of[i], func(w *wait) bool { return w.call.Number == 0 })
	})
}

func (g *graph) mayComeBack(rank int) bool {
	return !g.ranks[rank].ended() && !slices.ContainsFunc(g.of[rank], func(w *wait) bool {
		return w.call.Function == finalizes
	})
}

// mayHaveMore says that a rank may have threads which have not called MPI yet, and may.
func (g *graph) mayHaveMore(rank int) bool { return g.ranks[rank].ThreadLevel == "multiple" }

// core are the deadlocked ranks that deadlocked ones wait for; if there are none, all that wait for the ended.
func (g *graph) core() []int {
	var all, next []int
	left, waited := map[*wait]int{}, map[int]int{} // ranks in it; waits for it
	for i := range g.ranks {
		if !g.free[i] && !g.ranks[i].ended() {
			all = append(all, i)
			for _, w := range g.of[i] {
				left[w]++
			}
		}
	}
	for w := range left {
		for _, t := range w.targets {
			waited[t]++
		}
	}
	core := slices.DeleteFunc(slices.Clone(all), func(i int) bool {
		if waited[i] == 0 {
			next = append(next, i)
		}
		return waited[i] == 0
	})
	for ; len(next) > 0; next = next[1:] {
		for _, w := range g.of[next[0]] {
			if left[w]--; left[w] > 0 {
				continue
			}
			for _, t := range w.targets {
				if waited[t]--; waited[t] == 0 {
					next = append(next, t)
				}
			}
		}
	}
	if core = slices.DeleteFunc(core, func(i int) bool { return waited[i] == 0 }); len(core) > 0 {
		return core
	}
	return all
}

// waitsOf are what ranks are blocked in, each once.
func (g *graph) waitsOf(ranks []int) (waits []*wait) {
	seen := map[*wait]bool{}
	for _, i := range ranks {
		for _, w := range g.of[i] {
			if !seen[w] {
				seen[w] = true
				waits = append(waits, w)
			}
		}
	}
	return waits
}

// behind are the ranks that a collective waits for and that can't come.
func (g *graph) behind(w *wait) []int {
	return slices.DeleteFunc(slices.Clone(w.targets), func(i int) bool { return g.free[i] })
}

// first are those of some ranks that wait for no other one of them; all, if each does.
func (g *graph) first(ranks []int) []int {
	held := map[*wait]bool{}
	in := make([]bool, len(g.ranks))
	for _, i := range ranks {
		in[i] = true
	}
	for _, w := range g.waits {
		held[w] = w.definite() && slices.ContainsFunc(w.targets, func(t int) bool { return in[t] })
	}
	of := slices.DeleteFunc(slices.Clone(ranks), func(i int) bool {
		return slices.ContainsFunc(g.of[i], func(w *wait) bool { return held[w] })
	})
	if len(of) == 0 {
		return ranks
	}
	return of
}

// isBehind says where ranks are that a collective waits for.
func (g *graph) isBehind(ranks []int, w *wait) string {
	comm := g.groups[w.call.Comm]
	waiters, on := g.list(w.ranks)+" "+plural(len(w.ranks), "waits", "wait"), mapping.OneLine(comm.Name)
	if len(ranks) > 1 {
		return fmt.Sprintf("%s are behind on %s; %s for them in %s", g.list(ranks), on, waiters, where(w.call))
	}
	begun := comm.members[slices.IndexFunc(comm.members, func(m member) bool { return m.at == ranks[0] })].number
	by := "one collective"
	if less := int64(w.call.Number) - begun; less > 1 {
		by = fmt.Sprintf("%d collectives", less)
	}
	return fmt.Sprintf("%s is %s behind on %s (%d of %d): it %s; %s for it in %s", g.list(ranks), by, on, begun,
		w.call.Number, g.ranks[ranks[0]].does(), waiters, where(w.call))
}

// chain says who waits for whom, of some of them.
func (g *graph) chain(all []*wait) string {
	var parts []string
	for n, w := range all {
		verb := " "
		switch n {
		case most:
			return fmt.Sprintf("%s, and %d more", strings.Join(parts, ", "), len(all)-most)
		case 0:
			verb = " " + plural(len(w.ranks), "waits", "wait") + " "
		}
		parts = append(parts, g.list(w.ranks)+verb+"in "+where(w.call)+" for "+g.target(w))
	}
	return strings.Join(parts, ", ")
}

// target names whom a call waits for.
func (g *graph) target(w *wait) string {
	text := g.list(w.targets)
	if !w.all && len(w.targets) > 1 {
		text = "any of " + text
	}
	if w.call.AnySource {
		text = "any rank"
	}
	if w.call.Tag != nil && w.isMessage() {
		text += fmt.Sprintf(" (tag %d)", *w.call.Tag)
	}
	if len(w.targets) == 1 && g.ranks[w.targets[0]].ended() {
		text += ", which has ended"
	}
	return text
}

// waiting finds ranks that have waited for long, for others that aren't blocked.
func (g *graph) waiting() (finding, bool) {
	to := map[int][]*wait{} // who waits for a rank
	for _, w := range g.waits {
		// Where many haven't come, a part of the ranks is slower, and none stands out.
		if n := len(w.targets); w.definite() && n <= max(1, min(most, int(few*float64(n+len(w.ranks))))) {
			for _, t := range w.targets {
				to[t] = append(to[t], w)
			}
		}
	}
	worst, held, last := -1, []int(nil), map[int]bool{}
	for _, rank := range slices.Sorted(maps.Keys(to)) {
		if !g.mayBeLast(rank) {
			continue
		}
		behind := reach(rank, to)
		if last[rank] = !g.mayWaitForOther(rank, behind); last[rank] && len(behind) > len(held) {
			worst, held = rank, behind
		}
	}
	if worst < 0 {
		return finding{}, false
	}
	w := slices.MaxFunc(to[worst], func(a, b *wait) int { return cmp.Compare(len(a.ranks), len(b.ranks)) })
	if of := g.groups[w.call.Comm]; len(held) < 2 && len(g.ranks) > 2 && (of == nil || of.Size > 2 || w.isMessage()) {
		return finding{}, false // one alone may wait by design
	}
	f := finding{state: Waits, text: fmt.Sprintf("%s %s %s in %s, ", g.list(w.ranks),
		plural(len(w.ranks), "has waited", "have waited"), seconds(w.shortest), where(w.call))}
	if !w.certain && (!w.isMessage() || isExchange(w.call.Function)) || len(g.waitsFor(worst)) > 0 {
		f.text += "probably "
	}
	// Of several that haven't come, one that is away is named alone; that one is at work for more than half of its time,
	// and another one for less, says nothing.
	alone := g.ranks[worst].away()
	f.ranks = g.short.first(slices.DeleteFunc(slices.Clone(w.targets), func(t int) bool { return !last[t] && alone }))
	f.text += "for " + g.list(f.ranks)
	if len(f.ranks) == 1 {
		f.text += " on " + mapping.OneLine(g.ranks[worst].Node) + ", which " + g.ranks[worst].does()
	}
	if more := slices.DeleteFunc(held, func(i int) bool { return slices.Contains(w.ranks, i) }); len(more) > 0 {
		f.text += fmt.Sprintf("; %s %s behind %s", g.list(more), plural(len(more), "waits", "wait"),
			plural(len(w.ranks), "it", "them"))
	}
	return f, true
}

// mayBeLast says that a rank may be the end of a chain of waits: it isn't known to wait for another one itself, and if
// it isn't blocked it keeps others waiting.
func (g *graph) mayBeLast(rank int) bool {
	waits := g.waitsFor(rank)
	return g.suspects.allow(g.ranks[rank]) && (len(waits) > 0 || g.ranks[rank].keepsOthers()) &&
		!slices.ContainsFunc(waits, func(w *wait) bool { return len(w.targets) > 0 || w.unseen })
}

// waitsFor are what a rank is in, as soon as that may be one that it is blocked in.
func (g *graph) waitsFor(rank int) []*wait {
	if g.ranks[rank].silent() {
		return nil
	}
	return g.short.of[rank]
}

// mayWaitForOther says that a rank is in a call for who knows whom, and that there are others than those behind it.
func (g *graph) mayWaitForOther(rank int, behind []int) bool {
	return len(g.waitsFor(rank)) > 0 && (len(behind)+1 < len(g.ranks) || g.misses())
}

// misses says that ranks of a communicator aren't seen.
func (g *graph) misses() bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(g.groups)), func(of *group) bool { return !of.complete(false) })
}

// most is how many ranks or waits a sentence names, one by one.
const most = 4

// reach are all ranks that wait for one, and those that wait for them.
func reach(rank int, to map[int][]*wait) (ranks []int) {
	seen, done := map[int]bool{rank: true}, map[*wait]bool{}
	for next := []int{rank}; len(next) > 0; {
		waits := to[next[0]]
		next = next[1:]
		for _, w := range waits {
			for _, i := range w.ranks {
				if !done[w] && !seen[i] {
					seen[i] = true
					next, ranks = append(next, i), append(ranks, i)
				}
			}
			done[w] = true
		}
	}
	return ranks
}

// definite says that a call can't return before each of its targets has done something.
func (w *wait) definite() bool { return len(w.targets) > 0 && (w.all || len(w.targets) == 1) }

// list names ranks by their indices.
func (g *graph) list(at []int) string {
	ranks := make([]*Rank, len(at))
	for i := range at {
		ranks[i] = g.ranks[at[i]]
	}
	return ranksOf(ranks)
}
