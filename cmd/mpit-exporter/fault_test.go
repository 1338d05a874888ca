package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/node"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/sockets"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// Faults of the node, and what the real program makes of them. docs/internals/faults.md has a line for each of these
// tests.

// keepConnected keeps ranks connected to whatever listens at a socket, as agents do, until the test ends.
func keepConnected(t *testing.T, socket string, ranks ...*mpittest.Rank) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for _, r := range ranks {
		running.Go(func() { assert.NoError(t, r.Run(ctx, socket)) })
	}
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
}

// awaitRanks waits until so many ranks answer, and returns that page. The more they are, the less often it asks.
func (e *exporterProcess) awaitRanks(t *testing.T, n int) values {
	t.Helper()
	var page values
	require.Eventually(t, func() bool {
		page = e.page(t)
		return page.count("mpit_rank_up", 1) == n
	}, patience, time.Duration(min(20+2*n, 500))*time.Millisecond, "%d ranks never were there", n)
	return page
}

// awaitLog waits until the exporter has logged a text, and returns all that it has logged.
func (e *exporterProcess) awaitLog(t *testing.T, text string) string {
	t.Helper()
	var log string
	require.Eventually(t, func() bool {
		log = e.log(t)
		return strings.Contains(log, text)
	}, patience, 20*time.Millisecond, "never logged: %s", text)
	return log
}

// The socket's file goes: ranks that were connected do not notice, and another exporter's start makes it again.
func TestFaultSocketDeleted(t *testing.T) {
	dir := mpittest.ShortDir(t)
	e := startExporter(t, filepath.Join(dir, "agent.sock"))
	job := mpittest.NewJob(2)
	keepConnected(t, e.socket, job.Ranks[0])
	e.awaitRanks(t, 1)
	require.NoError(t, os.Remove(e.socket))
	require.NoError(t, os.Remove(filepath.Join(dir, sockets.ControlFile)))
	assert.Equal(t, 1, e.page(t).count("mpit_rank_up", 1))
	assert.Zero(t, e.end(t, syscall.SIGTERM))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, left)
	e = startExporter(t, e.socket)
	keepConnected(t, e.socket, job.Ranks[1])
	e.awaitRanks(t, 2)
}

// Where no socket can be made the program says why and what to do, in one line, and ends.
func TestFaultSocketDirectory(t *testing.T) {
	for _, test := range []struct {
		name    string
		prepare func(t *testing.T, dir string)
		want    string // what comes behind the path
		nobody  bool   // is not root
	}{
		{"missing", func(t *testing.T, dir string) { require.NoError(t, os.Remove(dir)) },
			"its directory does not exist; make it or choose another place with --agent.socket", false},
		{"unwritable", func(*testing.T, string) {},
			"permission denied; let user 65534 write to DIR or choose another place with --agent.socket", true},
		{"read-only", func(t *testing.T, dir string) { mountTmpfs(t, dir, "size=64k", unix.MS_RDONLY) },
			"its file system is mounted read-only; mount it otherwise or choose another place with --agent.socket",
			false},
		{"disk full", func(t *testing.T, dir string) {
			mountTmpfs(t, dir, "nr_inodes=4", 0)
			fill(t, dir)
		}, "no room for a file in DIR; make room or choose another place with --agent.socket", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := mpittest.ShortDir(t)
			require.NoError(t, os.Chmod(dir, 0o755))
			test.prepare(t, dir)
			socket := filepath.Join(dir, "agent.sock")
			cmd := exec.Command(binary(t), "--agent.socket="+socket, "--web.listen-address=127.0.0.1:0")
			cmd.Env = cleanEnviron()
			if test.nobody {
				if os.Getuid() != 0 {
					t.Skip("only root can start a program as another user")
				}
				require.NoError(t, os.Chmod(built(t), 0o755))
				cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
			}
			assert.Equal(t, outcome{
				stderr: "mpit-exporter: agent socket " + socket + ": " + strings.ReplaceAll(test.want, "DIR",
					dir) + "\n", status: cli.Failure,
			}, wait(t, cmd))
		})
	}
}

