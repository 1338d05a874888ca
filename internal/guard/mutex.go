package guard

import "sync"

// Mutex is a Value whose lock is cheaper, and can't be waited for with a limit. The zero value has T's.
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
