package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

const (
	// catalogueTimeout is how long a rank may take to say everything.
	catalogueTimeout = 10 * time.Second
	// lingerTimeout is how long a program that has reached MPI_Finalize is kept there until everything has been asked for.
	lingerTimeout = 2 * time.Second
	// lastWordsTimeout is how long after the program's end its last samples are waited for: they have been sent by then.
	lastWordsTimeout = time.Second
	// followInterval is how often the rank is asked for new objects: the program may free them before it ends.
	followInterval = 100 * time.Millisecond
	// killTimeout is how long the program may take to end when list is interrupted.
	killTimeout = 5 * time.Second
)

// listProgram runs the program under the agent, to its end, and returns what MPI_T offers in the first of its ranks that says so.
func (c *listCommand) listProgram(ctx context.Context, env []string, std stdio) (_ api.Catalogue, err error) {
	if err := c.settings.complete(env); err != nil {
		return api.Catalogue{}, &exitError{exitExecFailed, err}
	}
	path, err := lookProgram(c.program[0], env)
	if err != nil {
		return api.Catalogue{}, err
	}
	c.settings.file = lookAt(path, c.settings.library)
	mapper, err := mapping.New(mapping.Config{})
	if err != nil {
		return api.Catalogue{}, fmt.Errorf("mapping rules: %w", err)
	}

	// A directory that only this user can enter: nobody else's rank belongs into the list.
	dir, err := os.MkdirTemp("", "mpit-list-")
	if err != nil {
		return api.Catalogue{}, fmt.Errorf("list: making a directory for the socket: %w", err)
	}
	defer os.RemoveAll(dir)
	c.settings.socket = filepath.Join(dir, socketFile)
	listener, err := mpit.Listen(c.settings.socket, mpit.WithMode(0o600))
	if err != nil {
		return api.Catalogue{}, fmt.Errorf("list: %w; a shorter TMPDIR may help", err)
	}
	defer func() { err = errors.Join(err, listener.Close()) }()

	c.settings.linger = lingerTimeout
	changed, notes := c.settings.environ(env)
	for _, note := range notes {
		fmt.Fprintf(std.err, "%s: %s\n", programName, note)
	}
	ranks := newListedRanks(mapper)
	serving, stop := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { served <- listener.Serve(serving, ranks.handle, nil) }()
	ended := runProgram(ctx, path, c.program, changed, std)
	ranks.awaitLastWords(ctx)
	stop()
	if err := <-served; err != nil {
		return api.Catalogue{}, fmt.Errorf("list: %w", err)
	}
	if ctx.Err() != nil {
		return api.Catalogue{}, errors.New("list: interrupted")
	}

	if ended != nil {
		fmt.Fprintf(std.err, "%s: %s: %v\n", programName, c.program[0], ended)
	}
	catalogue, missing, ok := ranks.catalogue()
	if !ok {
		return api.Catalogue{}, fmt.Errorf("list: %s has brought no MPI rank; is it a dynamically linked program that calls MPI_Init? (MPIT_AGENT_LOG=1 makes the agent say what it does)",
			c.program[0])
	}
	if missing != "" {
		fmt.Fprintf(std.err, "%s: %s\n", programName, missing)
	}
	return catalogue, nil
}

// runProgram runs the program until it ends. What it prints goes to stderr, for stdout is the list's.
func runProgram(ctx context.Context, path string, argv, env []string, std stdio) error {
	cmd := exec.CommandContext(ctx, path, argv[1:]...) //nolint:gosec // G204: running the user's program is what this is for
	cmd.Args[0] = argv[0]
	cmd.Env = env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = std.in, std.err, std.err
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = killTimeout
	return cmd.Run()
}

// listedRanks gathers what the ranks of the program say. One of them is enough, but which one lives long enough is not known
// beforehand.
type listedRanks struct {
	mapper  *mapping.Mapper
	reading chan struct{} // held while a rank is read: one after the other
	last    chan struct{} // gets a token when a last sample has come that is worth it

	mu    sync.Mutex
	id    mpit.RankID // of the rank that whole is from
	whole *api.Catalogue
	final *finalWords
}

