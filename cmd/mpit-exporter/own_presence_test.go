package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func startPresence(t *testing.T) (p *presence, path string) {
	t.Helper()
	path = filepath.Join(shortDir(t), ownSocketFile)
	p, err := newPresence(path, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, p.close()) })
	return p, path
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// sleeper is a process that lives until its stdin is closed.
func sleeper(t *testing.T) (pid int, end func()) {
	t.Helper()
	cmd := exec.Command("cat")
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	end = func() {
		_ = stdin.Close()
		_ = cmd.Wait()
	}
	t.Cleanup(end)
	return cmd.Process.Pid, end
}

func TestPresence(t *testing.T) {
	p, path := startPresence(t)
	present, came := p.count()
	assert.Zero(t, present)
	assert.False(t, came)

	require.NoError(t, register(within(t), path)) // this process, which lives on
	require.NoError(t, register(within(t), path))
	present, came = p.count()
	assert.Equal(t, 1, present)
	assert.True(t, came)
	assert.False(t, p.retire(), "somebody counts on it")
	require.NoError(t, register(within(t), path))
}

// TestPresenceOfProcesses: the kernel tells of their ends; where it can't, it is looked.
func TestPresenceOfProcesses(t *testing.T) {
	t.Parallel() // it waits
	for _, looked := range []bool{false, true} {
		p, path := startPresence(t)
		pid, end := sleeper(t)
		if looked {
			p.mu.Lock()
			p.present[pid] = nil
			p.mu.Unlock()
			p.greeting.Go(func() { p.awaitLooking(pid, statOf(os.DirFS("/proc"), pid).started) })
		} else {
			require.True(t, p.enter(pid))
		}
		assert.False(t, p.retire())
		end()
		require.Eventually(t, p.retire, patience, time.Millisecond, "its end was not seen")
		assert.ErrorContains(t, register(within(t), path), "about to end", "too late")
		assert.False(t, p.enter(os.Getpid()))
	}
}

func TestPresenceOfNobody(t *testing.T) {
	p, path := startPresence(t)
	require.True(t, p.enter(0), "a process of another pid namespace")
	require.True(t, p.enter(1<<22+1), "one that has ended by now")
	present, came := p.count()
	assert.Zero(t, present)
	assert.True(t, came)
	require.NoError(t, p.close())
	assert.Error(t, register(within(t), path))
}

// TestAwaitEnd: an exporter of one launch ends with it, neither before nor much later.
func TestAwaitEnd(t *testing.T) {
	for _, test := range []struct {
		name            string
		comes           bool // a process registers, and ends
		living, untaken int64
		taken           bool // soon
		connects        bool // a rank comes without having registered, and goes
		linger, first   time.Duration
	}{
		{name: "nobody ever comes", first: 20 * time.Millisecond, linger: time.Hour},
		{name: "a process without MPI", comes: true, first: time.Hour, linger: time.Hour},
		{name: "last values are scraped", comes: true, untaken: 2, taken: true, first: time.Hour, linger: time.Hour},
		{name: "nobody scrapes", comes: true, untaken: 2, first: time.Hour, linger: 20 * time.Millisecond},
		{name: "a rank that has not registered", connects: true, untaken: 1, taken: true, first: time.Hour, linger: time.Hour},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, _ := startPresence(t)
			o := &ownMode{presence: p, first: test.first, look: time.Millisecond, order: ownOrder{Linger: test.linger}}
			var living, untaken atomic.Int64
			untaken.Store(test.untaken)
			ended := make(chan struct{})
			var end func()
			if test.comes {
				var pid int
				pid, end = sleeper(t)
				require.True(t, p.enter(pid))
			}
			if test.connects {
				living.Store(1)
			}
			go func() {
				defer close(ended)
				o.awaitEnd(t.Context(), func() (int, int) { return int(living.Load()), int(untaken.Load()) }, slog.New(slog.DiscardHandler))
			}()
			notYet := func(why string) {
				t.Helper()
				select {
				case <-ended:
					t.Fatal("ended though " + why)
				case <-time.After(20 * time.Millisecond):
				}
			}
			if test.comes {
				notYet("a process is there")
				end()
			}
			if test.connects {
				notYet("a rank is connected")
				living.Store(0)
			}
			if test.taken {
				notYet("nobody has the last values")
				untaken.Store(0)
			}
			select {
			case <-ended:
			case <-time.After(patience):
				t.Fatal("never ended")
			}
		})
	}
}

func TestAwaitEndOfAContext(t *testing.T) {
	p, _ := startPresence(t)
	require.True(t, p.enter(os.Getpid()))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	o := &ownMode{presence: p, first: time.Hour, look: time.Hour}
	o.awaitEnd(ctx, func() (int, int) { return 1, 1 }, slog.New(slog.DiscardHandler))
}

// TestFinalPush: who waits has been in a push that began after he came, and pushes never overlap.
func TestFinalPush(t *testing.T) {
	var began atomic.Int64
	hold := make(chan struct{})
	f := &finalPush{wait: patience, log: slog.New(slog.DiscardHandler), push: func(context.Context) (int, error) {
		began.Add(1)
		<-hold
		return 1, nil
	}}
	wait := func() chan struct{} {
		done := make(chan struct{})
		go func() {
			defer close(done)
			f.await(t.Context())
		}()
		return done
	}
	first := wait()
	require.Eventually(t, func() bool { return began.Load() == 1 }, patience, time.Millisecond)
	turn := f.join()
	for range 10 {
		require.Same(t, turn, f.join(), "one push is for all who come during another one")
	}
	later := wait()
	hold <- struct{}{}
	<-first
	require.Eventually(t, func() bool { return began.Load() == 2 }, patience, time.Millisecond)
	select {
	case <-turn.done:
		t.Fatal("it was not in the first push")
	case <-later:
		t.Fatal("it was not in the first push")
	default:
	}
	close(hold)
	<-turn.done
	<-later
	assert.LessOrEqual(t, began.Load(), int64(3), "a third one only if the last to wait has come during the second")
	require.Eventually(t, func() bool { f.mu.Lock(); defer f.mu.Unlock(); return !f.running }, patience, time.Millisecond)
}

// TestFinalPushIsTriedAgain while there is time.
func TestFinalPushIsTriedAgain(t *testing.T) {
	began := 0
	f := &finalPush{wait: patience, log: slog.New(slog.DiscardHandler), push: func(context.Context) (int, error) {
		if began++; began < 3 {
			return 0, errors.New("the receiver is away")
		}
		return 1, nil
	}}
	f.await(t.Context())
	f.mu.Lock()
	defer f.mu.Unlock()
	assert.Equal(t, 3, began)
}

// TestFinalPushIsBounded: a receiver that never answers keeps nobody.
func TestFinalPushIsBounded(t *testing.T) {
	f := &finalPush{wait: 20 * time.Millisecond, log: slog.New(slog.DiscardHandler), push: func(ctx context.Context) (int, error) {
		<-ctx.Done()
		return 0, ctx.Err()
	}}
	f.await(t.Context())
	require.Eventually(t, func() bool { f.mu.Lock(); defer f.mu.Unlock(); return !f.running }, patience, time.Millisecond)
}
