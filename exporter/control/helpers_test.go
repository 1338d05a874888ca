package control

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/exporter/identity"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/cvar"
	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// ownUID is who runs the tests; otherUID is somebody else.
var ownUID = uint32(os.Getuid())

// longest is how long anything may take on a busy machine.
const longest = 2 * time.Minute

var colours = &mpit.Enum{Name: "colour", Items: []mpit.EnumItem{
	{Value: -1, Name: "none"}, {Value: 2, Name: "red"}, {Value: 3, Name: "red,green"}, {Value: 7, Name: "2"},
}}

const (
	otherUID  = 12345
	nobodyUID = 65534
)

// cvarFake is a rank whose control variables are a map.
type cvarFake struct {
	mu      sync.Mutex
	list    []mpit.ControlVariable
	objects []mpit.Object
	busy    int // samples that will be busy
	values  map[cvarKey]mpit.CvarValue
	before  func(ctx context.Context, v mpit.CvarValue) error // of a write; an error keeps it from happening
	after   func(v mpit.CvarValue) error                      // of a write that has happened
	reading func() error
	store   func(v mpit.CvarValue) mpit.CvarValue // what the library makes of a value
	writes  []string
}

type cvarKey struct {
	index  int
	object uint32
}

func (f *cvarFake) ControlVariables(ctx context.Context) ([]mpit.ControlVariable, error) {
	return f.list, ctx.Err()
}

func (f *cvarFake) Read(context.Context) (mpit.Sample, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.busy > 0 {
		f.busy--
		return mpit.Sample{Status: mpit.SampleBusy}, nil
	}
	return mpit.Sample{Layout: &mpit.Layout{Objects: f.objects}}, nil
}

func (f *cvarFake) ReadCvar(_ context.Context, index int, object uint32) (mpit.CvarValue, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.reading != nil {
		if err := f.reading(); err != nil {
			return mpit.CvarValue{}, err
		}
	}
	v, ok := f.values[cvarKey{index, object}]
	if !ok {
		return v, mpit.ErrInvalidHandle
	}
	return v, nil
}

func (f *cvarFake) WriteCvar(ctx context.Context, index int, object uint32, v mpit.CvarValue) error {
	if f.before != nil {
		if err := f.before(ctx, v); err != nil {
			return err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.store != nil {
		v = f.store(v)
	}
	f.values[cvarKey{index, object}] = v
	f.writes = append(f.writes, cvar.Format(f.list[index].Datatype, f.list[index].Enum, v))
	if f.after != nil {
		return f.after(v)
	}
	return nil
}

// has is the value of an unbound variable, as text.
func (f *cvarFake) has(name string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, v := range f.list {
		if v.Name == name {
			return cvar.Format(v.Datatype, v.Enum, f.values[cvarKey{v.Index, 0}])
		}
	}
	return "no such variable"
}

// A world of cvarFakes has one variable of each scope, and a few more.
func newCvarFake() *cvarFake {
	f := &cvarFake{
		objects: []mpit.Object{
			{ID: 1, Kind: mpit.BindComm, Name: "MPI_COMM_WORLD"}, {ID: 2, Kind: mpit.BindComm, Name: "twin"},
			{ID: 3, Kind: mpit.BindComm, Name: "twin"},
			{ID: 4, Kind: mpit.BindWin, Name: "MPI_COMM_WORLD"},
		},
		values: map[cvarKey]mpit.CvarValue{},
	}
	add := func(v mpit.ControlVariable, values ...uint64) {
		v.Index = len(f.list)
		f.list = append(f.list, v)
		f.values[cvarKey{v.Index, 0}] = mpit.CvarValue{Values: values, Text: v.Text,
			IsText: v.Datatype == mpit.DatatypeChar}
	}
	for scope := mpit.ScopeConstant; scope <= mpit.ScopeAllEq; scope++ {
		add(mpit.ControlVariable{Name: strings.ToLower(scope.String()), Scope: scope, Datatype: mpit.DatatypeInt}, 8)
	}
	add(mpit.ControlVariable{Name: "strange", Scope: mpit.ScopeUnknown, Datatype: mpit.DatatypeInt}, 8)
	add(mpit.ControlVariable{Name: "text", Scope: mpit.ScopeLocal, Datatype: mpit.DatatypeChar, Text: "old"})
	add(mpit.ControlVariable{Name: "phase", Scope: mpit.ScopeLocal, Datatype: mpit.DatatypeInt, Enum: colours}, 2)
	add(mpit.ControlVariable{Name: "limits", Scope: mpit.ScopeLocal, Datatype: mpit.DatatypeUnsignedLong}, 1, 2, 3)
	add(mpit.ControlVariable{Name: "bound", Scope: mpit.ScopeLocal, Datatype: mpit.DatatypeInt, Bind: mpit.BindComm})
	for object := uint32(1); object <= 3; object++ {
		f.values[cvarKey{len(f.list) - 1, object}] = mpit.CvarValue{Values: []uint64{uint64(object)}}
	}
	return f
}

// controlNode is a control socket and ranks that are fakes. It has what the server is told of them.
type controlNode struct {
	*Server
	t       *testing.T
	path    string
	log     *logs
	stop    func()
	mu      sync.Mutex
	ranks   []Target
	fakes   []*cvarFake
	written []identity.Identity // as told
	counts  map[string]int      // by result
}

func (n *controlNode) Targets() []Target {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.ranks)
}

func (n *controlNode) Written(ranks ...identity.Identity) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.written = append(n.written, ranks...)
}

