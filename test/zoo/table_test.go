package zoo

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func (r row) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s, seed %d:", r.kind.ID(), r.library, r.seed)
	for _, screen := range screens {
		if s, ok := r.scores[screen]; ok {
			fmt.Fprintf(&b, "\n  %-6s %s %s (right after %.0f s, flips %d): %s %s", screen, s.Outcome, s.Why, s.Until, s.Flips,
				s.Last.State, s.Last.Text)
		}
	}
	return b.String()
}

// Table is the result in Markdown: how many answers of each screen are how good, by class of trouble, and each run that
// isn't right everywhere.
func Table(rows []row) string {
	var b strings.Builder
	classes := []string{}
	for _, r := range rows {
		if !slices.Contains(classes, r.kind.Class) {
			classes = append(classes, r.kind.Class)
		}
	}
	b.WriteString("\n| class | screen | runs | right | silent | misleading | wrong | seconds until right (median) | " +
		"flips |\n")
	b.WriteString("|---|---|---:|---:|---:|---:|---:|---:|---:|\n")
	for _, class := range append(classes, "all trouble") {
		for _, screen := range screens {
			counts, until, flips, runs := [4]int{}, []float64{}, 0, 0
			for _, r := range rows {
				s, ok := r.scores[screen]
				if !ok || r.kind.Class != class && (class != "all trouble" || r.kind.Healthy()) {
					continue
				}
				runs++
				counts[s.Outcome]++
				flips += s.Flips
				if s.Until >= 0 {
					until = append(until, s.Until)
				}
			}
			if runs == 0 {
				continue
			}
			median := "-"
			if slices.Sort(until); len(until) > 0 && screen != "top" && screen != "report" { // those are asked once
				median = fmt.Sprintf("%.0f", until[len(until)/2])
			}
			fmt.Fprintf(&b, "| %s | %s | %d | %d | %d | %d | %d | %s | %d |\n", class, screen, runs, counts[Right],
				counts[Silent], counts[Misleading], counts[Wrong], median, flips)
		}
	}
	b.WriteString("\n| run | screen | is | because | said |\n|---|---|---|---|---|\n")
	for _, r := range rows {
		for _, screen := range screens {
			if s, ok := r.scores[screen]; ok && s.Outcome != Right {
				fmt.Fprintf(&b, "| %s, %s, %d | %s | %s | %s | %s |\n", r.kind.ID(), r.library, r.seed, screen, s.Outcome,
					s.Why, strings.ReplaceAll(s.Last.Text, "|", "/"))
			}
		}
	}
	return b.String()
}

func TestTable(t *testing.T) {
	rows := []row{
		{Kind{Kind: "late", Class: "collectives"}, "mpich", 1, map[string]Score{
			"page": {Judgement: Judgement{Right, ""}, Until: 3}, "report": {Judgement: Judgement{Wrong, "names rank 1"}}}},
		{Kind{Kind: "balanced", Class: "healthy"}, "mpich", 1, map[string]Score{"page": {Judgement: Judgement{Silent, ""},
			Until: -1}}},
	}
	text := Table(rows)
	for _, line := range []string{
		"| collectives | page | 1 | 1 | 0 | 0 | 0 | 3 | 0 |",
		"| healthy | page | 1 | 0 | 1 | 0 | 0 | - | 0 |",
		"| all trouble | report | 1 | 0 | 0 | 0 | 1 | - | 0 |",
		"| collectives-late, mpich, 1 | report | wrong | names rank 1 |  |",
	} {
		assert.Contains(t, text, line)
	}
}
