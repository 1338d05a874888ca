package job

import (
	"encoding/json"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/exporter/job/jobtest"
)

// running is the job of late, which goes on: after 100 s, or after 110 s, of which the ranks were so long useful.
func running(after float64, useful ...float64) *Report {
	list := api.ValueList{Time: jobtest.Began.Add(time.Duration(after) * time.Second)}
	for rank, useful := range useful {
		r := jobtest.RankOf(rank, "node1", useful)
		r.Rank.Ended, r.Rank.State, r.Rank.EndReason, r.Rank.PID = nil, "up", "", 1000+rank
		r.Rank.Calls.State = api.StateSeconds{api.Outside: useful, api.Send: 1,
			api.Collective: after - useful - 1}
		list.Ranks = append(list.Ranks, r)
	}
	return Of([]api.ValueList{list}, nil)[0]
}

// A job was held up by rank 2 for 100 s, and by rank 1 in the ten seconds since.
func TestSince(t *testing.T) {
	before, now := running(100, 30, 31, 98, 30), running(110, 31, 41, 99, 31)
	// 20 more allreduces, in which rank 0 and 3 have waited.
	for i, seconds := range []float64{9, 0, 8.9, 8.8} {
		now.Calls[0].ranks[who{rank: i}] = before.Calls[0].ranks[who{rank: i}] + seconds
	}
	now.Calls[0].Calls += 80
	now.Calls[0].Seconds = before.Calls[0].Seconds + 26.7
	now.Sizes[0].Buckets[1].Calls++
	now.Messages[0].Messages++
	now.Messages[0].Bytes += 2048

	r := now.Since(before.Totals())
	assert.False(t, r.Whole)
	assert.InDelta(t, 10, r.Seconds, 1e-9)
	assert.Equal(t, "late rank", r.Verdict.State)
	assert.Equal(t, 1, r.Verdict.Late.Rank)
	assert.Equal(t, 1, r.Ranks[0].Rank, "from late to early, by the interval")
	assert.InDelta(t, 10, r.Ranks[0].Time.Sum(), 1e-9)
	assert.InDelta(t, 1, r.Ranks[0].Useful(), 0.02)
	assert.Len(t, r.Calls, 1, "nobody has called MPI_Send since")
	call := r.WithRanks(1).Calls[0]
	assert.InDelta(t, 80, call.Calls, 0)
	assert.InDelta(t, 26.7/40, call.Share, 1e-9)
	assert.Equal(t, 0, call.Most)
	assert.InDelta(t, 9, call.MostSeconds, 1e-9)
	assert.InDelta(t, 0, call.ByRank[0], 1e-9, "in the order of the ranks")
	assert.InDelta(t, 9, call.ByRank[indexOf(r, 0)], 1e-9)
	assert.Equal(t, []Sizes{{Called: Called{Function: "MPI_Send", Kind: "comm", Object: "halo"}, Calls: 1,
		Buckets: []Bucket{{4096, 1}}}}, r.Sizes)
	assert.Len(t, r.Messages, 1)
	assert.InDelta(t, 2048, r.Messages[0].Bytes, 0)
	assert.Equal(t, now.Levels, r.Levels)
	assert.InDelta(t, 100, before.Ranks[0].Time.Sum(), 0, "the earlier report is not changed")
	assert.InDelta(t, 110, now.Ranks[0].Time.Sum(), 0)
}

func indexOf(r *Report, rank int) int {
	for i := range r.Ranks {
		if r.Ranks[i].Rank == rank {
			return i
		}
	}
	return -1
}

// Another process of the same rank has its own beginning; a job that has ended, or was not there, is reported whole.
func TestSinceAnotherBeginning(t *testing.T) {
	before, now := running(100, 30, 31), running(10, 3, 4)
	for i := range now.Ranks {
		now.Ranks[i].PID += 100
	}
	assert.InDelta(t, 10, now.Since(before.Totals()).Ranks[0].Time.Sum(), 0)
	assert.True(t, now.Since(nil).Whole)
	ended := Of(jobtest.Late(), nil)[0]
	assert.Same(t, ended, ended.Since(before.Totals()))
}

// An exporter that has been started anew finds half of a job's ranks a moment before the others: what those did in all
// their time is not of the interval.
func TestSinceOtherRanks(t *testing.T) {
	some, all := running(100, 30, 31), running(105, 32, 33, 34, 35)
	now := all.Since(some.Totals())
	assert.True(t, now.Whole)
	assert.Equal(t, 4, now.Verdict.Efficiency.Ranks)
	assert.Equal(t, all.Calls, now.Calls)
	fewer := running(105, 32, 33).Since(running(100, 30, 31, 32, 33).Totals())
	assert.True(t, fewer.Whole, "what is missing is not time that went back")
}

