package own

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/node"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/preload"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/sockets"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// patience bounds failures on a loaded machine; no test measures time.
const patience = 2 * time.Minute

// withoutOTLP clears what the environment says of OTLP.
func withoutOTLP(t *testing.T) {
	t.Helper()
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "OTEL_") {
			t.Setenv(name, "")
		}
	}
}

// TestOwnIsBounded: an exporter that was stopped while it began keeps nobody.
func TestOwnIsBounded(t *testing.T) {
	parent := mpittest.ShortDir(t)
	base, err := makeBase(parent)
	require.NoError(t, err)
	host, err := os.Hostname()
	require.NoError(t, err)
	dir, err := base.lock(launchOf(nil, host, os.Getpid(), "/proc"))
	require.NoError(t, err)
	defer dir.close()
	o := &Settings{Enabled: true, parent: parent, patience: 50 * time.Millisecond, otlp: &node.OTLPFlags{}}
	var stderr bytes.Buffer
	assert.Equal(t, dir.file(sockets.AgentFile), o.Join(t.Context(), "program", nil, cli.Stdio{Err: &stderr}))
	assert.Equal(t, "mpit-exporter: --own: its exporter does not listen after 50ms; the program runs on unobserved\n",
		stderr.String())
	stderr.Reset()
	o.Join(t.Context(), "program", preload.Environment{"MPI_LOCALRANKID=1"}, cli.Stdio{Err: &stderr})
	assert.Empty(t, stderr.String(), "another process says it")
}

// TestOwnFlags: OTLP's go to the exporter as they are, and files with their whole paths.
func TestOwnFlags(t *testing.T) {
	withoutOTLP(t)
	here, err := os.Getwd()
	require.NoError(t, err)
	var program []string
	parse := func(args ...string) *Settings {
		app := kingpin.New("test", "")
		app.Interspersed(false)
		cmd := app.Command("exec", "")
		o := &Settings{}
		o.AddFlags(cmd)
		program = nil
		cmd.Arg("program", "").StringsVar(&program)
		_, err := app.Parse(append([]string{"exec"}, args...))
		require.NoError(t, err)
		return o
	}
	o := parse("--own", "--otlp", "--otlp.endpoint=http://here:4318?a=b", "--otlp.protocol", "grpc", "--no-otlp.final",
		"--", "app", "--otlp.endpoint=not-mine")
	assert.Equal(t, []string{
		"--otlp", "--otlp.endpoint=http://here:4318?a=b", "--otlp.protocol=grpc", "--no-otlp.final",
	}, o.forwarded)
	assert.Equal(t, []string{"app", "--otlp.endpoint=not-mine"}, program)
	assert.False(t, o.paged(), "pushed, and nothing said of a page")
	assert.Equal(t, []string{"--config.file=/rules", "--config.file=" + filepath.Join(here, "more"), "--config.file=",
		"--web.config.file=" + filepath.Join(here, "web")},
		parse("--own.config=/rules", "--own.config=more", "--own.config=", "--own.web-config=web").forwarded)
	assert.True(t, parse("--own").paged())
	assert.True(t, parse("--own", "--otlp", "--own.listen=:0").paged())
	assert.False(t, parse("--own", "--otlp", "--own.listen=none").paged())
}

// TestEnvironment: the exporter is no service manager's, and finds the user's files from another directory.
func TestEnvironment(t *testing.T) {
	t.Chdir("/usr")
	assert.Equal(t, []string{"HOME=here", "OTEL_EXPORTER_OTLP_CERTIFICATE=/usr/ca.pem",
		"OTEL_EXPORTER_OTLP_METRICS_CLIENT_KEY=/key.pem", "OTEL_EXPORTER_OTLP_CLIENT_KEY=", "OTEL_EXPORTER_OTLP_HEADERS=a"},
		environment(preload.Environment{"HOME=here", "NOTIFY_SOCKET=/run/notify", "OTEL_EXPORTER_OTLP_CERTIFICATE=ca.pem",
			"OTEL_EXPORTER_OTLP_METRICS_CLIENT_KEY=/key.pem", "OTEL_EXPORTER_OTLP_CLIENT_KEY=",
			"OTEL_EXPORTER_OTLP_HEADERS=a"}))
}
