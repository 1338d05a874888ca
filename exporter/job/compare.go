package job

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
)

// Comparison is what has changed between two runs of one job: where a rank's time goes, on average, that of the
// second run less that of the first. Times are in seconds.
type Comparison struct {
	Before   Job      `json:"before"`
	After    Job      `json:"after"`
	Verdicts Verdicts `json:"verdicts"`
	Observed Change   `json:"observed_seconds"` // of the mean rank
	Changes  []Change `json:"changes"`          // by what they cost or save, the most first; together they are Observed
}

// Verdicts is what is to be said of each run.
type Verdicts struct {
	Before string `json:"before"`
	After  string `json:"after"`
}

// Change is one of them.
type Change struct {
	What        string  `json:"what"` // outside MPI, or a function and its object
	Before      float64 `json:"before_seconds"`
	After       float64 `json:"after_seconds"`
	CallsBefore float64 `json:"calls_before,omitempty"` // of the mean rank
	CallsAfter  float64 `json:"calls_after,omitempty"`
}

// Costs is how much longer it takes; below 0: it takes less.
func (c *Change) Costs() float64 { return c.After - c.Before }

// Outside is what is not MPI.
const Outside = "(outside MPI)"

// Compare says what has changed from one run to another. It is an error if one of them had no call profile.
func Compare(before, after *Report) (*Comparison, error) {
	c := &Comparison{Before: before.Job, After: after.Job, Verdicts: Verdicts{before.Verdict.Text, after.Verdict.Text},
		Observed: Change{What: "time observed"}}
	changes := map[string]*Change{}
	at := func(what string) *Change {
		if changes[what] == nil {
			changes[what] = &Change{What: what}
		}
		return changes[what]
	}
	for _, side := range []struct {
		of      *Report
		seconds func(c *Change) *float64
		calls   func(c *Change) *float64
	}{
		{before, func(c *Change) *float64 { return &c.Before }, func(c *Change) *float64 { return &c.CallsBefore }},
		{after, func(c *Change) *float64 { return &c.After }, func(c *Change) *float64 { return &c.CallsAfter }},
	} {
		ranks, observed, outside := 0.0, 0.0, 0.0
		for i := range side.of.Ranks {
			r := &side.of.Ranks[i]
			observed += r.Time.Sum()
			outside += r.Time[api.Outside]
			if r.Time.Sum() > 0 {
				ranks++
			}
		}
		if ranks == 0 {
			return nil, fmt.Errorf("the report of job %s says nothing of MPI calls: it ran without exec --calls",
				side.of.Job.ID)
		}
		*side.seconds(&c.Observed) = observed / ranks
		*side.seconds(at(Outside)) = outside / ranks
		for i := range side.of.Calls {
			call := &side.of.Calls[i]
			change := at(strings.TrimSpace(call.Function + " " + call.Object))
			*side.seconds(change) += call.Seconds / ranks
			*side.calls(change) += call.Calls / ranks
		}
	}
	for _, change := range changes {
		c.Changes = append(c.Changes, *change)
	}
	slices.SortFunc(c.Changes, func(a, b Change) int {
		return cmp.Or(cmp.Compare(math.Abs(b.Costs()), math.Abs(a.Costs())), strings.Compare(a.What, b.What))
	})
	return c, nil
}
