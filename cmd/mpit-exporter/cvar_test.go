package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/sockets"
	"github.com/mpit-exporter/mpit-exporter/exporter/control"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// controlStub is a control socket that gives one answer and keeps the question.
type controlStub struct {
	path string

	mu    sync.Mutex
	query string
	asked control.Request
}

func (s *controlStub) question() (query string, asked control.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.query, s.asked
}

func startControlStub(t *testing.T, status int, answer string) *controlStub {
	t.Helper()
	s := &controlStub{path: filepath.Join(mpittest.ShortDir(t), sockets.ControlFile)}
	l, err := net.Listen("unix", s.path)
	require.NoError(t, err)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.query = r.Method + " " + r.URL.RequestURI()
		if r.Method == http.MethodPost && r.URL.Path == "/api/v1/cvar" {
			var asked control.Request
			assert.NoError(t, json.NewDecoder(r.Body).Decode(&asked))
			s.asked = asked
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l)
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-done
	})
	return s
}

func TestCvarSetAsksAndShows(t *testing.T) {
	s := startControlStub(t, http.StatusOK, `{"result": "ok", "jobid": "7", "world": "7.0", "name": "limit", "scope": "LOCAL", "datatype": "MPI_INT",
		"ranks": [{"rank": 0, "state": "written", "old": "8", "value": "16"}, {"rank": 3, "state": "written", "old": "", "value": "16"}]}`)
	got := runBinary(t, nil, "cvar", "set", "--control.socket="+s.path, "--jobid=7", "--world=7.0", "--rank=3,0-1",
		"--object=comm:halo:x", "--uid=0", "limit=a=b")
	assert.Equal(t, outcome{stdout: `limit (LOCAL, MPI_INT), job 7, world 7.0
RANK  STATE    OLD  NOW  ERROR
0     written  8    16   -
3     written  ""   16   -
`}, got)
	_, asked := s.question()
	value, uid := "a=b", uint32(0)
	assert.Equal(t, control.Request{
		JobID: "7", World: "7.0", Ranks: []int{0, 1, 3}, Name: "limit", UID: &uid,
		Object: &control.Object{Kind: "comm", Name: "halo:x"}, Value: &value,
	}, asked)

	got = runBinary(t, []string{sockets.EnvSocket + "=" + filepath.Join(filepath.Dir(s.path), sockets.AgentFile)},
		"cvar", "set", "--output=json", "limit=")
	assert.Zero(t, got.status, got.stderr)
	_, asked = s.question()
	assert.Equal(t, "", *asked.Value, "an empty value is a value")
	var answer control.Answer
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &answer))
	assert.Len(t, answer.Ranks, 2)
}

func TestCvarGet(t *testing.T) {
	s := startControlStub(t, http.StatusOK, `{"result": "ok", "jobid": "7", "name": "path", "object": {"kind": "comm", "name": "halo"},
		"ranks": [{"rank": 2, "state": "read", "value": "/a/b\u001b[31m"}]}`)
	got := runBinary(t, nil, "cvar", "get", "--control.socket="+s.path, "--rank=2", "--object=comm:halo", "path")
	assert.Equal(t, outcome{stdout: "path of comm:halo, job 7\nRANK  VALUE\n2     /a/b [31m\n"}, got)
	query, _ := s.question()
	assert.Equal(t, "GET /api/v1/cvar?name=path&object=comm%3Ahalo&rank=2", query)
}

