package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/table"
)

// Comparison is what has changed between two runs of one job: where a rank's time goes, on average, that of the
// second run less that of the first. Times are in seconds.
type Comparison struct {
	Before   Job      `json:"before"`
	After    Job      `json:"after"`
	Observed Change   `json:"observed_seconds"` // of the mean rank
	Changes  []Change `json:"changes"`          // by what they cost or save, the most first; together they are Observed
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

// outside is what is not MPI.
const outside = "(outside MPI)"

// Compare says what has changed from one run to another. It is an error if one of them had no call profile.
func Compare(before, after *Report) (*Comparison, error) {
	c := &Comparison{Before: before.Job, After: after.Job, Observed: Change{What: "time observed"}}
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
		ranks, observed, inside := 0.0, 0.0, 0.0
		for i := range side.of.Ranks {
			r := &side.of.Ranks[i]
			observed += r.Observed
			inside += r.Inside
			if r.Observed > 0 {
				ranks++
			}
		}
		if ranks == 0 {
			return nil, fmt.Errorf("the report of job %s says nothing of MPI calls: it ran without exec --calls",
				side.of.Job.ID)
		}
		*side.seconds(&c.Observed) = observed / ranks
		*side.seconds(at(outside)) = (observed - inside) / ranks
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

// Text writes the comparison for a terminal.
func (c *Comparison) Text(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Job %s: %s, and job %s: %s\n", table.Clean(c.Before.ID), count(c.Before.Observed, "rank"),
		table.Clean(c.After.ID), count(c.After.Observed, "rank"))
	fmt.Fprintf(&b, "The mean rank takes %s; it took %s: %s\n\n", duration(c.Observed.After),
		duration(c.Observed.Before), signed(c.Observed.Costs()))
	t := table.New(&b)
	table.Line(t, "COSTS", "BEFORE", "AFTER", "CALLS BEFORE", "AFTER", "OF THE MEAN RANK, IN")
	for i := range c.Changes[:min(len(c.Changes), shownCalls)] {
		change := &c.Changes[i]
		calls := []string{"", ""}
		if change.What != outside {
			calls = []string{number3(change.CallsBefore), number3(change.CallsAfter)}
		}
		table.Row(t, signed(change.Costs()), duration(change.Before), duration(change.After), calls[0], calls[1],
			change.What)
	}
	_ = t.Flush()
	if more := len(c.Changes) - shownCalls; more > 0 {
		fmt.Fprintf(&b, "… and %d more\n", more)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("writing the comparison: %w", err)
	}
	return nil
}

// JSON writes the comparison as JSON.
func (c *Comparison) JSON(w io.Writer) error {
	text, err := json.MarshalIndent(c, "", "  ")
	if err == nil {
		_, err = w.Write(append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("writing the comparison: %w", err)
	}
	return nil
}

func signed(seconds float64) string {
	if seconds < 0 {
		return "-" + duration(-seconds)
	}
	return "+" + duration(seconds)
}
