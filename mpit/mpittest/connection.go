package mpittest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/internal/wire"
)

const (
	shortestPause = 20 * time.Millisecond // between attempts to connect, as the agent
	longestPause  = 2 * time.Second
)

// connection is a rank's connection to an exporter, with the goroutine that answers.
type connection struct {
	net    net.Conn
	closed chan struct{} // by hangUp
	once   sync.Once
	done   chan struct{} // closed when the goroutine has ended
	final  chan struct{} // closed when the exporter has asked for the last sample over it
	write  sync.Mutex
}

func (c *connection) hangUp() {
	c.once.Do(func() {
		close(c.closed)
		_ = c.net.Close()
	})
}

func (c *connection) send(frames []byte) error {
	c.write.Lock()
	defer c.write.Unlock()
	_, err := c.net.Write(frames)
	return err
}

// dial connects and says HELLO. The caller holds mu.
func (r *Rank) dial(ctx context.Context, path string, final bool) (net.Conn, error) {
	if r.err != nil {
		return nil, r.err
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("mpittest: rank %d: %w", r.hello.Rank, err)
	}
	hello := r.hello
	hello.Final = final
	var e wire.Encoder
	encodeHello(&e, hello)
	if _, err := conn.Write(e.Bytes()); err != nil {
		return nil, errors.Join(fmt.Errorf("mpittest: rank %d says HELLO: %w", r.hello.Rank, err), conn.Close())
	}
	return conn, nil
}

// Connect connects to the exporter at path and answers it in a goroutine, until Close, Kill, Finish, or the exporter's
// end. It may be called again then. The context is for connecting only.
func (r *Rank) Connect(ctx context.Context, path string) error {
	r.Kill()
	r.mu.Lock()
	defer r.mu.Unlock()
	raw, err := r.dial(ctx, path, false)
	if err != nil {
		return err
	}
	// Who connects anew knows nothing of what another exporter selected.
	r.selection = wire.SelectRequest{Default: true}
	r.layoutGen++
	r.tools = tools{}
	c := &connection{net: raw, closed: make(chan struct{}), done: make(chan struct{}), final: make(chan struct{})}
	r.conn = c
	go func() {
		defer close(c.done)
		defer c.hangUp()
		r.serve(c)
	}()
	return nil
}

// Run keeps the rank connected to whatever listens at path, as the agent does, until ctx ends. It returns nil then; the
// connection is closed.
func (r *Rank) Run(ctx context.Context, path string) error {
	defer r.Kill()
	pause := shortestPause
	for {
		err := r.Connect(ctx, path)
		if err == nil {
			pause = shortestPause
			select {
			case <-r.Disconnected():
			case <-ctx.Done():
			}
		} else if r.err != nil {
			return r.err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
			pause = min(2*pause, longestPause)
		}
	}
}

// Disconnected returns a channel that is closed when the present connection has ended, or already is where there is
// none.
func (r *Rank) Disconnected() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.conn == nil {
		closed := make(chan struct{})
		close(closed)
		return closed
	}
	return r.conn.done
}

// Kill ends the connection without a word, as a process does that crashes, and waits for the rank's goroutine.
func (r *Rank) Kill() {
	r.mu.Lock()
	c := r.conn
	r.conn = nil
	r.mu.Unlock()
	if c != nil {
		c.hangUp()
		<-c.done
	}
}

// Close is Kill, for use with defer.
func (r *Rank) Close() error {
	r.Kill()
	return nil
}

// SendRaw sends bytes over the present connection, whatever they are.
func (r *Rank) SendRaw(b []byte) error {
	r.mu.Lock()
	c := r.conn
	r.mu.Unlock()
	if c == nil {
		return fmt.Errorf("mpittest: rank %d is not connected", r.hello.Rank)
	}
	return c.send(b)
}

// Finish leaves a last sample over a connection of its own, and ends the first one, if there is one: as an agent does
// that was not asked for it over the first.
func (r *Rank) Finish(ctx context.Context, path string, reason mpit.EndReason) error {
	return r.finish(ctx, path, reason, false)
}

