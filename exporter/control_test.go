package exporter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// ownUID is who runs the tests; otherUID is somebody else.
var ownUID = uint32(os.Getuid())

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
	f.writes = append(f.writes, formatCvar(f.list[index].Datatype, f.list[index].Enum, v))
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
			return formatCvar(v.Datatype, v.Enum, f.values[cvarKey{v.Index, 0}])
		}
	}
	return "no such variable"
}

// A world of cvarFakes has one variable of each scope, and a few more.
func newCvarFake() *cvarFake {
	f := &cvarFake{
		objects: []mpit.Object{
			{ID: 1, Kind: mpit.BindComm, Name: "MPI_COMM_WORLD"}, {ID: 2, Kind: mpit.BindComm, Name: "twin"}, {ID: 3, Kind: mpit.BindComm, Name: "twin"},
			{ID: 4, Kind: mpit.BindWin, Name: "MPI_COMM_WORLD"},
		},
		values: map[cvarKey]mpit.CvarValue{},
	}
	add := func(v mpit.ControlVariable, values ...uint64) {
		v.Index = len(f.list)
		f.list = append(f.list, v)
		f.values[cvarKey{v.Index, 0}] = mpit.CvarValue{Values: values, Text: v.Text, IsText: v.Datatype == mpit.DatatypeChar}
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

// controlNode is an exporter with a control socket and ranks that are fakes.
type controlNode struct {
	*Exporter
	t     *testing.T
	path  string
	log   *logs
	stop  func()
	mu    sync.Mutex
	ranks []cvarTarget
	fakes []*cvarFake
}

func startControl(t *testing.T, change ...func(*control)) *controlNode {
	t.Helper()
	n := &controlNode{t: t, log: &logs{}}
	e, err := New(Config{Mapper: newMapper(t), Logger: slog.New(slog.NewTextHandler(n.log, nil)), UserName: func(uint32) string { return "alice" }})
	require.NoError(t, err)
	n.Exporter = e
	e.control.ranks = func() []cvarTarget {
		n.mu.Lock()
		defer n.mu.Unlock()
		return append([]cvarTarget(nil), n.ranks...)
	}
	e.control.pace = 0
	for _, f := range change {
		f(e.control)
	}
	n.path = controlSocketPath(t)
	l, err := mpit.ListenUnix(n.path, 0o666)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- e.ServeControl(ctx, l) }()
	n.stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-served)
		require.NoError(t, l.Close())
		assert.NoFileExists(t, n.path)
	})
	t.Cleanup(n.stop)
	return n
}

// controlSocketPath is a path that other users reach.
func controlSocketPath(t *testing.T) string {
	t.Helper()
	dir := filepath.Dir(socketPath(t))
	require.NoError(t, os.Chmod(dir, 0o755))
	return filepath.Join(dir, "c")
}

// add adds ranks to the node, which are in no way alike but for what is given.
func (n *controlNode) add(job, world string, size int, uid uint32, numbers ...int) []*cvarFake {
	n.mu.Lock()
	defer n.mu.Unlock()
	var fakes []*cvarFake
	for _, number := range numbers {
		f := newCvarFake()
		fakes = append(fakes, f)
		n.ranks = append(n.ranks, cvarTarget{
			conn: f, id: Identity{JobID: job, World: world, Rank: number}, size: size, uid: uid, user: fmt.Sprintf("user%d", uid), allowed: true,
		})
	}
	n.fakes = append(n.fakes, fakes...)
	return fakes
}

