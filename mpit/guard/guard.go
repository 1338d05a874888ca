// Package guard has values that can be had only by who holds their lock, which the compiler sees to.
package guard

import "time"

// Value is a T and its lock. The pointer that locking returns is good until Unlock. It must not be copied.
type Value[T any] struct {
	held  chan struct{} // has a token while somebody holds the lock
	value T
}

// New returns a Value that nobody holds.
func New[T any](value T) *Value[T] {
	return &Value[T]{held: make(chan struct{}, 1), value: value}
}

// Lock waits for the lock.
func (v *Value[T]) Lock() *T {
	v.held <- struct{}{}
	return &v.value
}

// TryLock returns nil where somebody else holds the lock.
func (v *Value[T]) TryLock() *T {
	select {
	case v.held <- struct{}{}:
		return &v.value
	default:
		return nil
	}
}

// LockBefore waits for the lock until late gets a value or is closed, and returns nil then.
func (v *Value[T]) LockBefore(late <-chan time.Time) *T {
	if t := v.TryLock(); t != nil {
		return t
	}
	select {
	case v.held <- struct{}{}:
		return &v.value
	case <-late:
		return nil
	}
}

// Unlock gives the lock back.
func (v *Value[T]) Unlock() { <-v.held }
