package conformance

import (
	"fmt"
	"slices"
	"strings"
)

// table collects the outcomes, in the order of the features, and prints them as Markdown.
type table struct {
	columns  []string // headings
	sections []string
	rows     map[string][]row // by section
	reasons  []string
}

type row struct {
	feature string
	cells   []outcome
}

func newTable(columns ...string) *table {
	return &table{columns: columns, rows: map[string][]row{}}
}

// add begins a row; its cells are filled in through the pointer that cell returns.
func (t *table) add(section, feature string) int {
	if !slices.Contains(t.sections, section) {
		t.sections = append(t.sections, section)
	}
	cells := make([]outcome, len(t.columns))
	for i := range cells {
		cells[i] = notTested
	}
	t.rows[section] = append(t.rows[section], row{feature, cells})
	return len(t.rows[section]) - 1
}

func (t *table) cell(section string, row, column int) *outcome {
	return &t.rows[section][row].cells[column]
}

// complete says whether every check has run.
func (t *table) complete() bool {
	for _, rows := range t.rows {
		for _, r := range rows {
			if slices.Contains(r.cells, notTested) {
				return false
			}
		}
	}
	return true
}

// note returns the number of a reason, which stands once below the tables.
func (t *table) note(reason string) int {
	i := slices.Index(t.reasons, reason)
	if i < 0 {
		i = len(t.reasons)
		t.reasons = append(t.reasons, reason)
	}
	return i + 1
}

func (t *table) markdown() string {
	var b strings.Builder
	t.reasons = nil
	for _, section := range t.sections {
		fmt.Fprintf(&b, "### %s\n\n| | %s |\n|---%s|\n", section, strings.Join(t.columns, " | "),
			strings.Repeat("|---", len(t.columns)))
		for _, r := range t.rows[section] {
			fmt.Fprintf(&b, "| %s |", r.feature)
			for _, c := range r.cells {
				if c.reason == "" {
					fmt.Fprintf(&b, " %s |", c.word)
				} else {
					fmt.Fprintf(&b, " %s (%d) |", c.word, t.note(c.reason))
				}
			}
			b.WriteString("\n")
		}
		b.WriteString("\n")
	}
	for i, reason := range t.reasons {
		fmt.Fprintf(&b, "%d. %s\n", i+1, reason)
	}
	return b.String()
}
