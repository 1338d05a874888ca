package exporter

import (
	"sync"
	"time"
)

// acceptLogInterval is how often it may be logged that no connection can be accepted: where ranks come and go at the
// limit, that ends and begins again with each of them.
const acceptLogInterval = time.Minute

// acceptance is whether connections can be accepted at present, as far as it has been logged. It is safe for
// concurrent use.
type acceptance struct {
	mu      sync.Mutex
	failing bool
	logged  time.Time
}

// failed notes a failure to accept, and reports whether it is to be logged.
func (a *acceptance) failed() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.failing || time.Since(a.logged) < acceptLogInterval {
		return false
	}
	a.failing, a.logged = true, time.Now()
	return true
}

// succeeded notes that a connection was accepted, and reports whether that is to be logged.
func (a *acceptance) succeeded() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	was := a.failing
	a.failing = false
	return was
}
