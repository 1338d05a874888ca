package own

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

const (
	here = "here\n" // the exporter's answer: it knows of the process and will not end before it
	// acceptPause is how long the exporter waits when it can't accept: it is out of descriptors, and that passes.
	acceptPause = 100 * time.Millisecond
	// readInterval is how often /proc is read for each process: that takes some 20 µs.
	readInterval = 2 * time.Second
)

// register tells the exporter at a socket that this process is there. If it returns true the exporter does not end
// before this process has, whatever that becomes by exec.
func register(ctx context.Context, path string) bool {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }()
	deadline, _ := ctx.Deadline()
	_ = conn.SetDeadline(deadline)
	answer, err := io.ReadAll(io.LimitReader(conn, int64(len(here))))
	return err == nil && string(answer) == here
}

// presence knows which processes of the launch are there: those that have registered and not ended. They say nothing
// but that they are there; who they are the kernel says. It is safe for concurrent use.
type presence struct {
	socket    *mpit.Socket
	accepting sync.WaitGroup

	mu      sync.Mutex
	read    time.Time      // when /proc was
	present map[int]uint64 // by pid, when it was started
	left    map[int]bool   // pids of those that have registered and ended
	came    bool           // a process has registered
	closed  bool
}

// listenPresence opens the socket at a path, for processes to register at.
func listenPresence(path string) (*presence, error) {
	socket, err := mpit.ListenUnix(path, 0o600)
	if err != nil {
		return nil, fmt.Errorf("socket of the launch's processes: %w", err)
	}
	p := &presence{socket: socket, present: map[int]uint64{}, left: map[int]bool{}}
	p.accepting.Go(p.accept)
	return p, nil
}

func (p *presence) accept() {
	for {
		conn, err := p.socket.AcceptUnix()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			time.Sleep(acceptPause)
			continue
		}
		if peer, err := mpit.PeerOf(conn); err == nil && p.enter(int(peer.PID)) {
			_, _ = io.WriteString(conn, here) // there is room for it, or the process is gone
		}
		_ = conn.Close()
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
	delete(p.left, pid) // another process has the number now
	if pid > 0 {
		p.present[pid] = StatOf("/proc", pid).Starttime
	}
	return true
}

// look finds out which processes have ended. It returns how many are there now, whether any ever was, and whether one
// has ended since the last look. No descriptor (pidfd) is watched: Linux before 5.3 has none,
// and before 6.16 it may tell of an end when a program with threads becomes another by exec, as all of these do.
func (p *presence) look() (present int, came, gone bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	reads := time.Since(p.read) >= readInterval
	if reads {
		p.read = time.Now()
	}
	for pid, started := range p.present {
		if errors.Is(unix.Kill(pid, 0), unix.ESRCH) || reads && hasEnded(pid, started) {
			delete(p.present, pid)
			p.left[pid], gone = true, true
		}
	}
	return len(p.present), p.came, gone
}

// hasEnded says whether a process that began then has ended and wasn't reaped, or another one has its number.
func hasEnded(pid int, started uint64) bool {
	s := StatOf("/proc", pid)
	return s.Starttime != started || s.State == "Z" || s.State == "X"
}

// hasLeft says whether the process of this number had registered and has ended.
func (p *presence) hasLeft(pid int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.left[pid]
}

// retire closes the door if no process is there; one that comes then finds it closed and starts another exporter. It
// reports whether that was so.
func (p *presence) retire() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = p.closed || len(p.present) == 0
	return p.closed
}

// close ends all of it.
func (p *presence) close() {
	_ = p.socket.Close()
	p.accepting.Wait()
}
