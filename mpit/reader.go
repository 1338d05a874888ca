package mpit

import (
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"

	"github.com/mpit-exporter/mpit-exporter/mpit/internal/wire"
)

// reader is a session's goroutine, which reads what the rank sends.
type reader struct {
	*Session
	out       *outbox
	frames    *wire.Reader
	catalogue catalogue
	refused   bool    // the agent doesn't know FINAL
	final     *Sample // the last one
	hold      bool    // a last sample's connection stays open until Close
}

// run reads until the connection ends, and lets everybody go then.
func (r *reader) run() {
	err := r.readFrames()
	d := r.dialogue.Lock()
	pending, questions, err := d.close(err)
	r.dialogue.Unlock()
	if !r.hold || r.final == nil {
		_ = r.conn.Close() // the reason is known; it also ends a write that waits
	}
	r.out.end()
	close(r.done)
	if pending != nil {
		pending.finish(Sample{}, err)
	}
	for _, a := range questions {
		a.end(err)
	}
}

// readFrames reads until the connection ends, and says why.
func (r *reader) readFrames() error {
	for {
		f, err := r.frames.Next()
		if err != nil {
			return r.lastWords(err)
		}
		if f.Version > wire.Version {
			err := wire.Errorf(wire.ReasonVersion, "version %d, this side speaks %d", f.Version, wire.Version)
			return protocolError("reading a frame", err)
		}
		if err := r.take(f); err != nil {
			return protocolError(fmt.Sprintf("reading a frame of type %d", f.Type), err)
		}
		if r.final != nil {
			return io.EOF // that was all it came for
		}
	}
}

// lastWords turns the error that ended reading into the session's.
func (r *reader) lastWords(err error) error {
	// A rank that dies with something unread before it resets the connection: that is an end like any other.
	if errors.Is(err, syscall.ECONNRESET) && !r.frames.Partial() {
		err = io.EOF
	}
	switch {
	case errors.Is(err, io.EOF) && r.hello.Final:
		err = wire.Errorf(wire.ReasonTruncated, "end of file before the last sample")
	case errors.Is(err, io.EOF):
		return io.EOF
	case isTimeout(err): // only a last sample has a deadline
		err = wire.Errorf(wire.ReasonTruncated, "no last sample after %v", finalWait)
	case errors.Is(err, syscall.ECONNRESET):
		err = wire.Errorf(wire.ReasonTruncated, "connection reset in the middle of a frame")
	}
	return protocolError("reading", err)
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// take hands a frame to whoever asked for it.
func (r *reader) take(f wire.Frame) error {
	switch {
	case f.Type == wire.TypeHello:
		return wire.Errorf(wire.ReasonMalformed, "a second HELLO")
	case f.Type > wire.TypeSites:
		return r.skip()
	case r.hello.Final || f.Seq == wire.SeqFinal && f.Type != wire.TypeError:
		return r.takeFinal(f)
	}
	d := r.dialogue.Lock()
	sample, a := d.pending != nil && d.pendingSeq == f.Seq, d.questions[f.Seq]
	r.dialogue.Unlock()
	switch {
	case f.Type == wire.TypeError:
		return r.takeRefusal(f, sample, a)
	case sample:
		return r.takeAnswer(f)
	case a != nil:
		return r.takeQuestion(f, a)
	}
	return wire.Errorf(wire.ReasonMalformed, "an answer to request %d, which is not open", f.Seq)
}

// skip counts a frame that is of no use.
func (r *reader) skip() error {
	d := r.dialogue.Lock()
	defer r.dialogue.Unlock()
	return d.skip()
}

// takeRefusal takes the error that answers the request for a sample, or a question.
func (r *reader) takeRefusal(f wire.Frame, sample bool, a *attempt) error {
	refused, err := decodeError(f.Payload)
	switch {
	case err != nil:
		return err
	case sample:
		r.catalogue.reject()
		r.answer(Sample{}, refused)
	case a != nil:
		r.with(func(d *dialogue) { d.conclude(f.Seq, a, refused) })
	case f.Seq == wire.SeqFinal && !r.refused: // the agent is too old for FINAL
		r.refused = true
	default:
		return r.skip() // to something that is not answered
	}
	return nil
}

// takeAnswer takes a frame of the answer to SAMPLE.
func (r *reader) takeAnswer(f wire.Frame) error {
	sample, whole, err := r.catalogue.frame(f)
	if whole {
		r.answer(sample, nil)
	}
	return err
}

// answer passes the answer to SAMPLE on.
func (r *reader) answer(sample Sample, refused error) {
	d := r.dialogue.Lock()
	p, answered := d.answer(r.catalogue.has)
	r.dialogue.Unlock()
	p.finish(sample, refused)
	if answered != nil {
		answered()
	}
}

// takeFinal takes a frame of a last sample, which comes whole whatever has come before.
func (r *reader) takeFinal(f wire.Frame) error {
	sample, whole, err := r.catalogue.frame(f)
	if err != nil || !whole {
		return err
	}
	if !r.hello.Final && sample.Status != SampleFinal {
		return wire.Errorf(wire.ReasonMalformed, "a sample of status %d as the last one", sample.Status)
	}
	r.final = &sample
	r.with(func(d *dialogue) { d.final = &sample })
	return nil
}

// takeQuestion takes a frame of the answer to a question.
func (r *reader) takeQuestion(f wire.Frame, a *attempt) error {
	if a.bytes += wire.HeaderBytes + len(f.Payload); a.bytes > maxAnswer {
		return wire.Errorf(wire.ReasonTooLarge, "an answer of more than %d bytes", maxAnswer)
	}
	switch f.Type {
	case wire.TypeEnums:
		if a.sent == nil {
			a.sent = make(map[uint32]struct{})
		}
		return r.catalogue.takeEnums(f.Payload, a.sent)
	case a.typ:
		if err := a.decode(f.Payload, r.catalogue.enums); err != nil {
			return err
		}
	default:
		return wire.Errorf(wire.ReasonMalformed, "a frame of type %d where %d was asked for", f.Type, a.typ)
	}
	r.with(func(d *dialogue) { d.conclude(f.Seq, a, nil) })
	return nil
}