// as returns a client that connects as another user: only its thread is, and that ends with the connecting. The kernel then says so to whoever
// asks, of the whole connection.
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
				if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, ^uintptr(0), uintptr(uid), ^uintptr(0)); errno != 0 {
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
func (n *controlNode) call(uid uint32, method, query, body string) (int, CvarAnswer) {
	n.t.Helper()
	req, err := http.NewRequestWithContext(n.t.Context(), method, "http://control/api/v1/cvar"+query, strings.NewReader(body))
	require.NoError(n.t, err)
	response, err := as(uid, n.path).Do(req)
	require.NoError(n.t, err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	require.NoError(n.t, err)
	var answer CvarAnswer
	require.NoError(n.t, json.Unmarshal(text, &answer), string(text))
	return response.StatusCode, answer
}

func (n *controlNode) set(uid uint32, body string) (int, CvarAnswer) {
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

func TestControlSet(t *testing.T) {
	n := startControl(t)
	fakes := n.add("7", "7.0", 3, ownUID, 0, 1, 2)
	for _, test := range []struct {
		name  string
		body  string
		ranks []int
		old   string
		now   string
	}{
		{"a local variable in one rank", `{"jobid":"7","world":"7.0","ranks":[1],"name":"local","value":"9"}`, []int{1}, "8", "9"},
		{"in two of them, named twice", `{"jobid":"7","ranks":[2,0,2],"name":"local","value":"0x10"}`, []int{0, 2}, "8", "16"},
		{"the only job is meant", `{"name":"limits","value":"4,5,6"}`, []int{0, 1, 2}, "1,2,3", "4,5,6"},
		{"all ranks are", `{"name":"all","value":"1"}`, []int{0, 1, 2}, "8", "1"},
		{"and may be named", `{"name":"all_eq","ranks":[0,1,2],"value":"-1"}`, []int{0, 1, 2}, "8", "-1"},
		{"a group is named", `{"name":"group_eq","ranks":[0,2],"value":"2"}`, []int{0, 2}, "8", "2"},
		{"or is all", `{"name":"group","value":"2"}`, []int{0, 1, 2}, "8", "2"},
		{"an item of an enumeration", `{"name":"phase","ranks":[0],"value":"none"}`, []int{0}, "red", "none"},
		{"a text that is empty now", `{"name":"text","ranks":[0],"value":""}`, []int{0}, "old", ""},
		{"on an object", `{"name":"bound","object":{"kind":"comm","name":"MPI_COMM_WORLD"},"ranks":[1],"value":"5"}`, []int{1}, "1", "5"},
		{"whose user is said", fmt.Sprintf(`{"name":"phase","uid":%d,"ranks":[2],"value":"-1"}`, ownUID), []int{2}, "red", "none"},
	} {
		t.Run(test.name, func(t *testing.T) {
			status, answer := n.set(ownUID, test.body)
			require.Equal(t, http.StatusOK, status, answer.Error)
			assert.Equal(t, CvarOK, answer.Result)
			assert.Equal(t, "7", answer.JobID)
			assert.Equal(t, "7.0", answer.World)
			var want []CvarRank
			for _, rank := range test.ranks {
				want = append(want, CvarRank{Rank: rank, State: CvarWritten, Old: text(test.old), Value: text(test.now)})
			}
			assert.Equal(t, want, answer.Ranks)
		})
	}
	assert.Equal(t, "16", fakes[0].has("local"))
	assert.Equal(t, "9", fakes[1].has("local"))
	assert.Equal(t, "8", fakes[1].has("group_eq"), "it is not of the group")
	assert.Equal(t, mpit.CvarValue{Values: []uint64{2}}, fakes[1].values[cvarKey{len(fakes[1].list) - 1, 2}], "another object")

	families, err := n.self.gather()
	require.NoError(t, err)
	values := valuesOf(families)
	assert.Equal(t, 11.0, values[`mpit_exporter_cvar_writes_total{result="ok"}`])
	assert.Zero(t, values[`mpit_exporter_cvar_writes_total{result="refused"}`])
	log := n.log.String()
	assert.Contains(t, log, fmt.Sprintf(`msg="Control variable set" uid=%d user=alice pid=%d jobid=7 world=7.0 ranks=1 name=local object="" value=9 old=8 now=9 result=ok`,
		ownUID, os.Getpid()))
	assert.Contains(t, log, `ranks=0,2 name=local`)
	assert.Contains(t, log, `object=comm:MPI_COMM_WORLD`)
}

// Whatever is refused is refused with its reason, before any rank is changed.
func TestControlRefuses(t *testing.T) {
	const local = `"name":"local","value":"9"`
	whole := func(n *controlNode) { n.add("7", "7.0", 2, ownUID, 0, 1) }
	for _, test := range []struct {
		name   string
		ranks  func(n *controlNode)
		caller uint32
		body   string
		status int
		want   string
	}{
		{"no JSON", whole, ownUID, `name=local`, http.StatusBadRequest, "the request can't be understood: invalid character"},
		{"an unknown field", whole, ownUID, `{"rank":3,` + local + `}`, http.StatusBadRequest, `unknown field "rank"`},
		{"two requests", whole, ownUID, `{` + local + `}{}`, http.StatusBadRequest, "something follows the request"},
		{"no value", whole, ownUID, `{"name":"local"}`, http.StatusBadRequest, "value is missing"},
		{"no name", whole, ownUID, `{"value":"1"}`, http.StatusBadRequest, "name is missing"},
		{"too much", whole, ownUID, `{"name":"text","value":"` + strings.Repeat("x", maxControlBody) + `"}`, http.StatusBadRequest, "request body too large"},

		{"another user's rank", whole, otherUID, `{"jobid":"7",` + local + `}`, http.StatusForbidden,
			fmt.Sprintf("rank 0 belongs to user user%d (uid %d); only that user and root may set its control variables, and the caller is uid 12345", ownUID, ownUID)},
		{"another user's only job is not meant by him", whole, otherUID, `{` + local + `}`, http.StatusNotFound,
			"no rank of user 12345 is connected here; name the job (--jobid) if it is another user's"},
		{"another user's job by his number", whole, otherUID, fmt.Sprintf(`{"uid":%d,%s}`, ownUID, local), http.StatusForbidden, "belongs to user"},
		{"nobody is nobody in particular", func(n *controlNode) { n.add("7", "7.0", 1, nobodyUID, 0) }, nobodyUID, `{"jobid":"7",` + local + `}`, http.StatusForbidden,
			"uid 65534 may be anybody whom the exporter's user name-space doesn't know"},
		{"a job that does not allow it", func(n *controlNode) {
			whole(n)
			n.ranks[1].allowed = false
		}, ownUID, `{` + local + `}`, http.StatusForbidden,
			"rank 1: its job does not allow control variables to be written; start it with mpit-exporter exec --allow-write, or with MPIT_AGENT_ALLOW_WRITE=1 in its environment"},

		{"no rank at all", func(*controlNode) {}, ownUID, `{"jobid":"7",` + local + `}`, http.StatusNotFound, `no rank of job "7" is connected here; /api/v1/ranks shows all that are`},
		{"no such job", whole, ownUID, `{"jobid":"8",` + local + `}`, http.StatusNotFound, `no rank of job "8" is connected here; /api/v1/ranks shows all that are`},
		{"no such world", whole, ownUID, `{"jobid":"7","world":"7.1",` + local + `}`, http.StatusNotFound, `no rank of job "7", world "7.1" is connected here; /api/v1/ranks shows all that are`},
		{"no such rank", whole, ownUID, `{"jobid":"7","ranks":[1,2,3],` + local + `}`, http.StatusNotFound, `rank 2,3 of job "7", world "7.0" is not connected here; those that are: 0,1`},
		{"which job?", func(n *controlNode) {
			whole(n)
			n.add("9", "9.0", 1, ownUID, 0)
		}, ownUID, `{` + local + `}`, http.StatusConflict, "there are 2 jobs; name one of them (--jobid): 7, 9"},
		{"which world?", func(n *controlNode) {
			whole(n)
			n.add("7", "7.1", 1, ownUID, 0)
		}, ownUID, `{` + local + `}`, http.StatusConflict, `job "7" has 2 worlds; name one of them (--world): 7.0, 7.1`},
		{"which of two processes?", func(n *controlNode) {
			whole(n)
			n.add("7", "7.0", 2, ownUID, 1)
		}, ownUID, `{"ranks":[0],` + local + `}`, http.StatusConflict, `two processes claim to be rank 1 of job "7", world "7.0"`},

		{"no such variable", whole, ownUID, `{"name":"nothing","value":"1"}`, http.StatusNotFound, `rank 0: its MPI library has no control variable "nothing"; mpit-exporter list --what=cvars shows all`},
		{"constant", whole, ownUID, `{"name":"constant","value":"1"}`, http.StatusConflict, "constant has the scope CONSTANT: it never changes"},
		{"read-only", whole, ownUID, `{"name":"readonly","value":"1"}`, http.StatusConflict, "readonly has the scope READONLY: it can't be set from outside the MPI library"},
		{"an unknown scope", whole, ownUID, `{"name":"strange","value":"1"}`, http.StatusConflict, "strange has a scope that is not known"},
		{"a part of all", whole, ownUID, `{"name":"all","ranks":[1],"value":"1"}`, http.StatusConflict,
			"all has the scope ALL: all 2 ranks of its world must be set alike (MPI-4.1 §15.3.6), not 1 alone; leave the ranks out"},
		{"a part of all that must be equal", whole, ownUID, `{"name":"all_eq","ranks":[0],"value":"1"}`, http.StatusConflict, "all_eq has the scope ALL_EQ"},
		{"some are on another node", func(n *controlNode) { n.add("7", "7.0", 4, ownUID, 0, 1) }, ownUID, `{"name":"all_eq","value":"1"}`, http.StatusConflict,
			"only 2 of 4 are on this node; set it in the job's environment instead"},
		{"a group that nobody names", func(n *controlNode) { n.add("7", "7.0", 4, ownUID, 0, 1) }, ownUID, `{"name":"group","value":"1"}`, http.StatusConflict,
			"group has the scope GROUP: a group of ranks must be set alike (MPI-4.1 §15.3.6), and only the MPI library's documentation says which; name the ranks"},
		{"a group of equals that nobody names", func(n *controlNode) { n.add("7", "7.0", 4, ownUID, 0, 1) }, ownUID, `{"name":"group_eq","value":"1"}`, http.StatusConflict, "name the ranks"},
		{"two MPI libraries", func(n *controlNode) {
			whole(n)
			n.fakes[1].list[int(mpit.ScopeLocal)].Scope = mpit.ScopeAll
		}, ownUID, `{` + local + `}`, http.StatusConflict, "local is LOCAL MPI_INT in rank 0 and ALL MPI_INT in rank 1: they have different MPI libraries"},

		{"an object for an unbound variable", whole, ownUID, `{"object":{"kind":"comm","name":"MPI_COMM_WORLD"},` + local + `}`, http.StatusBadRequest,
			"rank 0: local is not bound to an object; leave the object out"},
		{"no object for a bound one", whole, ownUID, `{"name":"bound","value":"1"}`, http.StatusBadRequest, "bound is bound to an object of kind comm: say to which one (--object)"},
		{"an object of another kind", whole, ownUID, `{"name":"bound","object":{"kind":"win","name":"MPI_COMM_WORLD"},"value":"1"}`, http.StatusBadRequest,
			"bound is bound to objects of kind comm, not win"},
		{"no kind of object", whole, ownUID, `{"name":"bound","object":{"kind":"planet","name":"x"},"value":"1"}`, http.StatusBadRequest, `"planet" is no kind of object; there are comm, datatype`},
		{"no such object", whole, ownUID, `{"name":"bound","object":{"kind":"comm","name":"x"},"value":"1"}`, http.StatusNotFound, `rank 0: it has no comm "x"`},
		{"two such objects", whole, ownUID, `{"name":"bound","object":{"kind":"comm","name":"twin"},"value":"1"}`, http.StatusConflict,
			`it has 2 objects of kind comm with the name "twin"`},
		{"no number", whole, ownUID, `{"name":"local","value":"many"}`, http.StatusBadRequest, `local, rank 0: "many" is not a number of datatype MPI_INT`},
		{"a number too large, in the last rank alone", func(n *controlNode) {
			whole(n)
			n.fakes[1].list[int(mpit.ScopeLocal)].Enum = colours
		}, ownUID, `{` + local + `}`, http.StatusBadRequest, `local, rank 1: "9" is no item of the enumeration`},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.caller != ownUID {
				needRoot(t)
			}
			n := startControl(t)
			test.ranks(n)
			status, answer := n.set(test.caller, test.body)
			assert.Equal(t, test.status, status)
			assert.Equal(t, CvarRefused, answer.Result)
			assert.Contains(t, answer.Error, test.want)
			assert.Empty(t, answer.Ranks)
			for _, f := range n.fakes {
				assert.Empty(t, f.writes)
			}
			families, err := n.self.gather()
			require.NoError(t, err)
			assert.Equal(t, 1.0, valuesOf(families)[`mpit_exporter_cvar_writes_total{result="refused"}`])
			assert.Contains(t, n.log.String(), fmt.Sprintf(`level=WARN msg="Control variable not set" uid=%d user=alice`, test.caller))
		})
	}
}

// The kernel says who asks: the owner of a job may, whoever runs the exporter, and root may.
func TestControlOwner(t *testing.T) {
	needRoot(t)
	n := startControl(t)
	mine := n.add("7", "7.0", 1, otherUID, 0)[0]
	status, answer := n.set(otherUID, `{"name":"local","value":"9"}`)
	assert.Equal(t, http.StatusOK, status, answer.Error)
	assert.Equal(t, "9", mine.has("local"))
	assert.Contains(t, n.log.String(), "uid=12345")

	// Somebody else's rank with the same labels is in nobody's way but root's, who can say whom he means.
	theirs := n.add("7", "7.0", 1, 54321, 0)[0]
	status, _ = n.set(otherUID, `{"jobid":"7","name":"all_eq","value":"3"}`)
	assert.Equal(t, http.StatusOK, status)
	assert.Equal(t, "3", mine.has("all_eq"))
	assert.Equal(t, "8", theirs.has("all_eq"))
	status, answer = n.set(0, `{"jobid":"7","name":"all_eq","value":"4"}`)
	assert.Equal(t, http.StatusConflict, status)
	assert.Contains(t, answer.Error, `several users have a job "7"; say whose uid is meant (--uid): 12345 (user12345), 54321 (user54321)`)
	status, _ = n.set(0, `{"jobid":"7","uid":54321,"name":"all_eq","value":"4"}`)
	assert.Equal(t, http.StatusOK, status)
	assert.Equal(t, "4", theirs.has("all_eq"))
	status, _ = n.set(otherUID, `{"jobid":"7","uid":54321,"name":"all_eq","value":"5"}`)
	assert.Equal(t, http.StatusForbidden, status)

	// Reading is for everybody.
	status, answer = n.call(otherUID, http.MethodGet, "?jobid=7&uid=54321&name=all_eq", "")
	assert.Equal(t, http.StatusOK, status)
	assert.Equal(t, []CvarRank{{Rank: 0, State: CvarRead, Value: text("4")}}, answer.Ranks)
}

func TestControlGet(t *testing.T) {
	n := startControl(t)
	fakes := n.add("7", "7.0", 3, ownUID, 0, 1, 2)
	fakes[1].busy = 3 // it is making objects just now
	for query, want := range map[string][]CvarRank{
		"?name=local&rank=0-1":                          {{Rank: 0, State: CvarRead, Value: text("8")}, {Rank: 1, State: CvarRead, Value: text("8")}},
		"?jobid=7&world=7.0&name=text&rank=2":           {{Rank: 2, State: CvarRead, Value: text("old")}},
		"?name=bound&rank=1&object=comm:MPI_COMM_WORLD": {{Rank: 1, State: CvarRead, Value: text("1")}},
	} {
		status, answer := n.call(ownUID, http.MethodGet, query, "")
		assert.Equal(t, http.StatusOK, status, answer.Error)
		assert.Equal(t, want, answer.Ranks, query)
	}
	_, answer := n.call(ownUID, http.MethodGet, "?name=phase&rank=0", "")
	assert.Equal(t, mpit.ScopeLocal, *answer.Scope)
	assert.Equal(t, mpit.DatatypeInt, *answer.Datatype)
	assert.Equal(t, EnumItemStatus{Value: -1, Name: "none"}, answer.Enum[0])
	for query, code := range map[string]int{
		"": http.StatusBadRequest, "?name=local&rank=x": http.StatusBadRequest, "?name=local&uid=me": http.StatusBadRequest,
		"?name=bound&object=x": http.StatusBadRequest, "?name=nothing": http.StatusNotFound, "?name=local&rank=9": http.StatusNotFound,
	} {
		status, answer := n.call(ownUID, http.MethodGet, query, "")
		assert.Equal(t, code, status, query)
		assert.NotEmpty(t, answer.Error)
	}
	assert.Empty(t, fakes[0].writes)
}

// A rank that fails on the way: what has been written is put back, and the answer says what each rank has.
func TestControlFails(t *testing.T) {
	old, now := text("8"), text("9")
	unchanged := func(rank int) CvarRank { return CvarRank{Rank: rank, State: CvarUnchanged, Old: old, Value: old} }
	restored := func(rank int) CvarRank { return CvarRank{Rank: rank, State: CvarRestored, Old: old, Value: old} }
	isNew := func(v mpit.CvarValue) bool { return v.Values[0] == 9 }
	notNow := &mpit.RefusedError{Operation: "cvar write", Code: mpit.ErrCvarSetNotNow}
	for _, test := range []struct {
		name   string
		change func(f []*cvarFake)
		want   []CvarRank
		err    string
	}{
		{"the first rank refuses", func(f []*cvarFake) {
			f[0].before = func(context.Context, mpit.CvarValue) error { return notNow }
		}, []CvarRank{{Rank: 0, State: CvarUnchanged, Old: old, Value: old, Error: "writing: mpit: cvar write: MPI_T_ERR_CVAR_SET_NOT_NOW"}, unchanged(1), unchanged(2)},
			"rank 0: writing: mpit: cvar write: MPI_T_ERR_CVAR_SET_NOT_NOW; no rank has been changed"},
		{"a later one refuses", func(f []*cvarFake) {
			f[2].before = func(context.Context, mpit.CvarValue) error { return notNow }
		}, []CvarRank{restored(0), restored(1), {Rank: 2, State: CvarUnchanged, Old: old, Value: old, Error: "writing: mpit: cvar write: MPI_T_ERR_CVAR_SET_NOT_NOW"}},
			"rank 2: writing: mpit: cvar write: MPI_T_ERR_CVAR_SET_NOT_NOW; rank 0,1 has its old value again"},
		{"one says that it failed, and has written", func(f []*cvarFake) {
			f[1].after = func(v mpit.CvarValue) error {
				if isNew(v) {
					return mpit.ErrOther
				}
				return nil
			}
		}, []CvarRank{restored(0), {Rank: 1, State: CvarRestored, Old: old, Value: old, Error: "writing: MPI_ERR_OTHER"}, unchanged(2)},
			"rank 1: writing: MPI_ERR_OTHER; rank 0,1 has its old value again"},
		{"one makes something else of it", func(f []*cvarFake) {
			f[1].store = func(v mpit.CvarValue) mpit.CvarValue {
				if isNew(v) {
					return mpit.CvarValue{Values: []uint64{7}}
				}
				return v
			}
		}, []CvarRank{restored(0), {Rank: 1, State: CvarRestored, Old: old, Value: old, Error: "9 was written, and 7 is read back"}, unchanged(2)},
			"rank 1: 9 was written, and 7 is read back; rank 0,1 has its old value again"},
		{"one takes nothing", func(f []*cvarFake) {
			f[1].store = func(mpit.CvarValue) mpit.CvarValue { return mpit.CvarValue{Values: []uint64{8}} }
		}, []CvarRank{restored(0), {Rank: 1, State: CvarUnchanged, Old: old, Value: old, Error: "9 was written, and 8 is read back"}, unchanged(2)},
			"rank 1: 9 was written, and 8 is read back; rank 0 has its old value again"},
		{"one can't be given its old value back", func(f []*cvarFake) {
			f[0].before = func(_ context.Context, v mpit.CvarValue) error {
				if !isNew(v) {
					return notNow
				}
				return nil
			}
			f[2].before = func(context.Context, mpit.CvarValue) error { return mpit.ErrMemory }
		}, []CvarRank{{Rank: 0, State: CvarUnrestored, Old: old, Value: now, Error: "restoring: mpit: cvar write: MPI_T_ERR_CVAR_SET_NOT_NOW"}, restored(1),
			{Rank: 2, State: CvarUnchanged, Old: old, Value: old, Error: "writing: MPI_T_ERR_MEMORY"}},
			"rank 2: writing: MPI_T_ERR_MEMORY; rank 1 has its old value again; rank 0 could not be given its old value back"},
		{"one ends", func(f []*cvarFake) {
			f[1].before = func(context.Context, mpit.CvarValue) error {
				f[1].mu.Lock()
				defer f[1].mu.Unlock()
				f[1].reading = func() error { return io.EOF }
				return io.EOF
			}
		}, []CvarRank{restored(0), {Rank: 1, State: CvarUnknown, Old: old, Error: "writing: EOF; restoring: EOF"}, unchanged(2)},
			"rank 1: writing: EOF; rank 0 has its old value again; rank 1 could not be given its old value back"},
	} {
		t.Run(test.name, func(t *testing.T) {
			n := startControl(t)
			fakes := n.add("7", "7.0", 3, ownUID, 0, 1, 2)
			test.change(fakes)
			status, answer := n.set(ownUID, `{"name":"all_eq","value":"9"}`)
			assert.Equal(t, http.StatusBadGateway, status)
			assert.Equal(t, CvarFailed, answer.Result)
			assert.Equal(t, test.err, answer.Error)
			assert.Equal(t, test.want, answer.Ranks)
			for i, r := range test.want {
				if r.Value != nil {
					assert.Equal(t, *r.Value, fakes[i].has("all_eq"), "what the answer says of rank %d", i)
				}
			}
			families, err := n.self.gather()
			require.NoError(t, err)
			assert.Equal(t, 1.0, valuesOf(families)[`mpit_exporter_cvar_writes_total{result="failed"}`])
			assert.Contains(t, n.log.String(), "result=failed")
		})
	}
}

// A rank that refuses the value that it has already has not been changed.
func TestControlRefusesWhatIs(t *testing.T) {
	n := startControl(t)
	n.add("7", "7.0", 1, ownUID, 0)[0].before = func(context.Context, mpit.CvarValue) error { return mpit.ErrCvarSetNotNow }
	_, answer := n.set(ownUID, `{"name":"local","value":"8"}`)
	assert.Equal(t, CvarFailed, answer.Result)
	assert.Equal(t, CvarUnchanged, answer.Ranks[0].State)
	assert.Contains(t, answer.Error, "no rank has been changed")
}

// A rank that can't say its present value is not written to: there would be nothing to put back.
func TestControlNeedsTheOldValue(t *testing.T) {
	n := startControl(t)
	fakes := n.add("7", "7.0", 2, ownUID, 0, 1)
	fakes[1].reading = func() error { return mpit.ErrNotAccessible }
	status, answer := n.set(ownUID, `{"name":"local","value":"9"}`)
	assert.Equal(t, http.StatusBadGateway, status)
	assert.Equal(t, CvarFailed, answer.Result)
	assert.Equal(t, "rank 1: its present value can't be read: MPI_T_ERR_NOT_ACCESSIBLE", answer.Error)
	assert.Empty(t, fakes[0].writes)
}

// Two requests for one world come one after the other; one for another world need not wait.
func TestControlTurns(t *testing.T) {
	n := startControl(t)
	fakes := n.add("7", "7.0", 2, ownUID, 0, 1)
	n.add("7", "7.1", 1, ownUID, 0)
	entered, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	fakes[1].before = func(context.Context, mpit.CvarValue) error {
		once.Do(func() {
			close(entered)
			<-goOn
		})
		return nil
	}
	answers := make(chan CvarAnswer, 2)
	send := func(value string) {
		_, answer := n.set(ownUID, `{"world":"7.0","name":"all_eq","value":"`+value+`"}`)
		answers <- answer
	}
	go send("1")
	<-entered
	go send("2")
	require.Eventually(t, func() bool {
		n.control.mu.Lock()
		defer n.control.mu.Unlock()
		return n.control.worlds[ownedWorld{ownUID, "7", "7.0"}].users == 2
	}, 30*time.Second, time.Millisecond)
	status, _ := n.set(ownUID, `{"world":"7.1","name":"all_eq","value":"3"}`)
	assert.Equal(t, http.StatusOK, status)
	assert.Equal(t, []string{"1"}, fakes[0].writes, "the second one has not begun")
	close(goOn)
	first, second := <-answers, <-answers
	assert.Equal(t, CvarOK, first.Result)
	assert.Equal(t, CvarOK, second.Result)
	assert.Equal(t, "2", fakes[0].has("all_eq"))
	assert.Equal(t, "2", fakes[1].has("all_eq"))
	assert.Empty(t, n.control.worlds, "nothing is kept")
}

// A client that goes away does not leave half of the ranks changed.
func TestControlClientGone(t *testing.T) {
	n := startControl(t)
	fakes := n.add("7", "7.0", 2, ownUID, 0, 1)
	entered, goOn := make(chan struct{}), make(chan struct{})
	fakes[0].before = func(ctx context.Context, _ mpit.CvarValue) error {
		close(entered)
		<-goOn
		select { // long enough for a mistake to be seen; if there is none, nothing ends this context
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
			return nil
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://control/api/v1/cvar", strings.NewReader(`{"name":"all_eq","value":"9"}`))
	require.NoError(t, err)
	failed := make(chan error, 1)
	go func() {
		response, err := as(ownUID, n.path).Do(req)
		if err == nil {
			_ = response.Body.Close()
		}
		failed <- err
	}()
	<-entered
	cancel()
	require.ErrorIs(t, <-failed, context.Canceled)
	close(goOn)
	require.Eventually(t, func() bool { return fakes[1].has("all_eq") == "9" }, 30*time.Second, time.Millisecond)
}

// At the exporter's end what is under way is finished.
func TestControlEndsGracefully(t *testing.T) {
	n := startControl(t)
	fakes := n.add("7", "7.0", 2, ownUID, 0, 1)
	entered, goOn := make(chan struct{}), make(chan struct{})
	fakes[0].before = func(context.Context, mpit.CvarValue) error {
		close(entered)
		<-goOn
		return nil
	}
	answers := make(chan CvarAnswer, 1)
	go func() {
		_, answer := n.set(ownUID, `{"name":"all_eq","value":"9"}`)
		answers <- answer
	}()
	<-entered
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		n.stop()
	}()
	require.Eventually(t, func() bool {
		_, err := os.Stat(n.path)
		return errors.Is(err, os.ErrNotExist)
	}, 30*time.Second, time.Millisecond)
	close(goOn)
	<-stopped
	assert.Equal(t, CvarOK, (<-answers).Result)
	assert.Equal(t, "9", fakes[1].has("all_eq"))
}

// What takes longer than the end can wait is broken off, and put back.
func TestControlEndBreaksOff(t *testing.T) {
	n := startControl(t, func(c *control) { c.grace = time.Millisecond })
	fakes := n.add("7", "7.0", 2, ownUID, 0, 1)
	entered := make(chan struct{})
	var once sync.Once
	fakes[1].before = func(ctx context.Context, _ mpit.CvarValue) (err error) {
		once.Do(func() {
			close(entered)
			<-ctx.Done()
			err = ctx.Err()
		})
		return err
	}
	answers := make(chan CvarAnswer, 1)
	go func() {
		_, answer := n.set(ownUID, `{"name":"all_eq","value":"9"}`)
		answers <- answer
	}()
	<-entered
	n.stop()
	answer := <-answers
	assert.Equal(t, CvarFailed, answer.Result)
	assert.Equal(t, "8", fakes[0].has("all_eq"))
	assert.Equal(t, CvarRestored, answer.Ranks[0].State)
}

// One user's connections and requests do not keep others out.
func TestControlLimits(t *testing.T) {
	l := limiter{total: 3, each: 2}
	for _, step := range []struct {
		uid  uint32
		want bool
	}{{1, true}, {1, true}, {1, false}, {2, true}, {3, false}, {0, true}, {0, true}, {0, false}} {
		assert.Equal(t, step.want, l.enter(step.uid), "%+v", step)
	}
	l.leave(1)
	assert.True(t, l.enter(3))

	n := startControl(t)
	n.add("7", "7.0", 1, ownUID, 0)
	for range maxUserControlCalls {
		require.True(t, n.control.calls.enter(ownUID))
	}
	status, answer := n.set(ownUID, `{"name":"local","value":"9"}`)
	assert.Equal(t, http.StatusServiceUnavailable, status)
	assert.Equal(t, "too many requests at once", answer.Error)

	var conns []net.Conn
	for range maxUserControlConns {
		conn, err := net.Dial("unix", n.path)
		require.NoError(t, err)
		conns = append(conns, conn)
	}
	over, err := net.Dial("unix", n.path)
	require.NoError(t, err)
	_, err = over.Read(make([]byte, 1))
	assert.ErrorIs(t, err, io.EOF, "the one too many is closed at once")
	for _, conn := range append(conns, over) {
		require.NoError(t, conn.Close())
	}
}

// A user's place is taken for a while, however soon he is answered; root need not wait.
func TestControlPace(t *testing.T) {
	n := startControl(t, func(c *control) { c.pace = time.Hour })
	n.add("7", "7.0", 1, otherUID, 0)
	work, stop := context.WithCancel(t.Context())
	var calls callGate
	ask := func(uid uint32) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "/api/v1/cvar?jobid=7&name=local", nil)
		n.control.handler(work, &calls).ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, mpit.Peer{UID: uid})))
		return w
	}
	assert.Equal(t, http.StatusOK, ask(0).Code)
	codes := make(chan int, maxUserControlCalls)
	for range maxUserControlCalls {
		go func() { codes <- ask(otherUID).Code }()
	}
	require.Eventually(t, func() bool {
		n.control.calls.mu.Lock()
		defer n.control.calls.mu.Unlock()
		return n.control.calls.users[otherUID] == maxUserControlCalls
	}, 30*time.Second, time.Millisecond)
	assert.Equal(t, http.StatusServiceUnavailable, ask(otherUID).Code)
	assert.Equal(t, http.StatusOK, ask(0).Code)
	select {
	case <-codes:
		t.Fatal("an answered one has given its place back at once")
	default:
	}
	stop()
	for range maxUserControlCalls {
		<-codes
	}
	assert.Empty(t, n.control.calls.users)
}

