package own

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/preload"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/sockets"
)

// The exporter is started in two steps, for it must be neither a child of the program, which may wait for all of its
// children, nor have anything of the program's open:
//
//   - exec runs "mpit-exporter own detach DIR", with the lock of the launch's directory and a pipe, and waits until it
//     has ended;
//   - this marks all it has inherited as not to be inherited, and starts "mpit-exporter own serve DIR" in a session of
//     its own, whose parent is init, or whoever reaps orphans, from then on;
//   - this is the exporter. It says over the pipe where its page is, or why there is none.
const (
	Command    = "own"
	DetachStep = "detach"
	ServeStep  = "serve"
	// envSettings carries the settings: a command line can be read by all users, and headers may be secrets.
	envSettings = "MPIT_OWN_SETTINGS"
)

// Descriptors of both steps.
const (
	lockFD = 3 + iota
	pipeFD
	wordsFD
)

// order is what exec tells the exporter.
type order struct {
	Serve []string // arguments of serve
	// Program is the path of the launch's, whose symbols say where calls were made.
	Program string
	Linger  time.Duration
	Wait    time.Duration // that ranks wait in MPI_Finalize; 0: they don't
	Report  string        // file; empty: none
	Page    bool          // on a port
	Host    string
}

// answer is what the exporter says when it serves, or can't.
type answer struct {
	Lines []string // where its page is
	Error string
}

// notForServices are variables through which service managers talk to a process that they have started.
var notForServices = []string{"NOTIFY_SOCKET", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES", "WATCHDOG_PID",
	"WATCHDOG_USEC"}

// start starts the exporter of a launch, whose directory's lock goes to it, and returns what the user should know of
// it.
func (o *Settings) start(ctx context.Context, dir *launchDir, env preload.Environment) (lines []string, err error) {
	executable, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding my own path: %w", err)
	}
	order, err := json.Marshal(o.orderFor(dir))
	if err != nil {
		return nil, fmt.Errorf("writing the exporter's settings: %w", err)
	}
	dir.empty() // of an exporter that was killed
	answers, pipe, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making a pipe: %w", err)
	}
	defer func() { _ = answers.Close() }()
	words, err := o.words()
	if err != nil {
		return nil, fmt.Errorf("handing stderr on: %w", err)
	}
	log, err := os.OpenFile(cmp.Or(o.log, dir.file(logFile)), os.O_CREATE|os.O_WRONLY|os.O_APPEND|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, fmt.Errorf("the exporter's log: %w; name another file with --own.log", err)
	}
	defer func() { _ = log.Close() }()
	//nolint:gosec // G204: it is this program
	cmd := exec.CommandContext(ctx, executable, Command, DetachStep, dir.path)
	cmd.Env = append(environment(env), envSettings+"="+string(order))
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{dir.lockFile, pipe, words}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Run()
	_ = pipe.Close()
	deadline, _ := ctx.Deadline()
	if deadlineErr := answers.SetReadDeadline(deadline); deadlineErr != nil {
		return nil, fmt.Errorf("waiting for the exporter: %w", deadlineErr)
	}
	var answer answer
	decodeErr := json.NewDecoder(answers).Decode(&answer)
	switch {
	case decodeErr == nil && answer.Error != "":
		return nil, errors.New(answer.Error)
	case err != nil:
		return nil, fmt.Errorf("starting an exporter: %w", err)
	case errors.Is(decodeErr, os.ErrDeadlineExceeded):
		return nil, fmt.Errorf("its exporter does not listen after %v", o.patience)
	case decodeErr != nil:
		return nil, errors.New("its exporter has ended before it listened; --own.log=FILE keeps what it has said")
	}
	return answer.Lines, nil
}

// words is where the exporter says at its end that there is no report: stderr, for a report alone. Who reads a pipe to
// its end must not wait for the exporter: such a one it only knows by name.
func (o *Settings) words() (*os.File, error) {
	switch about, err := os.Stderr.Stat(); {
	case err != nil || o.Report == "":
	case about.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0:
		return os.Stderr, nil
	default:
		if named, err := os.OpenFile("/proc/self/fd/2", unix.O_PATH, 0); err == nil {
			return named, nil
		}
	}
	return os.OpenFile(os.DevNull, os.O_WRONLY, 0)
}

// orderFor is what the exporter of a launch is told.
func (o *Settings) orderFor(dir *launchDir) order {
	order := o.order
	order.Wait, order.Page = o.FinalWait(), o.paged()
	if o.otlp.Asked() {
		order.Serve = append(order.Serve, "--otlp.final")
	}
	order.Serve = append(order.Serve, o.forwarded...)
	order.Serve = append(order.Serve, "--agent.socket="+dir.file(sockets.AgentFile))
	if order.Page {
		order.Serve = append(order.Serve, "--web.listen-address="+o.listen)
	}
	return order
}

// environment is the program's as the exporter should have it. Names of files are whole: it has another directory.
func environment(env preload.Environment) (all []string) {
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		if slices.Contains(notForServices, name) {
			continue
		}
		if certificateVariable.MatchString(name) && value != "" {
			if path, err := filepath.Abs(value); err == nil {
				entry = name + "=" + path
			}
		}
		all = append(all, entry)
	}
	return all
}

var certificateVariable = regexp.MustCompile(`^OTEL_EXPORTER_OTLP_(METRICS_)?(CERTIFICATE|CLIENT_CERTIFICATE|CLIENT_KEY)$`)

// Detach is the first step's process.
func Detach(dir string) error {
	pipe := os.NewFile(pipeFD, "pipe")
	err := detach(dir, []*os.File{os.NewFile(lockFD, dir), pipe, os.NewFile(wordsFD, "words")})
	if err != nil {
		reply(pipe, answer{Error: err.Error()})
	}
	return err
}

func detach(dir string, handed []*os.File) error {
	if err := inheritNothing(); err != nil {
		return fmt.Errorf("closing what was inherited: %w", err)
	}
	executable, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding my own path: %w", err)
	}
	//nolint:gosec,noctx // this program again; it outlives this process
	cmd := exec.Command(executable, Command, ServeStep, dir)
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr // the log
	cmd.ExtraFiles = handed
	// mpirun binds ranks to cores. The exporter may run on any.
	runtime.LockOSThread()
	var all unix.CPUSet
	for cpu := range len(all) * 64 {
		all.Set(cpu)
	}
	_ = unix.SchedSetaffinity(0, &all) // of these the kernel takes those that the job may use
	return cmd.Start()
}

// inheritNothing marks all descriptors but the standard ones as not to be inherited.
func inheritNothing() error {
	err := unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC)
	if err == nil {
		return nil
	}
	// Linux before 5.11, or a container that refuses it.
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	for _, name := range names {
		if fd, err := strconv.Atoi(name.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}

// reply tells exec, which may no longer listen.
func reply(pipe *os.File, answer answer) {
	_ = json.NewEncoder(pipe).Encode(answer)
	_ = pipe.Close()
}
