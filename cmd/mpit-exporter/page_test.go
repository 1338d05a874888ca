package main

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/sockets"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// startPage runs "mpit-exporter page" as a user and returns the address that it prints.
func startPage(t *testing.T, uid uint32, control string) (cmd *exec.Cmd, address string) {
	t.Helper()
	cmd = exec.Command(binary(t), "page", "--control.socket="+control)
	cmd.Env = cleanEnviron()
	if uid != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	}
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	address, err = bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	return cmd, strings.TrimSpace(address)
}

// TestPage: the page, and what it asks for, are served to who knows the whole address, until a signal. What may be
// changed on the control socket can't be from here.
func TestPage(t *testing.T) {
	t.Parallel()
	dir := mpittest.ShortDir(t)
	e := startExporter(t, filepath.Join(dir, sockets.AgentFile))
	connect(t, e)
	awaitPage(t, e, "\nmpit_rank_up{")
	cmd, address := startPage(t, 0, filepath.Join(dir, sockets.ControlFile))
	require.Regexp(t, `^http://127\.0\.0\.1:\d+/[A-Z2-7]{26}/$`, address)
	client := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	ask := func(method, url string) (status int, text string) {
		request, err := http.NewRequestWithContext(t.Context(), method, url, http.NoBody)
		require.NoError(t, err)
		response, err := client.Do(request)
		require.NoError(t, err)
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return response.StatusCode, string(body)
	}
	for path, want := range map[string]string{
		"": "MPI jobs on this node", "-/page/main.js": "import", "api/v1/jobs": `"jobid":"everything"`,
		"api/v1/values?jobid=everything": `"jobid":"everything"`, "api/v1/ranks": `"everything"`,
	} {
		status, text := ask(http.MethodGet, address+path)
		assert.Equal(t, http.StatusOK, status, path)
		assert.Contains(t, text, want, path)
	}
	status, _ := ask(http.MethodPost, address+"api/v1/cvar")
	assert.Equal(t, http.StatusMethodNotAllowed, status)
	status, _ = ask(http.MethodGet, address+"metrics")
	assert.Equal(t, http.StatusNotFound, status)
	port, secret, _ := strings.Cut(strings.TrimPrefix(address, "http://"), "/")
	for _, path := range []string{"/", "/api/v1/jobs", "/-/page/main.js", "/" + secret[1:], "/" + secret[:25] + "/api/v1/jobs",
		"/x/../" + secret[:25], "//" + secret + "api/v1/jobs"} {
		status, text := ask(http.MethodGet, "http://"+port+path)
		assert.Equal(t, http.StatusForbidden, status, path)
		assert.NotContains(t, text, "everything")
	}
	assert.Zero(t, e.end(t, syscall.SIGTERM))
	status, text := ask(http.MethodGet, address+"api/v1/jobs")
	assert.Equal(t, http.StatusBadGateway, status)
	assert.Contains(t, text, `{"error":"no exporter answers at `)
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	require.NoError(t, cmd.Wait())
}

// TestPrivateExporter: its port is for scrapers and judges; users see their own jobs on the control socket, and top, list
// and report ask there by themselves. Operators see all.
func TestPrivateExporter(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("not tested: only root can be another user")
	}
	dir := mpittest.ShortDir(t)
	require.NoError(t, os.Chmod(dir, 0o755))
	require.NoError(t, os.Chmod(built(t), 0o755))
	web := filepath.Join(dir, "web.yaml")
	require.NoError(t, os.WriteFile(web, []byte(basicAuth(t, "prometheus", "right")), 0o600))
	e := launchExporter(t, t.TempDir(), exec.Command(binary(t)), filepath.Join(dir, sockets.AgentFile), "--web.private",
		"--web.config.file="+web, "--operator=daemon", "--operator=@adm")
	connect(t, e) // root's
	ask := func(path, user string) int {
		response, err := ask(t, http.DefaultClient, http.MethodGet, e.url+path, user, "right")
		require.NoError(t, err)
		return response.StatusCode
	}
	assert.Equal(t, http.StatusUnauthorized, ask("/metrics", ""))
	assert.Equal(t, http.StatusOK, ask("/metrics", "prometheus"))
	assert.Equal(t, http.StatusOK, ask("/api/v1/report", "prometheus"))
	assert.Equal(t, http.StatusForbidden, ask("/api/v1/ranks", "prometheus"))
	assert.Equal(t, http.StatusForbidden, ask("/", "prometheus"))

	as := func(uid, group uint32, args ...string) outcome {
		cmd := exec.Command(binary(t), args...)
		cmd.Env = append(cleanEnviron(), sockets.EnvSocket+"="+e.socket)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid, Groups: []uint32{group}}}
		return wait(t, cmd)
	}
	for _, test := range []struct {
		name       string
		uid, group uint32
		sees       bool
	}{{"root", 0, 0, true}, {"an operator", 1, 1, true}, {"of the operators' group", 12345, 4, true}, {"another", 12345, 5, false}} {
		t.Run(test.name, func(t *testing.T) {
			for _, args := range [][]string{{"list"}, {"list", "--jobid=everything"}, {"report"}, {"report", "--jobid=everything"},
				{"top", "--count=1", "--interval=100ms"}, {"cvar", "get", "--jobid=everything", "limit_local"}} {
				got := as(test.uid, test.group, args...)
				if test.sees {
					assert.Contains(t, got.stdout, "everything", "%v: %s", args, got.stderr)
					continue
				}
				text := strings.ReplaceAll(got.stdout+got.stderr, "no job everything", "")
				assert.NotContains(t, strings.ReplaceAll(text, `no rank of job "everything"`, ""), "everything", "%v", args)
			}
		})
	}
	none := as(12345, 5, "report", "--jobid=everything")
	assert.Contains(t, none.stderr, "has no job everything, nor any other")
}
