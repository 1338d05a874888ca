package mpit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/mpit-exporter/mpit-exporter/mpit/internal/wire"
)

const (
	// finalWait is how long a last sample may take to arrive. The rank gives up after 20 ms.
	finalWait = 5 * time.Second
	// maxSkipped bounds the frames that are skipped while nothing is asked, so that no rank keeps the reader busy.
	maxSkipped = 1024
)

// Session is a connected rank after HELLO. It is safe for concurrent use. One goroutine of it reads until the
// connection ends; nothing else in it waits for the rank unless a context says how long.
type Session struct {
	conn  *net.UnixConn
	raw   syscall.RawConn
	peer  Peer
	hello Hello

	done chan struct{} // closed when the reader has ended and everything below is final

	// The reader's own.
	frames    *wire.Reader
	catalogue catalogue
	refused   bool   // the agent doesn't know FINAL
	release   func() // gives back what the connection holds of its user's shares; once, whoever calls it
	hold      bool   // a last sample's connection stays open until Close

	// How many questions of each kind are open at once (see question.slot): one about control variables, one about
	// categories, and maxToolQuestions operations of TOOL.
	cvarSlot, categorySlot, toolSlots chan struct{}

	writers sync.WaitGroup // drain

	mu          sync.Mutex // guards what follows; never held while waiting
	ended       bool
	err         error // why it ended
	seq         uint32
	generations wire.SampleRequest
	answered    func()   // see OnAnswer
	pending     *Pending // the unanswered request for a sample
	pendingSeq  uint32
	questions   map[uint32]*attempt // by sequence number; nil once ended
	out         outbox
	final       *Sample
	skipped     uint64
	unasked     int // frames skipped since the last answer
}

// newSession takes over a connection whose HELLO has been read by frames, and what it holds of memory. It looks in
// alike for what others have. It calls release when the connection has ended; with an error it does not. With hold,
// that of a last sample is not closed when the sample has come.
func newSession(conn *net.UnixConn, frames *wire.Reader, peer Peer, hello Hello, held *memory, alike *alike, hold bool, release func()) (*Session, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, protocolError("taking the connection", err)
	}
	deadline := time.Time{}
	if hello.Final {
		deadline = time.Now().Add(finalWait)
	}
	if err := conn.SetReadDeadline(deadline); err != nil {
		return nil, protocolError("setting a deadline", err)
	}
	s := &Session{
		conn:         conn,
		raw:          raw,
		peer:         peer,
		hello:        hello,
		done:         make(chan struct{}),
		frames:       frames,
		catalogue:    catalogue{held: held, alike: alike},
		release:      sync.OnceFunc(release),
		hold:         hold,
		out:          outbox{held: memory{of: held.of, uid: held.uid}},
		cvarSlot:     make(chan struct{}, 1),
		categorySlot: make(chan struct{}, 1),
		toolSlots:    make(chan struct{}, maxToolQuestions),
		questions:    make(map[uint32]*attempt),
	}
	if !hello.Final {
		// For its end: it may not be able to make another connection then.
		var e wire.Encoder
		wire.AppendFinal(&e)
		if err := s.out.send(s, e.Bytes()); err != nil {
			return nil, protocolError("asking for the last sample", err)
		}
	}
	go s.read()
	return s, nil
}

// Hello returns what the rank said of itself. Its map belongs to the session.
func (s *Session) Hello() Hello { return s.hello }

// Peer returns what the kernel says of the rank's process.
func (s *Session) Peer() Peer { return s.peer }

// Done returns a channel that is closed when the connection has ended, for whatever reason. With a last sample that
// is when the sample has come, even where the connection is held (WithHeldFinals).
func (s *Session) Done() <-chan struct{} { return s.done }

// OnAnswer has f called whenever a Pending of the session is done by an answer, for who can't wait for each of them.
// The session's goroutine calls it, and reads nothing more until it returns; it must not Close the session.
func (s *Session) OnAnswer(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answered = f
}

// Err returns nil while the connection lives; then io.EOF if the rank ended it between two frames, net.ErrClosed if
// Close did, and otherwise a *ProtocolError.
func (s *Session) Err() error {
	select {
	case <-s.done:
		return s.err
	default:
		return nil
	}
}

