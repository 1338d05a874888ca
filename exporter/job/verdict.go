package job

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/exporter/units"
	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// ended says that the rank has ended, or that nobody has heard of it lately.
func (r *Rank) ended() bool { return r.State == "ended" || r.State == StateGone }

// broken is how it has ended, if not by MPI_Finalize: lost, abort, exit.
func (r *Rank) broken() string {
	if r.End == endsWell {
		return ""
	}
	return r.End
}

// silent says that it doesn't answer.
func (r *Rank) silent() bool { return r.State == "late" }

// function is the longest call that it is in; "": none, or none that has taken a second.
func (r *Rank) function() string {
	if r.Long == nil {
		return ""
	}
	return r.Long.Function
}

func (r *Rank) name() string {
	name := "rank " + strconv.Itoa(r.Rank)
	if r.Dup > 0 {
		name += fmt.Sprintf(" (dup %d)", r.Dup)
	}
	if r.Node != "" {
		name += " on " + mapping.OneLine(r.Node)
	}
	return name
}

// Efficiency is that of the POP model, of the ranks observed: Parallel = LoadBalance x Communication, and LoadBalance =
// BetweenNodes x WithinNodes. From 0 to 1.
type Efficiency struct {
	Parallel      float64 `json:"parallel"`      // useful time of the mean rank
	Communication float64 `json:"communication"` // of the rank that has most
	LoadBalance   float64 `json:"load_balance"`
	BetweenNodes  float64 `json:"between_nodes"`
	WithinNodes   float64 `json:"within_nodes"`
	Ranks         int     `json:"ranks"` // that were observed
}

// Verdict is what is to be said of a job.
type Verdict struct {
	State      string      `json:"state"`
	Text       string      `json:"text"`                 // a sentence
	Efficiency *Efficiency `json:"efficiency,omitempty"` // absent: no call was measured
	Late       *LateRank   `json:"late,omitempty"`       // absent: nobody is
}

// LateRank is the rank that the others wait for. It is a hint: the rank that waits least for others.
type LateRank struct {
	Rank int    `json:"rank"`
	Dup  int    `json:"dup,omitempty"`
	Node string `json:"node"`
	Why  string `json:"why"` // what it does meanwhile
	// Share of the mean rank's time that goes by waiting for it; 0: it is waited for in a call that goes on.
	Share float64 `json:"share"`
	// Useful says that it is found by its useful time; otherwise by what it does not wait.
	Useful bool `json:"by_useful_time"`
}

// verdict says what is to be said of the job.
func (r *Report) verdict() Verdict {
	where := ""
	if len(r.Calls) > 0 {
		where = r.Calls[0].where()
	}
	return judge(r.Ranks, r.Job.WorldSize, where)
}

// judge says what is to be said of ranks, of whose world there are so many (0: nobody knows). where is in which call
// most time is spent, such as "MPI_Allreduce on residual"; "": nobody knows.
func judge(ranks []Rank, size int, where string) Verdict {
	v := Verdict{State: Unknown}
	var observed []*Rank
	longest := 0.0
	for i := range ranks {
		longest = max(longest, ranks[i].Time.Sum())
	}
	for i := range ranks {
		// Of one that was observed for a moment nobody can say how it does.
		if r := &ranks[i]; r.Time.Sum() > 0 && r.Time.Sum() >= longest/2 {
			observed = append(observed, r)
		}
	}
	if len(observed) > 0 {
		v.Efficiency = efficiency(observed)
	}
	if broken(ranks, &v) || stuck(ranks, size, &v) {
		return v
	}
	if len(observed) == 0 {
		v.Text = "nothing is known of its time: no MPI call has been measured (exec --calls)"
		return v
	}
	v.divide(observed, where)
	return v
}

// where names a call.
func (c Called) where() string {
	if c.Object == "" {
		return mapping.OneLine(c.Function)
	}
	return mapping.OneLine(c.Function + " on " + c.Object)
}

// divide says where the time of ranks goes that have been observed.
func (v *Verdict) divide(observed []*Rank, where string) {
	e, late := v.Efficiency, late(observed)
	mostly := ""
	if where != "" {
		where, mostly = " in "+where, ", mostly in "+where
	}
	waiting := func(where string) string {
		if v.Late == nil {
			return ""
		}
		return fmt.Sprintf("; %s of the time ranks wait%s for rank %d on %s, which %s", units.Percent(late.Share), where,
			late.Rank,
			late.Node, late.Why)
	}
	if late != nil && late.Share >= noted {
		v.Late = late
	}
	v.Text = units.Percent(e.Parallel) + " useful"
	switch {
	case v.Late != nil && late.Share >= Late:
		v.State = WaitsForOne
		v.Text += waiting(where)
	case e.Parallel < Efficient:
		v.State = Communication
		v.Text += fmt.Sprintf("; %s of the time is spent in MPI%s", units.Percent(1-e.Parallel), mostly) + waiting("")
		if v.Late == nil {
			v.Text += ", and nobody is late"
		}
	default:
		v.State = Healthy
		v.Text = Healthy + ": " + v.Text + waiting(where)
	}
}

