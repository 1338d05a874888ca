package job

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/exporter/units"
	"github.com/mpit-exporter/mpit-exporter/mapping"
)

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
	Phases  []api.Phase  `json:"phases,omitempty"` // empty: the program has none, or the report isn't of all the time
	// Bytes are those of its calls by direction, as Call has them; nil: none, or not known of an interval.
	Bytes map[string]float64 `json:"bytes,omitempty"`
	// Functions are those with most of its time, as Written has them.
	Functions []FunctionTime `json:"functions,omitempty"`
	// ThreadLevel is MPI's: "multiple" and "serialized" programs may have threads that no agent tells of.
	ThreadLevel string `json:"thread_level,omitempty"`
	// Ahead says that it has nonblocking messages: one that others wait for may be on its way.
	Ahead bool `json:"sends_ahead,omitempty"`

	watched
}

// watched is how a rank was observed.
type watched struct {
	// Unheard says that it has not answered for most of the interval that a report is on.
	Unheard bool `json:"unheard,omitempty"`

	cores float64 // how many it used on average in a report on an interval; 0: not known
	step  float64 // seconds in which its job begins a collective: what lasts no longer isn't blocked; 0: not known
	young bool    // its thread's times on a core, which are read now and then, may be those of its first moments
}

// Reasons of ends: an orderly one, and that of the rank that has called MPI_Abort.
const (
	endsWell    = "finalize"
	endsByAbort = "abort"
)

func (r *Rank) who() who { return who{r.Rank, r.Dup} }

// Useful is the rank's share of time outside MPI, but for what it sleeps between polls; 0 where nothing is known.
func (r *Rank) Useful() float64 { return r.Share(api.Outside) - r.asleep() }

// Busy is its share of time in which it waits for nobody.
func (r *Rank) Busy() float64 { return r.Useful() + r.Share(api.Send, api.File) }

// sleeps is which part of its time off the CPU a rank polls that sleeps between polls: a microsecond of each gap, and
// the calls, between sleeps of a millisecond or two.
const sleeps = 0.001

// asleep is the share of its time that a rank sleeps between polls, as far as that is known.
func (r *Rank) asleep() float64 {
	on, known := r.ready()
	off := r.Share(api.Outside) - on
	if !known || r.CPU.GPU || off < noted || r.Share(api.Poll) < sleeps*off {
		return 0
	}
	return off
}

// others is the share of its time that other threads of its process have been on a core, at least; 0: none, or nothing
// is known of them.
func (r *Rank) others() float64 {
	switch c := r.cpu(); {
	case c == nil || c.Seconds == nil || c.Thread != nil && c.Process == nil:
		return 0
	case c.Thread != nil:
		return max(*c.Process-*c.Thread, 0) / r.Time.Sum()
	default:
		return max(*c.Seconds/r.Time.Sum()-1, 0)
	}
}

// hides says that the rank polls while other threads of its process work: how much of its time is useful isn't known,
// for they may be the library's.
func (r *Rank) hides() bool {
	return r.others() >= noted && (r.asleep() > 0 || r.Share(api.Poll) >= Efficient)
}

// ready is the share of its time that the rank is on a core or ready to run: the rest it sleeps.
func (r *Rank) ready() (share float64, known bool) {
	on, known := r.onCore()
	return on + r.queued(), known && r.CPU.Queue != nil && !r.young
}

// cpu is what the kernel says of the rank's time; nil: nothing, none was observed, or it is of other time, too: before
// MPI_Init, or when the program had switched measuring off.
func (r *Rank) cpu() *api.CPU {
	c, observed, known := r.CPU, r.Time.Sum(), 0.0
	if c == nil || c.Paused >= noted*observed {
		return nil
	}
	for _, of := range []*float64{c.Thread, c.Queue} {
		if of != nil {
			known += *of
		}
	}
	if known > (1+noted)*observed {
		return nil
	}
	return c
}

