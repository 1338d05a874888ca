package exporter

import (
	"sync"
	"time"
)

// deafInterval is how often it may be logged that no connection can be accepted: where ranks come and go at the
// limit, that ends and begins again with each of them.
const deafInterval = time.Minute

// deafness is whether connections can't be accepted at present, as far as it has been logged. It is safe for
// concurrent use.
type deafness struct {
	mu     sync.Mutex
	deaf   bool
	logged time.Time
}

// goes notes a failure to accept, and reports whether it is to be logged.
func (d *deafness) goes() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.deaf || time.Since(d.logged) < deafInterval {
		return false
	}
	d.deaf, d.logged = true, time.Now()
	return true
}

// comes notes that a connection was accepted, and reports whether that is to be logged.
func (d *deafness) comes() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	was := d.deaf
	d.deaf = false
	return was
}
