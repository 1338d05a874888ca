package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
)

// markVariable stands in the environment of every process that we start, with a value of its own, and is inherited by
// what that process starts: MPI launchers put their ranks into other process groups.
const markVariable = "MPIT_TEST_MARK"

// Process is a running program in a process group of its own, with its output collected. It is safe for concurrent use.
type Process struct {
	cmd    *exec.Cmd
	mark   string
	stdout output
	stderr output
	done   chan struct{} // closed when it has ended and its output is complete
}

// Start runs a command with env added to the environment. When the test ends it is ended, with everything that it
// started.
func (s *Suite) Start(tb testing.TB, command, env []string) *Process {
	tb.Helper()
	return s.start(tb, command, env, nil, nil)
}

// StartTalking is Start for a program that reads its stdin, which is what is written to the returned file, and whose
// output is wanted as it comes: it goes to stdout, too, which must not block.
func (s *Suite) StartTalking(tb testing.TB, command, env []string, stdout io.Writer) (*Process, *os.File) {
	tb.Helper()
	reads, writes, err := os.Pipe()
	if err != nil {
		tb.Fatalf("making a pipe: %v", err)
	}
	tb.Cleanup(func() { _ = writes.Close() })
	p := s.start(tb, command, env, reads, stdout)
	_ = reads.Close()
	return p, writes
}

func (s *Suite) start(tb testing.TB, command, env []string, stdin *os.File, stdout io.Writer) *Process {
	tb.Helper()
	p := &Process{
		mark: fmt.Sprintf("%s/%d", s.dir, s.next.Add(1)),
		done: make(chan struct{}),
	}
	p.cmd = exec.Command(command[0], command[1:]...)
	p.cmd.Env = append(append(os.Environ(), env...), markVariable+"="+p.mark)
	p.cmd.Dir = s.dir
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	if stdin != nil {
		p.cmd.Stdin = stdin
		p.cmd.Stdout = io.MultiWriter(&p.stdout, stdout)
	}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.WaitDelay = 5 * time.Second // an orphan that holds the pipes doesn't hold us
	if err := p.cmd.Start(); err != nil {
		tb.Fatalf("starting %v: %v", command, err)
	}
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait() // the status is read from ProcessState
	}()
	tb.Cleanup(func() { p.end(tb) })
	return p
}

// end asks the process to end, then kills it and whatever it has left behind.
func (p *Process) end(tb testing.TB) {
	if !p.Ended() {
		p.Signal(tb, syscall.SIGCONT)
		p.Signal(tb, syscall.SIGTERM)
		select {
		case <-p.done:
		case <-time.After(10 * time.Second):
		}
	}
	if !p.Ended() {
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	}
	for _, pid := range marked(p.mark) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	<-p.done
}

// PID is the process's id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Signal sends a signal to the process itself, if it still runs.
func (p *Process) Signal(tb testing.TB, signal syscall.Signal) {
	tb.Helper()
	if err := p.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		tb.Fatalf("sending %v to %s: %v", signal, p.cmd.Path, err)
	}
}

// Ended says whether the process has ended.
func (p *Process) Ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Result is what a process has left when it ended.
type Result struct {
	Stdout, Stderr string
	Status         int // as a shell tells it: 128 and the signal's number for one that was killed
}

// Wait waits for the process's end.
func (p *Process) Wait(tb testing.TB) Result {
	tb.Helper()
	return p.WaitLong(tb, 0)
}

// WaitLong waits for the end of a process that means to run for so long.
func (p *Process) WaitLong(tb testing.TB, running time.Duration) Result {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), running+2*patience())
	defer cancel()
	select {
	case <-p.done:
	case <-ctx.Done():
		tb.Fatalf("%s has not ended\nstdout:\n%s\nstderr:\n%s", filepath.Base(p.cmd.Path), p.stdout.String(),
			p.stderr.String())
	}
	result := Result{Stdout: p.stdout.String(), Stderr: p.stderr.String(), Status: p.cmd.ProcessState.ExitCode()}
	if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		result.Status = 128 + int(status.Signal())
	}
	return result
}

// Leftovers returns the processes that the process has started, itself included, and that still live.
func (p *Process) Leftovers() []int { return marked(p.mark) }

// marked finds the processes that have a mark in their environment.
func marked(mark string) []int {
	var pids []int
	want := []byte(markVariable + "=" + mark)
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		environment, err := os.ReadFile(file)
		if err != nil {
			continue // ended meanwhile, or another user's
		}
		for _, variable := range bytes.Split(environment, []byte{0}) {
			if bytes.Equal(variable, want) {
				pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// output is a buffer that can be read while a process writes to it.
type output struct {
	mutex  sync.Mutex
	buffer bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.buffer.Write(p)
}

func (o *output) String() string {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.buffer.String()
}
