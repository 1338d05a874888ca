package mapping

import (
	"fmt"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

const (
	// exactNote is what HELP says of a distribution.
	exactNote = "The durations are single ones, measured by the agent and counted in buckets of powers of two."

	// onRequestNote is what HELP says of a variable that is opened on request only.
	onRequestNote = "Opened on request: counting begins with exec --monitoring or when a rule asks (open: true)."
)

// Help is HELP of a variable whose companion has been found, or is not asked for any more.
func (b *Basis) Help(v *mpit.Variable, s *Spec, want *Wanted) string {
	note := want.note
	switch {
	case s.Exact:
		note = exactNote
	case want.Kind == KindHistogram:
		note = b.observations(s.Companion)
	}
	return helpText(v, want.set, s.Unit, note)
}

// observations says in words what the observations of a timer's histogram are.
func (b *Basis) observations(companion string) string {
	if companion != "" {
		return fmt.Sprintf("The sum is exact, the count that of the events (COUNTER %s); the events of an interval "+
			"of %v or more stand at their mean duration.",
			Fold(companion, 100), b.Interval)
	}
	return fmt.Sprintf("The sum is exact; an observation is the time gained in an interval of %v or more, so the "+
		"count is of intervals in which the timer moved.", b.Interval)
}

// helpText is HELP: what the library says, then what the variable is called there.
func helpText(v *mpit.Variable, set Properties, unit, note string) string {
	parts := make([]string, 0, 6)
	add := func(s string) {
		if s = strings.TrimSpace(s); s == "" {
			return
		}
		if !strings.ContainsAny(s[len(s)-1:], ".!?") && !strings.HasSuffix(s, "…") {
			s += "."
		}
		parts = append(parts, s)
	}
	add(Fold(v.Description, MaxDescription))
	what := "MPI_T variable " + Fold(v.Name, 200) + ", class " + strings.ToUpper(NameOf(v.Class))
	if set.Class != v.Class {
		what += " (really " + strings.ToUpper(NameOf(set.Class)) + ")"
	}
	if unit != "" {
		what += ", unit " + unit
	}
	add(what)
	add(note)
	if v.OnRequest {
		add(onRequestNote)
	}
	add(Fold(set.Help, MaxDescription))
	return strings.Join(parts, " ")
}
