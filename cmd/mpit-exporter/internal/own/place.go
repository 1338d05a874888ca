package own

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/sockets"
)

// Files in the directory of a launch. Any other file there keeps the directory from being removed.
const (
	presenceFile = "own.sock" // the socket at which processes say that they are there
	logFile      = "log"
	failedFile   = "failed" // the exporter could not be started; not long ago, if it is young
	lockFile     = "lock"   // not the directory itself, which is locked by whoever makes a socket in it
)

var launchFiles = []string{sockets.AgentFile, sockets.ControlFile, presenceFile, logFile, failedFile}

const (
	// failedFor is how long after a failure nobody tries again: the other ranks of a launch come within that.
	failedFor = time.Minute
	// maxPath leaves room for a launch's directory and a socket in it: the kernel's paths of sockets have 107 bytes.
	maxPath = 107 - len("/0123456789abcdef/"+sockets.ControlFile)
)

// base is the path of the directory of all launches of one user on this node. Nobody else can look into it, so what is
// below it is the user's.
type base string

// placesForBase are where the directory of all launches may be, the best place first: the user's own where there is
// one, and /tmp, where anybody may have taken the name. Nobody can take one in the user's home directory; it comes
// last, as it may be on a file system that knows neither sockets nor locks. All processes of a launch find the same.
func placesForBase(getenv func(string) string) (places []string) {
	if dir := getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) && checkPrivate(dir) == nil {
		places = append(places, dir)
	}
	places = append(places, "/tmp")
	if dir := getenv("HOME"); filepath.IsAbs(dir) {
		places = append(places, dir)
	}
	return places
}

// makeBase finds mpit-exporter-<uid> in the first of the places that has it, or in which it can be made.
func makeBase(places ...string) (base, error) {
	var failed []string
	for _, place := range places {
		b := base(filepath.Join(place, fmt.Sprintf("%s-%d", cli.ProgramName, os.Geteuid())))
		err := b.make()
		if err == nil {
			return b, nil
		}
		failed = append(failed, err.Error())
	}
	return "", fmt.Errorf("%s; name another directory with --own.dir", strings.Join(failed, "; "))
}

// make makes the directory where it is not there. In /tmp anybody may have made it before: it must be a directory, no
// link to one, the user's, and closed to all others.
func (b base) make() error {
	if len(b) > maxPath {
		return fmt.Errorf("%s is too long a path for a socket in it", b)
	}
	if err := os.Mkdir(string(b), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return checkPrivate(string(b))
}

// checkPrivate fails if a path is not a directory that belongs to this user and to nobody else.
func checkPrivate(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	owner := info.Sys().(*syscall.Stat_t).Uid //nolint:forcetypeassert // on Linux it is that
	switch {
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory, though it should be one of yours", path)
	case int(owner) != os.Geteuid():
		return fmt.Errorf("%s belongs to user %d, not to you", path, owner)
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("%s is open to others (mode %#o); chmod 700 it", path, info.Mode().Perm())
	}
	return nil
}

// launchDir is the directory of one launch. base.lock makes and locks it, and the lock goes on to the exporter, which
// removes it at its end. What a killed one has left, the next one to start removes (base.clean).
//
// The process that has the lock starts the exporter, or is the exporter: the lock belongs to an open file, is handed on
// with it, and ends with the last process that has it open.
type launchDir struct {
	path     string
	lockFile *os.File
}

// base is the directory that it lies in.
func (d *launchDir) base() base { return base(filepath.Dir(d.path)) }

// file is the path of a file in it.
func (d *launchDir) file(name string) string { return filepath.Join(d.path, name) }

// close gives up this process's part of the lock.
func (d *launchDir) close() { _ = d.lockFile.Close() }

// lock takes the lock of a launch's directory, which it makes if there is none. Without an error, nil means that
// somebody else has the lock, or had it a moment ago.
func (b base) lock(key string) (*launchDir, error) {
	path := filepath.Join(string(b), key)
	err := os.Mkdir(path, 0o700)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return lockDir(path)
	}
	if errors.Is(err, fs.ErrNotExist) { // an exporter at its end has removed the base: it is to be made anew
		err = nil
	}
	return nil, err
}

// lockDir is lock of a directory that must be there.
func lockDir(path string) (*launchDir, error) {
	err := checkPrivate(path)
	d := &launchDir{path: path}
	if err == nil {
		d.lockFile, err = os.OpenFile(d.file(lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	}
	if err == nil {
		if err = unix.Flock(int(d.lockFile.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil && d.inPlace() {
			return d, nil
		}
		d.close()
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.EINTR) {
		return nil, nil
	}
	return nil, fmt.Errorf("locking a directory: %s: %w; name a place on a local file system with --own.dir", path, err)
}

// inPlace says whether the lock's file is the one that other processes find. It may have been removed after it was
// opened, or the base since it was looked at, whose name another user may have taken. With a lock that is in place
// there is something in the base, and it stays.
func (d *launchDir) inPlace() bool {
	mine, err := d.lockFile.Stat()
	there, lost := os.Lstat(d.file(lockFile))
	return err == nil && lost == nil && os.SameFile(mine, there) && checkPrivate(string(d.base())) == nil
}

// failed says whether the exporter could not be started a moment ago.
func (d *launchDir) failed(now time.Time) bool {
	info, err := os.Lstat(d.file(failedFile))
	return err == nil && now.Sub(info.ModTime()).Abs() < failedFor
}

// fail leaves word for the other ranks. A server of files may have another clock.
func (d *launchDir) fail() {
	if os.WriteFile(d.file(failedFile), nil, 0o600) == nil {
		now := time.Now()
		_ = os.Chtimes(d.file(failedFile), now, now)
	}
}

// empty removes what exporters make in the directory but the lock's file.
func (d *launchDir) empty() {
	for _, name := range launchFiles {
		_ = os.Remove(d.file(name))
	}
}

// remove removes the directory of a launch, whose lock is held. The lock's file goes last: whoever finds none makes
// one, and then the directory is theirs.
func (d *launchDir) remove() {
	d.empty()
	_ = os.Remove(d.file(lockFile))
	_ = os.Remove(d.path) // fails where there is something of somebody's
}

// clean removes what dead exporters have left: directories whose lock nobody has. A process that comes to one of them
// meanwhile finds it locked, or gone, and tries again.
func (b base) clean(now time.Time, except string) {
	entries, _ := os.ReadDir(string(b))
	for _, entry := range entries {
		if name := entry.Name(); isKey(name) && name != except {
			if d, _ := lockDir(filepath.Join(string(b), name)); d != nil {
				if !d.failed(now) {
					d.remove()
				}
				d.close()
			}
		}
	}
}
