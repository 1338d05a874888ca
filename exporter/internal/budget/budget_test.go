package budget

import (
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mapping/rules"
)

// leftOf is how much more a rank may have.
func leftOf(a *Account) int {
	a.budgets.mu.Lock()
	defer a.budgets.mu.Unlock()
	room, _ := a.tightest()
	return room
}

// A rank that has more than the limits leave gets nothing, and keeps what it has.
func TestWhoHasMoreThanTheLimitsKeepsIt(t *testing.T) {
	b := New()
	require.NoError(t, b.SetLimits(rules.Limits{}))
	room, second := b.Open(Job{}), b.Open(Job{})
	room.Settle(20)
	second.Settle(20)
	require.NoError(t, b.SetLimits(rules.Limits{SeriesPerUser: 10}))
	assert.Equal(t, -30, leftOf(room))
	assert.Equal(t, mapping.ReasonUserOverLimit, room.Take(1))
	assert.Equal(t, 20, room.weight)
	second.Settle(0)
	room.Settle(8)
	assert.Equal(t, 2, leftOf(room))
	assert.Equal(t, mapping.ReasonUserOverLimit, room.Take(3), "all or nothing")
	assert.Empty(t, room.Take(2))
	assert.Equal(t, 10, room.weight)
}

// Ranks of several users that come at the same moment have no more together than there may be.
func TestUsersAtTheSameMomentStayWithinTheLimit(t *testing.T) {
	b := New()
	require.NoError(t, b.SetLimits(rules.Limits{Series: 1000}))
	var coming sync.WaitGroup
	ranks := make([]*Account, 8)
	for i := range ranks {
		ranks[i] = b.Open(Job{UID: uint32(i)})
		coming.Go(func() {
			for ranks[i].Take(3) == "" {
			}
		})
	}
	coming.Wait()
	all := 0
	for _, r := range ranks {
		all += r.weight
	}
	assert.LessOrEqual(t, all, 1000)
	assert.Greater(t, all, 850, "nobody can have more than is left")
	assert.Equal(t, all, b.Used(nil).All)
}

// Whatever ranks come, change, end and go: no scope ever has more than its limit, and the totals are right.
func TestBudgetsHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		small := rapid.IntRange(1, 200)
		draw := func() rules.Limits {
			return rules.Limits{
				Series: small.Draw(t, "all"), SeriesPerJob: small.Draw(t, "job"),
				SeriesPerUser: small.Draw(t, "user"), SeriesPerRank: small.Draw(t, "rank"),
			}
		}
		b := New()
		err := b.SetLimits(draw())
		if err != nil {
			t.Fatal(err)
		}
		type rank struct {
			*Account
			ended bool
		}
		var ranks []*rank
		changed := false
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch what := rapid.SampledFrom([]string{"come", "want", "want", "end", "go", "limit"}).Draw(t, "what"); {
			case what == "come":
				job := Job{strconv.Itoa(rapid.IntRange(0, 2).Draw(t, "job")),
					uint32(rapid.IntRange(0, 2).Draw(t, "uid"))}
				ranks = append(ranks, &rank{Account: b.Open(job)})
			case what == "limit":
				if err := b.SetLimits(draw()); err != nil {
					t.Fatal(err)
				}
				changed = true // nobody gives anything back
			case len(ranks) == 0:
			default:
				k := rapid.IntRange(0, len(ranks)-1).Draw(t, "rank")
				r := ranks[k]
				switch what {
				case "want":
					if r.ended {
						break
					}
					had, weight := r.weight, rapid.IntRange(1, 100).Draw(t, "weight")
					left := leftOf(r.Account)
					if got := r.Take(weight) == ""; got != (weight <= left) {
						t.Fatalf("a rank that may have %d more got %d: %v", left, weight, got)
					}
					r.Settle(rapid.IntRange(min(had, r.weight), r.weight).Draw(t, "uses"))
				case "end":
					r.ended = true
				case "go":
					r.Settle(0)
					ranks = append(ranks[:k], ranks[k+1:]...)
				}
			}
			all, jobs, users := 0, map[Job]int{}, map[uint32]int{}
			for _, r := range ranks {
				all += r.weight
				jobs[r.job] += r.weight
				users[r.job.UID] += r.weight
				if changed {
					continue
				}
				if r.weight > b.limits.SeriesPerRank || jobs[r.job] > b.limits.SeriesPerJob ||
					users[r.job.UID] > b.limits.SeriesPerUser || all > b.limits.Series {
					t.Fatalf("over the limit")
				}
			}
			if all != b.all {
				t.Fatalf("%d in all, there are %d", b.all, all)
			}
			for k, n := range jobs {
				if b.jobs[k] != n {
					t.Fatalf("job %v has %d, counted as %d", k, n, b.jobs[k])
				}
			}
			for uid, n := range users {
				if b.users[uid] != n {
					t.Fatalf("user %d has %d, counted as %d", uid, n, b.users[uid])
				}
			}
		}
	})
}

// Users come one after the other, and each takes all there is to get. The last one finds room all the same.
func TestUsersShareTheSeries(t *testing.T) {
	b := New()
	require.NoError(t, b.SetLimits(rules.Limits{}))
	standard := rules.Limits{}.WithDefaults()
	for uid := range uint32(8) {
		for range standard.SeriesPerUser / standard.SeriesPerRank {
			r := b.Open(Job{UID: uid})
			r.Take(leftOf(r))
		}
		assert.LessOrEqual(t, b.users[uid], standard.Series-b.all)
	}
	r := b.Open(Job{UID: 8})
	assert.Greater(t, leftOf(r), 800)
	assert.Equal(t, mapping.ReasonSeriesOverLimit, r.Take(leftOf(r)+1))
}
