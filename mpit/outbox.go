package mpit

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
)

// maxOutbox bounds what waits for a rank that doesn't read, in bytes: a few requests.
const maxOutbox = 256 << 10

// outbox sends without waiting. What the socket doesn't take at once waits here, and a goroutine that lives no longer
// than that sends it. It is safe for concurrent use; its lock comes after the session's.
type outbox struct {
	conn    *net.UnixConn
	raw     syscall.RawConn
	writers sync.WaitGroup // drain

	mu       sync.Mutex
	waiting  []byte
	draining bool
	held     memory // for waiting, and for what drain is about to send
}

// send sends a frame or takes it to be sent: never a part of one. The error is ErrCongested where there is no room
// for it; with a *ProtocolError a part of it has been sent, and the connection is to end. A peer that is gone is no
// error here: the reader finds out, after it has read what the peer has left.
func (o *outbox) send(frame []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.draining {
		n, err := writeNow(o.raw, frame)
		if err != nil || n == len(frame) {
			return err
		}
		frame = frame[n:]
	} else if len(o.waiting)+len(frame) > maxOutbox {
		return ErrCongested
	}
	if o.held.grow(len(frame)) != nil {
		if o.draining {
			return ErrCongested
		}
		err := fmt.Errorf("no memory for %d bytes that the rank does not read", len(frame))
		return &ProtocolError{Reason: ReasonMemory, Err: err}
	}
	o.waiting = append(o.waiting, frame...)
	if !o.draining {
		o.draining = true
		o.writers.Go(o.drain)
	}
	return nil
}

// end waits until nothing is written any more, after the connection has been closed, and gives the memory back.
func (o *outbox) end() {
	o.writers.Wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.held.end()
}

// writeNow writes what the socket takes without waiting.
func writeNow(raw syscall.RawConn, b []byte) (n int, err error) {
	failed := raw.Write(func(fd uintptr) bool {
		for {
			n, err = syscall.Write(int(fd), b)
			if !errors.Is(err, syscall.EINTR) {
				return true
			}
		}
	})
	switch err = cmp.Or(err, failed); {
	case err == nil:
		return n, nil
	case errors.Is(err, syscall.EAGAIN):
		return 0, nil
	case errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ECONNRESET):
		return len(b), nil
	}
	return 0, fmt.Errorf("mpit: writing a request: %w", err)
}

// drain sends what waits, and ends when nothing does or the connection is closed.
func (o *outbox) drain() {
	for {
		b := o.take()
		if len(b) == 0 {
			return
		}
		if _, err := o.conn.Write(b); err != nil {
			return // the reader sees why; draining stays, so that nothing is written behind a torn frame
		}
	}
}

// take returns what waits. What was sent before is given back.
func (o *outbox) take() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	b := o.waiting
	o.waiting = nil
	_ = o.held.grow(len(b) - o.held.bytes) // giving back does not fail
	o.draining = len(b) > 0
	return b
}
