// Package process knows whether and how a process has ended.
package process

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Handle is a process that runs or has ended, whoever else has its pid by now. The zero Handle knows nothing. It is
// not safe for concurrent use.
type Handle struct {
	file *os.File // nil: there is none, or it has been closed
}

// New takes the descriptor of a process over (mpit.Session.Process); nil: there is none.
func New(file *os.File) Handle { return Handle{file: file} }

// Gone says that the process has ended, whether its parent has waited for it or not; false: it runs, or isn't known.
func (h *Handle) Gone() bool {
	if h.file == nil {
		return false
	}
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(h.file.Fd()), Events: unix.POLLIN}}, 0)
	return n > 0 && err == nil
}

// Status is how the process has ended, "exit 3" or "SIGSEGV", and known once. "": it runs, it is not known yet, or
// has been told before. Linux before 6.15 doesn't tell.
func (h *Handle) Status() string {
	if h.file == nil {
		return ""
	}
	info := unix.PidfdInfo{Mask: unix.PIDFD_INFO_EXIT}
	if err := unix.IoctlPidfdInfo(int(h.file.Fd()), &info); err != nil || info.Mask&unix.PIDFD_INFO_EXIT == 0 {
		return ""
	}
	h.Close()
	return describe(unix.WaitStatus(uint32(info.Exit_code)))
}

// Close gives the descriptor back. It may be called more than once.
func (h *Handle) Close() {
	if h.file != nil {
		_ = h.file.Close()
		h.file = nil
	}
}

func describe(s unix.WaitStatus) string {
	if !s.Signaled() {
		return fmt.Sprintf("exit %d", s.ExitStatus())
	}
	if name := unix.SignalName(s.Signal()); name != "" {
		return name
	}
	return fmt.Sprintf("signal %d", s.Signal())
}