// A refusal is one line and status 1; a failure on the way shows what each rank has, with a status of its own.
func TestCvarSetFails(t *testing.T) {
	refused := startControlStub(t, http.StatusForbidden,
		`{"result": "refused", "error": "rank 0 belongs to\nsomebody", "ranks": []}`)
	assert.Equal(t, outcome{stderr: "mpit-exporter: cvar set: refused: rank 0 belongs to somebody\n",
		status: cli.Failure},
		runBinary(t, nil, "cvar", "set", "--control.socket="+refused.path, "a=1"))

	failed := startControlStub(t, http.StatusBadGateway, `{"result": "failed", "error": "rank 1: writing: EOF", "jobid": "7", "name": "a", "ranks": [
		{"rank": 0, "state": "restored", "old": "1", "value": "1"}, {"rank": 1, "state": "unknown", "old": "1", "error": "writing: EOF"}]}`)
	assert.Equal(t, outcome{stdout: `a, job 7
RANK  STATE     OLD  NOW  ERROR
0     restored  1    1    -
1     unknown   1    ?    writing: EOF
`, stderr: "mpit-exporter: cvar set: failed: rank 1: writing: EOF\n", status: cli.Partial},
		runBinary(t, nil, "cvar", "set", "--control.socket="+failed.path, "a=2"))

	untouched := startControlStub(t, http.StatusBadGateway, `{"result": "failed", "error": "not now", "jobid": "7", "name": "a", "ranks": [
		{"rank": 0, "state": "unchanged", "old": "1", "value": "1", "error": "writing: not now"}]}`)
	assert.Equal(t, cli.Failure, runBinary(t, nil, "cvar", "set", "--control.socket="+untouched.path, "a=2").status,
		"nothing was changed")

	unread := startControlStub(t, http.StatusBadGateway, `{"result": "failed", "error": "rank 1: late", "ranks": []}`)
	assert.Equal(t, cli.Failure, runBinary(t, nil, "cvar", "set", "--control.socket="+unread.path, "a=2").status,
		"nothing was changed")

	other := startControlStub(t, http.StatusNotFound, "404 page not found\n")
	assert.Equal(t, outcome{stderr: "mpit-exporter: cvar get: what listens there does not answer like an " +
		"mpit-exporter: 404 Not Found: 404 page not found\n", status: cli.Failure},
		runBinary(t, nil, "cvar", "get", "--control.socket="+other.path, "a"))
}

// TestCvarOfAnExporter: the real program on both sides, with the kernel between them.
func TestCvarOfAnExporter(t *testing.T) {
	dir := mpittest.ShortDir(t)
	require.NoError(t, os.Chmod(dir, 0o755))
	e := startExporter(t, filepath.Join(dir, sockets.AgentFile))
	control := filepath.Join(dir, sockets.ControlFile)
	info, err := os.Stat(control)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o666), info.Mode().Perm(), "who may write is decided by who he is")
	assert.Contains(t, e.log(t), "control_socket="+control)

	none := runBinary(t, nil, "cvar", "set", "--control.socket="+control, "--jobid=9", "a=1")
	assert.Equal(t, outcome{stderr: "mpit-exporter: cvar set: refused: no rank of job \"9\" is connected here; " +
		"/api/v1/ranks shows all that are\n", status: cli.Failure}, none)
	connect(t, e)
	awaitPage(t, e, "\nmpit_rank_up{")
	own := runBinary(t, nil, "cvar", "set", "--control.socket="+control, "limit_local=1")
	assert.Equal(t, cli.Failure, own.status)
	assert.Contains(t, own.stderr, "its job does not allow control variables to be written; start it with "+
		"mpit-exporter exec --allow-write")
	_, page := e.get(t, "/metrics")
	assert.Contains(t, page, `mpit_exporter_cvar_writes_total{result="refused"} 2`)
	assert.Contains(t, e.log(t), fmt.Sprintf(`msg="Control variable not set" uid=%d`, os.Getuid()))

	if os.Geteuid() != 0 {
		t.Skip("not tested: only root can be another user")
	}
	require.NoError(t, os.Chmod(built(t), 0o755))
	cmd := exec.Command(binary(t), "cvar", "set", "--control.socket="+control, "--jobid=everything", "limit_local=1")
	cmd.Env = cleanEnviron()
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 12345, Gid: 12345}}
	other := wait(t, cmd)
	assert.Equal(t, outcome{stderr: "mpit-exporter: cvar set: refused: rank 1 belongs to user root (uid 0); only " +
		"that user and root may set its control variables, and the caller is uid 12345\n",
		status: cli.Failure}, other)
}

// TestControlSocketFile: it can be elsewhere or nowhere, goes with the exporter, and a killed one's is taken over.
func TestControlSocketFile(t *testing.T) {
	dir := mpittest.ShortDir(t)
	own := filepath.Join(dir, "own.sock")
	first := startExporter(t, filepath.Join(dir, sockets.AgentFile), "--control.socket="+own)
	assert.FileExists(t, own)
	assert.NoFileExists(t, filepath.Join(dir, sockets.ControlFile))
	assert.Equal(t, -1, first.end(t, syscall.SIGKILL))
	second := startExporter(t, filepath.Join(dir, sockets.AgentFile), "--control.socket="+own)
	assert.Zero(t, second.end(t, syscall.SIGTERM))
	assert.NoFileExists(t, own)

	none := startExporter(t, filepath.Join(dir, sockets.AgentFile), "--control.socket=")
	assert.Contains(t, none.log(t), "control_socket=none")
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, left, 1)
	assert.Zero(t, none.end(t, syscall.SIGTERM))
}
