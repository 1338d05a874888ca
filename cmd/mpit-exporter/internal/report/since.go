package report

import (
	"maps"
	"math"
	"slices"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
)

// Since is the report of what has happened since an earlier one on the same job: every time and every number is that of
// the interval, but levels, states and calls under way are of now. Of a job that has ended, with no earlier report (nil)
// and with one on other ranks, it is the report itself, which is of the whole job. It keeps nothing of either that is
// changed later.
func (r *Report) Since(before *Report) *Report {
	if before == nil || r.Job.Ended != nil || !sameRanks(r.Ranks, before.Ranks) {
		return r
	}
	of := *r
	of.Seconds, of.Whole = r.Time.Sub(before.Time).Seconds(), false
	of.Ranks = ranksSince(r.Ranks, before.Ranks, of.Seconds)
	of.Calls = callsSince(r, before)
	of.Sizes = sizesSince(r.Sizes, before.Sizes)
	of.Messages = messagesSince(r.Messages, before.Messages)
	of.sortCalls()
	of.Verdict = of.judge()
	of.sortRanks()
	return &of
}

// sameRanks says whether the same processes were observed, so that totals of all can be subtracted: those of a rank that
// has come are of its whole time, which may be long before an exporter finds it, and those of one that has left are missing.
func sameRanks(now, before []Rank) bool {
	was := map[who]*Rank{}
	for i := range before {
		was[before[i].who()] = &before[i]
	}
	return len(now) == len(before) && !slices.ContainsFunc(now, func(r Rank) bool {
		b := was[r.who()]
		return b == nil || b.PID != r.PID || b.Observed == 0 && r.Observed > 0
	})
}

// less is what has come to a total, to a billionth, as digits beyond mean nothing. What falls was counted anew, or a rank
// has left.
func less(now, before float64) float64 { return max(math.Round((now-before)*1e9)/1e9, 0) }

// ranksSince takes of a rank that was silent and answers again as much as of the others: what it did meanwhile has come
// at once.
func ranksSince(now, before []Rank, seconds float64) []Rank {
	was := map[who]*Rank{}
	for i := range before {
		was[before[i].who()] = &before[i]
	}
	ranks := slices.Clone(now)
	for i := range ranks {
		r := &ranks[i]
		b := was[r.who()]
		r.Observed, r.Inside = less(r.Observed, b.Observed), less(r.Inside, b.Inside)
		r.Kind = api.KindSeconds{Send: less(r.Kind.Send, b.Kind.Send), Wait: less(r.Kind.Wait, b.Kind.Wait),
			Collective: less(r.Kind.Collective, b.Kind.Collective), File: less(r.Kind.File, b.Kind.File)}
		if times := r.Observed / seconds; times > 2 {
			r.Observed, r.Inside = r.Observed/times, r.Inside/times
			r.Kind = api.KindSeconds{Send: r.Kind.Send / times, Wait: r.Kind.Wait / times,
				Collective: r.Kind.Collective / times, File: r.Kind.File / times}
		}
	}
	return ranks
}

// callsSince leaves out calls that have taken no time and were not called.
func callsSince(r, before *Report) (calls []Call) {
	was := map[called]*Call{}
	for i := range before.Calls {
		was[before.Calls[i].called()] = &before.Calls[i]
	}
	for _, c := range r.Calls {
		b := was[c.called()]
		if b == nil {
			calls = append(calls, c)
			continue
		}
		c.Calls, c.Seconds = less(c.Calls, b.Calls), less(c.Seconds, b.Seconds)
		c.Bytes = maps.Clone(c.Bytes)
		for direction := range c.Bytes {
			c.Bytes[direction] = less(c.Bytes[direction], b.Bytes[direction])
		}
		if c.ranks = maps.Clone(c.ranks); len(c.ranks) > 0 {
			c.Most, c.MostSeconds = math.MaxInt, -1
			for by, seconds := range c.ranks {
				seconds = less(seconds, b.ranks[by])
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

func (c *Call) called() called { return called{c.Function, c.Kind, c.Object} }

func sizesSince(now, before []Sizes) (sizes []Sizes) {
	type bucket struct {
		called
		bytes float64
	}
	was := map[bucket]float64{}
	for i := range before {
		for _, b := range before[i].Buckets {
			was[bucket{before[i].called(), b.Bytes}] = b.Calls
		}
	}
	for _, s := range now {
		all := s.Buckets
		s.Calls, s.Buckets = 0, nil
		for _, b := range all {
			if b.Calls = less(b.Calls, was[bucket{s.called(), b.Bytes}]); b.Calls > 0 {
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

func (s *Sizes) called() called { return called{s.Function, s.Kind, s.Object} }

func messagesSince(now, before []Messages) (messages []Messages) {
	was := map[pair]Messages{}
	for _, m := range before {
		was[pair{m.From, m.To}] = m
	}
	for _, m := range now {
		b := was[pair{m.From, m.To}]
		if m.Messages = less(m.Messages, b.Messages); m.Messages > 0 {
			m.Bytes = less(m.Bytes, b.Bytes)
			messages = append(messages, m)
		}
	}
	return messages
}