// Share is the share of its time that it is in some states; 0 where nothing is known.
func (r *Rank) Share(states ...api.TimeState) (share float64) {
	for _, state := range states {
		share += r.Time[state]
	}
	return share / max(r.Time.Sum(), math.SmallestNonzeroFloat64)
}

// StateGone is a rank's state that nobody has heard of lately.
const StateGone = "gone"

// who is a rank. There may be several of one number, if their job says that it is one world.
type who struct{ rank, dup int }

// ended says that the rank has ended, and isn't in MPI_Finalize any more, or that it hasn't been heard of lately.
func (r *Rank) ended() bool {
	return r.State == StateGone || r.State == "ended" && (r.End != endsWell || len(r.Threads) == 0)
}

// broken says that it has ended otherwise than by MPI_Finalize: lost, abort, exit.
func (r *Rank) broken() bool { return r.End != "" && r.End != endsWell }

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

// inOneCall says that the rank has been in one call for long, as far as that is known.
func (r *Rank) inOneCall() bool {
	if len(r.Threads) > 0 {
		return r.isBlocked()
	}
	return !r.ended() && !r.silent() && r.Running >= r.long() && !isOfFile(r.function()) && r.spendsItInside()
}

// spendsItInside says that the rank's time is that of the call that it is in: if it is another thread's, there is less.
func (r *Rank) spendsItInside() bool {
	return r.Time.Sum()-r.Time[api.Outside] >= 0.99*min(r.Running, r.Time.Sum())
}

// isUnknown says that the rank may be blocked, or serve others in one thread while another works: what the other does
// isn't known, or not yet.
func (r *Rank) isUnknown() bool {
	if len(r.Threads) > 1 {
		outside := slices.ContainsFunc(r.Threads, func(t api.Thread) bool { return t.Call == nil })
		return outside && r.Running >= api.LongCallTime.Seconds() && !isCollective(r.function()) && r.spendsItInside()
	}
	threaded := r.ThreadLevel == "serialized" || r.ThreadLevel == "multiple"
	return threaded && len(r.Threads) == 0 && r.inOneCall() && !isCollective(r.function())
}

// mostThreads is how many threads an agent tells of at most: of a rank with so many there may be more.
const mostThreads = 8

// isBlocked says that the rank has stayed in its calls for long.
func (r *Rank) isBlocked() bool { return !r.silent() && r.stays(r.long()) }

// mayBeBlocked says that the rank may get stuck in its calls, or, if it doesn't answer, that it may still be in them.
func (r *Rank) mayBeBlocked() bool {
	if r.silent() {
		return r.stays(0)
	}
	return r.stays(api.LongCallTime.Seconds())
}

// stays says that no thread of the rank does anything: each has been in one call for so many seconds, and it uses no
// more of the processors than they spin away. Where threads aren't known nothing is.
func (r *Rank) stays(least float64) bool {
	if r.ended() || len(r.Threads) == 0 || len(r.Threads) >= mostThreads || r.cores > float64(len(r.Threads))+0.2 {
		return false
	}
	return !slices.ContainsFunc(r.Threads, func(t api.Thread) bool {
		return t.Call == nil || t.Call.Seconds < least || isOfFile(t.Call.Function)
	})
}

// long is from how many seconds on a call has lasted for long: longer than its job's steps.
func (r *Rank) long() float64 { return max(Waiting.Seconds(), r.step) }

// operation tells apart what ranks may be in together.
type operation struct {
	function, comm, object string
	number                 uint64
	tag                    int
}

func operationOf(c *api.CallUnderWay) operation {
	o := operation{c.Function, c.Comm, c.Object, c.Number, -1}
	if c.Tag != nil {
		o.tag = *c.Tag
	}
	return o
}

// callsWithout says that a call of the rank is on a communicator that another rank isn't in.
func (r *Rank) callsWithout(other *Rank, call Called) (without bool) {
	for i := range r.Comms {
		if id := r.Comms[i].ID; call.Kind == "comm" && call.Object == r.Comms[i].Name {
			if without = len(other.Comms) > 0; slices.ContainsFunc(other.Comms, func(c api.Comm) bool { return c.ID == id }) {
				return false
			}
		}
	}
	return without
}

