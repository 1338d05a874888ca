package exporter

import (
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/mpit-exporter/mpit-exporter/exporter/internal/body"
)

// lending is the scrapes whose pages are being sent, oldest first. It is safe for concurrent use.
type lending struct {
	mu   sync.Mutex
	list []*loan
}

// loan is a body that is being sent to somebody; others may be sent the same.
type loan struct {
	of    *body.Body
	end   func() // makes sending fail
	ended bool
}

// add notes that a body is being sent by w until leave is called, and ends what is too much with it.
func (ls *lending) add(of *body.Body, w http.ResponseWriter, most int) (leave func()) {
	l := &loan{of: of, end: func() { _ = http.NewResponseController(w).SetWriteDeadline(time.Unix(1, 0)) }}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.list = append(ls.list, l)
	bytes, counted := 0, map[*body.Body]bool{}
	for i := len(ls.list) - 1; i >= 0; i-- {
		l := ls.list[i]
		if !counted[l.of] {
			counted[l.of] = true
			bytes += l.of.Memory()
		}
		if bytes > most && i < len(ls.list)-1 && !l.ended {
			l.ended = true
			l.end()
		}
	}
	return func() {
		ls.mu.Lock()
		defer ls.mu.Unlock()
		ls.list = slices.DeleteFunc(ls.list, func(other *loan) bool { return other == l })
	}
}
