package mapping

import (
	"fmt"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// Help is HELP of a variable whose companion has been found, or is not asked for any more. Of a family that a rule
// makes of several variables, it says what is true of all of them, so that it doesn't matter which one comes first.
func (b *Basis) Help(v *mpit.Variable, s *Spec, want *Wanted) string {
	note := want.note
	switch {
	case s.Sizes():
		note = "The agent counts every size in buckets of powers of two."
	case s.Exact:
		note = "The agent measures every duration and counts it in buckets of powers of two."
	case want.Kind == KindHistogram && s.Companion == "":
		note = b.observations("")
	case want.Kind == KindHistogram && want.set.several():
		note = b.observations("a COUNTER for each")
	case want.Kind == KindHistogram:
		note = b.observations("COUNTER " + Fold(s.Companion, 100))
	}
	return helpText(v, want.set, s.Unit, note)
}

// several says whether a rule makes one family of several variables.
func (set *Properties) several() bool { return set.Name != "" && set.Variables != "" }

// observations says in words what the observations of a timer's histogram are.
func (b *Basis) observations(companion string) string {
	if companion != "" {
		return fmt.Sprintf("The sum is exact, and the count is that of the events (%s); all events of an interval of "+
			"%v or more are counted at their mean duration.", companion, b.Interval)
	}
	return fmt.Sprintf("The sum is exact; an observation is the time gained in an interval of %v or more, so the "+
		"count is of intervals in which the timer moved.", b.Interval)
}

// helpText is HELP: what the library says, then what the variable is called there; of several variables what the rule
// says.
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
	subject, names, help := "MPI_T variable ", "", Fold(set.Help, MaxDescription)
	if set.several() {
		add(help)
		subject, names, help = "MPI_T variables ", set.Variables, ""
	} else {
		add(Fold(v.Description, MaxDescription))
		names = Fold(v.Name, 200)
	}
	what := subject + names + ", class " + v.Class.String()
	if set.Class != v.Class {
		what += " (really " + set.Class.String() + ")"
	}
	if unit != "" {
		what += ", unit " + unit
	}
	add(what)
	add(note)
	if v.OnRequest {
		add("Opened on request: counting begins with exec --monitoring or when a rule asks (open: true).")
	}
	add(help)
	return strings.Join(parts, " ")
}
