package spent

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

const second = time.Second

// sum is the time observed.
func sum(t *Time) (all time.Duration) {
	for _, d := range t[:api.Finalize] {
		all += d
	}
	return all
}

// What a sound agent says of a rank's life stands in the states as it is, in every sample.
func TestStates(t *testing.T) {
	var spent Time
	for _, c := range []struct {
		what     string
		observed time.Duration
		by       [mpit.CallKinds]time.Duration
		want     Time
	}{
		{"nothing yet", 0, [mpit.CallKinds]time.Duration{}, Time{}},
		{"a call under way", 3 * second, [mpit.CallKinds]time.Duration{mpit.CallCollective: 2 * second},
			Time{api.Outside: second, api.Collective: 2 * second}},
		{"MPI_Pcontrol(0) since", 3 * second, [mpit.CallKinds]time.Duration{mpit.CallCollective: 2 * second},
			Time{api.Outside: second, api.Collective: 2 * second}},
		{"a gap after a test", 4 * second, [mpit.CallKinds]time.Duration{mpit.CallCollective: 2 * second, mpit.CallPoll: 1000},
			Time{api.Outside: 2*second - 1000, api.Collective: 2 * second, api.Poll: 1000}},
		{"left by longjmp: what was told stands", 5 * second, [mpit.CallKinds]time.Duration{mpit.CallPoll: 1000},
			Time{api.Outside: 3*second - 1000, api.Collective: 2 * second, api.Poll: 1000}},
		{"another connection says less", 4 * second, [mpit.CallKinds]time.Duration{mpit.CallFile: second},
			Time{api.Outside: 3*second - 1000, api.Collective: 2 * second, api.Poll: 1000}},
	} {
		spent.Add(&mpit.UnderWay{Observed: c.observed, InsideBy: c.by})
		assert.Equal(t, c.want, spent, c.what)
	}
	assert.Equal(t, api.StateSeconds{api.Outside: 2.999999, api.Collective: 2, api.Poll: 1e-6}, spent.Seconds())
}

// Whatever a rank claims, no state falls, and they are the longest time that it has claimed, to the nanosecond.
func TestAnyClaims(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	claim := func(before time.Duration) time.Duration {
		switch random.IntN(8) {
		case 0:
			return before // nothing since
		case 1:
			return time.Duration(random.Int64N(max(int64(before), 1))) // it falls
		case 2:
			return time.Duration(random.Int64()) // up to 292 years
		case 3:
			return math.MaxInt64
		}
		return min(before, math.MaxInt64-second) + time.Duration(random.Int64N(int64(second)))
	}
	for range 2000 {
		var spent Time
		var u mpit.UnderWay
		longest, finalize := time.Duration(0), time.Duration(0)
		for range 30 {
			u.Observed, u.Finalize = claim(u.Observed), claim(u.Finalize)
			for kind := range u.InsideBy {
				u.InsideBy[kind] = claim(u.InsideBy[kind])
			}
			was := spent
			spent.Add(&u)
			longest, finalize = max(longest, u.Observed), max(finalize, u.Finalize)
			require.Equal(t, longest, sum(&spent))
			require.Equal(t, finalize, spent[api.Finalize])
			for state := range spent {
				require.GreaterOrEqual(t, spent[state], was[state], api.TimeStateNames[state])
			}
		}
	}
}
