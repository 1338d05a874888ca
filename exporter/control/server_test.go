package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

func TestControlGet(t *testing.T) {
	n := startControl(t)
	fakes := n.add("7", "7.0", 3, ownUID, 0, 1, 2)
	fakes[1].busy = 3 // it is making objects just now
	for query, want := range map[string][]RankAnswer{
		"?name=local&rank=0-1": {{Rank: 0, State: Read, Value: text("8")},
			{Rank: 1, State: Read, Value: text("8")}},
		"?jobid=7&world=7.0&name=text&rank=2":           {{Rank: 2, State: Read, Value: text("old")}},
		"?name=bound&rank=1&object=comm:MPI_COMM_WORLD": {{Rank: 1, State: Read, Value: text("1")}},
	} {
		status, answer := n.call(ownUID, http.MethodGet, query, "")
		assert.Equal(t, http.StatusOK, status, answer.Error)
		assert.Equal(t, want, answer.Ranks, query)
	}
	_, answer := n.call(ownUID, http.MethodGet, "?name=phase&rank=0", "")
	assert.Equal(t, mpit.ScopeLocal, *answer.Scope)
	assert.Equal(t, mpit.DatatypeInt, *answer.Datatype)
	assert.Equal(t, mpit.EnumItem{Value: -1, Name: "none"}, answer.Enum[0])
	for query, code := range map[string]int{
		"": http.StatusBadRequest, "?name=local&rank=x": http.StatusBadRequest,
		"?name=local&uid=me":   http.StatusBadRequest,
		"?name=bound&object=x": http.StatusBadRequest, "?name=nothing": http.StatusNotFound,
		"?name=local&rank=9": http.StatusNotFound,
	} {
		status, answer := n.call(ownUID, http.MethodGet, query, "")
		assert.Equal(t, code, status, query)
		assert.NotEmpty(t, answer.Error)
	}
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
	answers := make(chan Answer, 2)
	send := func(value string) {
		_, answer := n.set(ownUID, `{"world":"7.0","name":"all_eq","value":"`+value+`"}`)
		answers <- answer
	}
	go send("1")
	<-entered
	go send("2")
	require.Eventually(t, func() bool {
		return n.turns.Users(worldKey{ownUID, "7", "7.0"}) == 2
	}, longest, time.Millisecond)
	status, _ := n.set(ownUID, `{"world":"7.1","name":"all_eq","value":"3"}`)
	assert.Equal(t, http.StatusOK, status)
	assert.Equal(t, []string{"1"}, fakes[0].writes, "the second one has not begun")
	close(goOn)
	first, second := <-answers, <-answers
	assert.Equal(t, OK, first.Result)
	assert.Equal(t, OK, second.Result)
	assert.Equal(t, "2", fakes[0].has("all_eq"))
	assert.Equal(t, "2", fakes[1].has("all_eq"))
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
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://control/api/v1/cvar",
		strings.NewReader(`{"name":"all_eq","value":"9"}`))
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
	require.Eventually(t, func() bool { return fakes[1].has("all_eq") == "9" }, longest, time.Millisecond)
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
	answers := make(chan Answer, 1)
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
	}, longest, time.Millisecond)
	close(goOn)
	<-stopped
	assert.Equal(t, OK, (<-answers).Result)
	assert.Equal(t, "9", fakes[1].has("all_eq"))
}

// What takes longer than the end can wait is broken off, and put back.
func TestControlEndBreaksOff(t *testing.T) {
	n := startControl(t, func(s *Server) { s.grace = time.Millisecond })
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
	answers := make(chan Answer, 1)
	go func() {
		_, answer := n.set(ownUID, `{"name":"all_eq","value":"9"}`)
		answers <- answer
	}()
	<-entered
	n.stop()
	answer := <-answers
	assert.Equal(t, Failed, answer.Result)
	assert.Equal(t, "8", fakes[0].has("all_eq"))
	assert.Equal(t, Restored, answer.Ranks[0].State)
}

// One user's connections and requests do not keep others out.
func TestControlLimits(t *testing.T) {
	p := newPlaces(8, 2)
	for _, step := range []struct {
		uid  uint32
		want bool
	}{{1, true}, {1, true}, {1, false}, {2, true}, {2, true}, {2, false}, {0, true}, {0, true}, {0, false}} {
		assert.Equal(t, step.want, p.of(step.uid).Take(step.uid, 1), "%+v", step)
	}
	p.of(1).Give(1, 1)
	assert.True(t, p.of(1).Take(1, 1))

	n := startControl(t)
	n.add("7", "7.0", 1, ownUID, 0)
	for range maxUserCalls {
		require.True(t, n.calls.of(ownUID).Take(ownUID, 1))
	}
	status, answer := n.set(ownUID, `{"name":"local","value":"9"}`)
	assert.Equal(t, http.StatusServiceUnavailable, status)
	assert.Equal(t, "too many requests at once", answer.Error)

	var conns []net.Conn
	for range maxUserConns {
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

// telling tells of answers that are being written.
type telling struct {
	http.ResponseWriter
	answered chan<- struct{}
}

func (t telling) WriteHeader(status int) {
	t.ResponseWriter.WriteHeader(status)
	t.answered <- struct{}{}
}

// A user's place is taken for a while, however soon he is answered; root need not wait.
func TestControlPace(t *testing.T) {
	n := startControl(t, func(s *Server) { s.pace = time.Hour })
	n.add("7", "7.0", 1, otherUID, 0)
	work, stop := context.WithCancel(t.Context())
	var calls sync.RWMutex
	answered := make(chan struct{}, maxUserCalls+3)
	ask := func(uid uint32) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "/api/v1/cvar?jobid=7&name=local", nil)
		n.handler(work, &calls).ServeHTTP(telling{w, answered}, r.WithContext(context.WithValue(r.Context(), callerKey{},
			mpit.Peer{UID: uid})))
		return w
	}
	assert.Equal(t, http.StatusOK, ask(0).Code)
	<-answered
	codes := make(chan int, maxUserCalls)
	for range maxUserCalls {
		go func() { codes <- ask(otherUID).Code }()
	}
	for range maxUserCalls {
		<-answered
	}
	assert.Equal(t, http.StatusServiceUnavailable, ask(otherUID).Code)
	assert.Equal(t, http.StatusOK, ask(0).Code)
	select {
	case <-codes:
		t.Fatal("an answered one has given its place back at once")
	default:
	}
	stop()
	for range maxUserCalls {
		<-codes
	}
	assert.True(t, n.calls.of(otherUID).Take(otherUID, maxUserCalls), "all places are free again")
}

