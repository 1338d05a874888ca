package job

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/exporter/units"
)

// Comparison is what has changed between two runs of one job: where a rank's time goes, on average, that of the
// second run less that of the first. Times are in seconds.
type Comparison struct {
	Text     string   `json:"text"` // a sentence
	Before   Job      `json:"before"`
	After    Job      `json:"after"`
	Verdicts Verdicts `json:"verdicts"`
	Lasted   Change   `json:"lasted_seconds"`   // the runs; 0: not known
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
	c := &Comparison{Before: before.Job, After: after.Job,
		Verdicts: Verdicts{before.Verdict.Sentence(), after.Verdict.Sentence()},
		Lasted:   Change{What: "the run", Before: before.Lasted(), After: after.Lasted()},
		Observed: Change{What: "time observed"}}
	changes := map[string]*Change{}
	at := func(what string) *Change {
		if changes[what] == nil {
			changes[what] = &Change{What: what}
		}
		return changes[what]
	}
	for _, side := range []struct {
		of   *Report
		note func(c *Change, seconds, calls float64)
	}{
		{before, func(c *Change, seconds, calls float64) {
			c.Before, c.CallsBefore = c.Before+seconds, c.CallsBefore+calls
		}},
		{after, func(c *Change, seconds, calls float64) { c.After, c.CallsAfter = c.After+seconds, c.CallsAfter+calls }},
	} {
		ranks, spent := 0.0, side.of.Spent()
		for i := range side.of.Ranks {
			if side.of.Ranks[i].Time.Sum() > 0 {
				ranks++
			}
		}
		if ranks == 0 {
			return nil, fmt.Errorf("the report of job %s says nothing of MPI calls: it ran without exec --calls",
				side.of.Job.ID)
		}
		side.note(&c.Observed, spent.Sum()/ranks, 0)
		side.note(at(Outside), spent[api.Outside]/ranks, 0)
		for i := range side.of.Calls {
			call := &side.of.Calls[i]
			side.note(at(strings.TrimSpace(call.Function+" "+call.Object)), call.Seconds/ranks, call.Calls/ranks)
		}
	}
	for _, change := range changes {
		c.Changes = append(c.Changes, *change)
	}
	slices.SortFunc(c.Changes, func(a, b Change) int {
		return cmp.Or(cmp.Compare(math.Abs(b.Costs()), math.Abs(a.Costs())), strings.Compare(a.What, b.What))
	})
	c.Text = c.sentence(before, after)
	return c, nil
}

// sentence says which run is shorter, where most of that comes from, and what has become of the verdict.
func (c *Comparison) sentence(before, after *Report) string {
	run := c.Lasted
	if run.Before == 0 || run.After == 0 {
		run = c.Observed
	}
	text, costs, most := "It takes "+units.Duration(run.After), run.Costs(), c.Changes[0]
	if math.Abs(costs) < same*run.Before {
		text += ", as before"
	} else {
		how, in := "less", "in "+most.What
		if costs > 0 {
			how = "more"
		}
		if most.What == Outside {
			in = "outside MPI"
		}
		text += fmt.Sprintf(", %s %s than before (%s)", units.Duration(math.Abs(costs)), how, units.Duration(run.Before))
		if costs*most.Costs() > 0 {
			text += fmt.Sprintf("; the mean rank spends %s %s %s", units.Duration(math.Abs(most.Costs())), how, in)
		}
	}
	if was, is := before.Job.Observed, after.Job.Observed; was != is {
		text += fmt.Sprintf("; on %s instead of %d", units.Count(is, "rank"), was)
	}
	if was, is := before.Verdict, after.Verdict; was.State != is.State {
		text += fmt.Sprintf("; %s, and was %s", is.State, was.State)
	} else {
		text += "; " + is.State + ", as before"
	}
	if was, is := before.Verdict.Efficiency, after.Verdict.Efficiency; was != nil && is != nil {
		text += fmt.Sprintf("; %s useful instead of %s", units.Percent(is.Parallel), units.Percent(was.Parallel))
	}
	return text
}

// same is how much of a run's time it may take more or less to be called the same: runs of one program differ.
const same = 0.02
