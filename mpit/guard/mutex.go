package guard

import "sync"

// Mutex is a T and its lock. It costs less than a Value, but can't be waited for with a time limit. The zero value has
// that of T, and it must not be copied.
type Mutex[T any] struct {
	mu    sync.Mutex
	value T
}

// Lock waits for the lock. The pointer that it returns is good until Unlock.
func (m *Mutex[T]) Lock() *T {
	m.mu.Lock()
	return &m.value
}

// Unlock gives the lock back.
func (m *Mutex[T]) Unlock() { m.mu.Unlock() }
