package own

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

// register tells the exporter at a socket that this process is there. With nil the exporter does not end before this
// process has, whatever that becomes by exec.
func register(ctx context.Context, path string) error {
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

// presence knows which processes of the launch are there: those that have registered and not ended. They say nothing
// but that they are there; who they are the kernel says. It is safe for concurrent use.
type presence struct {
	log    *slog.Logger
	socket *mpit.Socket

	mu      sync.Mutex
	present map[int]*os.File // by pid; the file is nil where the kernel has no pidfd
	left    map[int]bool     // pids of those that have registered and ended
	came    bool             // somebody did
	closed  bool
	changed chan struct{} // gets a value when somebody comes or goes
	gone    chan struct{} // gets a value when somebody goes

	greeting sync.WaitGroup
}

// listenPresence opens the socket at a path, for processes to register at.
func listenPresence(path string, logger *slog.Logger) (*presence, error) {
	socket, err := mpit.ListenUnix(path, 0o600)
	if err != nil {
		return nil, fmt.Errorf("socket of the launch's processes: %w", err)
	}
	p := &presence{log: logger, socket: socket, present: map[int]*os.File{}, left: map[int]bool{},
		changed: make(chan struct{}, 1), gone: make(chan struct{}, 1)}
	p.greeting.Go(p.accept)
	return p, nil
}

func (p *presence) accept() {
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
func (p *presence) greet(conn *net.UnixConn) {
	defer func() { _ = conn.Close() }()
	peer, err := mpit.PeerOf(conn)
	if err != nil || conn.SetDeadline(time.Now().Add(greetTimeout)) != nil {
		return
	}
	if !p.enter(int(peer.PID)) {
		return
	}
	if _, err := io.WriteString(conn, here); err != nil {
		p.log.Debug("a process went away while it registered", "pid", peer.PID, "err", err)
	}
}

// enter notes a process, unless it is too late. A process of another pid namespace has no number here: its agent's
// connection is all that is seen of it.
func (p *presence) enter(pid int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.came = true
	defer tell(p.changed)
	delete(p.left, pid) // another process has the number now
	if _, known := p.present[pid]; known || pid <= 0 {
		return true
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return true
	}
	p.present[pid] = nil
	if err == nil {
		_ = unix.SetNonblock(fd, true) // for the poller
		p.present[pid] = os.NewFile(uintptr(fd), "pidfd")
	}
	started, file := StatOf(os.DirFS("/proc"), pid).Started, p.present[pid]
	p.greeting.Go(func() { p.await(pid, started, file) })
	return true
}

// await waits for the end of a process that began then. The kernel tells of it, where it has such a file.
func (p *presence) await(pid int, started uint64, file *os.File) {
	if file != nil {
		if raw, err := file.SyscallConn(); err == nil {
			_ = raw.Read(func(fd uintptr) bool {
				n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
				return n > 0 || err != nil && !errors.Is(err, unix.EINTR)
			})
		}
	}
	// A poller may not be able to watch it; and kernels before 6.16 may tell of an end when a program with threads
	// becomes another by exec, which is what all of these do.
	for !p.isClosed() && !hasEnded(pid, started) {
		time.Sleep(pollInterval)
	}
	p.leave(pid)
}

// hasEnded says whether a process that began then has ended, reaped or not.
func hasEnded(pid int, started uint64) bool {
	s := StatOf(os.DirFS("/proc"), pid)
	return s.Started != started || errors.Is(unix.Kill(pid, 0), unix.ESRCH) || s.State == 'Z' || s.State == 'X'
}

func (p *presence) leave(pid int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if file := p.present[pid]; file != nil {
		_ = file.Close()
	}
	delete(p.present, pid)
	p.left[pid] = true
	tell(p.changed)
	tell(p.gone)
}

// tell wakes who waits for it.
func tell(waiting chan<- struct{}) {
	select {
	case waiting <- struct{}{}:
	default:
	}
}

// hasLeft says whether the process of this number had registered and has ended.
func (p *presence) hasLeft(pid int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.left[pid]
}

func (p *presence) isClosed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}

// count is how many are there now, and whether anybody ever was.
func (p *presence) count() (present int, came bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.present), p.came
}

// retire closes the door if nobody is there; whoever comes then finds it closed and starts anew. It reports whether
// that was so.
func (p *presence) retire() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = p.closed || len(p.present) == 0
	return p.closed
}

// close ends all of it.
func (p *presence) close() error {
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
