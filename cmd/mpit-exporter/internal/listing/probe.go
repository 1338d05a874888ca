package listing

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/preload"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/sockets"
	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

const (
	// lingerTimeout is how long a program that has reached MPI_Finalize is kept there until everything has been asked
	// for.
	lingerTimeout = 2 * time.Second
	// killTimeout is how long the program may take to end when list is interrupted.
	killTimeout = 5 * time.Second
)

// RunProgram runs the program under the agent, to its end, and returns what MPI_T offers in the first of its ranks that
// says so.
func RunProgram(ctx context.Context, settings preload.Settings, program, env []string, std cli.Stdio) (_ api.Catalogue,
	err error) {
	var none api.Catalogue
	path, err := settings.Complete(env, program[0])
	if err != nil {
		return none, err
	}
	mapper, err := variables.New(variables.Config{})
	if err != nil {
		return none, fmt.Errorf("mapping rules: %w", err)
	}

	// A directory that only this user can enter: nobody else's rank belongs into the list.
	dir, err := os.MkdirTemp("", "mpit-list-")
	if err != nil {
		return none, fmt.Errorf("list: making a directory for the socket: %w", err)
	}
	defer os.RemoveAll(dir)
	settings.Socket = filepath.Join(dir, sockets.AgentFile)
	listener, err := mpit.Listen(settings.Socket, mpit.WithMode(0o600))
	if err != nil {
		return none, fmt.Errorf("list: %w; a shorter TMPDIR may help", err)
	}
	defer func() { err = errors.Join(err, listener.Close()) }()

	settings.Linger = lingerTimeout
	changed, notes := settings.Environ(env)
	for _, note := range notes {
		std.Tell("%s", note)
	}
	ranks := newListedRanks(mapper)
	serving, stop := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { served <- listener.Serve(serving, ranks.handle, nil) }()
	ended := runProgram(ctx, path, program, changed, std)
	ranks.awaitLastWords(ctx)
	stop()
	if err := <-served; err != nil {
		return none, fmt.Errorf("list: %w", err)
	}
	if ctx.Err() != nil {
		return none, errors.New("list: interrupted")
	}

	if ended != nil {
		std.Tell("%s: %v", program[0], ended)
	}
	catalogue, missing, ok := ranks.catalogue()
	if !ok {
		return none, fmt.Errorf("list: %s has brought no MPI rank; is it a dynamically linked program that calls "+
			"MPI_Init? (MPIT_AGENT_LOG=1 makes the agent say what it does)", program[0])
	}
	if missing != "" {
		std.Tell("%s", missing)
	}
	return catalogue, nil
}

// runProgram runs the program until it ends. What it prints goes to stderr, for stdout is the list's.
func runProgram(ctx context.Context, path string, argv, env []string, std cli.Stdio) error {
	//nolint:gosec // G204: running the user's program is what this is for
	cmd := exec.CommandContext(ctx, path, argv[1:]...)
	cmd.Args[0] = argv[0]
	cmd.Env = env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = std.In, std.Err, std.Err
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = killTimeout
	return cmd.Run()
}
