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

type states [api.TimeStates]time.Duration

// sum is the time observed.
func sum(t *Time) (all time.Duration) {
	for _, d := range t.in[:api.Finalize] {
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
		want     states
	}{
		{"nothing yet", 0, [mpit.CallKinds]time.Duration{}, states{}},
		{"a call under way", 3 * second, [mpit.CallKinds]time.Duration{mpit.CallCollective: 2 * second},
			states{api.Outside: second, api.Collective: 2 * second}},
		{"MPI_Pcontrol(0) since", 3 * second, [mpit.CallKinds]time.Duration{mpit.CallCollective: 2 * second},
			states{api.Outside: second, api.Collective: 2 * second}},
		{"a gap after a test", 4 * second, kinds{mpit.CallCollective: 2 * second, mpit.CallPoll: 1000},
			states{api.Outside: 2*second - 1000, api.Collective: 2 * second, api.Poll: 1000}},
		{"left by longjmp: what was told stands", 5 * second, [mpit.CallKinds]time.Duration{mpit.CallPoll: 1000},
			states{api.Outside: 3*second - 1000, api.Collective: 2 * second, api.Poll: 1000}},
		{"another connection says less", 4 * second, [mpit.CallKinds]time.Duration{mpit.CallFile: second},
			states{api.Outside: 3*second - 1000, api.Collective: 2 * second, api.Poll: 1000}},
	} {
		spent.Add(&mpit.UnderWay{Observed: c.observed, InsideBy: c.by})
		assert.Equal(t, c.want, states(spent.in), c.what)
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
	ranks := 2000
	if testing.Short() {
		ranks /= 8
	}
	for range ranks {
		var spent Time
		u := mpit.UnderWay{Threads: make([]mpit.Thread, 0, 8)}
		longest, finalize := time.Duration(0), time.Duration(0)
		for range 30 {
			u.Threads = u.Threads[:random.IntN(min(len(u.Threads)+2, 9))]
			for i := range u.Threads {
				of := &u.Threads[i]
				of.ID, of.Main = uint64(random.IntN(3)), random.IntN(2) == 0
				of.Now, of.Begun, of.Ended, of.CPU = claim(of.Now), claim(of.Begun), claim(of.Ended), claim(max(of.CPU, 0))-1
				of.Queue = claim(of.Queue)
				for kind := range of.InsideBy {
					of.InsideBy[kind] = claim(of.InsideBy[kind])
				}
			}
			u.Observed, u.Finalize = claim(u.Observed), claim(u.Finalize)
			for kind := range u.InsideBy {
				u.InsideBy[kind] = claim(u.InsideBy[kind])
			}
			was := spent
			spent.Add(&u)
			longest, finalize = max(longest, u.Observed), max(finalize, u.Finalize)
			require.Equal(t, longest, sum(&spent))
			require.Equal(t, finalize, spent.in[api.Finalize])
			for state := range spent.in {
				require.GreaterOrEqual(t, spent.in[state], was.in[state], api.TimeStateNames[state])
			}
		}
	}
}

// Whose time is the rank's, of threads that did this in ten seconds.
func TestChoose(t *testing.T) {
	in := func(kind mpit.CallKind, seconds time.Duration) interval {
		i := interval{observed: 10 * second, called: true, core: -1}
		i.inside[kind] = seconds * second
		return i
	}
	serves := in(mpit.CallWait, 10)
	serves.stays, serves.called = true, false
	barrier := in(mpit.CallCollective, 10)
	barrier.stays, barrier.called = true, false
	answers := in(mpit.CallWait, 9)
	answers.inside[mpit.CallSend] = second / 2
	polls := in(mpit.CallPoll, 10)
	computes, sleeps, silent := in(mpit.CallSend, 0), in(mpit.CallSend, 0), in(mpit.CallSend, 0)
	computes.called, computes.core = false, 0.98
	sleeps.core = 0.01
	silent.called = false
	steps := in(mpit.CallCollective, 4)
	for what, c := range map[string]struct {
		threads []interval
		want    int
	}{
		"one, with OpenMP inside":                        {[]interval{steps}, 0},
		"it waits alone":                                 {[]interval{serves}, 0},
		"a service thread beside it":                     {[]interval{steps, serves}, 0},
		"it serves, another one works":                   {[]interval{serves, steps}, 1},
		"it answers, another one works":                  {[]interval{answers, steps}, 1},
		"it polls, another one computes":                 {[]interval{polls, computes}, 1},
		"it serves, one computes and one waits":          {[]interval{serves, answers, computes}, 2},
		"it serves, two work: the one with more of it":   {[]interval{serves, steps, computes}, 2},
		"it waits in a barrier, an I/O thread sleeps":    {[]interval{barrier, sleeps}, 0},
		"it waits in a barrier, and one calls sometimes": {[]interval{barrier, in(mpit.CallSend, 0)}, 1},
		"it waits, of the other one nothing is known":    {[]interval{serves, silent}, 0},
		"both wait":                    {[]interval{polls, serves}, 0},
		"four equal ones":              {[]interval{steps, steps, steps, steps}, 0},
		"four equal ones that compute": {[]interval{computes, computes, computes, computes}, 0},
		"collectives, many of them":    {[]interval{in(mpit.CallCollective, 10), computes}, 0},
	} {
		assert.Equal(t, c.want, choose(c.threads), what)
	}
}

// An initialising thread serves while another one works, from sample to sample.
func TestThreads(t *testing.T) {
	main := mpit.Thread{ID: 1, Main: true, CPU: -1, Begun: 1}
	worker := mpit.Thread{ID: 2, CPU: -1, Queue: -1, Ended: 1}
	var spent Time
	at := func(seconds time.Duration) *mpit.UnderWay {
		u := &mpit.UnderWay{Observed: seconds * second, InsideBy: kinds{mpit.CallWait: seconds * second}}
		main.InsideBy, main.Now, worker.Now = u.InsideBy, seconds*second, seconds*second
		u.Threads = []mpit.Thread{main, worker}
		return u
	}
	spent.Add(at(10))
	assert.Equal(t, states{api.Outside: 10 * second}, states(spent.in), "the first sample: of its whole life")
	worker.InsideBy[mpit.CallCollective], worker.Ended = 3*second, 15*second
	spent.Add(at(20))
	assert.Equal(t, states{api.Outside: 17 * second, api.Collective: 3 * second}, states(spent.in))
	spent.Add(at(21)) // computes: nothing is known of it
	assert.Equal(t, states{api.Outside: 17 * second, api.Collective: 3 * second, api.Wait: second}, states(spent.in))
	worker.CPU = 5 * second
	spent.Add(at(22))
	worker.CPU = 7 * second
	spent.Add(at(24))
	worker.CPU = -1
	spent.Add(at(25))
	assert.Equal(t, states{api.Outside: 20 * second, api.Collective: 3 * second, api.Wait: 2 * second}, states(spent.in))
	worker.ID, worker.InsideBy[mpit.CallFile] = 3, 20*second // another thread, with what an older one has counted
	spent.Add(at(30))
	worker.InsideBy[mpit.CallFile] += second
	spent.Add(at(32))
	assert.Equal(t, states{api.Outside: 21 * second, api.Collective: 3 * second, api.Wait: 7 * second, api.File: second},
		states(spent.in))
}