// FinishAwaited is Finish of a rank with MPIT_AGENT_FINAL_WAIT: it returns when the exporter has closed the last
// sample's connection, or ctx has ended, which is no error.
func (r *Rank) FinishAwaited(ctx context.Context, path string, reason mpit.EndReason) error {
	return r.finish(ctx, path, reason, true)
}

func (r *Rank) finish(ctx context.Context, path string, reason mpit.EndReason, await bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	conn, err := r.dial(ctx, path, true)
	if err == nil {
		var e wire.Encoder
		r.answer(&e, 0, wire.SampleRequest{}, mpit.SampleFinal, reason)
		if deadline, ok := ctx.Deadline(); ok {
			err = conn.SetWriteDeadline(deadline)
		}
		if err == nil {
			_, err = conn.Write(e.Bytes())
		}
		if err == nil && await {
			stop := context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) })
			_, _ = conn.Read(make([]byte, 1)) // nothing comes but the end
			stop()
		}
		err = errors.Join(err, conn.Close())
	}
	if c := r.conn; c != nil {
		r.conn = nil
		c.hangUp()
		r.mu.Unlock()
		<-c.done
		r.mu.Lock()
	}
	if err != nil {
		return fmt.Errorf("mpittest: rank %d leaves its last sample: %w", r.hello.Rank, err)
	}
	return nil
}

// FinishConnected leaves a last sample over the connection that stands, as soon as the exporter has asked for that,
// and ends it. With await it waits, as a rank with MPIT_AGENT_FINAL_WAIT, until the exporter has ended it.
func (r *Rank) FinishConnected(ctx context.Context, reason mpit.EndReason, await bool) error {
	r.mu.Lock()
	c := r.conn
	r.mu.Unlock()
	if c == nil {
		return fmt.Errorf("mpittest: rank %d is not connected", r.hello.Rank)
	}
	select {
	case <-c.final:
	case <-ctx.Done():
		return fmt.Errorf("mpittest: rank %d waits to be asked for its last sample: %w", r.hello.Rank, ctx.Err())
	}
	var e wire.Encoder
	r.mu.Lock()
	r.answer(&e, wire.SeqFinal, wire.SampleRequest{}, mpit.SampleFinal, reason)
	r.mu.Unlock()
	if err := c.send(e.Bytes()); err != nil {
		return fmt.Errorf("mpittest: rank %d leaves its last sample: %w", r.hello.Rank, err)
	}
	if await {
		select {
		case <-c.done:
		case <-ctx.Done():
		}
	}
	r.Kill()
	return nil
}

// serve answers requests until the connection ends.
func (r *Rank) serve(c *connection) {
	frames := wire.NewReader(c.net, wire.MaxExporterPayload)
	asked := false
	for {
		f, err := frames.Next()
		if err != nil {
			return
		}
		if f.Type == wire.TypeAskFinal && !asked {
			asked = true
			close(c.final)
			continue
		}
		if !r.pause(c) {
			return
		}
		var e wire.Encoder
		r.mu.Lock()
		r.reply(&e, f)
		r.mu.Unlock()
		if len(e.Bytes()) == 0 {
			continue
		}
		if err := c.send(e.Bytes()); err != nil {
			return
		}
	}
}

// pause waits as long as Stall and Delay say. It returns false if the connection is closed meanwhile.
func (r *Rank) pause(c *connection) bool {
	r.mu.Lock()
	stalled, delay := r.stalled, r.delay
	r.mu.Unlock()
	if stalled != nil {
		select {
		case <-stalled:
		case <-c.closed:
			return false
		}
	}
	if delay > 0 {
		select {
		case <-time.After(delay):
		case <-c.closed:
			return false
		}
	}
	return true
}