// A rank that was stopped for a minute and answers again is one of the ranks, not the only one.
func TestSinceARankWasSilent(t *testing.T) {
	before, now := running(100, 30, 31), running(105, 32, 33)
	for i := range now.Ranks {
		if r := &now.Ranks[i]; r.Rank == 1 {
			r.Time[api.Outside] += 11
			r.Time[api.Collective] += 44
		}
	}
	r := now.Since(before.Totals())
	assert.InDelta(t, 5, r.Ranks[indexOf(r, 1)].Time.Sum(), 1e-9)
	assert.Equal(t, 2, r.Verdict.Efficiency.Ranks)
}

// Of a rank that answers again what it did in calls is as much less as its time: the other one is not late for it.
func TestSinceCallsOfARankThatWasSilent(t *testing.T) {
	before, now := running(100, 50, 50), running(105, 52, 52)
	for _, r := range []*Report{before, now} {
		for i := range r.Ranks {
			r.Ranks[i] = r.Ranks[i].member("residual", 2, 10)
		}
	}
	for i := range now.Ranks {
		if r := &now.Ranks[i]; r.Rank == 1 {
			r.Time[api.Outside] += 18
			r.Time[api.Collective] += 27
		}
	}
	now.Calls[0].Calls += 1000
	now.Calls[0].Seconds = before.Calls[0].Seconds + 33
	for rank, seconds := range []float64{3, 30} {
		now.Calls[0].ranks[who{rank: rank}] = before.Calls[0].ranks[who{rank: rank}] + seconds
	}
	r := now.Since(before.Totals())
	assert.InDelta(t, 6, r.Calls[0].Seconds, 1e-9)
	assert.InDelta(t, 3, r.Calls[0].MostSeconds, 1e-9)
	assert.Equal(t, map[who]float64{{rank: 0}: 3, {rank: 1}: 3}, r.Calls[0].ranks)
	assert.Nil(t, r.Verdict.Late, r.Verdict.Text)
}

// Of ranks that did not answer for most of the time nothing is said, unless most of them did.
func TestSinceRanksWereSilent(t *testing.T) {
	for name, c := range map[string]struct {
		observed [4]float64 // of ten seconds
		silent   int        // so many still are
		unheard  int
		state    string
	}{
		"all were stopped":               {[4]float64{40, 40, 40, 40}, 0, 4, Unknown},
		"three were":                     {[4]float64{40, 40, 40, 10}, 0, 3, Unknown},
		"two were":                       {[4]float64{40, 40, 10, 10}, 0, 2, Healthy},
		"they have told of two moments":  {[4]float64{20, 20, 20, 20}, 0, 0, Healthy},
		"three are":                      {[4]float64{4, 4, 4, 10}, 3, 3, Unknown},
		"they are, for half of the time": {[4]float64{5, 5, 5, 10}, 3, 0, Healthy},
		"they have paused measuring":     {[4]float64{4, 4, 4, 10}, 0, 0, Healthy},
	} {
		t.Run(name, func(t *testing.T) {
			before, now := running(100, 50, 50, 50, 50), running(110, 50, 50, 50, 50)
			unheard := 0
			for i := range now.Ranks {
				r := &now.Ranks[i]
				r.Time[api.Outside], r.Time[api.Collective] = 50+c.observed[r.Rank], 49
				if r.Rank < c.silent {
					r.State = "late"
				}
			}
			r := now.Since(before.Totals())
			for i := range r.Ranks {
				if r.Ranks[i].Unheard {
					unheard++
				}
			}
			assert.Equal(t, c.unheard, unheard)
			assert.Equal(t, c.state, r.Verdict.State, r.Verdict.Text)
			if c.state == Unknown {
				assert.Equal(t, "its ranks have not answered for most of the time", r.Verdict.Text)
				assert.Nil(t, r.Verdict.Efficiency)
			}
			text, err := json.Marshal(r.WithRanks(1))
			require.NoError(t, err)
			read, err := Read(text)
			require.NoError(t, err)
			assert.Equal(t, r.Verdict.Text, Merge([]*Report{read})[0].Verdict.Text, "of what a judge is told")
		})
	}
}

// What is remembered of a moment is numbers: a fraction of what a report takes, whatever the names are.
func TestTotalsAreSmall(t *testing.T) {
	const ranks, each = 20, 500
	list := api.ValueList{}
	for i := range ranks {
		r := jobtest.RankOf(i, "node1", 1)
		v := api.VariableValues{Metric: "mpit_call_time_seconds", Kind: "histogram", Distribution: true}
		for n := range each {
			v.Series = append(v.Series, api.SeriesValue{Labels: map[string]string{"function": "MPI_Send",
				"comm": fmt.Sprintf("communicator %d of rank %d", n, i)}, Count: "5", Sum: "9"})
		}
		r.Variables = []api.VariableValues{v}
		list.Ranks = append(list.Ranks, r)
	}
	r := Of([]api.ValueList{list}, nil)[0]
	heap := func() int {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	before := heap()
	var kept [10]*Totals
	for i := range kept {
		kept[i] = r.Totals()
	}
	bytes := (heap() - before) / len(kept) / (ranks * each)
	t.Log(bytes, "bytes for each series")
	assert.Less(t, bytes, 3*16*3/2, "three numbers")
	runtime.KeepAlive(kept)
	runtime.KeepAlive(r)
}
