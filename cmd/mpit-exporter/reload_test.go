package main

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// request makes a request without a body.
func (e *exporterProcess) request(t *testing.T, method, path string) (status int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, e.url+path, http.NoBody)
	require.NoError(t, err)
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(text)
}

const (
	reloaded = "\nmpit_exporter_config_last_reload_successful 1\n"
	refused  = "\nmpit_exporter_config_last_reload_successful 0\n"
	counters = "mpit_each_aggregate_unsigned_long_aggregate_total" // of the simulated rank
	renamed  = "mpit_renamed_total"
)

// rulesFile writes a rule file that the test changes.
func rulesFile(t *testing.T, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "rules.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// sampleOf is the line of the first series of a metric.
func sampleOf(page, name string) string {
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, name+"{") {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// TestHangup: SIGHUP reads the rules anew; bad ones leave the old ones in force.
func TestHangup(t *testing.T) {
	path := rulesFile(t, "rules:\n- match: {name: each_aggregate_unsigned_long}\n  help: Mine.\n")
	e := startExporter(t, filepath.Join(mpittest.ShortDir(t), "agent.sock"), "--config.file="+path)
	connect(t, e)
	page := awaitPage(t, e, "\n"+counters+"{", reloaded)
	assert.Contains(t, page, "Mine.")
	value := regexp.MustCompile(`[^}]*$`)

	require.NoError(t, os.WriteFile(path, []byte("rules:\n- match: {name: each_aggregate_unsigned_long}\n  name: "+
		"renamed\n"), 0o600))
	require.NoError(t, e.cmd.Process.Signal(syscall.SIGHUP))
	page = awaitPage(t, e, "\n"+renamed+"{", `mpit_exporter_config_reloads_total{result="success"} 1`)
	assert.NotContains(t, page, "\n"+counters+"{")
	assert.Equal(t, " 0", value.FindString(sampleOf(page, renamed)), "it begins now")

	require.NoError(t, os.WriteFile(path, []byte(badRules1), 0o600))
	require.NoError(t, e.cmd.Process.Signal(syscall.SIGHUP))
	page = awaitPage(t, e, refused, `mpit_exporter_config_reloads_total{result="failure"} 1`)
	assert.NotEmpty(t, sampleOf(page, renamed), "the old rules stay")
	for _, place := range []string{path + ":3:", path + ":4:"} {
		assert.Regexp(t, `(?m)^.*level=ERROR .*err="`+regexp.QuoteMeta(place)+`.*$`, e.log(t))
	}

	require.NoError(t, os.WriteFile(path, []byte(goodRules), 0o600))
	require.NoError(t, e.cmd.Process.Signal(syscall.SIGHUP))
	awaitPage(t, e, reloaded, "\n"+counters+"{")
	assert.Zero(t, e.end(t, syscall.SIGTERM))
}

func TestReloadOverHTTP(t *testing.T) {
	path := rulesFile(t, goodRules)
	e := startExporter(t, filepath.Join(mpittest.ShortDir(t), "agent.sock"), "--config.file="+path,
		"--web.enable-lifecycle")
	status, body := e.request(t, http.MethodPost, "/-/reload")
	assert.Equal(t, http.StatusOK, status)
	assert.Equal(t, "the new rules are in force\n", body)
	status, _ = e.request(t, http.MethodGet, "/-/reload")
	assert.Equal(t, http.StatusMethodNotAllowed, status)

	require.NoError(t, os.WriteFile(path, []byte(badRules1), 0o600))
	status, body = e.request(t, http.MethodPost, "/-/reload")
	assert.Equal(t, http.StatusInternalServerError, status)
	assert.Contains(t, body, path+":3:")
	assert.Contains(t, body, path+":4:")
	awaitPage(t, e, refused)

	closed := startExporter(t, filepath.Join(mpittest.ShortDir(t), "agent.sock"))
	status, body = closed.request(t, http.MethodPost, "/-/reload")
	assert.Equal(t, http.StatusForbidden, status)
	assert.Equal(t, "reloading over HTTP is not enabled; start the exporter with --web.enable-lifecycle, or send it "+
		"SIGHUP\n", body)
	status, _ = closed.request(t, http.MethodGet, "/-/reload")
	assert.Equal(t, http.StatusMethodNotAllowed, status)
}

// TestBadRulesAtStart: the exporter does not start, and all that is wrong is said.
func TestBadRulesAtStart(t *testing.T) {
	dir := writeFiles(t, map[string]string{"1.yaml": badRules1, "2.yaml": badRules2})
	socket := filepath.Join(mpittest.ShortDir(t), "agent.sock")
	got := runBinary(t, nil, "--agent.socket="+socket, "--web.listen-address=127.0.0.1:0", "--config.file="+dir)
	assert.Equal(t, cli.Failure, got.status)
	lines := strings.Split(strings.TrimSpace(got.stderr), "\n")
	require.Len(t, lines, 3, got.stderr)
	for i, place := range []string{"1.yaml:3:", "1.yaml:4:", "2.yaml:1:"} {
		assert.True(t, strings.HasPrefix(lines[i], filepath.Join(dir, place)), lines[i])
	}
	assert.NoFileExists(t, socket)
	got = runBinary(t, nil, "--config.file=")
	assert.Equal(t, outcome{stderr: cli.ProgramName + ": --config.file: the name of a file is empty\n",
		status: cli.Usage}, got)
}

// TestReloadNotifiesSystemd as a service of Type=notify-reload has to.
func TestReloadNotifiesSystemd(t *testing.T) {
	environ, receive := serviceManager(t)
	rules := rulesFile(t, goodRules)
	cmd := exec.Command(binary(t))
	cmd.Env = append(cleanEnviron(), environ)
	e := startCommand(t, cmd, filepath.Join(mpittest.ShortDir(t), "agent.sock"), "--config.file="+rules)
	assert.Equal(t, "READY=1", receive())
	for _, text := range []string{goodRules, badRules1} {
		require.NoError(t, os.WriteFile(rules, []byte(text), 0o600))
		require.NoError(t, e.cmd.Process.Signal(syscall.SIGHUP))
		assert.Regexp(t, `^RELOADING=1\nMONOTONIC_USEC=\d+\n$`, receive())
		assert.Equal(t, "READY=1", receive(), "with the old rules, if need be")
	}
	assert.Zero(t, e.end(t, syscall.SIGTERM))
	assert.Equal(t, "STOPPING=1", receive())
}
