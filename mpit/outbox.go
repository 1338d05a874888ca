package mpit

import (
	"errors"
	"fmt"
	"syscall"
)

// maxOutbox bounds what waits for a rank that doesn't read, in bytes: a few requests.
const maxOutbox = 256 << 10

// outbox sends without waiting. What the socket doesn't take at once waits here, and a goroutine that lives no longer
// than that sends it. The session's mu guards it.
type outbox struct {
	waiting  []byte
	draining bool
	held     memory // for waiting, and for what drain is about to send
}

// send sends a frame or takes it to be sent: never a part of one. The error is ErrCongested where there is no room
// for it. A peer that is gone is no error here: the reader finds out, after it has read what the peer has left.
func (o *outbox) send(s *Session, frame []byte) error {
	if !o.draining {
		n, err := writeNow(s.raw, frame)
		if err != nil || n == len(frame) {
			return err
		}
		frame = frame[n:]
	} else if len(o.waiting)+len(frame) > maxOutbox {
		return ErrCongested
	}
	if o.held.grow(len(frame)) != nil {
		return o.full(s, frame)
	}
	o.waiting = append(o.waiting, frame...)
	if !o.draining {
		o.draining = true
		s.writers.Go(s.drain)
	}
	return nil
}

// full is for when there is no memory for what has to wait. The rest of a frame that has been sent in part can't be
// left out: the connection ends.
func (o *outbox) full(s *Session, rest []byte) error {
	if !o.draining {
		s.end(&ProtocolError{Reason: ReasonMemory, Err: fmt.Errorf("no memory for %d bytes that the rank does not read", len(rest))})
		_ = s.conn.Close()
	}
	return ErrCongested
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
	if err == nil {
		err = failed
	}
	switch {
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
func (s *Session) drain() {
	for {
		s.mu.Lock()
		b := s.out.waiting
		s.out.waiting = nil
		_ = s.out.held.grow(len(b) - s.out.held.bytes) // what was sent before is given back, which does not fail
		if len(b) == 0 {
			s.out.draining = false
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		if _, err := s.conn.Write(b); err != nil {
			return // the reader sees why; draining stays, so that nothing is written behind a torn frame
		}
	}
}
