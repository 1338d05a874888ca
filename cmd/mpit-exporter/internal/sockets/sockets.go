// Package sockets is where an exporter's Unix sockets are: the ranks' and the control socket. It makes them, with
// their directory in the default place, and says what to do where one can't be made.
//
// It accepts no connection. Begin with ListenAgents.
package sockets

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// The agents look for the socket in the same places, in the same order, unless a variable says otherwise.
const (
	SystemRunDir = "/run"
	Dir          = "mpit-exporter"
	AgentFile    = "agent.sock"
	ControlFile  = "control.sock"

	// EnvSocket is the variable in which ranks find another agent socket.
	EnvSocket = "MPIT_SOCKET"
)

// MaxPath is what fits into sockaddr_un with its terminating zero.
const MaxPath = 107

// AgentSocket is the listening socket and the directory that was made for it.
type AgentSocket struct {
	*mpit.Listener
	dir     string // of the default place, which is made where it is not there; empty: a path was named
	MadeDir string // dir, if it was made; empty: it was there
}

// ListenAgents listens on path, or where agents look if path is empty. Only the default's directory is made:
// a wrong path in a flag should be seen, not made true.
func ListenAgents(path, runDir, userRunDir string, opts ...mpit.ListenOption) (*AgentSocket, error) {
	s := &AgentSocket{}
	if path == "" {
		var err error
		if path, s.MadeDir, err = defaultSocket(runDir, userRunDir); err != nil {
			return nil, err
		}
		s.dir = filepath.Dir(path)
	}
	var err error
	if s.Listener, err = mpit.Listen(path, opts...); err != nil {
		s.removeDir()
		return nil, socketError("agent socket", "--agent.socket", path, err)
	}
	return s, nil
}

// Close removes the socket and what was made for it.
func (s *AgentSocket) Close() error {
	err := s.Listener.Close()
	s.removeDir()
	return err
}

// Named returns the path where the flag named one; "": ranks find the socket by themselves.
func (s *AgentSocket) Named() string {
	if s.dir != "" {
		return ""
	}
	return s.Path()
}

func (s *AgentSocket) removeDir() {
	if s.MadeDir != "" {
		// Fails where somebody has put another file there: then it stays.
		_ = os.Remove(s.MadeDir)
	}
}

// defaultSocket finds the first of the two places whose directory is there or can be made, and makes it.
// made is the directory if it was made now.
func defaultSocket(runDir, userRunDir string) (path, made string, err error) {
	var failed []error
	for _, base := range []string{runDir, userRunDir} {
		if base == "" {
			continue
		}
		dir := filepath.Join(base, Dir)
		isNew, err := makeDir(dir)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		if isNew {
			made = dir
		}
		return filepath.Join(dir, AgentFile), made, nil
	}
	if userRunDir == "" {
		failed = append(failed, errors.New("XDG_RUNTIME_DIR is not set"))
	}
	return "", "", fmt.Errorf("no place for the agent socket: %w; name one with --agent.socket",
		errors.Join(failed...))
}

// makeDir makes dir so that every user's ranks can reach a socket in it, unless it is there already.
func makeDir(dir string) (isNew bool, err error) {
	switch err := os.Mkdir(dir, 0o755); { //nolint:gosec // G301: agents of all users connect to the socket in it
	case errors.Is(err, fs.ErrExist):
		info, err := os.Stat(dir)
		switch {
		case err != nil:
			return false, err
		case !info.IsDir():
			return false, &fs.PathError{Op: "mkdir", Path: dir, Err: syscall.ENOTDIR}
		}
		// Somebody else's, perhaps one that root's exporter has left: it is of no use.
		if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
			return false, &fs.PathError{Op: "write to", Path: dir, Err: err}
		}
		return false, nil
	case err != nil:
		return false, err
	}
	// The umask may have taken bits away.
	return true, os.Chmod(dir, 0o755) //nolint:gosec // G302: as above
}

// ListenControl listens where requests to write to ranks come in: beside the agent socket, unless a path is given.
// Any user may connect: the kernel says who it is, which decides what they may do.
func ListenControl(path, agentPath string) (*mpit.Socket, error) {
	if path == "" {
		path = ControlBeside(agentPath)
	}
	s, err := mpit.ListenUnix(path, 0o666)
	if err != nil {
		return nil, socketError("control socket", "--control.socket", path, err)
	}
	return s, nil
}

// socketError says which socket could not be made, why, and what to do.
func socketError(what, flag, path string, err error) error {
	remedy := "choose another place with " + flag
	switch {
	case errors.Is(err, mpit.ErrSocketInUse):
		return fmt.Errorf("%s %s: another exporter that is alive listens there; stop it or %s", what, path, remedy)
	case len(path) > MaxPath:
		return fmt.Errorf("%s %s: the path is longer than the %d bytes that a socket's may have; %s", what, path,
			MaxPath, remedy)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s %s: its directory does not exist; make it or %s", what, path, remedy)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s %s: permission denied; let user %d write to %s or %s", what, path, os.Geteuid(),
			filepath.Dir(path), remedy)
	case errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%s %s: its file system is mounted read-only; mount it otherwise or %s", what, path, remedy)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%s %s: no room for a file in %s; make room or %s", what, path, filepath.Dir(path), remedy)
	}
	return fmt.Errorf("%s %s: %w; %s", what, path, err, remedy)
}

// ControlBeside is where the control socket of an exporter is by default that has this agent socket.
func ControlBeside(agent string) string { return filepath.Join(filepath.Dir(agent), ControlFile) }

// Places are those at which a socket of an exporter is by default, in the order in which it is looked for.
func Places(file string) []string {
	places := []string{filepath.Join(SystemRunDir, Dir, file)}
	if user := os.Getenv("XDG_RUNTIME_DIR"); user != "" {
		places = append(places, filepath.Join(user, Dir, file))
	}
	return places
}

// Missing returns where ranks look for the socket of an exporter, if there is none; named is the one that they are
// told of, if any.
func Missing(named string) string {
	places := []string{named}
	if named == "" {
		places = Places(AgentFile)
	}
	for _, path := range places {
		if _, err := os.Stat(path); err == nil {
			return ""
		}
	}
	return strings.Join(places, " or ")
}
