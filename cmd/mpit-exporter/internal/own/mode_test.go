package own

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/report"
	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/exporter/job/jobtest"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

func presenceIn(t *testing.T) *presence {
	t.Helper()
	p, err := listenPresence(filepath.Join(mpittest.ShortDir(t), presenceFile))
	require.NoError(t, err)
	t.Cleanup(p.close)
	return p
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
		{name: "a rank that has not registered", connects: true, untaken: 1, taken: true, first: time.Hour,
			linger: time.Hour},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := presenceIn(t)
			o := &Mode{log: slog.New(slog.DiscardHandler), presence: p, first: test.first, look: time.Millisecond,
				order: order{Linger: test.linger}}
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
				o.awaitEnd(t.Context(), func() (int, int) { return int(living.Load()), int(untaken.Load()) })
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

// TestReportOfAKilledRank: who looks at the report when mpirun has ended reads that ranks were killed, though the
// exporter still waits for what may come of them.
func TestReportOfAKilledRank(t *testing.T) {
	p := presenceIn(t)
	pid, kill := sleeper(t)
	require.True(t, p.enter(pid))
	stranger, end := sleeper(t)
	end()
	ranks := slices.Clone(jobtest.Late()[0].Ranks[:2])
	killed, other := &ranks[0].Rank, &ranks[1].Rank
	for _, r := range []*api.RankStatus{killed, other} {
		r.State, r.EndReason, r.Ended = "late", "", nil
	}
	killed.Peer.PID = pid
	other.PID, other.Peer.PID = pid, stranger // its own number is of another pid namespace, and it has not registered
	file := filepath.Join(t.TempDir(), "report.json")
	o := &Mode{log: slog.New(slog.DiscardHandler), presence: p, dir: &launchDir{path: t.TempDir()}, mode: 0o600,
		finals: newFinalPush(0), order: order{Report: file}, look: time.Millisecond}
	require.NoError(t, o.reports(func(context.Context, api.Selector, bool) (api.ValueList, error) {
		return api.ValueList{Ranks: slices.Clone(ranks)}, nil
	}))
	ends := func() map[int]string {
		r, err := report.Load(t.Context(), file)
		require.NoError(t, err)
		ends := map[int]string{}
		for i := range r.Ranks {
			ends[r.Ranks[i].Rank] = r.Ranks[i].End
		}
		return ends
	}
	require.NoError(t, o.report(t.Context(), false))
	assert.Equal(t, map[int]string{0: "", 1: ""}, ends())

	killed.Peer.Lost, other.Peer.Lost = jobtest.Began, jobtest.Began
	require.NoError(t, o.report(t.Context(), false))
	assert.Equal(t, map[int]string{0: "", 1: ""}, ends(), "a process that is there may connect again")
	require.NoError(t, os.Remove(file))
	require.NoError(t, o.report(t.Context(), true))
	assert.NoFileExists(t, file, "nobody was killed")

	write := o.report
	o.report = func(ctx context.Context, ifKilled bool) error {
		if !ifKilled {
			return nil // it would be written some time, anyway
		}
		return write(ctx, true)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		o.awaitEnd(ctx, func() (int, int) { return 1, 0 })
	}()
	defer func() { stop(); <-ended }()
	kill()
	require.Eventually(t, func() bool {
		_, err := os.Stat(file)
		return err == nil
	}, patience, time.Millisecond, "the report was not written when the process ended")
	assert.Equal(t, map[int]string{0: "lost", 1: ""}, ends())
}

// TestReportThatCannotBeWritten: it is said once, to who reads stderr, and no rank waits for it. A pipe's reader finds
// its end although the exporter is there.
func TestReportThatCannotBeWritten(t *testing.T) {
	reads, writes, err := os.Pipe()
	require.NoError(t, err)
	defer func() { _ = reads.Close() }()
	words, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", writes.Fd()), unix.O_PATH, 0)
	require.NoError(t, err)
	defer func() { _ = words.Close() }()
	dir := t.TempDir()
	file := filepath.Join(dir, "gone", "report.json")
	o := &Mode{log: slog.New(slog.DiscardHandler), presence: presenceIn(t), words: words, dir: &launchDir{path: dir},
		mode: 0o600, finals: newFinalPush(time.Hour), order: order{Report: file}}
	require.NoError(t, o.reports(func(context.Context, api.Selector, bool) (api.ValueList, error) {
		return api.ValueList{Ranks: slices.Clone(jobtest.Late()[0].Ranks)}, nil
	}))
	require.ErrorIs(t, o.noReport, os.ErrNotExist)
	for range 2 {
		o.finals.await(t.Context()) // an hour, if it waited
	}
	require.NoError(t, writes.Close())
	text, err := io.ReadAll(reads)
	require.NoError(t, err)
	assert.Regexp(t, "^mpit-exporter: no report: [^\n]*/gone[^\n]*: no such file or directory; name another file "+
		"with --report\n$",
		string(text))
	o.say("nobody listens")

	require.NoError(t, os.Mkdir(filepath.Dir(file), 0o700))
	o.finals.await(t.Context())
	assert.FileExists(t, file, "it can be written by now")
}

// TestReportWithoutRanks: at the end it is said that no process has called MPI_Init.
func TestReportWithoutRanks(t *testing.T) {
	words, err := os.OpenFile(filepath.Join(t.TempDir(), "stderr"), os.O_CREATE|os.O_RDWR, 0o600)
	require.NoError(t, err)
	defer func() { _ = words.Close() }()
	o := &Mode{log: slog.New(slog.DiscardHandler), presence: presenceIn(t), words: words,
		dir: &launchDir{path: t.TempDir()}, mode: 0o600, finals: newFinalPush(0),
		order: order{Report: filepath.Join(t.TempDir(), "report.json")}}
	require.NoError(t, o.reports(func(context.Context, api.Selector, bool) (api.ValueList, error) {
		return api.ValueList{}, nil
	}))
	o.writeReport(t.Context(), false) // while it runs: a rank may come
	o.writeLast(t.Context())
	text, err := os.ReadFile(words.Name())
	require.NoError(t, err)
	assert.Equal(t, "mpit-exporter: no report: "+report.ErrNoRanks.Error()+"\n", string(text))
}

func TestAwaitEndOfAContext(t *testing.T) {
	p := presenceIn(t)
	require.True(t, p.enter(os.Getpid()))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	o := &Mode{log: slog.New(slog.DiscardHandler), presence: p, first: time.Hour, look: time.Hour}
	o.awaitEnd(ctx, func() (int, int) { return 1, 1 })
}

// TestFinalPush: who waits has been in a push that began after he came, and pushes never overlap.
func TestFinalPush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var began, done atomic.Int64
		hold := make(chan struct{})
		f := pushBy(patience, func(context.Context) error {
			began.Add(1)
			<-hold
			return nil
		})
		wait := func() {
			f.await(t.Context())
			done.Add(1)
		}
		go wait()
		synctest.Wait()
		for range 10 {
			go wait()
		}
		synctest.Wait()
		assert.Equal(t, int64(1), began.Load())
		hold <- struct{}{}
		synctest.Wait()
		assert.Equal(t, int64(1), done.Load(), "the others weren't in the first push")
		assert.Equal(t, int64(2), began.Load())
		hold <- struct{}{}
		synctest.Wait()
		assert.Equal(t, int64(11), done.Load())
		assert.Equal(t, int64(2), began.Load(), "all of them were in the second")
	})
}

