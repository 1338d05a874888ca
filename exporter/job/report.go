package job

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
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
	Job     Job     `json:"job"`
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
	// LeftOut is how many ranks and series the exporters have left out of their answers.
	LeftOut int `json:"left_out,omitempty"`
}

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

// WithRanks is the report as it is written, with ByRank of so many calls, those with most time.
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

// Rank is one rank. The times are those of one of its threads; all zero without a call profile.
type Rank struct {
	Rank    int              `json:"rank"`
	Dup     int              `json:"dup,omitempty"`
	Node    string           `json:"node"`
	PID     int              `json:"pid,omitempty"` // on its node; 0: not known
	UID     uint32           `json:"uid"`
	State   string           `json:"state"`
	End     string           `json:"end_reason,omitempty"`
	Exit    string           `json:"exit_status,omitempty"` // "exit 1", "SIGSEGV"; empty: nobody knows
	EndedAt time.Time        `json:"ended,omitzero"`
	Time    api.StateSeconds `json:"state_seconds"`
	Running float64          `json:"running_seconds,omitempty"`
	Long    *api.LongCall    `json:"long,omitempty"`
	Place   string           `json:"place,omitempty"` // where in the program that was called, if somebody knows
	// What its threads are in, and its communicators, both of its last answer; absent: not known.
	Threads []api.Thread `json:"threads,omitempty"`
	Comms   []api.Comm   `json:"comms,omitempty"`
	CPU     *api.CPU     `json:"cpu,omitempty"`
	// ThreadLevel is MPI's: "multiple" and "serialized" programs may have threads that no agent tells of.
	ThreadLevel string `json:"thread_level,omitempty"`

	cores float64 // how many it used on average in a report on an interval; 0: not known
}

// Reasons of ends: an orderly one, and that of the rank that has called MPI_Abort.
const (
	endsWell    = "finalize"
	endsByAbort = "abort"
)

func (r *Rank) who() who { return who{r.Rank, r.Dup} }

// Useful is the rank's share of time outside MPI; 0 where nothing is known.
func (r *Rank) Useful() float64 { return r.Share(api.Outside) }

// Busy is its share of time in which it waits for nobody.
func (r *Rank) Busy() float64 { return r.Share(api.Outside, api.Send, api.File) }

// Share is the share of its time that it is in some states; 0 where nothing is known.
func (r *Rank) Share(states ...api.TimeState) (share float64) {
	for _, state := range states {
		share += r.Time[state]
	}
	return share / max(r.Time.Sum(), math.SmallestNonzeroFloat64)
}

// Level is what is or was in the library at most, and in which rank.
type Level struct {
	Metric string            `json:"metric"`
	Labels map[string]string `json:"labels,omitempty"`
	Unit   string            `json:"unit,omitempty"`
	Most   float64           `json:"most"`
	Rank   int               `json:"rank"`
}

// makers are the reports that are being made.
type makers map[[3]string]*maker

// of is the maker of the report on a world.
func (all makers) of(j Job, place func(r *api.RankStatus) string) *maker {
	key := j.key()
	if all[key] == nil {
		all[key] = newMaker(j, place)
	}
	return all[key]
}

// done are the reports, in the order of their labels.
func (all makers) done() (reports []*Report) {
	for _, key := range slices.SortedFunc(maps.Keys(all), func(a, b [3]string) int { return slices.Compare(a[:], b[:]) }) {
		reports = append(reports, all[key].done())
	}
	return reports
}

// Of makes a report of each MPI_COMM_WORLD that there is in the answers of exporters, in the order of their labels.
// place says where in its program a rank's long call was made; nil: nobody knows.
func Of(answers []api.ValueList, place func(r *api.RankStatus) string) []*Report {
	all := makers{}
	for _, answer := range answers {
		var m *maker
		for _, of := range answer.Ranks {
			m = all.of(Job{ID: of.Rank.JobID, World: of.Rank.World, User: of.Rank.User, Name: of.Rank.JobName}, place)
			m.addRank(&of)
			if answer.Time.After(m.report.Time) {
				m.report.Time = answer.Time
			}
		}
		all.leaveOut(m, &answer)
	}
	return all.done()
}

// leaveOut notes in reports on a user's job which of its ranks were left out of an answer; last has those of which an
// older exporter doesn't say whose they are.
func (all makers) leaveOut(last *maker, answer *api.ValueList) {
	if last != nil && len(answer.LeftOut) == 0 {
		last.report.LeftOut += answer.More
	}
	for _, left := range answer.LeftOut {
		for _, m := range all {
			if m.report.Job.User == left.User && m.report.Job.ID == left.JobID {
				m.report.LeftOut += left.Ranks
				break
			}
		}
	}
}

// Merge makes one report of those on parts of the same MPI_COMM_WORLD, such as its nodes, for each of them. What threads
// are in is known of those made within Waiting of the newest: what they say together is of one moment.
func Merge(parts []*Report) []*Report {
	newest := map[[3]string]time.Time{}
	for _, r := range parts {
		if key := r.Job.key(); r.Time.After(newest[key]) {
			newest[key] = r.Time
		}
	}
	all := makers{}
	for _, r := range parts {
		if newest[r.Job.key()].Sub(r.Time) >= Waiting {
			old := *r
			old.Ranks = slices.Clone(r.Ranks)
			for i := range old.Ranks {
				old.Ranks[i].Threads = nil
			}
			r = &old
		}
		all.of(r.Job, nil).addReport(r)
	}
	return all.done()
}

// Begun is when the job began; zero: nobody knows.
func (r *Report) Begun() time.Time {
	if r.Job.Started == nil {
		return time.Time{}
	}
	return *r.Job.Started
}

// StateGone is a rank's state that nobody has heard of lately.
const StateGone = "gone"

// beyond is what no value is as large as: any number of smaller ones has a finite sum, and JSON has no infinity.
const beyond = 1e100

// number reads a value as it stands in an answer; what is none, or beyond measure, is false.
func number(text string) (float64, bool) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) || math.Abs(v) >= beyond {
		return 0, false
	}
	return v, true
}

// bound reads a bucket's.
func bound(text string) float64 {
	v, known := number(text)
	if !known {
		return LargestSize
	}
	return v
}
