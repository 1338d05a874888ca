package main

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// connect makes a simulated rank with everything there is and connects it to an exporter.
func connect(t *testing.T, e *exporterProcess) *mpittest.Rank {
	t.Helper()
	r := mpittest.New(mpittest.Everything())
	require.NoError(t, r.Connect(t.Context(), e.socket))
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// awaitPage reads the metrics until they contain all of want.
func awaitPage(t *testing.T, e *exporterProcess, want ...string) string {
	t.Helper()
	var page string
	require.Eventually(t, func() bool {
		_, page = e.get(t, "/metrics")
		for _, text := range want {
			if !strings.Contains(page, text) {
				return false
			}
		}
		return true
	}, patience, 20*time.Millisecond, "the page never had %q", want)
	return page
}

func TestServePages(t *testing.T) {
	e := startExporter(t, filepath.Join(mpittest.ShortDir(t), "agent.sock"))
	connect(t, e)

	page := awaitPage(t, e, "\nmpit_rank_up{")
	for _, family := range []string{
		"mpit_process_info", "mpit_pvar_info", "mpit_exporter_build_info", "mpit_exporter_ranks", "go_goroutines",
		"process_open_fds",
	} {
		assert.Contains(t, page, "\n# HELP "+family+" ", family)
	}

	for _, test := range []struct {
		path   string
		status int
		want   string // somewhere in the body
	}{
		{"/", http.StatusOK, `href="metrics"`},
		{"/", http.StatusOK, `href="api/v1/ranks"`},
		{"/-/page/main.js", http.StatusOK, "import "},
		{"/api/v1/values", http.StatusOK, `"metric":"mpit_`},
		{"/-/healthy", http.StatusOK, "healthy\n"},
		{"/-/ready", http.StatusOK, "ready\n"},
		{"/api/v1/ranks", http.StatusOK, `"state": "up"`},
		{"/api/v1/catalogue", http.StatusOK, `"control_variables": [`},
		{"/nothing", http.StatusNotFound, ""},
		{"/debug/pprof/", http.StatusNotFound, ""},
		{"/api/v1/nothing", http.StatusNotFound, ""},
	} {
		status, body := e.get(t, test.path)
		assert.Equal(t, test.status, status, test.path)
		assert.Contains(t, body, test.want, test.path)
	}
}

// docs/metrics.md has what the program says of itself, and nothing else.
func TestServedMetricsAreDocumented(t *testing.T) {
	e := startExporter(t, filepath.Join(mpittest.ShortDir(t), "agent.sock"))
	connect(t, e)
	page := awaitPage(t, e, "\nmpit_rank_up{")
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "metrics.md"))
	require.NoError(t, err)
	documented := regexp.MustCompile("`(mpit_exporter_[a-z_]*[a-z])`").FindAllStringSubmatch(string(text), -1)
	for _, m := range documented {
		assert.True(t, strings.Contains(page, "\n# HELP "+m[1]+" "), "%s of docs/metrics.md is not served", m[1])
	}
	for _, m := range regexp.MustCompile(`(?m)^# HELP (mpit_exporter_\w+) `).FindAllStringSubmatch(page, -1) {
		assert.True(t, strings.Contains(string(text), "`"+m[1]+"`"), "%s is not in docs/metrics.md", m[1])
	}
}

func TestServeFlags(t *testing.T) {
	e := startExporter(t, filepath.Join(mpittest.ShortDir(t), "agent.sock"),
		"--web.telemetry-path=/own/path", "--web.enable-pprof", "--web.max-requests=3", "--log.format=json",
		"--log.level=debug")
	status, page := e.get(t, "/own/path")
	assert.Equal(t, http.StatusOK, status)
	assert.Contains(t, page, "mpit_exporter_build_info")
	status, _ = e.get(t, "/metrics")
	assert.Equal(t, http.StatusNotFound, status)
	status, _ = e.get(t, "/debug/pprof/")
	assert.Equal(t, http.StatusOK, status)
	assert.Contains(t, e.log(t), `"agent_socket":`)
}

