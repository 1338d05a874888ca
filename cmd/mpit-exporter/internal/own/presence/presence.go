// Package presence knows which processes of a launch are there, so that its exporter ends after the last: each
// registers over a socket (Register), and the kernel tells of its end (Listen).
package presence

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/own/launch"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

const (
	here = "here\n" // the exporter's answer: it knows of the process and will not end before it
	// greetTimeout bounds a connection to the socket of presence.
	greetTimeout = 5 * time.Second
	// pollInterval is how often it is looked whether processes have ended, where the kernel can't tell (Linux before
	// 5.3).
	pollInterval = time.Second
)

// Register tells the exporter at a socket that this process is there. With nil the exporter does not end before this
// process has, whatever that becomes by exec.
func Register(ctx context.Context, path string) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	if err != nil {
		return fmt.Errorf("registering: %w", err)
	}
	defer func() { _ = conn.Close() }()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return fmt.Errorf("registering: %w", err)
		}
	}
	answer, err := io.ReadAll(io.LimitReader(conn, int64(len(here))))
	switch {
	case err != nil:
		return fmt.Errorf("registering: %w", err)
	case string(answer) != here:
		return errors.New("registering: the exporter is about to end")
	}
	return nil
}

// Presence knows which processes of the launch are there: those that have registered and not ended. They say nothing
// but that they are there; who they are the kernel says. It is safe for concurrent use.
type Presence struct {
	log    *slog.Logger
	socket *mpit.Socket

	mu      sync.Mutex
	present map[int]*os.File // by pid; the file is nil where the kernel has no pidfd
	left    map[int]bool     // pids of those that have registered and ended
	came    bool             // somebody did
	closed  bool
	Changed chan struct{} // gets a value when somebody comes or goes
	Left    chan struct{} // gets a value when somebody goes

	greeting sync.WaitGroup
}

// Listen opens the socket at a path, for processes to register at.
func Listen(path string, logger *slog.Logger) (*Presence, error) {
	socket, err := mpit.ListenUnix(path, 0o600)
	if err != nil {
		return nil, fmt.Errorf("socket of the launch's processes: %w", err)
	}
	p := &Presence{log: logger, socket: socket, present: map[int]*os.File{}, left: map[int]bool{},
		Changed: make(chan struct{}, 1), Left: make(chan struct{}, 1)}
	p.greeting.Go(p.accept)
	return p, nil
}

func (p *Presence) accept() {
	for wait := time.Duration(0); ; {
		conn, err := p.socket.AcceptUnix()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // out of descriptors: that passes
			wait = min(max(2*wait, 5*time.Millisecond), time.Second)
			time.Sleep(wait)
		default:
			wait = 0
			p.greeting.Go(func() { p.greet(conn) })
		}
	}
}

// greet takes a process in, and says so.
func (p *Presence) greet(conn *net.UnixConn) {
	defer func() { _ = conn.Close() }()
	peer, err := mpit.PeerOf(conn)
	if err != nil || conn.SetDeadline(time.Now().Add(greetTimeout)) != nil {
		return
	}
	if !p.Enter(int(peer.PID)) {
		return
	}
	if _, err := io.WriteString(conn, here); err != nil {
		p.log.Debug("a process went away while it registered", "pid", peer.PID, "err", err)
	}
}

// Enter notes a process, unless it is too late. A process of another pid namespace has no number here: its agent's
// connection is all that is seen of it.
func (p *Presence) Enter(pid int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.came = true
	defer tell(p.Changed)
	delete(p.left, pid) // another process has the number now
	if _, known := p.present[pid]; known || pid <= 0 {
		return true
	}
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if errors.Is(err, unix.EINVAL) { // Linux before 5.10
		if fd, err = unix.PidfdOpen(pid, 0); err == nil {
			err = unix.SetNonblock(fd, true)
		}
	}
	switch {
	case err == nil:
		file := os.NewFile(uintptr(fd), "pidfd")
		p.present[pid] = file
		started := launch.StatOf(os.DirFS("/proc"), pid).Started
		p.greeting.Go(func() { p.await(pid, started, file) })
	case errors.Is(err, unix.ESRCH):
	default:
		p.present[pid] = nil
		started := launch.StatOf(os.DirFS("/proc"), pid).Started
		p.greeting.Go(func() { p.awaitLooking(pid, started) })
	}
	return true
}

// await waits for the end of a process that the kernel tells of.
func (p *Presence) await(pid int, started uint64, file *os.File) {
	ended := false
	if raw, err := file.SyscallConn(); err == nil {
		_ = raw.Read(func(fd uintptr) bool {
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
			ended = n > 0 || err != nil && !errors.Is(err, unix.EINTR)
			return ended
		})
	}
	// A poller may not be able to watch it; and kernels before 6.16 may tell of an end when a program with threads
	// becomes another by exec, which is what all of these do.
	if !p.isClosed() && (!ended || !hasEnded(pid, started)) {
		p.awaitLooking(pid, started)
		return
	}
	p.leave(pid)
}

// awaitLooking waits for it by looking time after time.
func (p *Presence) awaitLooking(pid int, started uint64) {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for range tick.C {
		if p.isClosed() || hasEnded(pid, started) {
			break
		}
	}
	p.leave(pid)
}

// hasEnded says whether a process that began then has ended, reaped or not.
func hasEnded(pid int, started uint64) bool {
	s := launch.StatOf(os.DirFS("/proc"), pid)
	return s.Started != started || errors.Is(unix.Kill(pid, 0), unix.ESRCH) || s.State == 'Z' || s.State == 'X'
}

func (p *Presence) leave(pid int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if file := p.present[pid]; file != nil {
		_ = file.Close()
	}
	delete(p.present, pid)
	p.left[pid] = true
	tell(p.Changed)
	tell(p.Left)
}

// tell wakes who waits for it.
func tell(waiting chan<- struct{}) {
	select {
	case waiting <- struct{}{}:
	default:
	}
}

// HasLeft says whether the process of this number had registered and has ended.
func (p *Presence) HasLeft(pid int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.left[pid]
}

func (p *Presence) isClosed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}

// Count is how many are there now, and whether anybody ever was.
func (p *Presence) Count() (present int, came bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.present), p.came
}

// Retire closes the door if nobody is there; whoever comes then finds it closed and starts anew. It reports whether
// that was so.
func (p *Presence) Retire() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = p.closed || len(p.present) == 0
	return p.closed
}

// Close ends all of it.
func (p *Presence) Close() error {
	p.mu.Lock()
	p.closed = true
	for _, file := range p.present {
		if file != nil {
			_ = file.Close()
		}
	}
	p.mu.Unlock()
	err := p.socket.Close()
	p.greeting.Wait()
	if err != nil && !errors.Is(err, syscall.ENOENT) {
		return fmt.Errorf("socket of the launch's processes: %w", err)
	}
	return nil
}