// broken says whether ranks have ended without MPI_Finalize, or none answers, and writes it down.
func broken(ranks []Rank, v *Verdict) bool {
	var gone []*Rank
	live, silent := 0, 0
	for i := range ranks {
		switch r := &ranks[i]; {
		case r.broken() != "":
			gone = append(gone, r)
		case !r.ended():
			live++
			if r.silent() {
				silent++
			}
		}
	}
	switch {
	case len(gone) > 0:
		v.Text = crash(gone, len(ranks))
	case live > 0 && silent == live:
		v.Text = "no rank answers, as if all were stopped"
	default:
		return false
	}
	// Where they were: a job that hangs is killed in the end.
	before := Verdict{}
	if was := slices.Clone(ranks); live == 0 {
		for i := range was {
			if was[i].broken() != "" {
				was[i].State = "up"
			}
		}
		if stuck(was, 0, &before) {
			v.Text += "; before that, " + before.Text
			v.Late = before.Late
		}
	}
	v.State = Broken
	return true
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
		reasons[r.how()], nodes[r.Node] = true, true
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
	case len(alone) == 1 && killed == len(gone)-1:
		return fmt.Sprintf("%s, probably %s (%s) first", many, alone[0].name(), alone[0].Exit)
	case len(nodes) == 1 && !first.EndedAt.IsZero() && gone[1].EndedAt.Sub(first.EndedAt) > atOnce:
		return fmt.Sprintf("%s, probably %s (%s) first", many, first.name(), first.how())
	}
	return fmt.Sprintf("%s (%s); which was the first isn't known", many, why)
}

// how a rank has ended: its exit status, or what its exporter has seen.
func (r *Rank) how() string { return cmp.Or(r.Exit, r.End) }

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

// late finds the rank that the others wait for: by what it does outside MPI, or else in MPI without waiting. nil:
// there is one rank only.
func late(observed []*Rank) *LateRank {
	if len(observed) < 2 {
		return nil
	}
	by, share := most(observed, (*Rank).Useful)
	why, useful := "computes more, or does I/O of its own", true
	if share < Late {
		if busy, more := most(observed, (*Rank).Busy); more > share && more >= noted {
			by, share, why, useful = busy, more, "waits least for others", false
			switch {
			case by.Time[api.File] >= by.Time[api.Send] && by.Share(api.File) >= noted:
				why = "works on files"
			case by.Share(api.Send) >= noted:
				why = "takes long to send: its network is slow or that of whom it sends to, or it sends more"
			}
		}
	}
	return &LateRank{Rank: by.Rank, Dup: by.Dup, Node: mapping.OneLine(by.Node), Why: why, Share: share, Useful: useful}
}

// most is the rank of which a share is largest, and by how much it is larger than the mean rank's.
func most(observed []*Rank, of func(r *Rank) float64) (rank *Rank, more float64) {
	rank = slices.MaxFunc(observed, func(a, b *Rank) int {
		switch x, y := of(a), of(b); {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return b.Rank - a.Rank
	})
	mean := 0.0
	for _, r := range observed {
		mean += of(r) / float64(len(observed))
	}
	return rank, of(rank) - mean
}

// stuck says whether all live ranks, or all but a few, have been in one call for long, and writes it down.
func stuck(ranks []Rank, size int, v *Verdict) bool {
	var inCall, elsewhere []*Rank
	shortest := 0.0
	for i := range ranks {
		r := &ranks[i]
		isFile := strings.HasPrefix(r.function(), "MPI_File_") // which may take long
		switch {
		case r.ended():
		case !r.silent() && r.Running >= Waiting.Seconds() && !isFile:
			inCall = append(inCall, r)
			if len(inCall) == 1 || r.Running < shortest {
				shortest = r.Running
			}
		default:
			elsewhere = append(elsewhere, r)
		}
	}
	if len(inCall) == 0 || len(elsewhere) > 1 && float64(len(elsewhere)) > few*float64(len(inCall)+len(elsewhere)) {
		return false
	}
	took := time.Duration(shortest * float64(time.Second)).Truncate(time.Second)
	v.State = Waits
	if took >= Hung && len(elsewhere) == 0 {
		v.State = IsHung
	}
	where := place(inCall)
	switch {
	case len(elsewhere) == 0 && len(inCall) == 1:
		only := ""
		if len(ranks) < size {
			only = fmt.Sprintf(", the only one of %d that is observed,", size)
		}
		v.Text = fmt.Sprintf("%s: %s%s has been in %s for %s", v.State, inCall[0].name(), only, where, took)
	case len(elsewhere) == 0:
		all := "all " + have(len(inCall))
		if len(ranks) < size {
			all = fmt.Sprintf("all %d ranks that are observed, of %d, have", len(inCall), size)
		}
		v.Text = fmt.Sprintf("%s: %s been in %s for %s", v.State, all, where, took)
	default:
		r := elsewhere[0]
		v.Text = fmt.Sprintf("%s for %s, which %s: %s been in %s for %s", Waits, r.name(), does(r),
			have(len(inCall)), where, took)
		v.Late = &LateRank{Rank: r.Rank, Dup: r.Dup, Node: mapping.OneLine(r.Node), Why: does(r)}
		if more := len(elsewhere) - 1; more > 0 {
			v.Text += fmt.Sprintf("; elsewhere, too: %d", more)
		}
	}
	return true
}

// does is what a rank does that others wait for.
func does(r *Rank) string {
	switch {
	case r.silent():
		return "does not answer, as if it were stopped"
	case r.function() != "":
		return "is in " + place([]*Rank{r})
	}
	return "is in no long call"
}

// place is where ranks are: one call, or how many there are.
func place(ranks []*Rank) string {
	places := map[string]bool{}
	for _, r := range ranks {
		if r.Long != nil {
			places[Called{Function: r.Long.Function, Object: r.Long.Object}.where()] = true
		}
	}
	if len(places) > 1 {
		return fmt.Sprintf("%d different calls", len(places))
	}
	for where := range places {
		return where
	}
	return ""
}

func have(ranks int) string {
	if ranks == 1 {
		return "1 rank has"
	}
	return fmt.Sprintf("%d ranks have", ranks)
}