func mountTmpfs(t *testing.T, dir, options string, flags uintptr) {
	t.Helper()
	if err := unix.Mount("tmpfs", dir, "tmpfs", flags, options); err != nil {
		t.Skipf("a file system of its own is needed, and mounting fails: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, unix.Unmount(dir, unix.MNT_DETACH)) })
}

// fill leaves no room for another file, and returns how to make some.
func fill(t *testing.T, dir string) (makeRoom func()) {
	t.Helper()
	for i := 0; ; i++ {
		err := os.WriteFile(filepath.Join(dir, fmt.Sprint("filler", i)), nil, 0o600)
		if err != nil {
			require.ErrorIs(t, err, unix.ENOSPC)
			require.Positive(t, i)
			return func() {
				for i--; i >= 0; i-- {
					require.NoError(t, os.Remove(filepath.Join(dir, fmt.Sprint("filler", i))))
				}
			}
		}
	}
}

// An exporter that starts where another one lives ends with an error that says so. That one keeps its socket and its
// ranks, and one that was pushed aside doesn't take the other's socket away.
func TestFaultSecondExporter(t *testing.T) {
	t.Parallel()
	e := startExporter(t, filepath.Join(mpittest.ShortDir(t), "agent.sock"))
	job := mpittest.NewJob(1)
	keepConnected(t, e.socket, job.Ranks[0])
	e.awaitRanks(t, 1)
	got := runBinary(t, nil, "--agent.socket="+e.socket, "--web.listen-address=127.0.0.1:0")
	assert.Equal(t, outcome{stderr: "mpit-exporter: agent socket " + e.socket +
		": another exporter that is alive listens there; stop it or choose another place with --agent.socket\n",
		status: cli.Failure}, got)
	assert.Equal(t, 1, e.page(t).count("mpit_rank_up", 1))

	// The second one's socket stays when the first one, which has been pushed aside, ends.
	require.NoError(t, os.Remove(e.socket))
	second := startExporter(t, e.socket, "--control.socket=")
	assert.Zero(t, e.end(t, syscall.SIGTERM))
	keepConnected(t, e.socket, mpittest.NewJob(2).Ranks[1])
	second.awaitRanks(t, 2)
}

// 256 ranks are connected and scraped without a pause when the exporter is killed: all come back to the next one, and
// what agents count has not fallen.
func TestFaultKilledUnderLoad(t *testing.T) {
	t.Parallel()
	const ranks = 256
	socket := filepath.Join(mpittest.ShortDir(t), "agent.sock")
	first := startExporter(t, socket)
	job := mpittest.NewJob(ranks)
	keepConnected(t, socket, job.Ranks...)
	first.awaitRanks(t, ranks)
	ctx, stop := context.WithCancel(t.Context())
	var scrapers sync.WaitGroup
	for range 3 {
		scrapers.Go(func() {
			for ctx.Err() == nil {
				_, _, _ = first.try("/metrics") // breaks off with the exporter
			}
		})
	}
	for range 5 {
		require.NoError(t, job.Step())
	}
	before := first.awaitRanks(t, ranks)
	require.NoError(t, job.Step())
	assert.Equal(t, -1, first.end(t, syscall.SIGKILL))
	stop()
	scrapers.Wait()

	killed := time.Now()
	second := startExporter(t, socket)
	page := second.awaitRanks(t, ranks)
	t.Logf("all %d ranks were back %.2f s after the exporter's end", ranks, time.Since(killed).Seconds())
	for name := range before {
		if strings.Contains(name, "_time_seconds_") {
			delete(before, name) // histograms that the exporter estimates begin at zero
		}
	}
	assert.NoError(t, page.noneFell(before))
	assert.Zero(t, page["mpit_exporter_rank_panics_total"])
	require.NoError(t, job.Step())
	assert.NoError(t, second.awaitRanks(t, ranks).noneFell(page))
}

// A thousand ranks of one user that come at once are all taken.
func TestFaultThousandRanksAtOnce(t *testing.T) {
	t.Parallel() // it waits: a user may have so much done in a second
	const ranks = 1000
	e := startExporter(t, filepath.Join(mpittest.ShortDir(t), "agent.sock"))
	job := mpittest.NewJob(ranks)
	began := time.Now()
	keepConnected(t, e.socket, job.Ranks...)
	page := e.awaitRanks(t, ranks)
	t.Logf("%d ranks were on the page %.2f s after the first connected", ranks, time.Since(began).Seconds())
	for name, value := range page {
		if strings.HasPrefix(name, "mpit_exporter_connections_refused_total") ||
			strings.HasPrefix(name, "mpit_exporter_protocol_errors_total") {
			assert.Zero(t, value, name)
		}
	}
}

// No descriptor is left: that is said once, ranks that are there are served, and when some are free again those that
// came in vain are taken.
func TestFaultOutOfDescriptors(t *testing.T) {
	t.Parallel()
	e := startExporter(t, filepath.Join(mpittest.ShortDir(t), "agent.sock"))
	job := mpittest.NewJob(40)
	keepConnected(t, e.socket, job.Ranks[0])
	e.awaitRanks(t, 1)
	// One connection of a scraper that stays, for a new one would find no descriptor either.
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client := &http.Client{Timeout: patience, Transport: transport}
	scrape := func() values {
		response, err := client.Get(e.url + "/metrics")
		require.NoError(t, err)
		defer func() { _ = response.Body.Close() }()
		text, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return parse(t, string(text))
	}
	scrape()
	var had unix.Rlimit
	few := unix.Rlimit{Cur: uint64(e.openFiles(t) + 5)}
	require.NoError(t, unix.Prlimit(e.cmd.Process.Pid, unix.RLIMIT_NOFILE, nil, &had))
	few.Max = had.Max
	require.NoError(t, unix.Prlimit(e.cmd.Process.Pid, unix.RLIMIT_NOFILE, &few, nil))

	keepConnected(t, e.socket, job.Ranks[1:]...)
	e.awaitLog(t, "Connections of ranks can't be accepted")
	for range 3 {
		page := scrape()
		there := page.count("mpit_rank_up", 1)
		assert.Positive(t, there)
		assert.Less(t, there, 40)
	}
	require.NoError(t, unix.Prlimit(e.cmd.Process.Pid, unix.RLIMIT_NOFILE, &had, nil))
	e.awaitRanks(t, 40)
	assert.Equal(t, 1, strings.Count(e.log(t), "can't be accepted"), "said once")
}

// With few descriptors from the start ranks are refused, and counted, while there is still room for scrapers.
func TestFaultFewDescriptors(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("/bin/sh", "-c", `ulimit -n 64; exec "$0" "$@"`, binary(t))
	e := startCommand(t, cmd, filepath.Join(mpittest.ShortDir(t), "agent.sock"))
	assert.Contains(t, e.log(t), "Few files may be open")
	job := mpittest.NewJob(100)
	keepConnected(t, e.socket, job.Ranks...)
	want := node.Divide(64, 512).Ranks
	for range 5 {
		e.awaitRanks(t, want)
	}
	page := e.page(t)
	assert.Positive(t, page[`mpit_exporter_connections_refused_total{reason="too_many_ranks"}`]+
		page[`mpit_exporter_protocol_errors_total{reason="too_many_connections"}`])
}

// Nobody reads the log: scrapes go on, what could not be logged is counted, and the end is as it should be.
func TestFaultBlockedLog(t *testing.T) {
	t.Parallel()
	reads, writes, err := os.Pipe()
	require.NoError(t, err)
	defer func() { _ = reads.Close() }()
	cmd := exec.Command("/bin/sh", "-c", `exec 2>&3; exec "$0" "$@"`, binary(t))
	cmd.ExtraFiles = []*os.File{writes}
	e := startCommand(t, cmd, filepath.Join(mpittest.ShortDir(t), "agent.sock"), "--log.level=debug")
	require.NoError(t, writes.Close())
	r := mpittest.NewJob(1).Ranks[0]
	lost := 0.0
	for range 100 { // each time lines are logged: with the pipe and the queue full they are lost
		for range 50 {
			require.NoError(t, r.Connect(t.Context(), e.socket))
			r.Kill()
		}
		if lost = e.page(t)["mpit_exporter_log_lines_lost_total"]; lost > 0 {
			break
		}
	}
	require.Positive(t, lost)
	keepConnected(t, e.socket, r)
	for range 5 {
		e.awaitRanks(t, 1)
	}
	assert.Zero(t, e.end(t, syscall.SIGTERM))
	text, err := io.ReadAll(reads)
	require.NoError(t, err)
	assert.Contains(t, string(text), "rank connected")
}

// Scrapes that are under way at a SIGTERM get their whole page.
func TestFaultTerminatedDuringScrape(t *testing.T) {
	t.Parallel()
	e := startExporter(t, filepath.Join(mpittest.ShortDir(t), "agent.sock"))
	job := mpittest.NewJob(4)
	for _, r := range job.Ranks {
		require.NoError(t, r.Connect(t.Context(), e.socket))
		t.Cleanup(r.Kill)
	}
	e.awaitRanks(t, 4)
	for _, r := range job.Ranks {
		r.Stall(true)
	}
	type answer struct {
		status int
		body   string
		err    error
	}
	answers := make(chan answer, 3)
	for range cap(answers) {
		go func() {
			status, body, err := e.try("/metrics")
			answers <- answer{status, body, err}
		}()
	}
	require.Eventually(t, func() bool {
		return e.hurriedPage(t)["mpit_exporter_scrapes_in_flight"] == float64(cap(answers)+1)
	}, patience, time.Millisecond, "the scrapes were not seen under way")
	require.NoError(t, e.cmd.Process.Signal(syscall.SIGTERM))
	e.awaitLog(t, "msg=Ending")
	for _, r := range job.Ranks {
		r.Stall(false)
	}
	require.NoError(t, e.cmd.Wait())
	for range cap(answers) {
		a := <-answers
		require.NoError(t, a.err)
		assert.Equal(t, http.StatusOK, a.status)
		assert.Equal(t, 4, parse(t, a.body).count("mpit_rank_up", 1))
	}
	assert.NoFileExists(t, e.socket)
}
