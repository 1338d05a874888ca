package e2e

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// transcript is what a program has printed so far.
type transcript struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (t *transcript) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.Write(b)
}

func (t *transcript) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}

// The standard's tool for long unexpected queues, in Go and from outside the job, tells of the queue of a live one,
// and of no other.
func TestUnexpectedExample(t *testing.T) {
	t.Parallel()
	tool := filepath.Join(suite.Dir(t), "unexpected")
	build := suite.Start(t, []string{harness.Tool(t, "go"), "build", "-C", suite.Root(), "-o", tool,
		"./examples/unexpected"}, nil)
	result := build.Wait(t)
	require.Zero(t, result.Status, result.Stderr)

	socket := filepath.Join(suite.Dir(t), "tool.sock")
	said := &transcript{}
	watching, _ := suite.StartTalking(t, []string{tool, "-socket", socket, "-comm", "backlog", "-threshold", "40",
		"-every", "50ms"}, nil, said)
	says := func(text string) func(context.Context) error {
		return func(context.Context) error {
			if !strings.Contains(said.String(), text) {
				return errors.New(said.String())
			}
			return nil
		}
	}
	harness.Await(t, "the tool to listen", says("MPIT_SOCKET="+socket))

	run := suite.Run(t, harness.Job{MPI: harness.OpenMPI(t), Program: "unexpected.c",
		Args: []string{"41", harness.HoldDir}, Socket: socket})
	run.AtHold(t, "queued")
	harness.Await(t, "the long queue", says("rank 1: 41 unexpected messages from rank 0\n"))
	run.Finish(t, "queued", "drained")
	watching.Signal(t, syscall.SIGINT)
	assert.Zero(t, watching.Wait(t).Status)
	assert.NotContains(t, said.String(), "rank 0:")
}
