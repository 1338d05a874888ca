package api

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// slowSource knows no ranks, and says so when it may.
type slowSource struct{ asked, goOn chan struct{} }

func (s slowSource) wait() {
	s.asked <- struct{}{}
	<-s.goOn
}

func (s slowSource) Mapper() *variables.Mapper               { return nil }
func (s slowSource) Connected(Selector) []Connected          { return nil }
func (s slowSource) Refresh(context.Context, Selector) error { return nil }

func (s slowSource) Ranks(Selector) []RankStatus {
	s.wait()
	return []RankStatus{}
}

func (s slowSource) Values(Selector) ValueList {
	s.wait()
	return ValueList{}
}

// Answers, which may be large, are made a few at a time, of each address one; others wait for their turn, and addresses
// take turns, however many requests one of them has waiting.
func TestAnswersAreMadeInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := slowSource{make(chan struct{}, 100), make(chan struct{})}
		h := Handler(source, NewTurns(), slog.New(slog.DiscardHandler))
		paths := []string{"/api/v1/ranks", "/api/v1/values"}
		asked, done := 0, make(chan string)
		ask := func(ctx context.Context, from string) int {
			req := httptest.NewRequestWithContext(ctx, http.MethodGet, paths[asked%len(paths)], nil)
			req.RemoteAddr = from
			w := httptest.NewRecorder()
			h.ServeHTTP(w, req)
			return w.Code
		}
		come := func(from, address string) {
			asked++
			go func() {
				assert.Equal(t, http.StatusOK, ask(t.Context(), from))
				done <- address
			}()
			synctest.Wait() // until it waits for its turn or is being answered
		}
		const crowd = 6
		for range crowd {
			come("192.0.2.1:1", "192.0.2.1")
		}
		<-source.asked
		come("this host", "this host")
		<-source.asked
		come("192.0.2.3:1", "192.0.2.3")
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		assert.Equal(t, http.StatusServiceUnavailable, ask(canceled, "192.0.2.1:2"), "it has waited as long as it can")
		var order []string
		for range crowd + 2 {
			synctest.Wait()
			source.goOn <- struct{}{}
			order = append(order, <-done)
		}
		assert.Contains(t, order[:4], "192.0.2.3", "another address's is among the next: %v", order)
	})
}

// Catalogues that requests have are bounded in bytes; whose are too much is told so.
func TestAskedBytesAreBounded(t *testing.T) {
	h := &handler{held: mpit.NewShares(maxAskedBytes, 0)}
	large := Catalogue{Objects: []ObjectStatus{{Name: strings.Repeat("x", maxCatalogueBytes/2)}}}
	sizes, all := map[uint32]int{}, 0
	for uid := range uint32(50) {
		large.Rank.UID = uid
		a := h.hold(large)
		for ; a.err == nil; a = h.hold(large) {
			sizes[uid] += a.size
			all += a.size
		}
		require.ErrorContains(t, a.err, "too much memory")
		require.LessOrEqual(t, all, maxAskedBytes)
	}
	assert.Greater(t, len(sizes), 1, "the first user has not all")
	for uid, size := range sizes {
		h.held.Give(uid, size)
	}
	assert.Equal(t, mpit.NewShares(maxAskedBytes, 0), h.held)
}

// Users share an answer: none gets less than an equal part because others have more, whatever their jobs are called,
// and who is left out is named.
func TestUsersShareAnAnswer(t *testing.T) {
	v := NewValues(time.Time{}, Bounds{Series: 100, Bytes: 1 << 20}, map[uint32]int{1: 5000, 2: 4000, 3: 3})
	add := func(uid uint32, job string) {
		v.Add(&Shown{Rank: RankStatus{UID: uid, User: strconv.Itoa(int(uid)), JobID: job}})
	}
	for i := range 5000 {
		add(1, "a"+strconv.Itoa(i%20))
	}
	for range 4000 {
		add(2, "z")
	}
	for range 3 {
		add(3, "y")
	}
	list := v.List()
	of := map[string]int{}
	for _, r := range list.Ranks {
		of[r.Rank.User]++
	}
	assert.Equal(t, map[string]int{"1": 49, "2": 48, "3": 3}, of)
	assert.Equal(t, 9000-49-48, list.More)
	left := 0
	for _, l := range list.LeftOut {
		left += l.Ranks
	}
	assert.Equal(t, list.More, left)
	assert.Len(t, list.LeftOut, maxNamed+2)
	assert.Equal(t, LeftOut{UID: 2, User: "2", JobID: "z", Ranks: 4000 - 48}, list.LeftOut[maxNamed+1])
	assert.Empty(t, list.LeftOut[maxNamed].JobID, "of others")
}

// Of each world a rank is asked that isn't late, and a few besides; where ranks are named, each is.
func TestChoose(t *testing.T) {
	rank := func(number int, world string, late bool) Connected {
		return Connected{Status: RankStatus{Rank: number, World: world}, Late: late}
	}
	numbers := func(lists [][]Connected) (numbers [][]int) {
		for _, list := range lists {
			var in []int
			for _, r := range list {
				in = append(in, r.Status.Rank)
			}
			numbers = append(numbers, in)
		}
		return numbers
	}
	ranks := []Connected{
		rank(0, "a", true), rank(1, "b", false), rank(2, "a", true), rank(3, "a", true), rank(4, "a", true),
		rank(5, "a", false),
		rank(6, "b", false), rank(7, "b", true),
	}
	lists, out := choose(ranks, false)
	assert.Equal(t, [][]int{{5, 0, 2}, {1, 6, 7}}, numbers(lists))
	assert.Empty(t, out)
	lists, out = choose(ranks, true)
	assert.Equal(t, [][]int{{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}}, numbers(lists))
	assert.Empty(t, out)
	lists, out = choose(slices.Repeat(ranks, 3), true)
	assert.Len(t, lists, maxCatalogues)
	assert.Len(t, out, 24-maxCatalogues)
	lists, _ = choose(nil, false)
	assert.Empty(t, lists)

	ranks = nil
	for i := range 2 * (maxCatalogues + 3) {
		ranks = append(ranks, rank(i, strconv.Itoa(i/2), false))
	}
	lists, out = choose(ranks, false)
	assert.Len(t, lists, maxCatalogues)
	assert.Len(t, out, 3, "worlds, not ranks")

	// However many worlds of another user come first.
	ranks = append(ranks, Connected{Status: RankStatus{Rank: 99, World: "z", UID: 7}})
	lists, out = choose(ranks, false)
	assert.Contains(t, numbers(lists), []int{99})
	assert.Len(t, out, 4)
}

// Ranks of a user serve one request after the other, and no more than a few wait for them; those of others are asked
// meanwhile.
func TestRequestsForOneUsersRanksAreBounded(t *testing.T) {
	h := &handler{}
	leave, err := h.turnOf(t.Context(), 1)
	require.NoError(t, err)
	waiting, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	for n := range maxAskers - 1 {
		go func() {
			_, err := h.turnOf(waiting, 1)
			failed <- err
		}()
		require.Eventually(t, func() bool { return h.users.Users(1) == 2+n }, time.Minute, time.Microsecond)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	_, err = h.turnOf(ended, 1)
	require.EqualError(t, err, "4 requests are waiting for ranks of user 1 already; try again soon")
	other, err := h.turnOf(t.Context(), 2)
	require.NoError(t, err)
	other()
	cancel()
	for range maxAskers - 1 {
		require.ErrorContains(t, <-failed, "waiting for other requests for ranks of user 1")
	}
	leave()
	leave, err = h.turnOf(t.Context(), 1)
	require.NoError(t, err)
	leave()
}
