package job

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// Format is the version of a report's JSON.
const Format = 2

// Report is what is known of the ranks of one MPI_COMM_WORLD of a job. Times are in seconds, shares from 0 to 1.
type Report struct {
	Format int       `json:"format"`
	Time   time.Time `json:"time"` // when the last of its ranks was asked
	// Seconds is of how long the report is; 0: nobody knows. Whole says that it is all the time since the job began.
	Seconds float64 `json:"seconds"`
	Whole   bool    `json:"whole"`
	// Step is in how many seconds the job begins a collective: what lasts no longer isn't blocked; 0: not known.
	Step float64 `json:"step_seconds,omitempty"`
	Job  Job     `json:"job"`
	// Verdict says what is wrong with it, if anything.
	Verdict Verdict `json:"verdict"`
	// Calls are the functions of MPI that were called, by object, those with the most time first; empty: there was no
	// call profile.
	Calls []Call `json:"calls,omitempty"`
	// Ranks are from late to early: the others wait for the first.
	Ranks []Rank `json:"ranks"`
	// Sizes are of calls, by function and object; empty: they were not measured (exec --calls=sizes).
	Sizes []Sizes `json:"sizes,omitempty"`
	// Messages are those of each pair of ranks, those with most bytes first; empty: they were not counted (exec
	// --calls=peers).
	Messages []Messages `json:"messages,omitempty"`
	Levels   []Level    `json:"levels,omitempty"` // of the library: queues and watermarks, by name
	// Phases are those of the program, as Written has them, those with most time first.
	Phases []Phase `json:"phases,omitempty"`
	// Sites are those at which ranks have waited most, the first few (exec --calls=sites); empty: none, or not asked for.
	Sites []Site `json:"sites,omitempty"`
	// LeftOut is how many ranks and series the exporters have left out of their answers.
	LeftOut int `json:"left_out,omitempty"`

	was      string // the state of the job a moment ago; empty: not known
	cycle    string // which ranks wait for one another, for too short a time to call it a deadlock; empty: none
	suspects suspects
}

// Phase is what ranks have done in the parts of their program to which MPI_Pcontrol gives one name.
type Phase struct {
	api.Phase              // of all ranks
	Efficiency *Efficiency `json:"efficiency"`
	Late       *LateRank   `json:"late,omitempty"` // absent: none stands out
}

// Site is a place in the program from which a function of MPI is called on an object, of all ranks.
type Site struct {
	api.Site

	From string `json:"from"` // "function (file.c:12)", or what of it is known
}

// suspects are ranks that may be deadlocked. Until that is known no other one is named.
type suspects map[*Rank]bool

// allow says that a rank can be named.
func (s suspects) allow(by *Rank) bool { return len(s) == 0 || s[by] }

// Job is what its ranks say of it.
type Job struct {
	ID        string     `json:"jobid"`
	World     string     `json:"world"`
	User      string     `json:"user"`
	Name      string     `json:"name,omitempty"`
	Program   string     `json:"program,omitempty"` // path of the executable of most ranks
	Library   string     `json:"library,omitempty"` // with its version
	WorldSize int        `json:"world_size"`
	Observed  int        `json:"observed"` // ranks that are in this report
	Nodes     int        `json:"nodes"`
	Started   *time.Time `json:"started,omitempty"`
	Ended     *time.Time `json:"ended,omitempty"` // absent: a rank that is observed has not
}

// Lasted is how long the job has run, in seconds; 0: nobody knows.
func (r *Report) Lasted() float64 {
	switch {
	case r.Job.Started == nil:
		return 0
	case r.Job.Ended != nil:
		return r.Job.Ended.Sub(*r.Job.Started).Seconds()
	}
	return r.Time.Sub(*r.Job.Started).Seconds()
}

// Spent is the time of all its ranks together.
func (r *Report) Spent() (all api.StateSeconds) {
	for i := range r.Ranks {
		all = all.Plus(r.Ranks[i].Time)
	}
	return all
}