// Close ends the connection and waits for the session's goroutine. It may be called more than once.
func (s *Session) Close() error {
	s.mu.Lock()
	s.end(net.ErrClosed)
	s.mu.Unlock()
	err := s.conn.Close()
	<-s.done
	s.release()
	if err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("mpit: closing the connection to rank %d: %w", s.hello.Rank, err)
	}
	return nil
}

// Skipped returns how many frames were skipped because their type is unknown, or because they answer nothing that
// anybody waits for.
func (s *Session) Skipped() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.skipped
}

// Ask asks for a sample now and does not wait. While an earlier request is unanswered it sends nothing and returns that
// request's Pending, so that a rank which is late never has more than one to answer.
func (s *Session) Ask() *Pending {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ended:
		return finished(s.err)
	case s.hello.Final:
		return finished(ErrFinal)
	case s.pending != nil:
		return s.pending
	}
	var e wire.Encoder
	s.seq++
	s.generations.Append(&e, s.seq)
	if err := s.out.send(s, e.Bytes()); err != nil {
		return finished(err)
	}
	s.pending, s.pendingSeq = newPending(), s.seq
	return s.pending
}

// Read asks for a sample and waits for it. Where the context ends first, the request stays: the next Ask or Read gets
// its answer, however old it is then.
func (s *Session) Read(ctx context.Context) (Sample, error) {
	p := s.Ask()
	select {
	case <-p.Done():
		return p.Sample()
	case <-ctx.Done():
		return Sample{}, fmt.Errorf("mpit: waiting for a sample of rank %d: %w", s.hello.Rank, ctx.Err())
	}
}

// Final returns the rank's last sample, if the connection has brought it: one with Hello().Final, which does nothing
// else, or any other. It is there once Done is closed.
func (s *Session) Final() (Sample, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.final == nil {
		return Sample{}, false
	}
	return *s.final, true
}

// Select says which variables are read from now on: those that ids maps to true, and where def is true also those that
// ids doesn't mention. All are before the first Select. The next sample brings a new Layout if that changes anything.
func (s *Session) Select(ctx context.Context, def bool, ids map[uint32]bool) error {
	r := wire.SelectRequest{Default: def}
	for id := range ids {
		if id >= wire.MaxVariables {
			return fmt.Errorf("mpit: selecting variable %d: numbers end at %d", id, wire.MaxVariables-1)
		}
		for len(r.Map) <= int(id/64) {
			word := uint64(0)
			if def {
				word = ^word
			}
			r.Map = append(r.Map, word)
		}
	}
	for id, read := range ids {
		if read {
			r.Map[id/64] |= 1 << (id % 64)
		} else {
			r.Map[id/64] &^= 1 << (id % 64)
		}
	}
	return s.tell(ctx, "selecting variables", func(e *wire.Encoder, seq uint32) { r.Append(e, seq) })
}

// Open asks the rank to open variables that are opened on request only (Variable.OnRequest), on all objects from now
// on. It is not answered: later samples say what came of it, a passive rank's those after the program's next call.
// Numbers of others, and of variables that are open, mean nothing. What has been opened stays so.
func (s *Session) Open(ctx context.Context, ids []uint32) error {
	var r wire.OpenRequest
	for _, id := range ids {
		if id >= wire.MaxVariables {
			return fmt.Errorf("mpit: opening variable %d: numbers end at %d", id, wire.MaxVariables-1)
		}
		r.Set(id)
	}
	return s.tell(ctx, "opening variables", func(e *wire.Encoder, seq uint32) { r.Append(e, seq) })
}

// tell sends what is not answered.
func (s *Session) tell(ctx context.Context, doing string, encode func(*wire.Encoder, uint32)) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("mpit: %s: %w", doing, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ended:
		return fmt.Errorf("mpit: %s: %w", doing, s.err)
	case s.hello.Final:
		return fmt.Errorf("mpit: %s: %w", doing, ErrFinal)
	}
	var e wire.Encoder
	s.seq++
	encode(&e, s.seq)
	if err := s.out.send(s, e.Bytes()); err != nil {
		return fmt.Errorf("mpit: %s: %w", doing, err)
	}
	return nil
}

// end marks the session as ended, for the first reason that is given. The caller holds mu.
func (s *Session) end(err error) {
	if !s.ended {
		s.ended, s.err = true, err
	}
}