// finalWords are a rank's last sample, and who said them.
type finalWords struct {
	id        mpit.RankID
	catalogue api.Catalogue
}

func newListedRanks(mapper *mapping.Mapper) *listedRanks {
	return &listedRanks{mapper: mapper, reading: make(chan struct{}, 1), last: make(chan struct{}, 1)}
}

// handle serves one connection; it is mpit.Listener.Serve's.
func (l *listedRanks) handle(ctx context.Context, s *mpit.Session) {
	defer func() { _ = s.Close() }()
	if !s.Hello().Final && l.read(ctx, s) {
		l.follow(ctx, s)
	}
	// A closed connection would be made anew, again and again.
	select {
	case <-s.Done():
	case <-ctx.Done():
	}
	if sample, ok := s.Final(); ok {
		l.takeFinal(s, &sample)
	}
}

// read reads the rank's catalogue, unless another rank's has been read. It returns true if it is this rank's that is listed.
func (l *listedRanks) read(ctx context.Context, s *mpit.Session) bool {
	select {
	case l.reading <- struct{}{}:
	case <-s.Done():
		return false
	case <-ctx.Done():
		return false
	}
	defer func() { <-l.reading }()
	l.mu.Lock()
	had := l.whole != nil
	l.mu.Unlock()
	if had {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, catalogueTimeout)
	defer cancel()
	c, err := api.CatalogueOf(ctx, s, l.mapper)
	if err != nil {
		return false // it has ended too early, or hangs: another rank, or the last sample, will do
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.id, l.whole = s.Hello().ID, &c
	return true
}

// follow looks at the rank's objects and variables until it ends.
func (l *listedRanks) follow(ctx context.Context, s *mpit.Session) {
	tick := time.NewTicker(followInterval)
	defer tick.Stop()
	var layout *mpit.Layout
	var variables *mpit.Variables
	for {
		select {
		case <-tick.C:
		case <-s.Done():
			return
		case <-ctx.Done():
			return
		}
		sample, err := s.Read(ctx)
		if err != nil {
			continue // it has ended, or will say more at its end
		}
		if sample.Layout == layout && sample.Variables == variables || sample.Layout == nil || sample.Variables == nil {
			continue
		}
		layout, variables = sample.Layout, sample.Variables
		later := api.CatalogueOfSample(s, &sample, l.mapper)
		l.mu.Lock()
		l.whole.Update(&later)
		l.mu.Unlock()
	}
}

// takeFinal keeps the last sample of the rank that was read, or of the first one that brings one.
func (l *listedRanks) takeFinal(s *mpit.Session, sample *mpit.Sample) {
	id := s.Hello().ID
	words := &finalWords{id, api.CatalogueOfSample(s, sample, l.mapper)}
	words.catalogue.Rank.State = "ended"
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.whole == nil && l.final == nil || l.whole != nil && l.id == id {
		l.final = words
		select {
		case l.last <- struct{}{}:
		default:
		}
	}
}

// awaitLastWords waits for the last sample that takeFinal would keep.
func (l *listedRanks) awaitLastWords(ctx context.Context) {
	timer := time.NewTimer(lastWordsTimeout)
	defer timer.Stop()
	select {
	case <-l.last:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// catalogue puts together what was said, and says what is missing. The last sample knows more variables than an earlier one:
// some libraries make them when they are first needed.
func (l *listedRanks) catalogue() (c api.Catalogue, missing string, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.whole != nil:
		c = *l.whole
		if l.final != nil && l.final.id == l.id {
			c.Update(&l.final.catalogue)
		}
		return c, "", true
	case l.final != nil:
		return l.final.catalogue, "the program ended before its control variables and categories could be asked for; only the performance variables, which came with its last sample, are shown", true
	}
	return c, "", false
}
