// Package verdict says of a job's ranks what is wrong with them, if anything: whether the job hangs, whether its ranks
// wait for one of them and why that one is late, and how efficient it is.
//
// It knows no exporter and no history: Of is given what each rank did in some time, whichever that is. Thresholds are
// those of the alerts (docs/alerts.md), which say the same of jobs over many nodes.
package verdict

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// Late is the share of the ranks' time from which on waiting for one of them is the verdict: that of
	// MPIRanksWaitForOne.
	Late = 0.3
	// noted is the share from which on it is mentioned.
	noted = 0.1
	// Efficient is the parallel efficiency from which on nothing is wrong with a job in which nobody is late.
	Efficient = 0.7
	// Hung is how long a call goes on in which a rank is taken to be stuck: that of MPIJobHung.
	Hung = 5 * time.Minute
	// Waiting is how long it goes on until it is said.
	Waiting = 10 * time.Second
	// few is the part of the ranks that may be elsewhere than the others who wait for them.
	few = 0.1
)

// Rank is what a rank did in some time, and what it does at the end of it. Times are in seconds; those of the
// thread that initialised MPI.
type Rank struct {
	Rank, Dup int
	Node      string
	Observed  float64 // 0: its calls were not measured
	Inside    float64 // MPI
	// Inside by kind of call.
	Send, Wait, Collective, File float64

	Ended  bool
	Silent bool // it doesn't answer
	// The longest call that it is in; "": none, or none that has taken a second.
	Function, Object string
	Running          float64
}

func (r *Rank) share(seconds float64) float64 { return min(max(seconds/r.Observed, 0), 1) }

// useful is the share of time outside MPI; busy that in which it waits for nobody. It was observed.
func (r *Rank) useful() float64 { return r.share(r.Observed - r.Inside) }
func (r *Rank) busy() float64   { return r.share(r.Observed - r.Wait - r.Collective) }

func (r *Rank) name() string {
	name := "rank " + strconv.Itoa(r.Rank)
	if r.Dup > 0 {
		name += fmt.Sprintf(" (dup %d)", r.Dup)
	}
	if r.Node != "" {
		name += " on " + r.Node
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

// States of a job.
const (
	Unknown       = "unknown" // nothing was observed
	Healthy       = "healthy"
	IsHung        = "hung"
	Waits         = "waiting"       // all are in calls, or all but a few
	WaitsForOne   = "late rank"     // its ranks lose time by waiting for one of them
	Communication = "communication" // much of their time, and nobody is late
)

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
	Node string `json:"node"`
	Why  string `json:"why"` // what it does meanwhile
	// Share of the mean rank's time that goes by waiting for it.
	Share float64 `json:"share"`
}

// Of judges a job. where is in which call most time is spent, such as "MPI_Allreduce on residual"; "": nobody knows.
func Of(ranks []Rank, where string) Verdict {
	v := Verdict{State: Unknown}
	var observed []*Rank
	for i := range ranks {
		if ranks[i].Observed > 0 {
			observed = append(observed, &ranks[i])
		}
	}
	if len(observed) == 0 {
		v.Text = "nothing is known of its time: it runs without exec --calls"
		return v
	}
	v.Efficiency = efficiency(observed)
	if stuck(ranks, &v) {
		return v
	}
	e := v.Efficiency
	v.Late = late(observed)
	v.Text = percent(e.Parallel) + " useful"
	mostly := ""
	if where != "" {
		mostly = ", mostly in " + where
	}
	switch {
	case v.Late != nil && v.Late.Share >= noted:
		v.Text += fmt.Sprintf("; %s of the time ranks wait%s for rank %d on %s, which %s", percent(v.Late.Share),
			strings.Replace(mostly, ", mostly", "", 1), v.Late.Rank, v.Late.Node, v.Late.Why)
		if v.State = Healthy; v.Late.Share >= Late {
			v.State = WaitsForOne
		}
	case e.Parallel < Efficient:
		v.State, v.Late = Communication, nil
		v.Text += fmt.Sprintf("; %s of the time is communication%s, and nobody is late", percent(1-e.Parallel), mostly)
	default:
		v.State, v.Late = Healthy, nil
		v.Text = Healthy + ": " + v.Text
	}
	return v
}

func efficiency(observed []*Rank) *Efficiency {
	e := &Efficiency{Ranks: len(observed)}
	type sum struct{ useful, ranks float64 }
	nodes := map[string]sum{}
	for _, r := range observed {
		useful := r.useful()
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
	by, share := most(observed, (*Rank).useful)
	why := "computes more, or does I/O of its own"
	if share < Late {
		if busy, more := most(observed, (*Rank).busy); more > share && more >= noted {
			by, share = busy, more
			switch {
			case by.File >= by.Send && by.share(by.File) >= noted:
				why = "works on files"
			case by.share(by.Send) >= noted:
				why = "takes long to send: a slow network, or more messages"
			}
		}
	}
	return &LateRank{Rank: by.Rank, Node: by.Node, Why: why, Share: share}
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
func stuck(ranks []Rank, v *Verdict) bool {
	var inCall, elsewhere []*Rank
	shortest := 0.0
	for i := range ranks {
		r := &ranks[i]
		isFile := strings.HasPrefix(r.Function, "MPI_File_") // which may take long
		switch {
		case r.Ended:
		case !r.Silent && r.Running >= Waiting.Seconds() && !isFile:
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
	if took >= Hung {
		v.State = IsHung
	}
	where := place(inCall)
	switch {
	case len(elsewhere) == 0 && len(inCall) == 1:
		v.Text = fmt.Sprintf("%s: %s has been in %s for %s", v.State, inCall[0].name(), where, took)
	case len(elsewhere) == 0:
		v.Text = fmt.Sprintf("%s: all %s been in %s for %s", v.State, have(len(inCall)), where, took)
	default:
		r := elsewhere[0]
		v.Text = fmt.Sprintf("%s for %s, which %s: %s been in %s for %s", Waits, r.name(), does(r),
			have(len(inCall)), where, took)
		v.Late = &LateRank{Rank: r.Rank, Node: r.Node, Why: does(r), Share: 1}
		if more := len(elsewhere) - 1; more > 0 {
			v.Text += fmt.Sprintf("; elsewhere, too: %d", more)
		}
	}
	return true
}

// does is what a rank does that others wait for.
func does(r *Rank) string {
	switch {
	case r.Silent:
		return "does not answer, as if it were stopped"
	case r.Function != "":
		return "is in " + place([]*Rank{r})
	}
	return "is in no long call"
}

// place is where ranks are: one call, or how many there are.
func place(ranks []*Rank) string {
	places := map[string]bool{}
	for _, r := range ranks {
		where := r.Function
		if r.Object != "" {
			where += " on " + r.Object
		}
		places[where] = true
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

func percent(share float64) string { return strconv.FormatFloat(100*share, 'f', 0, 64) + " %" }