// Nobody gets through whose name the kernel has not given.
func TestControlWithoutCredentials(t *testing.T) {
	n := startControl(t)
	w := httptest.NewRecorder()
	var calls sync.RWMutex
	n.handler(t.Context(), &calls).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/api/v1/cvar",
		strings.NewReader(`{"name":"local","value":"9"}`)))
	assert.Equal(t, http.StatusForbidden, w.Code)

	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	conn, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	assert.ErrorContains(t, n.Serve(t.Context(), l), "of which nobody says whose it is")
	_ = l.Close()
}

// Where users see their own ranks, another's are not there, whatever is asked for them. Operators and root see all, and
// write to none of them for that. A user whom the kernel can't name sees nothing.
func TestControlSeesOwn(t *testing.T) {
	if ownUID != 0 {
		t.Skip("not tested: only root can be another user")
	}
	const operatorUID = 4711
	n := startControl(t, func(s *Server) {
		s.cfg.SeesAll = func(uid uint32, groups []uint32) bool {
			return uid == operatorUID && slices.Contains(groups, uint32(os.Getgid()))
		}
	})
	n.add("7", "7.0", 1, otherUID, 0)
	n.add("8", "8.0", 1, nobodyUID, 0)
	n.OnRead(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sees := "all"
		if uid := api.Viewer(r.Context()); uid != nil {
			sees = fmt.Sprint(*uid)
		}
		fmt.Fprint(w, r.RemoteAddr, " sees ", sees)
	}))
	read := func(uid uint32) string {
		response, err := as(uid, n.path).Get("http://control/api/v1/values")
		require.NoError(t, err)
		defer func() { _ = response.Body.Close() }()
		text, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return string(text)
	}
	for _, test := range []struct {
		name  string
		uid   uint32
		sees  string
		get   int // status, of job 7's variable
		write int
	}{
		{"owner", otherUID, "12345", http.StatusOK, http.StatusOK},
		{"another user", 12346, "12346", http.StatusNotFound, http.StatusNotFound},
		{"operator", operatorUID, "all", http.StatusOK, http.StatusForbidden},
		{"root", 0, "all", http.StatusOK, http.StatusOK},
		{"unknown", nobodyUID, "4294967295", http.StatusNotFound, http.StatusNotFound},
	} {
		t.Run(test.name, func(t *testing.T) {
			assert.Equal(t, fmt.Sprintf("uid %d sees %s", test.uid, test.sees), read(test.uid))
			status, answer := n.call(test.uid, http.MethodGet, "?jobid=7&name=local", "")
			assert.Equal(t, test.get, status, answer.Error)
			status, _ = n.set(test.uid, `{"jobid":"7","name":"local","value":"9"}`)
			assert.Equal(t, test.write, status)
		})
	}
	_, hidden := n.call(12346, http.MethodGet, "?jobid=7&name=local", "")
	_, missing := n.call(12346, http.MethodGet, "?jobid=9&name=local", "")
	assert.Equal(t, missing.Error, strings.ReplaceAll(hidden.Error, `"7"`, `"9"`))
	status, answer := n.call(nobodyUID, http.MethodGet, "?name=local", "")
	assert.Equal(t, http.StatusNotFound, status, answer.Error)
}

// An exporter that serves no API says so.
func TestControlReadsNothing(t *testing.T) {
	n := startControl(t)
	response, err := as(ownUID, n.path).Get("http://control/api/v1/values")
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	assert.Equal(t, http.StatusNotImplemented, response.StatusCode)
}

func TestLogValues(t *testing.T) {
	of := func(r *RankAnswer) *string { return r.Value }
	assert.Equal(t, "", logValues(nil, of))
	assert.Equal(t, "8", logValues([]RankAnswer{{Rank: 0, Value: text("8")}, {Rank: 1, Value: text("8")}}, of))
	assert.Equal(t, "8 (rank 0), ? (rank 1), 8 (rank 2)", logValues([]RankAnswer{{Rank: 0, Value: text("8")}, {Rank: 1},
		{Rank: 2, Value: text("8")}}, of))
}

func TestParseObject(t *testing.T) {
	for text, want := range map[string]Object{
		"comm:MPI_COMM_WORLD": {"comm", "MPI_COMM_WORLD"},
		"MPI_WIN:a:b":         {"MPI_WIN", "a:b"},
	} {
		got, err := parseObject(text)
		require.NoError(t, err)
		assert.Equal(t, want, *got)
	}
	for _, text := range []string{"", "comm", "planet:earth", "no_object:x"} {
		_, err := parseObject(text)
		assert.Error(t, err, text)
	}
}
