package mpit

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/mpit-exporter/mpit-exporter/mpit/guard"
	"github.com/mpit-exporter/mpit-exporter/mpit/internal/wire"
)

// finalWait is how long a last sample may take to arrive. The rank gives up after 20 ms.
const finalWait = 5 * time.Second

// maxToolQuestions is how many operations of TOOL a session has open at once. More wait for their turn.
const maxToolQuestions = 16

// Session is a connected rank after HELLO. It is safe for concurrent use. One goroutine of it reads until the
// connection ends; nothing else in it waits for the rank unless a context says how long.
type Session struct {
	conn    *net.UnixConn
	peer    Peer
	hello   Hello
	done    chan struct{} // closed when the reader has ended and everything is final
	memory  *Shares       // which it has of, by its user
	release func()        // gives back what the connection holds of its user's shares; once, whoever calls it
	admit   func()

	// How many questions of each kind are open at once (see question.slot): one about control variables, one about
	// categories, one about sites, and maxToolQuestions operations of TOOL.
	cvarSlot, categorySlot, siteSlot, toolSlots chan struct{}

	dialogue guard.Mutex[dialogue]
}

// newSession takes over a connection whose HELLO has been read by frames, and its place. It looks in alike for what
// others have. Close ends the place; with an error it is the caller's. With hold, the connection of a last sample is
// not closed when the sample has come.
func newSession(conn *net.UnixConn, frames *wire.Reader, p place, hello Hello, alike *alike, hold bool) (*Session,
	error) {
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
	out := &outbox{conn: conn, raw: raw, held: memory{of: p.held.of, uid: p.held.uid}}
	s := &Session{
		conn:         conn,
		peer:         p.peer,
		hello:        hello,
		done:         make(chan struct{}),
		memory:       p.held.of,
		admit:        p.admit,
		cvarSlot:     make(chan struct{}, 1),
		categorySlot: make(chan struct{}, 1),
		siteSlot:     make(chan struct{}, 1),
		toolSlots:    make(chan struct{}, maxToolQuestions),
	}
	s.with(func(d *dialogue) {
		*d = dialogue{out: out, lastWords: hello.Final, questions: make(map[uint32]*attempt)}
	})
	if !hello.Final {
		// For its end: it may not be able to make another connection then.
		var e wire.Encoder
		wire.AppendFinal(&e)
		if err := out.send(e.Bytes()); err != nil {
			return nil, protocolError("asking for the last sample", err)
		}
	}
	r := &reader{Session: s, out: out, frames: frames, catalogue: newCatalogue(p.held, alike), hold: hold}
	s.release = sync.OnceFunc(func() {
		r.catalogue.end()
		p.end()
	})
	go r.run()
	return s, nil
}

// with does something with the dialogue.
func (s *Session) with(do func(d *dialogue)) {
	d := s.dialogue.Lock()
	defer s.dialogue.Unlock()
	do(d)
}

// Hello returns what the rank said of itself. Its map belongs to the session.
func (s *Session) Hello() Hello { return s.hello }

// Admit says that the rank has been let in: until then, or until the listener's handle returns, its connection counts
// as one without HELLO (Limits.Handshakes), even if it has ended.
func (s *Session) Admit() { s.admit() }

// Peer returns what the kernel says of the rank's process.
func (s *Session) Peer() Peer { return s.peer }

// Done returns a channel that is closed when the connection has ended, for whatever reason. With a last sample that
// is when the sample has come, even where the connection is held (WithHeldFinals).
func (s *Session) Done() <-chan struct{} { return s.done }

// OnAnswer has f called whenever a Pending of the session is done by an answer, for who can't wait for each of them.
// The session's goroutine calls it, and reads nothing more until it returns; it must not Close the session.
func (s *Session) OnAnswer(f func()) {
	s.with(func(d *dialogue) { d.answered = f })
}

// Err returns nil while the connection lives; then io.EOF if the rank ended it between two frames, net.ErrClosed if
// Close did, and otherwise a *ProtocolError.
func (s *Session) Err() (err error) {
	select {
	case <-s.done:
		s.with(func(d *dialogue) { err = d.err })
	default:
	}
	return err
}

// Close ends the connection and waits for the session's goroutine. It may be called more than once. Until then what the
// rank has sent counts as its user's, though the connection may have ended: it may wait to be taken in.
func (s *Session) Close() error {
	s.with(func(d *dialogue) { d.end(net.ErrClosed) })
	err := s.conn.Close()
	<-s.done
	s.release()
	if err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("mpit: closing the connection to rank %d: %w", s.hello.Rank, err)
	}
	return nil
}

// Ask asks for a sample now and does not wait. While an earlier request is unanswered it sends nothing and returns that
// request's Pending, so that a rank which is late never has more than one to answer.
func (s *Session) Ask() *Pending {
	d := s.dialogue.Lock()
	defer s.dialogue.Unlock()
	return d.ask()
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
	d := s.dialogue.Lock()
	defer s.dialogue.Unlock()
	if d.final == nil {
		return Sample{}, false
	}
	return *d.final, true
}

// Select says which variables are read from now on: those that ids maps to true, and where def is true also those that
// ids doesn't mention. All are before the first Select. The next sample brings a new Layout if that changes anything.
func (s *Session) Select(ctx context.Context, def bool, ids map[uint32]bool) error {
	r := wire.SelectRequest{Default: def}
	for id, read := range ids {
		if id >= wire.MaxVariables {
			return fmt.Errorf("mpit: selecting variable %d: numbers end at %d", id, wire.MaxVariables-1)
		}
		r.Set(id, read)
	}
	return s.tell(ctx, "selecting variables", r.Append)
}

// Open asks the rank to open variables that are opened on request only (Variable.OnRequest), on all objects from now
// on. It is not answered: later samples say what came of it, a passive rank's those after the program's next call.
// Numbers of others, and of variables that are open, mean nothing. What has been opened stays so.
func (s *Session) Open(ctx context.Context, ids []uint32) error {
	var r wire.SelectRequest
	for _, id := range ids {
		if id >= wire.MaxVariables {
			return fmt.Errorf("mpit: opening variable %d: numbers end at %d", id, wire.MaxVariables-1)
		}
		r.Set(id, true)
	}
	return s.tell(ctx, "opening variables", r.AppendOpen)
}

// tell sends what is not answered.
func (s *Session) tell(ctx context.Context, doing string, encode func(*wire.Encoder, uint32)) error {
	err := ctx.Err()
	if err == nil {
		s.with(func(d *dialogue) { err = d.request(encode) })
	}
	if err != nil {
		return fmt.Errorf("mpit: %s: %w", doing, err)
	}
	return nil
}
