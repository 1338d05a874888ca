package api

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
)

// slowSource knows no ranks, and says so when it may.
type slowSource struct{ asked, goOn chan struct{} }

func (s slowSource) wait() {
	s.asked <- struct{}{}
	<-s.goOn
}

func (s slowSource) Ranks() []RankStatus       { return []RankStatus{} }
func (s slowSource) Mapper() *variables.Mapper { return nil }

func (s slowSource) Connected(Selector) []Connected {
	s.wait()
	return nil
}

func (s slowSource) Values(context.Context, Selector) (ValueList, error) {
	s.wait()
	return ValueList{}, nil
}

func (s slowSource) Kept(Selector) KeptList {
	s.wait()
	return KeptList{}
}

// Requests whose answers may be large are served a few at a time; the list of ranks always is.
func TestTooManyReads(t *testing.T) {
	source := slowSource{make(chan struct{}), make(chan struct{})}
	h := Handler(source, slog.New(slog.DiscardHandler))
	get := func(path string) int {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w.Code
	}
	paths := []string{"/api/v1/catalogue", "/api/v1/values", "/api/v1/kept"}
	codes := make(chan int, maxReads)
	for i := range maxReads {
		go func() { codes <- get(paths[i%len(paths)]) }()
		<-source.asked
	}
	for _, path := range paths {
		assert.Equal(t, http.StatusServiceUnavailable, get(path), path)
	}
	assert.Equal(t, http.StatusOK, get("/api/v1/ranks"))
	close(source.goOn)
	for range maxReads {
		assert.Equal(t, http.StatusOK, <-codes)
	}
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
	lists, left := choose(ranks, false)
	assert.Equal(t, [][]int{{5, 0, 2}, {1, 6, 7}}, numbers(lists))
	assert.Zero(t, left)
	lists, left = choose(ranks, true)
	assert.Equal(t, [][]int{{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}}, numbers(lists))
	assert.Zero(t, left)
	lists, _ = choose(slices.Repeat(ranks, 3), true)
	assert.Len(t, lists, maxCatalogues)
	lists, _ = choose(nil, false)
	assert.Empty(t, lists)

	ranks = nil
	for i := range 2 * (maxCatalogues + 3) {
		ranks = append(ranks, rank(i, strconv.Itoa(i/2), false))
	}
	lists, left = choose(ranks, false)
	assert.Len(t, lists, maxCatalogues)
	assert.Equal(t, 3, left, "worlds, not ranks")
}