// reply appends the answer to a request, if it has one. The caller holds mu.
func (r *Rank) reply(e *wire.Encoder, f wire.Frame) {
	var err error
	switch f.Type {
	case wire.TypeAskCvars, wire.TypeAskCategories, wire.TypeAskSites, wire.TypeAskTool:
		if r.notNow > 0 {
			r.notNow--
			encodeError(e, f.Seq, wire.ErrorNotNow, "not now")
			return
		}
	}
	switch f.Type {
	case wire.TypeAskSample:
		status := mpit.SampleFresh
		switch {
		case r.busy > 0:
			r.busy--
			status = mpit.SampleBusy
		case r.paused:
			status = mpit.SamplePaused
		case r.hello.Passive:
			status = mpit.SamplePassive
		}
		r.answer(e, f.Seq, decodeSampleRequest(f.Payload), status, mpit.EndNone)
	case wire.TypeSelect:
		var selection wire.SelectRequest
		if selection, err = decodeSelectRequest(f.Payload); err == nil {
			r.selection = selection
			r.layoutGen++
		}
	case wire.TypeOpen:
		var request wire.SelectRequest
		if request, err = decodeOpenRequest(f.Payload); err == nil {
			r.openRequested(request)
		}
	case wire.TypeAskCvars:
		var first int
		if first, err = decodeIndexRequest(f.Payload); err == nil {
			encodeControlVariables(e, f.Seq, r.cvars, first, r.page)
		}
	case wire.TypeAskCategories:
		var first int
		if first, err = decodeIndexRequest(f.Payload); err == nil {
			encodeCategories(e, f.Seq, r.categories, r.stamp, first, r.page)
		}
	case wire.TypeAskSites:
		var first int
		if first, err = decodeIndexRequest(f.Payload); err == nil && r.sites != nil {
			encodeSites(e, f.Seq, r.sites, first, r.page)
			return
		}
		encodeError(e, f.Seq, wire.ErrorUnsupported, "an agent of earlier days")
	case wire.TypeAskTool:
		var request wire.ToolRequest
		if request, err = decodeToolRequest(f.Payload); err == nil {
			r.tool(e, f.Seq, request)
		}
	default:
		encodeError(e, f.Seq, wire.ErrorUnsupported, fmt.Sprintf("request %d", f.Type))
	}
	if err != nil {
		encodeError(e, f.Seq, wire.ErrorMalformed, err.Error())
	}
}

// answer appends all frames of the answer to a SAMPLE request. The caller holds mu.
func (r *Rank) answer(e *wire.Encoder, seq uint32, has wire.SampleRequest, status mpit.SampleStatus,
	end mpit.EndReason) {
	if status == mpit.SampleBusy {
		// As the agent: what the program's gate guards is out of reach, and zero.
		r.stats.Busy++
		s := r.sample(status, end)
		s.Stats.Samples, s.Stats.ReadErrors, s.Stats.ObjectsAlive = 0, 0, 0
		encodeSample(e, seq, s, 0)
		return
	}
	r.stats.Samples++
	if has.Variables != r.variablesGen {
		r.encodeVariables(e, seq, has.Variables)
	}
	if has.Layout != r.layoutGen {
		r.encodeLayout(e, seq)
	}
	if has.Remains != r.remainsGen {
		r.encodeRemains(e, seq)
	}
	s := r.sample(status, end)
	for i := range r.handles {
		h := &r.handles[i]
		if !selected(r.selection, h.Variable) {
			continue
		}
		if h.failed == mpit.Success {
			s.Values = append(s.Values, r.shown(h)...)
			continue
		}
		r.stats.ReadErrors++
		s.Stats.ReadErrors++
		s.Values = append(s.Values, make([]uint64, h.Count)...)
		s.Failed = append(s.Failed, mpit.FailedHandle{Handle: h.ID, Code: h.failed})
	}
	encodeSample(e, seq, s, r.layoutGen)
}

// sample returns a sample without values.
func (r *Rank) sample(status mpit.SampleStatus, end mpit.EndReason) mpit.Sample {
	now := r.clock()
	r.stats.ObjectsAlive = uint64(len(r.objects))
	s := mpit.Sample{Status: status, End: end, Time: now, Stats: r.stats, UnderWay: r.underWay,
		Comms: r.comms}
	if r.paused {
		s.Stats.PausedTime += now.Sub(r.pausedAt)
		s.Time = r.pausedAt // of what it shows
	}
	s.Monotonic = r.monotonic(s.Time)
	return s
}

// ShortDir makes a directory for a test whose name leaves room for a socket's path, as that of t.TempDir may not.
func ShortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "mpit-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