// Called is a function and the object that it is called on.
type Called struct {
	Function string `json:"function"`       // with MPI_
	Kind     string `json:"kind,omitempty"` // comm, win or file; empty: it names no object
	Object   string `json:"object,omitempty"`
}

// Call is all calls of one function on one object, of all ranks and threads.
type Call struct {
	Called

	Calls   float64 `json:"calls"`
	Seconds float64 `json:"seconds"`
	// Share is Seconds of all the time observed, of all ranks.
	Share float64            `json:"share"`
	Bytes map[string]float64 `json:"bytes,omitempty"` // by direction: sent, received, posted, written, read
	// Most is the rank that has spent most time in them.
	Most        int     `json:"most_rank"`
	MostSeconds float64 `json:"most_seconds"`
	// ByRank is Seconds of each of the report's ranks, in their order; nil: not told apart (WithRanks does). Files don't
	// have it.
	ByRank []float64 `json:"by_rank,omitempty"`
	// ranks is the same of those that have called: of objects that each rank has for itself a list of all would be long.
	ranks map[who]float64
}

// Sizes is how large the calls of one function on one object were, of all ranks.
type Sizes struct {
	Called

	Calls   float64  `json:"calls"`
	Buckets []Bucket `json:"buckets"` // those that have calls, from small to large
}

// Bucket is how many calls had at most so many bytes, and more than the bucket before.
type Bucket struct {
	Bytes float64 `json:"bytes"` // LargestSize: there is no bound
	Calls float64 `json:"calls"`
}

// LargestSize stands for sizes above the last bound, as JSON has no infinity.
const LargestSize = math.MaxFloat64

// Read reads a report, as JSON or from a page that has it as JSON.
func Read(text []byte) (*Report, error) {
	const begin, end = `<script type="application/json" id="report">`, `</script>`
	if _, after, is := bytes.Cut(text, []byte(begin)); is {
		text, _, _ = bytes.Cut(after, []byte(end))
	}
	r := &Report{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("this is no report, neither as JSON nor as a page: %w", err)
	}
	if r.Format != Format {
		return nil, fmt.Errorf("this is a report of format %d; this version reads %d", r.Format, Format)
	}
	return r, nil
}

// FunctionTime is a rank's time in a function, on all objects and of all threads, in seconds.
type FunctionTime struct {
	Function string  `json:"function"`
	Seconds  float64 `json:"seconds"`
}

// WithRanks is the report as the API has it, with ByRank of so many calls, those with most time.
func (r *Report) WithRanks(calls int) *Report {
	of := *r
	of.Calls = slices.Clone(r.Calls)
	for i := range of.Calls {
		c := &of.Calls[i]
		if i < calls && len(c.ranks) > 0 {
			c.ByRank = make([]float64, len(r.Ranks))
			for at := range r.Ranks {
				c.ByRank[at] = c.ranks[r.Ranks[at].who()]
			}
		}
		c.ranks = nil
	}
	return &of
}

// AtMost is the bound of the bucket in which the sorted calls reach a share: nine of ten are no larger than
// AtMost(0.9).
func (s *Sizes) AtMost(share float64) float64 {
	passed := 0.0
	for _, b := range s.Buckets {
		if passed += b.Calls; passed >= share*s.Calls {
			return b.Bytes
		}
	}
	return LargestSize
}

// Messages is what one rank has sent to another, point-to-point and one-sided.
type Messages struct {
	From     int     `json:"from"`
	To       string  `json:"to"` // number of the rank in MPI_COMM_WORLD; other: of all that were not told apart
	Messages float64 `json:"messages"`
	Bytes    float64 `json:"bytes"`
}

// Level is what is or was in the library at most, and in which rank.
type Level struct {
	Metric string            `json:"metric"`
	Labels map[string]string `json:"labels,omitempty"`
	Unit   string            `json:"unit,omitempty"`
	Most   float64           `json:"most"`
	Rank   int               `json:"rank"`
}

