package api

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/exporter/internal/clean"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// EnvPhases is the variable that names a program's phases, such as 3=assembly,4=solver.
const EnvPhases = "MPIT_PHASES"

// firstPhase is the smallest number with which MPI_Pcontrol begins a phase.
const firstPhase = 3

// Phase is the time of a rank in all parts of its program that MPI_Pcontrol gives one number.
type Phase struct {
	Name  string       `json:"name"` // or its number; "other": of phases for which the agent has no room
	State StateSeconds `json:"state_seconds"`
}

// PhaseNames are those that an EnvPhases gives, by their numbers.
func PhaseNames(text string) (names map[int]string, err error) {
	names = map[int]string{}
	for part := range strings.SplitSeq(text, ",") {
		number, name, _ := strings.Cut(part, "=")
		n, err := strconv.Atoi(number)
		if text != "" && (err != nil || n < firstPhase || name == "") {
			return nil, fmt.Errorf("%s: %q is no phase: give a number from %d on and a name, as in 3=assembly,4=solver",
				EnvPhases, part, firstPhase)
		}
		names[n] = clean.Label(name)
	}
	return names, nil
}

// PhasesOf are those that a sample tells of, by their names.
func PhasesOf(u *mpit.UnderWay, names map[int]string) (phases []Phase) {
	for _, is := range u.Phases {
		p := Phase{Name: names[is.Number]}
		switch {
		case is.Number < firstPhase:
			p.Name = "other"
		case p.Name == "":
			p.Name = strconv.Itoa(is.Number)
		}
		p.State[Outside] = is.Observed.Seconds()
		for kind, inside := range is.InsideBy {
			seconds := min(inside.Seconds(), p.State[Outside])
			p.State[int(Send)+kind] = seconds
			p.State[Outside] -= seconds
		}
		phases = append(phases, p)
	}
	return phases
}
