package job

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/exporter/job/jobtest"
)

func after(seconds float64) time.Time {
	return jobtest.Began.Add(time.Duration(seconds * float64(time.Second)))
}

// What is remembered is bounded, and a report is of the time since the newest moment that is old enough.
func TestWindow(t *testing.T) {
	w := Window{Longest: 20 * time.Second}
	assert.Empty(t, w.Since(time.Second), "nothing is known yet")
	for second := range 60 {
		w.Add(after(float64(second)), []*Report{steps(float64(second), 0.5, 0.5)})
		assert.LessOrEqual(t, len(w.moments), 18)
		switch long := w.Since(5 * time.Second)[0]; {
		case second <= 5: // not before it had begun
			assert.True(t, long.Whole)
		case second < 10:
			assert.InDelta(t, second, long.Seconds, 1, "all that is remembered")
		default:
			assert.GreaterOrEqual(t, long.Seconds, 10.0)
			assert.LessOrEqual(t, long.Seconds, 15.0)
		}
	}
	assert.Equal(t, after(59), w.Now())
	assert.GreaterOrEqual(t, w.Since(time.Hour)[0].Seconds, 20.0)
	assert.True(t, w.Since(0)[0].Whole)
}

// steps is a job of two ranks some seconds after its begin. In each step rank 0 computes for a part of it, and then
// waits in a collective for rank 1.
func steps(seconds, step, part float64) *Report {
	list := api.ValueList{Time: after(seconds)}
	done, in := float64(int(seconds/step)), seconds-step*float64(int(seconds/step))
	waited := done*step*(1-part) + max(in-part*step, 0)
	for rank, waited := range []float64{waited, 0} {
		begun := uint64(done)
		thread := api.Thread{Main: true, Moved: in}
		if rank == 0 && in >= part*step {
			begun++
			thread = api.Thread{Main: true, Moved: in - part*step, Call: &api.CallUnderWay{Function: "MPI_Allreduce",
				Seconds: in - part*step, Kind: "comm", Object: "residual", Comm: "a", Number: begun}}
		}
		list.Ranks = append(list.Ranks, api.RankValues{
			Rank: api.RankStatus{JobID: "17", Rank: rank, State: "up", Host: "node1", PID: 1 + rank, WorldSize: 2,
				Started: &jobtest.Began, Calls: &api.Calls{
					State:   api.StateSeconds{api.Outside: seconds - waited, api.Collective: waited},
					Threads: []api.Thread{thread}, Comms: []api.Comm{{ID: "a", Name: "residual", Size: 2, Number: &begun}}}},
			Variables: []api.VariableValues{{Metric: "mpit_call_time_seconds", Series: []api.SeriesValue{{
				Labels: map[string]string{"function": "MPI_Allreduce", "comm": "residual"},
				Count:  fmt.Sprint(done), Sum: fmt.Sprint(waited)}}}}})
	}
	return Of([]api.ValueList{list}, nil)[0]
}

// A job with long steps has one word, whenever one looks, and however short a window one asks for.
func TestLongSteps(t *testing.T) {
	for _, c := range []struct {
		step, part float64
		word       string
	}{
		{20, 1, Healthy}, {20, 0.75, Healthy}, {20, 0.3, LateRanks}, {20, 0.2, LateRanks}, {7, 0.2, LateRanks},
		{0.5, 0.2, LateRanks}, {25, 0.2, LateRanks},
	} {
		for first := range 25 {
			if testing.Short() && first%8 > 0 {
				continue
			}
			for _, apart := range []float64{1, 3} {
				w, words := Window{Longest: 2 * time.Minute}, map[string]int{}
				for look := range 60 {
					seconds := 100 + float64(first) + apart*float64(look)
					w.Add(after(seconds), []*Report{steps(seconds, c.step, c.part)})
					words[w.Since(5 * time.Second)[0].Verdict.State]++
				}
				assert.Equal(t, map[string]int{c.word: 60}, words, "%v, from %d s on, every %v s", c, first, apart)
			}
		}
	}
}

// A rank that others wait for longer than a step takes is waited for.
func TestStuckAfterLongSteps(t *testing.T) {
	w := Window{Longest: 2 * time.Minute}
	for second := 100.0; second < 200; second++ {
		w.Add(after(second), []*Report{steps(second, 20, 0.3)})
		w.Since(time.Second)
	}
	list := map[float64]string{}
	for _, waited := range []float64{15, 31} {
		r := steps(199, 20, 0.3)
		r.Time = after(190 + waited)
		for i := range r.Ranks {
			for t := range r.Ranks[i].Threads {
				if c := r.Ranks[i].Threads[t].Call; c != nil {
					c.Seconds = waited
				}
			}
		}
		w.Add(r.Time, []*Report{r})
		list[waited] = w.Since(time.Second)[0].Verdict.State
	}
	assert.Equal(t, map[float64]string{15: LateRanks, 31: Waits}, list)
}

// A state ends at less than that at which it begins.
func TestStatesLast(t *testing.T) {
	for was, want := range map[string]string{"": Healthy, Healthy: Healthy, LateRanks: LateRanks, Communication: Communication} {
		r := reportOf("MPI_Wait", of(0, "a", 0, 50, 0, 0), of(1, "a", 0, 0, 0, 0))
		r.Job.WorldSize, r.was = 2, was
		assert.Equal(t, want, r.verdict().State, was)
	}
	r := reportOf("MPI_Wait", of(0, "a", 0, 25, 0, 0), of(1, "a", 0, 26, 0, 0))
	r.was = Communication
	assert.Equal(t, Communication, r.verdict().State)
	r.was = Healthy
	assert.Equal(t, Healthy, r.verdict().State)
}