// Nobody gets through whose name the kernel has not given.
func TestControlWithoutCredentials(t *testing.T) {
	n := startControl(t)
	w := httptest.NewRecorder()
	var calls callGate
	n.control.handler(t.Context(), &calls).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/api/v1/cvar", strings.NewReader(`{"name":"local","value":"9"}`)))
	assert.Equal(t, http.StatusForbidden, w.Code)

	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	conn, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	assert.ErrorContains(t, n.ServeControl(t.Context(), l), "of which nobody says whose it is")
	_ = l.Close()
	w = httptest.NewRecorder()
	n.API().ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/api/v1/cvar", nil))
	assert.Equal(t, http.StatusNotFound, w.Code, "nothing is written over the HTTP port")
}

// Real ranks are asked for what the kernel and their environment say.
func TestControlOfRealRanks(t *testing.T) {
	n := startNode(t, Config{})
	first := small("1", 0)
	n.connect(mpittest.New(first), mpittest.New(small("1", 1)))
	ended := mpittest.New(small("2", 0))
	n.connect(ended)
	n.finish(ended, mpit.EndFinalize)
	targets := n.cvarTargets()
	require.Len(t, targets, 2, "an ended one is not asked")
	assert.Equal(t, Identity{JobID: "1", World: "0", Rank: 1}, targets[1].id)
	assert.Equal(t, ownUID, targets[1].uid)
	assert.Equal(t, 4, targets[1].size)
	assert.False(t, targets[1].allowed)
	_, err := n.control.set(t.Context(), mpit.Peer{UID: ownUID}, &CvarRequest{Name: "limit", Value: text("1")})
	assert.ErrorContains(t, err, "does not allow control variables to be written")
}

func TestLogValues(t *testing.T) {
	of := func(r *CvarRank) *string { return r.Value }
	assert.Equal(t, "", logValues(nil, of))
	assert.Equal(t, "8", logValues([]CvarRank{{Rank: 0, Value: text("8")}, {Rank: 1, Value: text("8")}}, of))
	assert.Equal(t, "8 (rank 0,2), ? (rank 1)", logValues([]CvarRank{{Rank: 0, Value: text("8")}, {Rank: 1}, {Rank: 2, Value: text("8")}}, of))
}

func TestSameCvar(t *testing.T) {
	half := math.Float64bits(0.5)
	assert.True(t, sameCvar(mpit.CvarValue{Values: []uint64{half}}, mpit.CvarValue{Values: []uint64{half}}))
	assert.False(t, sameCvar(mpit.CvarValue{Values: []uint64{half}}, mpit.CvarValue{Values: []uint64{half, half}}))
	assert.False(t, sameCvar(mpit.CvarValue{IsText: true}, mpit.CvarValue{}))
}