// read is the session's goroutine.
func (s *Session) read() {
	err := s.readFrames()
	s.mu.Lock()
	s.end(err)
	err = s.err
	pending, questions := s.pending, s.questions
	s.pending, s.questions = nil, nil
	s.mu.Unlock()
	held := s.hold && s.final != nil
	if !held {
		_ = s.conn.Close() // the reason is known; it also ends a write that waits
	}
	s.writers.Wait()
	s.mu.Lock()
	s.out.held.end()
	s.mu.Unlock()
	s.frames = nil
	s.catalogue.end()
	if !held {
		s.release()
	}
	close(s.done)
	if pending != nil {
		pending.finish(Sample{}, err)
	}
	for _, a := range questions {
		a.end(err)
	}
}

// readFrames reads until the connection ends, and says why.
func (s *Session) readFrames() error {
	for {
		f, err := s.frames.Next()
		if err != nil {
			return s.lastWords(err)
		}
		if f.Version > wire.Version {
			return protocolError("reading a frame", wire.Errorf(wire.ReasonVersion, "version %d, this side speaks %d", f.Version, wire.Version))
		}
		if err := s.take(f); err != nil {
			return protocolError(fmt.Sprintf("reading a frame of type %d", f.Type), err)
		}
		if s.final != nil {
			return io.EOF // that was all it came for
		}
	}
}

// lastWords turns the error that ended reading into the session's.
func (s *Session) lastWords(err error) error {
	// A rank that dies with something unread before it resets the connection: that is an end like any other.
	if errors.Is(err, syscall.ECONNRESET) && !s.frames.Partial() {
		err = io.EOF
	}
	switch {
	case errors.Is(err, io.EOF) && s.hello.Final:
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
func (s *Session) take(f wire.Frame) error {
	if f.Type == wire.TypeHello || f.Type > wire.TypeTool {
		return s.skip(f)
	}
	if s.hello.Final || f.Seq == wire.SeqFinal && f.Type != wire.TypeError { // an agent that is too old for FINAL refuses it
		return s.takeFinal(f)
	}
	s.mu.Lock()
	pending := s.pending != nil && s.pendingSeq == f.Seq
	a := s.questions[f.Seq]
	s.mu.Unlock()
	switch {
	case pending:
		return s.takeAnswer(f)
	case a != nil:
		return s.takeQuestion(f, a)
	case f.Type == wire.TypeError && f.Seq == wire.SeqFinal && !s.refused:
		s.refused = true
		return nil
	case f.Type == wire.TypeError:
		return s.skip(f) // to something that is not answered
	}
	return wire.Errorf(wire.ReasonMalformed, "an answer to request %d, which is not open", f.Seq)
}

// skip counts a frame that is of no use.
func (s *Session) skip(f wire.Frame) error {
	if f.Type == wire.TypeHello {
		return wire.Errorf(wire.ReasonMalformed, "a second HELLO")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.skipped++
	s.unasked++
	if s.unasked > maxSkipped {
		return wire.Errorf(wire.ReasonTooLarge, "more than %d frames that nobody asked for", maxSkipped)
	}
	return nil
}

// takeAnswer takes a frame of the answer to SAMPLE.
func (s *Session) takeAnswer(f wire.Frame) error {
	var sample Sample
	var refused error
	if f.Type == wire.TypeError {
		e, err := decodeError(f.Payload)
		if err != nil {
			return err
		}
		s.catalogue.reject()
		refused = e
	} else {
		var whole bool
		var err error
		sample, whole, err = s.catalogue.frame(f)
		if err != nil || !whole {
			return err
		}
	}
	s.mu.Lock()
	p := s.pending
	s.pending, s.unasked = nil, 0
	s.generations = s.catalogue.generations()
	answered := s.answered
	s.mu.Unlock()
	p.finish(sample, refused)
	if answered != nil {
		answered()
	}
	return nil
}

// takeFinal takes a frame of a last sample, which comes whole whatever has come before.
func (s *Session) takeFinal(f wire.Frame) error {
	sample, whole, err := s.catalogue.frame(f)
	if err != nil || !whole {
		return err
	}
	if !s.hello.Final && sample.Status != SampleFinal {
		return wire.Errorf(wire.ReasonMalformed, "a sample of status %d as the last one", sample.Status)
	}
	s.mu.Lock()
	s.final = &sample
	s.mu.Unlock()
	return nil
}
