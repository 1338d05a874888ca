package mpit

import (
	"errors"

	"github.com/mpit-exporter/mpit-exporter/mpit/internal/wire"
)

// maxSkipped bounds the frames that are skipped while nothing is asked, so that no rank keeps the reader busy.
const maxSkipped = 1024

// dialogue is what is asked of a rank, and what it has not answered yet. To have one is to hold the session's lock,
// so nothing in it waits.
type dialogue struct {
	out       *outbox
	lastWords bool // the connection brings a last sample: nothing can be asked

	ended bool
	err   error // why it ended

	encoder     wire.Encoder
	seq         uint32 // of the last request
	generations wire.SampleRequest
	answered    func()   // see Session.OnAnswer
	pending     *Pending // the unanswered request for a sample
	pendingSeq  uint32
	questions   map[uint32]*attempt // by sequence number; nil once ended

	final   *Sample
	unasked int // frames skipped since the last answer
}

// end marks the dialogue as ended, for the first reason that is given.
func (d *dialogue) end(err error) {
	if !d.ended {
		d.ended, d.err = true, err
	}
}

// request numbers and sends what encode writes, if a request can be sent.
func (d *dialogue) request(encode func(e *wire.Encoder, seq uint32)) error {
	switch {
	case d.ended:
		return d.err
	case d.lastWords:
		return ErrFinal
	}
	d.seq++
	d.encoder.Reset()
	encode(&d.encoder, d.seq)
	err := d.out.send(d.encoder.Bytes())
	if torn := (*ProtocolError)(nil); errors.As(err, &torn) {
		d.end(torn)
		_ = d.out.conn.Close()
		return ErrCongested
	}
	return err
}

// ask asks for a sample, unless that has been done.
func (d *dialogue) ask() *Pending {
	if d.pending != nil && !d.ended {
		return d.pending
	}
	if err := d.request(d.generations.Append); err != nil {
		return finished(err)
	}
	d.pending, d.pendingSeq = newPending(), d.seq
	return d.pending
}

// pose sends a question that has its slot.
func (d *dialogue) pose(q *question) (*attempt, error) {
	if err := d.request(q.encode); err != nil {
		return nil, err
	}
	a := &attempt{question: q, done: make(chan struct{})}
	d.questions[d.seq] = a
	return a, nil
}

// leave says that nobody waits for an answer any more. It returns false if it is there already.
func (d *dialogue) leave(a *attempt) bool {
	select {
	case <-a.done:
		return false
	default:
		a.gone = true
		return true
	}
}

// answer notes that the request for a sample has been answered. It returns whom to tell.
func (d *dialogue) answer(generations wire.SampleRequest) (p *Pending, answered func()) {
	p = d.pending
	d.pending, d.unasked, d.generations = nil, 0, generations
	return p, d.answered
}

// conclude notes that a question has been answered. Where its asker has gone, what was made is undone.
func (d *dialogue) conclude(seq uint32, a *attempt, refused error) {
	delete(d.questions, seq)
	d.unasked = 0
	a.err = refused
	close(a.done)
	if a.gone && refused == nil && a.undo != nil {
		if q := a.undo(); q != nil {
			q.slot = a.slot // which stays taken
			if _, err := d.pose(q); err == nil {
				return
			}
		}
	}
	<-a.slot
}

// skip counts a frame that is of no use.
func (d *dialogue) skip() error {
	d.unasked++
	if d.unasked > maxSkipped {
		return wire.Errorf(wire.ReasonTooLarge, "more than %d frames that nobody asked for", maxSkipped)
	}
	return nil
}

// close ends the dialogue and returns whom to tell, and why it has ended.
func (d *dialogue) close(err error) (pending *Pending, questions map[uint32]*attempt, reason error) {
	d.end(err)
	pending, questions = d.pending, d.questions
	d.pending, d.questions = nil, nil
	return pending, questions, d.err
}

// question is a request that is answered with one frame of its own type, with ENUMS before it where the frame needs
// them.
type question struct {
	// slot has room for as many questions of one kind as may be open at once. Whoever asks puts something in, and the
	// reader takes it out with the answer, however late that comes.
	slot   chan struct{}
	typ    uint16 // of the answer
	encode func(e *wire.Encoder, seq uint32)
	// decode reads the answer, in the reader's goroutine, with the enumerations that the rank has sent. What it sets is
	// the asker's once that has been told of the answer.
	decode func(payload []byte, enums map[uint32]*Enum) error
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
	gone  bool                // the asker doesn't wait any more; guarded by the session's lock
}

// end ends an attempt that will not be answered.
func (a *attempt) end(err error) {
	a.err = err
	close(a.done)
	<-a.slot
}
