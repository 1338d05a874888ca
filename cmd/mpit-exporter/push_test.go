package main

import (
	"net/http"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/sockets"
	"github.com/mpit-exporter/mpit-exporter/exporter/otlp/otlptest"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// TestPushOnceAsks: an exporter's answer is one line, and the exit status says whether all was delivered.
func TestPushOnceAsks(t *testing.T) {
	for _, test := range []struct {
		name, answer string
		http         int
		want         outcome
	}{
		{"all", `{"result": "ok", "points": 1234}`, http.StatusOK, outcome{stdout: "1234 points delivered\n"}},
		{"a part", `{"result": "failed", "error": "pushing to http://x: full", "points": 5}`, http.StatusBadGateway,
			outcome{stderr: "mpit-exporter: push: 5 points delivered, but not all: the exporter of this node: " +
				"failed: pushing to http://x: full\n", status: cli.Partial}},
		{"nothing", `{"result": "failed", "error": "pushing to http://x: away\nfor good", "points": 0}`,
			http.StatusBadGateway,
			outcome{stderr: "mpit-exporter: push: the exporter of this node: failed: pushing to http://x: away for " +
				"good\n", status: cli.Failure}},
		{"nothing that was liked", `{"result": "ok", "points": 0}`, http.StatusOK,
			outcome{stderr: "mpit-exporter: push: the receiver has accepted none of the points; its log, and the " +
				"exporter's, may say why\n", status: cli.Failure}},
		{"not allowed", `{"result": "refused", "error": "only root", "points": 0}`, http.StatusForbidden,
			outcome{stderr: "mpit-exporter: push: the exporter of this node: refused: only root\n",
				status: cli.Failure}},
		{"an older exporter", "404 page not found\n", http.StatusNotFound,
			outcome{stderr: "mpit-exporter: push: what listens there does not answer like an mpit-exporter: 404 Not " +
				"Found: 404 page not found\n", status: cli.Failure}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := startControlStub(t, test.http, test.answer)
			// Beside the agent socket, whether that is named or what the ranks have.
			agent := filepath.Join(filepath.Dir(s.path), sockets.AgentFile)
			assert.Equal(t, test.want, runBinary(t, nil, "push", "--once", "--agent.socket="+agent))
			assert.Equal(t, test.want, runBinary(t, []string{sockets.EnvSocket + "=" + agent}, "push", "--once"))
			assert.Equal(t, test.want, runBinary(t, nil, "push", "--once", "--control.socket="+s.path))
		})
	}
}

// TestEndDoesNotWaitForReceivers: one that never answers keeps the exporter from its end for as long as a message may
// take, and no longer.
func TestEndDoesNotWaitForReceivers(t *testing.T) {
	t.Parallel()
	never := make(chan struct{})
	receiver, err := otlptest.Start(otlptest.Options{Answer: func(*otlptest.Request) otlptest.Answer {
		return otlptest.Accept().When(never)
	}})
	require.NoError(t, err)
	defer receiver.Close()
	cmd := exec.Command(binary(t))
	cmd.Env = append(cleanEnviron(), "OTEL_EXPORTER_OTLP_TIMEOUT=3000")
	e := startCommand(t, cmd, filepath.Join(mpittest.ShortDir(t), sockets.AgentFile), "--otlp.endpoint="+receiver.URL(),
		"--otlp.protocol=grpc", "--otlp.interval=24h")
	connect(t, e)
	awaitPage(t, e, "\nmpit_rank_up{", `mpit_exporter_otlp_pushes_total{result="failure"} 0`)
	assert.Zero(t, e.end(t, syscall.SIGTERM))
	assert.NotEmpty(t, receiver.All(), "it was tried")
	assert.Empty(t, receiver.Requests())
	assert.Contains(t, e.log(t), `msg="The last push has failed"`)
}

// TestOTLPIsOff: without being asked for, nothing of it is there.
func TestOTLPIsOff(t *testing.T) {
	e := startExporter(t, filepath.Join(mpittest.ShortDir(t), sockets.AgentFile))
	_, page := e.get(t, "/metrics")
	assert.NotContains(t, page, "mpit_exporter_otlp_")
	assert.Contains(t, e.log(t), "otlp=none")
}
