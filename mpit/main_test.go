package mpit_test

import (
	"bytes"
	"context"
	"flag"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/internal/wire"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

var update = flag.Bool("update", false, "write the corpora of the fuzz targets anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testContext ends when a test hangs, long before the test runner loses patience.
func testContext(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// socketPath returns a path that is short enough, however long the test's name is.
func socketPath(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "mpit")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "agent.sock")
}

func listen(t testing.TB, opts ...mpit.ListenOption) *mpit.Listener {
	t.Helper()
	l, err := mpit.Listen(socketPath(t), opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	return l
}

// connect connects a rank to a listener and returns its session.
func connect(t testing.TB, l *mpit.Listener, r *mpittest.Rank) *mpit.Session {
	t.Helper()
	ctx := testContext(t)
	require.NoError(t, r.Connect(ctx, l.Path()))
	t.Cleanup(r.Kill)
	return accept(t, l)
}

func accept(t testing.TB, l *mpit.Listener) *mpit.Session {
	t.Helper()
	s, err := l.Accept(testContext(t))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// session returns the two ends of a connection.
func session(t testing.TB, cfg mpittest.Config) (*mpit.Session, *mpittest.Rank) {
	t.Helper()
	r := mpittest.New(cfg)
	return connect(t, listen(t), r), r
}

// small is a rank with one of everything that has a frame or a field of its own.
func small() mpittest.Config {
	enum := &mpit.Enum{ID: 3, Name: "phase", Items: []mpit.EnumItem{{Value: -1, Name: "idle"},
		{Value: 2, Name: "busy"}}}
	began := time.Unix(1_700_000_000, 0)
	now := began.Add(time.Minute)
	return mpittest.Config{
		Hello: mpit.Hello{
			ID: mpit.RankID{1, 2, 3}, PID: 17, Rank: 2, Size: 3, ThreadLevel: 3, ABI: mpit.ABIMPICH, InitTime: began,
			AgentVersion: "1", LibraryVersion: "MPICH Version: 4.0", Host: "node", Executable: "/bin/app",
			Attributes: map[string]string{"SLURM_JOB_ID": "7", "ppid": "16"},
		},
		Variables: []mpit.Variable{
			{Index: 4, Name: "messages", Description: "All of them.", Class: mpit.ClassCounter,
				Verbosity: mpit.VerbosityUserBasic, Datatype: mpit.DatatypeUnsignedLong, DatatypeBytes: 8,
				ReadOnly: true, Continuous: true},
			{Index: 5, Name: "queue", Class: mpit.ClassLevel, Verbosity: mpit.VerbosityTunerAll,
				Datatype: mpit.DatatypeInt, DatatypeBytes: 4, Bind: mpit.BindComm, Atomic: true},
			{Index: 9, Name: "phase", Class: mpit.ClassState, Datatype: mpit.DatatypeInt, DatatypeBytes: 4,
				Enum: enum},
			{Index: 11, Name: "time", Class: mpit.ClassTimer, Datatype: mpit.DatatypeDouble, DatatypeBytes: 8,
				Bind: mpit.BindComm},
			{Index: 12, Name: "closed", Class: mpit.ClassSize, Datatype: mpit.DatatypeUnsigned, DatatypeBytes: 4,
				State: mpit.VariableAllocFailed, Code: mpit.ErrInvalidHandle},
		},
		Objects: []mpit.Object{
			{Kind: mpit.BindComm, Name: "MPI_COMM_WORLD", Predefined: true, Size: 3, Rank: 2, Created: began},
			{
				Kind: mpit.BindComm, Inter: true, Size: 2, Rank: -1, Created: began, On: 1,
				Details: []mpit.Detail{{Key: "remote_size", Value: "1"}},
			},
		},
		Elements: map[string]int{"queue": mpittest.PerPeer},
		Initial:  map[string]float64{"time": -100},
		Values: []mpittest.Value{
			{Name: "messages", Class: mpit.ClassCounter, Values: []any{uint64(1)<<63 + 1}},
			{Name: "queue", Class: mpit.ClassLevel, Object: 1, Values: []any{1, -2, 3}},
			{Name: "time", Class: mpit.ClassTimer, Object: 2, Values: []any{-97.5}},
		},
		ControlVariables: []mpit.ControlVariable{
			{Name: "limit", Scope: mpit.ScopeAllEq, Datatype: mpit.DatatypeInt, HasValue: true, Values: []uint64{5}},
			{Index: 1, Name: "list", Datatype: mpit.DatatypeChar, HasValue: true, Text: "a,b"},
			{Index: 2, Name: "none", Description: "Nothing.", Bind: mpit.BindWin, Code: mpit.ErrInvalid},
			{
				Index: 3, Name: "algorithm", Scope: mpit.ScopeLocal, Datatype: mpit.DatatypeInt, Bind: mpit.BindComm,
				Code: mpit.ErrInvalidHandle,
				Enum: &mpit.Enum{ID: 9, Name: "algorithms",
					Items: []mpit.EnumItem{{Value: 0, Name: "ring"}, {Value: 1, Name: "tree"}}},
				Objects: []mpit.ObjectValue{
					{Object: 1, HasValue: true, Values: []uint64{1}},
					{Object: 2, Code: mpit.ErrNotSupported},
				},
			},
		},
		Categories: []mpit.Category{
			{Name: "all", Description: "A.", Variables: []int{4, 5}, ControlVariables: []int{0},
				Subcategories: []int{1}},
			{Index: 1, Name: "sub"},
		},
		Clock: func() time.Time { return now },
	}
}

// agent is a connection to a simulated rank below the level of sessions: frames, as they are.
type agent struct {
	t      testing.TB
	conn   net.Conn
	frames *wire.Reader
	hello  wire.Frame
}

// dialed connects a rank to a plain socket.
func dialed(t testing.TB, r *mpittest.Rank) *agent {
	t.Helper()
	ln, err := net.Listen("unix", socketPath(t))
	require.NoError(t, err)
	defer func() { _ = ln.Close() }()
	require.NoError(t, r.Connect(testContext(t), ln.Addr().String()))
	conn, err := ln.Accept()
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = conn.Close()
		r.Kill()
	})
	a := &agent{t: t, conn: conn, frames: wire.NewReader(conn, wire.MaxAgentPayload)}
	a.hello = a.next()
	return a
}

// next returns the next frame, with a payload of its own.
func (a *agent) next() wire.Frame {
	a.t.Helper()
	f, err := a.frames.Next()
	require.NoError(a.t, err)
	f.Payload = bytes.Clone(f.Payload)
	return f
}

// ask sends a request and returns its answer up to the frame of type last.
func (a *agent) ask(request func(e *wire.Encoder), last uint16) []wire.Frame {
	a.t.Helper()
	var e wire.Encoder
	request(&e)
	_, err := a.conn.Write(e.Bytes())
	require.NoError(a.t, err)
	var answer []wire.Frame
	for {
		f := a.next()
		answer = append(answer, f)
		if f.Type == last {
			return answer
		}
	}
}

// answer asks for a sample.
func (a *agent) answer(has wire.SampleRequest) []wire.Frame {
	a.t.Helper()
	return a.ask(func(e *wire.Encoder) { has.Append(e, 1) }, wire.TypeSample)
}

// encoded returns the bytes of frames.
func encoded(frames ...wire.Frame) []byte {
	var e wire.Encoder
	for _, f := range frames {
		e.Begin(f.Type, f.Seq)
		d := wire.NewDecoder(f.Payload, new(error))
		e.Words(d.Words("payload", d.Remaining()))
		e.Finish()
	}
	return e.Bytes()
}

// seed adds an input to a fuzz target. With -update it goes to the corpus in testdata as well.
func seed(f *testing.F, target, name string, input []byte) {
	f.Helper()
	f.Add(input)
	if !*update {
		return
	}
	dir := filepath.Join("testdata", "fuzz", target)
	require.NoError(f, os.MkdirAll(dir, 0o755))
	text := "go test fuzz v1\n[]byte(" + strconv.Quote(string(input)) + ")\n"
	require.NoError(f, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
}

// eof reads until the other end closes.
func eof(t testing.TB, conn net.Conn) {
	t.Helper()
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(2*time.Minute)))
	_, err := io.Copy(io.Discard, conn)
	require.NoError(t, err, "the other end should have closed")
}

// await waits until a channel is closed.
func await(t testing.TB, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Fatalf("waited in vain for %s", what)
	}
}

// dial connects to a listener as a rank does.
func dial(t testing.TB, path string) net.Conn {
	t.Helper()
	conn, err := net.Dial("unix", path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}
