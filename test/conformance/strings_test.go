package conformance

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/mpit-exporter/mpit-exporter/test/fixture"
)

// 15.3.3: names and descriptions come through byte by byte.
func stringsOf() section {
	return section{"15.3.3 Strings", []feature{
		{"all names and descriptions", text(func(string) bool { return true })},
		{"empty", text(func(s string) bool { return s == "" })},
		{"of length 1", text(func(s string) bool { return len(s) == 1 })},
		{"of 64 KiB", text(func(s string) bool { return len(s) == len(fixture.LongName) })},
		{"Latin-1, which is no UTF-8", text(func(s string) bool {
			return s == "größe" ||
				s == "Größe in Kilobyte, gezählt"
		})},
		{"lines, quotes and backslashes", text(func(s string) bool {
			return s == "Several\nlines, a \"quote\" and a \\."
		})},
	}}
}

// text checks the strings that are of some kind.
func text(is func(string) bool) check {
	return func(t *testing.T, s *subject) outcome {
		found := notOffered
		same := func(truth latin1, agent string) {
			if is(string(truth)) {
				found = works
				assert.True(t, string(truth) == agent, "the library says %.100q, the agent %.100q", truth, agent)
			}
		}
		for _, p := range s.pairs(t) {
			same(p.truth.Name, p.agent.Name)
			same(p.truth.Description, p.agent.Description)
			if p.truth.Enum != nil && p.agent.Enum != nil {
				same(p.truth.Enum.Name, p.agent.Enum.Name)
				for i, item := range p.truth.Enum.Items {
					same(item.Name, p.agent.Enum.Items[i].Name)
				}
			}
		}
		for i, c := range s.truth.Categories {
			same(c.Name, s.categories[i].Name)
			same(c.Description, s.categories[i].Description)
		}
		return found
	}
}
