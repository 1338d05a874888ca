package api

import (
	"context"
	"errors"
	"net"
	"net/http"

	"golang.org/x/sync/semaphore"

	"github.com/mpit-exporter/mpit-exporter/exporter/internal/turns"
)

// maxMade is how many answers are made at once: they may be large. Others wait, and nothing that is waited for
// meanwhile depends on a rank or on who reads an answer.
const maxMade = 2

// Turns is whose answers are being made. Each address has one at a time, and addresses take turns: however much one
// asks, another one waits for no more than one answer of it. It is safe for concurrent use.
type Turns struct {
	addresses turns.Turns[string]
	all       *semaphore.Weighted // of each address one waits for it, so it is fair to them
}

// NewTurns returns Turns that are all free.
func NewTurns() *Turns { return &Turns{all: semaphore.NewWeighted(maxMade)} }

var errTurns = errors.New("too many answers are being made; try again soon")

// Take waits, but not for long, until the answer to a request may be made. leave ends the turn.
func (t *Turns) Take(req *http.Request) (leave func(), err error) {
	ctx, cancel := context.WithTimeout(req.Context(), timeout)
	defer cancel()
	address, _, err := net.SplitHostPort(req.RemoteAddr)
	if err != nil {
		address = req.RemoteAddr // a server may have written there who it is that asks
	}
	next, err := t.addresses.Take(ctx, address)
	if err != nil {
		return nil, errTurns
	}
	if t.all.Acquire(ctx, 1) != nil {
		next()
		return nil, errTurns
	}
	return func() {
		t.all.Release(1)
		next()
	}, nil
}
