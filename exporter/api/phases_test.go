package api

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

func TestPhaseNames(t *testing.T) {
	names, err := PhaseNames("3=assembly,4=solver")
	require.NoError(t, err)
	assert.Equal(t, map[int]string{3: "assembly", 4: "solver"}, names)
	_, err = PhaseNames("")
	require.NoError(t, err)
	for _, wrong := range []string{"assembly", "2=assembly", "3=", "3=a,,4=b", "3:a"} {
		_, err := PhaseNames(wrong)
		assert.ErrorContains(t, err, "give a number from 3 on and a name", wrong)
	}
}

// A phase has its name, or its number; what is inside MPI is no more than what was observed.
func TestPhasesOf(t *testing.T) {
	by := func(wait time.Duration) (by [mpit.CallKinds]time.Duration) {
		by[mpit.CallWait] = wait
		return by
	}
	u := &mpit.UnderWay{Phases: []mpit.Phase{{Number: 3, Observed: 10 * time.Second, InsideBy: by(4 * time.Second)},
		{Number: 7, Observed: time.Second, InsideBy: by(2 * time.Second)}, {Observed: time.Second}}}
	assert.Equal(t, []Phase{{"assembly", StateSeconds{Outside: 6, Wait: 4}}, {"7", StateSeconds{Wait: 1}},
		{"other", StateSeconds{Outside: 1}}}, PhasesOf(u, map[int]string{3: "assembly"}))
}