// isIn says whether a thread of the rank is in the same operation.
func (r *Rank) isIn(c *api.CallUnderWay) bool {
	return slices.ContainsFunc(r.Threads, func(t api.Thread) bool {
		return t.Call != nil && operationOf(t.Call) == operationOf(c)
	})
}

const doesNotAnswer = "does not answer, as if it were stopped"

// does is what a rank does that others wait for.
func (r *Rank) does() string {
	switch {
	case r.silent():
		return doesNotAnswer
	case r.ended():
		return "has ended"
	}
	if at := r.place(); at != "" {
		return "is in " + at
	}
	return cmp.Or(r.outside(), "is not blocked in MPI")
}

// offCPU is all that is known of a rank which may want a core that it doesn't get.
const offCPU = "is off the CPU"

// outside is what keeps a rank out of MPI; "": that isn't known.
func (r *Rank) outside() string {
	on, known := r.onCore()
	off := known && on < r.Share(api.Outside)/2
	_, queueKnown := r.ready()
	away := len(r.Threads) > 0 && r.Threads[0].Call == nil && r.Threads[0].Moved >= Waiting.Seconds()
	switch {
	case r.queued() >= queued:
		return fmt.Sprintf("got a core for %s of the time in which it could run", units.Percent(r.got()))
	case off && r.CPU.GPU:
		return "is off the CPU, perhaps on its GPU"
	case (off || away) && r.CPU != nil && r.CPU.In != "":
		return "is in " + mapping.OneLine(r.CPU.In)
	case off && !queueKnown:
		return offCPU
	case off && r.others() >= noted:
		return "is off the CPU, but not its other threads"
	case off:
		return "is off the CPU: it sleeps, or waits for a device"
	case away:
		return "has made no MPI call for " + seconds(r.Threads[0].Moved)
	}
	return ""
}

// place is the call that the rank has been in for longer than a second; "": none.
func (r *Rank) place() string {
	if slices.ContainsFunc(r.Threads, func(t api.Thread) bool { return t.Call == nil }) {
		return "" // another thread may serve others by design
	}
	for t := range r.Threads {
		if c := r.Threads[t].Call; c != nil && c.Seconds >= api.LongCallTime.Seconds() {
			return where(c)
		}
	}
	if r.Long == nil {
		return ""
	}
	return Called{Function: r.Long.Function, Object: r.Long.Object}.where()
}

// busyWith is what a rank does when others wait for it.
func (r *Rank) busyWith() string {
	if r.Share(api.File) >= max(r.Useful(), noted) {
		return "works on files"
	}
	if why := r.outside(); why != "" {
		return why
	}
	if on, known := r.onCore(); known {
		return fmt.Sprintf("is on the CPU for %s of the time", units.Percent(on))
	}
	return fmt.Sprintf("is outside MPI for %s of the time", units.Percent(r.Useful()))
}

// onCore is the share of the rank's time in which its thread, or if that isn't known any, was on a core.
func (r *Rank) onCore() (share float64, known bool) {
	c := r.cpu()
	if c == nil {
		return 0, false
	}
	on := c.Thread
	if on == nil || r.young {
		on = c.Seconds
	}
	if on == nil {
		return 0, false
	}
	return min(*on/r.Time.Sum(), 1), true
}

// got is the share of the time in which it could run that a rank had a core; 1 if it never had to wait for one, or
// nothing is known of that.
func (r *Rank) got() float64 {
	if c := r.CPU; r.queued() > 0 && c.Thread != nil {
		return *c.Thread / (*c.Thread + *c.Queue)
	}
	return 1
}

// queued is the share of its time in which a rank was ready to run and had no core; 0 where that isn't known.
func (r *Rank) queued() float64 {
	if c := r.cpu(); c != nil && c.Queue != nil && !r.young {
		return *c.Queue / r.Time.Sum()
	}
	return 0
}
