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
// or the context's; with the context's the rank may still do what it was asked for, for only the waiting has ended.
func (s *Session) ask(ctx context.Context, q *question) error {
	for refusals := 0; ; refusals++ {
		a, err := s.pose(ctx, q)
		if err != nil {
			return err
		}
		select {
		case <-a.done:
		case <-ctx.Done():
			left := false
			if s.with(func(d *dialogue) { left = d.leave(a) }); left {
				return ctx.Err()
			}
		}
		var refused *RequestError
		if !errors.As(a.err, &refused) || refused.Code != wire.ErrorNotNow || refusals == maxRefusals {
			return a.err
		}
		select {
		case <-time.After(refusalPause):
		case <-ctx.Done():
			return ctx.Err()
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

// pages asks from index 0 on until the answer was the last one, and returns all records, with the stamp of the first
// answer; same says that it is that of all. size is about how many bytes of memory a record takes, which count as the
// rank's user's until ctx ends.
func pages[T any](ctx context.Context, s *Session, what string, ask, answer uint16, slot chan struct{},
	read func(r *wire.Decoder, enums map[uint32]*Enum) (T, int), size func(*T) int) (all []T, stamp uint64, same bool,
	err error) {
	var p page
	kept, uid := 0, s.peer.UID
	defer func() {
		if kept > 0 {
			context.AfterFunc(ctx, func() { s.memory.Give(uid, kept) })
		}
	}()
	same = true
	for first := 0; ; first = p.next {
		var list []T
		q := &question{
			slot:   slot,
			typ:    answer,
			encode: func(e *wire.Encoder, seq uint32) { wire.AppendIndexRequest(e, ask, seq, first) },
			decode: func(payload []byte, enums map[uint32]*Enum) (err error) {
				list, p, err = decodePage(payload, what, first, func(r *wire.Decoder) (T, int) { return read(r, enums) })
				return err
			},
		}
		if err := s.ask(ctx, q); err != nil {
			return nil, 0, false, fmt.Errorf("mpit: asking rank %d for %s: %w", s.hello.Rank, what, err)
		}
		bytes := 0
		for i := range list {
			bytes += size(&list[i])
		}
		if bytes > 0 && !s.memory.Take(uid, bytes) {
			return nil, 0, false, &ProtocolError{Reason: ReasonMemory,
				Err: fmt.Errorf("user %d holds too much of the memory for ranks", uid)}
		}
		if kept += bytes; kept > maxCatalogue {
			return nil, 0, false, &ProtocolError{Reason: ReasonTooLarge,
				Err: fmt.Errorf("more than %d bytes of %s", maxCatalogue, what)}
		}
		all = append(all, list...)
		if first == 0 {
			stamp = p.stamp
		}
		same = same && p.stamp == stamp
		if p.next >= p.total {
			return all, stamp, same, nil
		}
	}
}