// Begun is when the job began; zero: nobody knows.
func (r *Report) Begun() time.Time {
	if r.Job.Started == nil {
		return time.Time{}
	}
	return *r.Job.Started
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
	Late       *LateRank   `json:"late,omitempty"`       // absent: none is
}

// Part is a piece of the bar that shows how a job's time is divided.
type Part struct {
	Name   string  `json:"name"`
	Colour string  `json:"colour"` // of the page's palette; empty: none
	Share  float64 `json:"share"`
}

// Bar divides the job's time by its verdict; nil: it was not measured.
func (v *Verdict) Bar() []Part {
	e, state := v.Efficiency, StateOf(v.State)
	switch {
	case state.Colour == "hung", state.Word == Idle: // what was useful of its time, or before, isn't the point
		return []Part{{v.State, state.Colour, 1}}
	case e == nil:
		return nil
	}
	most, waiting := e.Communication, "waiting for late ranks"
	if v.State == Waits { // all of a call in which ranks stay is waiting, whichever rank it may be for
		most, waiting = 1, Waits
	}
	return []Part{{"useful", "useful", e.Parallel}, {waiting, "late", max(most-e.Parallel, 0)},
		{"communication", "send", 1 - most}}
}

// MarshalJSON adds the bar, and whether the state needs attention: no screen decides that by itself.
func (v Verdict) MarshalJSON() ([]byte, error) {
	type fields Verdict
	return json.Marshal(struct {
		fields
		Bar       []Part `json:"bar,omitempty"`
		Attention bool   `json:"attention"`
	}{fields(v), v.Bar(), StateOf(v.State).NeedsAttention()})
}

// Sentence is what is said of the job: the word of its state, and why.
func (v *Verdict) Sentence() string {
	if rest, is := strings.CutPrefix(v.Text, v.State); is && (rest == "" || rest[0] == ':') {
		return v.Text
	}
	return v.State + ": " + v.Text
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

// compare puts calls into the order of their names.
func (c Called) compare(other Called) int {
	return cmp.Or(strings.Compare(c.Function, other.Function), strings.Compare(c.Object, other.Object))
}

// where names a call.
func (c Called) where() string {
	if c.Object == "" {
		return mapping.OneLine(c.Function)
	}
	return mapping.OneLine(c.Function + " on " + c.Object)
}

// synchronises says that no rank leaves such calls before all members have begun them.
func (c *Call) synchronises() bool { return api.Synchronises(c.Function, c.Calls, c.moved()) }

// moved is how many bytes calls have moved, in all directions.
func (c *Call) moved() (bytes float64) {
	for _, of := range c.Bytes {
		bytes += of
	}
	return bytes
}

// isSlow says that a collective takes far longer than its few bytes do.
func (c *Call) isSlow() bool {
	return isCollective(c.Function) && c.moved() <= small*c.Calls && c.Seconds >= 0.01*c.Calls
}

// add adds a rank's time.
func (c *Call) add(by who, seconds float64) {
	if c.ranks == nil {
		c.ranks = map[who]float64{}
	}
	c.Seconds += seconds
	c.ranks[by] += seconds
	if c.ranks[by] > c.MostSeconds {
		c.Most, c.MostSeconds = by.rank, c.ranks[by]
	}
}

func (c *Call) addBytes(direction string, bytes float64) {
	if c.Bytes == nil {
		c.Bytes = map[string]float64{}
	}
	c.Bytes[direction] += bytes
}

// key names a job.
func (j *Job) key() [3]string { return [3]string{j.ID, j.World, j.User} }

// grown is what has come to a total, to a billionth, as digits beyond mean nothing. What falls was counted anew, or a
// rank has left.
func grown(now, before float64) float64 { return max(math.Round((now-before)*1e9)/1e9, 0) }
