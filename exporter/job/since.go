package job

import (
	"cmp"
	"hash/maphash"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
)

// Totals are the numbers of a report that Since subtracts from those of a later one. Names are not held: a number is
// found by the hash of what it is of.
type Totals struct {
	time    time.Time
	ranks   map[who]rankTotals
	seed    maphash.Seed
	numbers []total // sorted
}

type rankTotals struct {
	pid  int
	time api.StateSeconds
	cpu  *api.CPU // never nil
}

// cpuSince is what the kernel says of a rank, its times those of so many seconds. If it was silent before, times as
// much has come at once. Those of a thread are read less often, at other times: they are what they would be in so many
// seconds, by what was read meanwhile, or else by all of the time observed.
func cpuSince(now, before *api.CPU, seconds, times, observed float64) *api.CPU {
	if now == nil {
		return nil
	}
	since := func(now, before *float64, part float64) *float64 {
		if now == nil || before == nil {
			return nil
		}
		return new(grown(*now, *before) * part)
	}
	of, was, part := *now, *before, 1.0
	switch read := now.At - was.At; {
	case read > 0:
		part = seconds / read
	case now.At > 0:
		part, was.Thread, was.Queue, was.Process = seconds/observed, new(0.0), new(0.0), new(0.0)
	}
	of.Seconds, of.Paused = since(now.Seconds, was.Seconds, 1/times), grown(now.Paused, was.Paused)/times
	of.Thread, of.Queue = since(now.Thread, was.Thread, part), since(now.Queue, was.Queue, part)
	of.Process = since(now.Process, was.Process, part)
	return &of
}

type total struct {
	of    uint64
	value float64
}

// quantity is what a number is of. Names are hashed before it is, for that is done for each rank of each call.
type quantity struct {
	called uint64 // hash
	who
	what  string // number of a call, direction of its bytes, number of messages
	to    string // whom they are sent to
	bound float64
}

// hash stands for a quantity or a call.
func hash[T comparable](t *Totals, what T) uint64 { return maphash.Comparable(t.seed, what) }

// Totals returns the report's.
func (r *Report) Totals() *Totals {
	t := &Totals{time: r.Time, ranks: make(map[who]rankTotals, len(r.Ranks)), seed: maphash.MakeSeed()}
	for i := range r.Ranks {
		of := &r.Ranks[i]
		t.ranks[of.who()] = rankTotals{of.PID, of.Time, cmp.Or(of.CPU, &api.CPU{})}
	}
	add := func(what quantity, value float64) {
		t.numbers = append(t.numbers, total{hash(t, what), value})
	}
	for i := range r.Calls {
		c := &r.Calls[i]
		call := hash(t, c.Called)
		add(quantity{called: call, what: "calls"}, c.Calls)
		add(quantity{called: call, what: "seconds"}, c.Seconds)
		for direction, bytes := range c.Bytes {
			add(quantity{called: call, what: direction}, bytes)
		}
		for by, seconds := range c.ranks {
			add(quantity{called: call, who: by}, seconds)
		}
	}
	for i := range r.Sizes {
		call := hash(t, r.Sizes[i].Called)
		for _, b := range r.Sizes[i].Buckets {
			add(quantity{called: call, what: "sizes", bound: b.Bytes}, b.Calls)
		}
	}
	for _, m := range r.Messages {
		add(quantity{who: who{rank: m.From}, what: "messages", to: m.To}, m.Messages)
		add(quantity{who: who{rank: m.From}, what: "bytes", to: m.To}, m.Bytes)
	}
	slices.SortFunc(t.numbers, func(a, b total) int { return cmp.Compare(a.of, b.of) })
	t.numbers = slices.Clip(t.numbers)
	return t
}

// grown is what has come to a total, which was zero if there was none.
func (t *Totals) grown(now float64, what quantity) float64 {
	at, found := slices.BinarySearchFunc(t.numbers, hash(t, what), func(n total, of uint64) int {
		return cmp.Compare(n.of, of)
	})
	if !found {
		return grown(now, 0)
	}
	return grown(now, t.numbers[at].value)
}

// Since is the report of what has happened since an earlier one on the same job: every time and every number is that of
// the interval, but levels, states and calls under way are of now. Of a job that has ended, with no earlier report
// (nil) and with one on other ranks, it is the report itself, which is of the whole job. It keeps nothing of either
// that is changed later.
func (r *Report) Since(before *Totals) *Report { return r.since(before, "", 0) }

