package mpit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mpit-exporter/mpit-exporter/mpit/internal/wire"
)

const (
	// maxRefusals is how often a question is asked again that the rank answers with "not now": the program is making or
	// freeing objects, which is soon over.
	maxRefusals  = 50
	refusalPause = 20 * time.Millisecond
)

// ask asks until the answer is another than "not now", and waits for it. The error is a *RequestError, the session's
// or the context's; open says that the rank may still do what it was asked for, for only the waiting has ended.
func (s *Session) ask(ctx context.Context, q *question) (open bool, err error) {
	for refusals := 0; ; refusals++ {
		a, err := s.pose(ctx, q)
		if err != nil {
			return false, err
		}
		select {
		case <-a.done:
		case <-ctx.Done():
			left := false
			if s.with(func(d *dialogue) { left = d.leave(a) }); left {
				return true, ctx.Err()
			}
		}
		var refused *RequestError
		if !errors.As(a.err, &refused) || refused.Code != wire.ErrorNotNow || refusals == maxRefusals {
			return false, a.err
		}
		select {
		case <-time.After(refusalPause):
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// pose sends a question as soon as there is room for it.
func (s *Session) pose(ctx context.Context, q *question) (*attempt, error) {
	if err := ctx.Err(); err != nil {
		return nil, err // also where there is room
	}
	select {
	case q.slot <- struct{}{}:
	case <-s.done:
		return nil, s.Err()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	d := s.dialogue.Lock()
	defer s.dialogue.Unlock()
	a, err := d.pose(q)
	if err != nil {
		<-q.slot
	}
	return a, err
}

// pages asks from index 0 on until the answer was the last one, and returns all records. size is about how many bytes
// of memory one takes, which count as the rank's user's until ctx ends.
func pages[T any](ctx context.Context, s *Session, what string, ask, answer uint16, slot chan struct{},
	decode func(payload []byte, first int, enums map[uint32]*Enum) ([]T, page, error), size func(*T) int) ([]T,
	error) {
	var all []T
	kept, uid := 0, s.peer.UID
	for first := 0; ; {
		var list []T
		var p page
		q := &question{
			slot:   slot,
			typ:    answer,
			encode: func(e *wire.Encoder, seq uint32) { wire.AppendIndexRequest(e, ask, seq, first) },
			decode: func(payload []byte, enums map[uint32]*Enum) (err error) {
				list, p, err = decode(payload, first, enums)
				return err
			},
		}
		if _, err := s.ask(ctx, q); err != nil {
			return nil, fmt.Errorf("mpit: asking rank %d for %s: %w", s.hello.Rank, what, err)
		}
		bytes := 0
		for i := range list {
			bytes += size(&list[i])
		}
		if !s.memory.take(uid, bytes) {
			return nil, &ProtocolError{Reason: ReasonMemory,
				Err: fmt.Errorf("user %d holds too much of the memory for ranks", uid)}
		}
		context.AfterFunc(ctx, func() { s.memory.give(uid, bytes) })
		if kept += bytes; kept > maxCatalogue {
			return nil, &ProtocolError{Reason: ReasonTooLarge,
				Err: fmt.Errorf("more than %d bytes of %s", maxCatalogue, what)}
		}
		all = append(all, list...)
		if p.next >= p.total {
			return all, nil
		}
		first = p.next
	}
}
