package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// output is what the tool has printed so far.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// A job of three ranks, of which one has many messages of another waiting and another ends; a rank without the
// variable; one that may not be asked for it.
func TestTool(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "mpit")
	require.NoError(t, err)
	defer func() { _ = os.RemoveAll(dir) }()
	socket := filepath.Join(dir, "unexpected.sock")

	var out output
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- run(running, &out, socket, "MPI_COMM_WORLD", 10, time.Millisecond) }()
	has := func(what string) {
		t.Helper()
		require.Eventually(t, func() bool { return strings.Contains(out.String(), what) }, 2*time.Minute,
			time.Millisecond, what)
	}
	has("start the job with MPIT_SOCKET=" + socket + "\n")

	job := mpittest.NewJob(3)
	other := mpittest.New(mpittest.Config{Hello: mpit.Hello{Rank: 7, Size: 8}})
	denied := mpittest.New(mpittest.Config{
		Hello: mpit.Hello{Rank: 6, Size: 8},
		Variables: []mpit.Variable{{Name: variable, Class: mpit.ClassSize, Bind: mpit.BindComm,
			State: mpit.VariableDenied}},
		Objects: []mpit.Object{{Kind: mpit.BindComm, Name: "MPI_COMM_WORLD"}},
	})
	for _, r := range append(job.Ranks, other, denied) {
		require.NoError(t, r.Connect(ctx, socket))
		defer r.Kill()
	}
	const world = 1
	require.NoError(t, job.Ranks[0].Set(variable, mpit.ClassSize, world, 10))
	require.NoError(t, job.Ranks[1].Set(variable, mpit.ClassSize, world, 0, 3, 11))
	has("rank 1: 11 unexpected messages from rank 2\n")
	require.NoError(t, job.Ranks[1].Set(variable, mpit.ClassSize, world, 25, 3, 0))
	has("rank 1: 25 unexpected messages from rank 0\n")
	has("rank 6: mpit: handle alloc: MPI_T_ERR_NOT_ACCESSIBLE: the variable is on the deny list\n")
	if err := job.Ranks[2].Finish(ctx, socket, mpit.EndFinalize); err != nil {
		require.ErrorIs(t, err, syscall.EPIPE, "nobody has to hear its last words")
	}

	stop()
	require.NoError(t, <-ended)
	assert.NotContains(t, out.String(), "rank 0:")
	assert.NotContains(t, out.String(), "rank 2:", "it has ended")
	assert.NotContains(t, out.String(), "rank 7:", "it has nothing to tell")
	assert.NotContains(t, out.String(), " 3 unexpected")
	_, err = os.Stat(socket)
	assert.ErrorIs(t, err, os.ErrNotExist)
}