// since is Since of a job that was in a state a moment ago and begins a collective at least every step.
func (r *Report) since(before *Totals, was string, step time.Duration) *Report {
	whole := before == nil || r.Job.Ended != nil || !before.sameRanks(r.Ranks)
	if whole && was == "" && step == 0 {
		return r
	}
	of := *r
	of.was, of.Step = was, step.Seconds()
	if whole {
		of.Ranks = slices.Clone(r.Ranks)
	} else {
		of.Seconds, of.Whole = r.Time.Sub(before.time).Seconds(), false
		var times map[who]float64
		of.Ranks, times = before.ranksSince(r.Ranks, of.Seconds)
		of.Calls = before.callsSince(r.Calls, times)
		of.Sizes = before.sizesSince(r.Sizes)
		of.Messages = before.messagesSince(r.Messages)
		of.sortCalls()
	}
	for i := range of.Ranks {
		of.Ranks[i].step = of.Step
	}
	of.Verdict = of.verdict()
	of.sortRanks()
	return &of
}

// sameRanks says whether the same processes were observed, so that totals of all can be subtracted: those of a rank
// that has come are of its whole time, which may be long before an exporter finds it, and those of one that has left
// are missing.
func (t *Totals) sameRanks(now []Rank) bool {
	return len(now) == len(t.ranks) && !slices.ContainsFunc(now, func(r Rank) bool {
		was, known := t.ranks[r.who()]
		return !known || was.pid != r.PID || was.time.Sum() == 0 && r.Time.Sum() > 0
	})
}

// ranksSince takes of a rank that was silent and answers again as much as of the others: what it did meanwhile has come
// at once. more says of each of those how many times as much that was.
func (t *Totals) ranksSince(now []Rank, seconds float64) (ranks []Rank, more map[who]float64) {
	ranks, more = slices.Clone(now), map[who]float64{}
	for i := range ranks {
		r := &ranks[i]
		r.Bytes, r.Phases = nil, nil
		b := t.ranks[r.who()]
		observed := r.Time.Sum()
		for state := range r.Time {
			r.Time[state] = grown(r.Time[state], b.time[state])
		}
		times := r.Time.Sum() / seconds
		r.Unheard = times > 2 || times < 0.5 && r.silent()
		if times > 2 {
			more[r.who()] = times
		} else {
			times = 1
		}
		for state := range r.Time {
			r.Time[state] /= times
		}
		r.young = r.young && r.CPU != nil && r.CPU.At == b.cpu.At
		r.CPU = cpuSince(r.CPU, b.cpu, r.Time.Sum(), times, observed)
		if r.CPU != nil && r.CPU.Seconds != nil && seconds > 0 {
			r.cores = *r.CPU.Seconds / max(r.Time.Sum(), seconds)
		}
	}
	return ranks, more
}

// callsSince leaves out calls that have taken no time and were not called. more is that of ranksSince.
func (t *Totals) callsSince(now []Call, more map[who]float64) (calls []Call) {
	for _, c := range now {
		call := hash(t, c.Called)
		c.Calls = t.grown(c.Calls, quantity{called: call, what: "calls"})
		c.Seconds = t.grown(c.Seconds, quantity{called: call, what: "seconds"})
		c.Bytes = maps.Clone(c.Bytes)
		for direction, bytes := range c.Bytes {
			c.Bytes[direction] = t.grown(bytes, quantity{called: call, what: direction})
		}
		if c.ranks = maps.Clone(c.ranks); len(c.ranks) > 0 {
			c.Most, c.MostSeconds = math.MaxInt, -1
			for by, seconds := range c.ranks {
				seconds = t.grown(seconds, quantity{called: call, who: by})
				if times, is := more[by]; is {
					c.Seconds = grown(c.Seconds, seconds-seconds/times)
					seconds /= times
				}
				c.ranks[by] = seconds
				if seconds > c.MostSeconds || seconds == c.MostSeconds && by.rank < c.Most {
					c.Most, c.MostSeconds = by.rank, seconds
				}
			}
		}
		if c.Calls > 0 || c.Seconds > 0 {
			calls = append(calls, c)
		}
	}
	return calls
}

func (t *Totals) sizesSince(now []Sizes) (sizes []Sizes) {
	for _, s := range now {
		all, call := s.Buckets, hash(t, s.Called)
		s.Calls, s.Buckets = 0, nil
		for _, b := range all {
			if b.Calls = t.grown(b.Calls, quantity{called: call, what: "sizes", bound: b.Bytes}); b.Calls > 0 {
				s.Calls += b.Calls
				s.Buckets = append(s.Buckets, b)
			}
		}
		if s.Calls > 0 {
			sizes = append(sizes, s)
		}
	}
	return sizes
}

func (t *Totals) messagesSince(now []Messages) (messages []Messages) {
	for _, m := range now {
		what := quantity{who: who{rank: m.From}, what: "messages", to: m.To}
		if m.Messages = t.grown(m.Messages, what); m.Messages > 0 {
			what.what = "bytes"
			m.Bytes = t.grown(m.Bytes, what)
			messages = append(messages, m)
		}
	}
	return messages
}
