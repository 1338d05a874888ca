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
	// maxToolQuestions is how many operations of TOOL a session has open at once. More wait for their turn.
	maxToolQuestions = 16
)

// question is a request that is answered with one frame of its own type, with ENUMS before it where the frame needs
// them.
type question struct {
	// slot has room for as many questions of one kind as may be open at once. Whoever asks puts something in, and the
	// reader takes it out with the answer, however late that comes.
	slot   chan struct{}
	typ    uint16 // of the answer
	encode func(e *wire.Encoder, seq uint32)
	// decode reads the answer, in the reader's goroutine. What it sets is the asker's once that has been told of the
	// answer.
	decode func(payload []byte) error
	// undo returns what is to be asked where the answer finds that its asker has gone: nobody else would ever free what
	// was made for it. nil: nothing.
	undo func() *question
}

// attempt is a question that has been sent.
type attempt struct {
	*question
	done  chan struct{}
	err   error               // set before done is closed: the rank's refusal, or the session's end
	bytes int                 // of the answer so far
	sent  map[uint32]struct{} // enumerations that the answer has brought
	gone  bool                // the asker doesn't wait any more; guarded by the session's mu
}

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
			if s.leave(a) {
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
		return nil, s.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	a, err := s.poseLocked(q)
	if err != nil {
		<-q.slot
	}
	return a, err
}

// poseLocked sends a question that has its slot. The caller holds mu.
func (s *Session) poseLocked(q *question) (*attempt, error) {
	switch {
	case s.ended:
		return nil, s.err
	case s.hello.Final:
		return nil, ErrFinal
	}
	var e wire.Encoder
	s.seq++
	q.encode(&e, s.seq)
	if err := s.out.send(s, e.Bytes()); err != nil {
		return nil, err
	}
	a := &attempt{question: q, done: make(chan struct{})}
	s.questions[s.seq] = a
	return a, nil
}

// leave says that nobody waits for the answer any more. It returns false if it is there already.
func (s *Session) leave(a *attempt) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-a.done:
		return false
	default:
		a.gone = true
		return true
	}
}

// takeQuestion takes a frame of the answer to a question.
func (s *Session) takeQuestion(f wire.Frame, a *attempt) error {
	if a.bytes += wire.HeaderBytes + len(f.Payload); a.bytes > maxAnswer {
		return wire.Errorf(wire.ReasonTooLarge, "an answer of more than %d bytes", maxAnswer)
	}
	var refused error
	switch f.Type {
	case wire.TypeEnums:
		if a.sent == nil {
			a.sent = make(map[uint32]struct{})
		}
		return s.catalogue.takeEnums(f.Payload, a.sent)
	case wire.TypeError:
		e, err := decodeError(f.Payload)
		if err != nil {
			return err
		}
		refused = e
	case a.typ:
		if err := a.decode(f.Payload); err != nil {
			return err
		}
	default:
		return wire.Errorf(wire.ReasonMalformed, "a frame of type %d where %d was asked for", f.Type, a.typ)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.questions, f.Seq)
	s.unasked = 0
	a.err = refused
	close(a.done)
	if a.gone && refused == nil && a.undo != nil {
		if q := a.undo(); q != nil {
			q.slot = a.slot // which stays taken
			if _, err := s.poseLocked(q); err == nil {
				return nil
			}
		}
	}
	<-a.slot
	return nil
}

// end ends an attempt that will not be answered.
func (a *attempt) end(err error) {
	a.err = err
	close(a.done)
	<-a.slot
}

// pages asks from index 0 on until the answer was the last one, and returns all records. size is about how many bytes
// of memory one takes.
func pages[T any](ctx context.Context, s *Session, what string, ask, answer uint16, slot chan struct{},
	decode func(payload []byte, first int) ([]T, page, error), size func(*T) int) ([]T, error) {
	var all []T
	kept := 0
	for first := 0; ; {
		var list []T
		var p page
		q := &question{
			slot:   slot,
			typ:    answer,
			encode: func(e *wire.Encoder, seq uint32) { wire.AppendIndexRequest(e, ask, seq, first) },
			decode: func(payload []byte) (err error) {
				list, p, err = decode(payload, first)
				return err
			},
		}
		if _, err := s.ask(ctx, q); err != nil {
			return nil, fmt.Errorf("mpit: asking rank %d for %s: %w", s.hello.Rank, what, err)
		}
		for i := range list {
			kept += size(&list[i])
		}
		if kept > maxCatalogue {
			return nil, &ProtocolError{Reason: ReasonTooLarge, Err: fmt.Errorf("more than %d bytes of %s", maxCatalogue, what)}
		}
		all = append(all, list...)
		if p.next >= p.total {
			return all, nil
		}
		first = p.next
	}
}