// pushBy is a finalPush that does this.
func pushBy(wait time.Duration, push func(context.Context) error) *finalPush {
	f := newFinalPush(wait)
	f.log = slog.New(slog.DiscardHandler)
	f.also(push)
	return f
}

// TestFinalPushIsTriedAgain while there is time.
func TestFinalPushIsTriedAgain(t *testing.T) {
	began := 0
	f := pushBy(patience, func(context.Context) error {
		if began++; began < 3 {
			return errors.New("the receiver is away")
		}
		return nil
	})
	f.await(t.Context())
	assert.Equal(t, 3, began)
}

// TestFinalPushIsBounded: a receiver that never answers keeps nobody.
func TestFinalPushIsBounded(t *testing.T) {
	f := pushBy(20*time.Millisecond, func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	})
	f.await(t.Context())
}

// TestAddresses: what all interfaces are called is this host's name.
func TestAddresses(t *testing.T) {
	var listeners []net.Listener
	var ports []string
	for _, address := range []string{":0", "127.0.0.1:0"} {
		l, err := net.Listen("tcp", address)
		require.NoError(t, err)
		defer func() { _ = l.Close() }()
		listeners = append(listeners, l)
		_, port, err := net.SplitHostPort(l.Addr().String())
		require.NoError(t, err)
		ports = append(ports, port)
	}
	assert.Equal(t, []string{"node7:" + ports[0], "127.0.0.1:" + ports[1]}, addresses(listeners, "node7"))
	assert.Empty(t, addresses(nil, "node7"))
}