// TestSignalEndsCleanly: status 0, and neither the socket nor the address file stays. What a rank says at its end is
// not waited for.
func TestSignalEndsCleanly(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(signal.String(), func(t *testing.T) {
			dir := mpittest.ShortDir(t)
			e := startExporter(t, filepath.Join(dir, "agent.sock"))
			connect(t, e)
			awaitPage(t, e, "\nmpit_rank_up{")
			assert.Zero(t, e.end(t, signal))
			left, err := os.ReadDir(dir)
			require.NoError(t, err)
			assert.Empty(t, left)
			assert.NoFileExists(t, e.addressFile)
		})
	}
}

// TestStaleSocket: a killed exporter leaves its socket file, the next one takes it over, and ranks come back to it
// with what the first one had stored in them.
func TestStaleSocket(t *testing.T) {
	socket := filepath.Join(mpittest.ShortDir(t), "agent.sock")
	first := startExporter(t, socket)
	r := connect(t, first)
	awaitPage(t, first, "\nmpit_rank_up{")
	assert.Equal(t, -1, first.end(t, syscall.SIGKILL))
	assert.FileExists(t, socket)

	second := startExporter(t, socket)
	require.NoError(t, r.Connect(t.Context(), socket))
	awaitPage(t, second, "\nmpit_rank_up{")
}

// TestLiveSocketIsRefused: a living exporter keeps its socket, and its ranks.
func TestLiveSocketIsRefused(t *testing.T) {
	e := startExporter(t, filepath.Join(mpittest.ShortDir(t), "agent.sock"))
	connect(t, e)
	got := runBinary(t, nil, "--agent.socket="+e.socket, "--web.listen-address=127.0.0.1:0")
	assert.Equal(t, cli.Failure, got.status)
	assert.Contains(t, got.stderr, "another exporter that is alive listens there")
	awaitPage(t, e, "\nmpit_rank_up{")
	connect(t, e)
}

// TestEndedRankStays: a job that ends between two scrapes is seen by the next one.
func TestEndedRankStays(t *testing.T) {
	e := startExporter(t, filepath.Join(mpittest.ShortDir(t), "agent.sock"))
	r := mpittest.New(mpittest.Everything())
	require.NoError(t, r.Finish(t.Context(), e.socket, mpit.EndFinalize))
	page := awaitPage(t, e, "\nmpit_rank_end_info{")
	assert.Contains(t, page, `reason="finalize"`)
}

// serviceManager hears what a service tells systemd: environ is the variable that the service needs, receive waits
// for its next word.
func serviceManager(t *testing.T) (environ string, receive func() string) {
	t.Helper()
	path := filepath.Join(mpittest.ShortDir(t), "notify.sock")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return "NOTIFY_SOCKET=" + path, func() string {
		buffer := make([]byte, 256)
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(patience)))
		n, err := conn.Read(buffer)
		require.NoError(t, err)
		return string(buffer[:n])
	}
}

func TestNotifiesSystemd(t *testing.T) {
	environ, receive := serviceManager(t)
	cmd := exec.Command(binary(t))
	cmd.Env = append(cleanEnviron(), environ)
	e := startCommand(t, cmd, filepath.Join(mpittest.ShortDir(t), "agent.sock"))
	assert.Equal(t, "READY=1", receive())
	assert.Zero(t, e.end(t, syscall.SIGTERM))
	assert.Equal(t, "STOPPING=1", receive())
}

// TestSystemdSocket: the port is open before the exporter is, and handed over.
func TestSystemdSocket(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	file, err := l.(*net.TCPListener).File()
	require.NoError(t, err)
	defer func() { _ = file.Close() }()

	// The number of the process stands in its environment: only a shell knows it in time.
	cmd := exec.Command("/bin/sh", "-c", `export LISTEN_PID=$$ LISTEN_FDS=1; exec "$0" "$@"`, binary(t))
	cmd.ExtraFiles = []*os.File{file}
	e := startCommand(t, cmd, filepath.Join(mpittest.ShortDir(t), "agent.sock"), "--web.systemd-socket")
	assert.Equal(t, "http://"+l.Addr().String(), e.url)
}