func (n *controlNode) count(result string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.counts[result]++
}

func startControl(t *testing.T, change ...func(*Server)) *controlNode {
	t.Helper()
	n := &controlNode{t: t, log: &logs{}, counts: map[string]int{}}
	n.Server = New(Config{
		Targets: n.Targets, Written: n.Written, Log: slog.New(slog.NewTextHandler(n.log, nil)), Count: n.count,
		User: func(uint32) string { return "alice" },
	})
	n.pace = 0
	for _, f := range change {
		f(n.Server)
	}
	n.path = socketPath(t)
	l, err := mpit.ListenUnix(n.path, 0o666)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- n.Serve(ctx, l) }()
	n.stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-served)
		require.NoError(t, l.Close())
		assert.NoFileExists(t, n.path)
	})
	t.Cleanup(n.stop)
	return n
}

// socketPath is a path that other users reach.
func socketPath(t *testing.T) string {
	t.Helper()
	dir := mpittest.ShortDir(t)
	require.NoError(t, os.Chmod(dir, 0o755))
	return filepath.Join(dir, "c")
}

// logs is what has been logged.
type logs struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// add adds ranks to the node, which are in no way alike but for what is given.
func (n *controlNode) add(job, world string, size int, uid uint32, numbers ...int) []*cvarFake {
	n.mu.Lock()
	defer n.mu.Unlock()
	var fakes []*cvarFake
	for _, number := range numbers {
		f := newCvarFake()
		fakes = append(fakes, f)
		n.ranks = append(n.ranks, Target{
			Conn: f, ID: identity.Identity{JobID: job, World: world, User: fmt.Sprintf("user%d", uid), Rank: number},
			UID: uid, Size: size, WriteAllowed: true,
		})
	}
	n.fakes = append(n.fakes, fakes...)
	return fakes
}

// as returns a client that connects as another user: only its thread is, and that ends with the connecting. The
// kernel then says so to whoever asks, of the whole connection.
func as(uid uint32, path string) *http.Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		type result struct {
			conn net.Conn
			err  error
		}
		done := make(chan result, 1)
		go func() {
			if uid != ownUID {
				runtime.LockOSThread() // never unlocked: nobody else gets this thread
				if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, ^uintptr(0), uintptr(uid),
					^uintptr(0)); errno != 0 {
					done <- result{nil, errno}
					return
				}
			}
			conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
			done <- result{conn, err}
		}()
		r := <-done
		return r.conn, r.err
	}
	return &http.Client{Timeout: time.Minute, Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
}

// call makes a request of the control socket as a user.
func (n *controlNode) call(uid uint32, method, query, body string) (int, Answer) {
	n.t.Helper()
	req, err := http.NewRequestWithContext(n.t.Context(), method, "http://control/api/v1/cvar"+query,
		strings.NewReader(body))
	require.NoError(n.t, err)
	response, err := as(uid, n.path).Do(req)
	require.NoError(n.t, err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	require.NoError(n.t, err)
	var answer Answer
	require.NoError(n.t, json.Unmarshal(text, &answer), string(text))
	return response.StatusCode, answer
}

func (n *controlNode) set(uid uint32, body string) (int, Answer) {
	n.t.Helper()
	return n.call(uid, http.MethodPost, "", body)
}

// needRoot skips what only root can try: to be somebody else.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("not tested: only root can be another user")
	}
}

func text(s string) *string { return &s }
