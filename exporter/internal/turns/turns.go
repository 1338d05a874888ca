// Package turns lets those who share a key in one after the other.
package turns

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

// Turns lets one in at a time for each key. It is safe for concurrent use; the zero value is ready.
type Turns[K comparable] struct {
	mu  sync.Mutex
	now map[K]*turn
}

type turn struct {
	taken *semaphore.Weighted // of one, in order
	users int                 // that have it or wait for it
}

// Take waits until it is the caller's turn, who comes after those who have been waiting. The error is that of ctx.
func (t *Turns[K]) Take(ctx context.Context, key K) (leave func(), err error) {
	w := t.enter(key)
	if err := w.taken.Acquire(ctx, 1); err != nil {
		t.leave(key)
		return nil, err
	}
	return func() {
		w.taken.Release(1)
		t.leave(key)
	}, nil
}

// Users is how many have the turn or wait for it.
func (t *Turns[K]) Users(key K) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w := t.now[key]; w != nil {
		return w.users
	}
	return 0
}

func (t *Turns[K]) enter(key K) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.now == nil {
		t.now = map[K]*turn{}
	}
	w := t.now[key]
	if w == nil {
		w = &turn{taken: semaphore.NewWeighted(1)}
		t.now[key] = w
	}
	w.users++
	return w
}

func (t *Turns[K]) leave(key K) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w := t.now[key]; w.users == 1 {
		delete(t.now, key)
	} else {
		w.users--
	}
}
