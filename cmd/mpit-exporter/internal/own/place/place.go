// Package place is where exporters of launches have their sockets, in a directory that nobody but their user can look into,
// and the election of who starts one: whoever gets the lock of a launch's directory.
//
// A directory's life: Base.Lock makes and locks it, the lock goes on to the exporter (Take), which removes it at its end
// (Base.RemoveAll). What a killed one has left, the next one to start removes (Base.Clean).
package place

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/own/launch"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/sockets"
)

// Files in the directory of a launch. What else stands there is somebody's, and keeps the directory from being
// removed.
const (
	PresenceFile = "own.sock" // ranks say here that they are there
	LogFile      = "log"
	failedFile   = "failed" // the exporter could not be started; not long ago, if it is young
	SDFile       = "sd"     // path of the file-SD file
	lockFile     = "lock"   // not the directory itself, which is locked by whoever makes a socket in it
)

var files = []string{sockets.AgentFile, sockets.ControlFile, PresenceFile, LogFile, failedFile, SDFile}

const (
	// failedFor is how long after a failure nobody tries again: the other ranks of a launch come within that.
	failedFor = time.Minute
	// maxStale bounds how many directories one start looks at.
	maxStale = 1000
)

// Base is the directory of all launches of one user on this node. Nobody else can look into it.
type Base struct {
	Path string
	dir  *os.File
}

// Open opens parent/mpit-exporter-<uid>, and makes it where it is not there. In /tmp anybody may have made it before:
// it must be a directory, no link to one, the user's, and closed to all others.
func Open(parent string) (*Base, error) {
	path := filepath.Join(parent, fmt.Sprintf("%s-%d", cli.ProgramName, os.Geteuid()))
	if err := unix.Mkdir(path, 0o700); err != nil && !errors.Is(err, unix.EEXIST) {
		return nil, fmt.Errorf("making %s: %w; name another directory with --own.dir", path, err)
	}
	dir, err := openPrivate(unix.AT_FDCWD, path, path)
	if err != nil {
		return nil, err
	}
	return &Base{Path: path, dir: dir}, nil
}

// Close lets go of the directory.
func (b *Base) Close() { _ = b.dir.Close() }

// openPrivate opens a directory that belongs to this user and to nobody else. shown is its path for errors.
func openPrivate(at int, name, shown string) (*os.File, error) {
	fd, err := unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		return nil, fmt.Errorf("%s is not a directory, though it should be one of yours; remove it or name another "+
			"place with --own.dir", shown)
	case err != nil:
		return nil, fmt.Errorf("opening %s: %w; name another place with --own.dir", shown, err)
	}
	dir := os.NewFile(uintptr(fd), shown)
	var st unix.Stat_t
	switch err := unix.Fstat(fd, &st); {
	case err != nil:
		err = fmt.Errorf("looking at %s: %w", shown, err)
		return nil, errors.Join(err, dir.Close())
	case int(st.Uid) != os.Geteuid():
		_ = dir.Close()
		return nil, fmt.Errorf("%s belongs to user %d, not to you; name another place with --own.dir", shown, st.Uid)
	case st.Mode&0o077 != 0:
		_ = dir.Close()
		return nil, fmt.Errorf("%s is open to others (mode %#o); chmod 700 it or name another place with --own.dir",
			shown, st.Mode&0o777)
	}
	return dir, nil
}

// Take opens the directory of a launch whose lock somebody has handed on, and the base that it lies in.
func Take(path string, lock *os.File) (*Base, *Dir, error) {
	base, err := Open(filepath.Dir(filepath.Dir(path)))
	if err != nil {
		return nil, nil, err
	}
	dir, err := openPrivate(int(base.dir.Fd()), filepath.Base(path), path)
	if err != nil {
		return nil, nil, err
	}
	return base, &Dir{Path: path, dir: dir, LockFile: lock}, nil
}

// Dir is the directory of one launch. Who has its lock starts the exporter, or is it: the lock is an open file's,
// goes to the exporter with it, and ends with the last process that has it open, however that ends.
type Dir struct {
	Path     string
	dir      *os.File
	LockFile *os.File
}

// File is the path of a file in it.
func (d *Dir) File(name string) string { return filepath.Join(d.Path, name) }

// Close gives up this process's part of the lock.
func (d *Dir) Close() {
	_ = d.LockFile.Close()
	_ = d.dir.Close()
}

// Lock takes the lock of a launch's directory, which it makes where it is not there. Without an error, nil says that
// somebody else has the lock, or had it a moment ago.
func (b *Base) Lock(key string) (*Dir, error) {
	at := int(b.dir.Fd())
	if err := unix.Mkdirat(at, key, 0o700); err != nil && !errors.Is(err, unix.EEXIST) {
		if errors.Is(err, unix.ENOENT) {
			return nil, nil // an exporter at its end has removed the base: it is to be opened anew
		}
		return nil, fmt.Errorf("making %s: %w", filepath.Join(b.Path, key), err)
	}
	return b.lockThere(key)
}

// lockThere is lock of a directory that must be there.
func (b *Base) lockThere(key string) (*Dir, error) {
	d, err := b.open(key)
	if err != nil || d == nil {
		return nil, err
	}
	locked, err := b.take(d)
	if err != nil || !locked {
		d.Close()
		return nil, err
	}
	return d, nil
}

// open opens a launch's directory and its lock's file; nil where there is no such directory.
func (b *Base) open(key string) (*Dir, error) {
	at, path := int(b.dir.Fd()), filepath.Join(b.Path, key)
	dir, err := openPrivate(at, key, path)
	if errors.Is(err, unix.ENOENT) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	fd, err := unix.Openat(int(dir.Fd()), lockFile, unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if errors.Is(err, unix.ENOENT) { // the directory has been removed by now
		_ = dir.Close()
		return nil, nil
	}
	if err != nil {
		_ = dir.Close()
		return nil, fmt.Errorf("opening %s: %w; name another place with --own.dir", filepath.Join(path, lockFile), err)
	}
	return &Dir{Path: path, dir: dir, LockFile: os.NewFile(uintptr(fd), filepath.Join(path, lockFile))}, nil
}

// take takes the lock, unless somebody else has it.
func (b *Base) take(d *Dir) (bool, error) {
	fd := int(d.LockFile.Fd())
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.EINTR) {
			return false, nil
		}
		return false, fmt.Errorf("locking %s: %w; name a place on a local file system with --own.dir",
			d.LockFile.Name(), err)
	}
	// It may have been removed between the two calls: then the lock is of a file that nobody else will find.
	var mine, there unix.Stat_t
	name := filepath.Join(filepath.Base(d.Path), lockFile)
	if unix.Fstat(fd, &mine) != nil || unix.Fstatat(int(b.dir.Fd()), name, &there, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return false, nil
	}
	return mine.Ino == there.Ino && mine.Dev == there.Dev, nil
}

// Failed says whether the exporter could not be started a moment ago.
func (d *Dir) Failed(now time.Time) bool {
	var st unix.Stat_t
	if unix.Fstatat(int(d.dir.Fd()), failedFile, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return false
	}
	age := now.Sub(time.Unix(st.Mtim.Unix()))
	return age > -failedFor && age < failedFor
}

// Fail leaves word for the other ranks.
func (d *Dir) Fail() {
	if fd, err := unix.Openat(int(d.dir.Fd()), failedFile,
		unix.O_CREAT|unix.O_WRONLY|unix.O_TRUNC|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600); err == nil {
		now := unix.NsecToTimeval(time.Now().UnixNano())
		_ = unix.Futimes(fd, []unix.Timeval{now, now})
		_ = unix.Close(fd)
	}
}

// Empty removes what exporters make in the directory but the lock's file, and the file-SD file that it names.
func (d *Dir) Empty() {
	if path := d.named(SDFile); path != "" && strings.Contains(filepath.Base(path), filepath.Base(d.Path)) {
		_ = os.Remove(path)
	}
	for _, name := range files {
		_ = unix.Unlinkat(int(d.dir.Fd()), name, 0)
	}
}

// named is the path that a file of the directory holds.
func (d *Dir) named(name string) string {
	fd, err := unix.Openat(int(d.dir.Fd()), name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer func() { _ = unix.Close(fd) }()
	text := make([]byte, unix.PathMax)
	n, err := unix.Read(fd, text)
	if err != nil {
		return ""
	}
	return string(text[:n])
}

// remove removes the directory of a launch, whose lock is held. The lock's file goes last: whoever finds none makes
// one, and then the directory is his.
func (b *Base) remove(d *Dir) {
	d.Empty()
	_ = unix.Unlinkat(int(d.dir.Fd()), lockFile, 0)
	// fails where there is something of somebody's
	_ = unix.Unlinkat(int(b.dir.Fd()), filepath.Base(d.Path), unix.AT_REMOVEDIR)
}

// RemoveAll does so, and removes the directory of all launches if it was the last.
func (b *Base) RemoveAll(d *Dir) {
	b.remove(d)
	_ = unix.Rmdir(b.Path) // fails where others are in it
}

// Clean removes what dead exporters have left: directories whose lock nobody has. A process that comes to one of them
// meanwhile finds it locked, or gone, and tries again.
func (b *Base) Clean(now time.Time, except string) {
	names, err := b.names()
	if err != nil {
		return
	}
	for _, name := range names {
		if !launch.IsKey(name) || name == except {
			continue
		}
		d, err := b.lockThere(name)
		if err != nil || d == nil {
			continue
		}
		if !d.Failed(now) {
			b.remove(d)
		}
		d.Close()
	}
}

func (b *Base) names() ([]string, error) {
	// Through a descriptor of its own: reading moves the position.
	dir, err := openPrivate(int(b.dir.Fd()), ".", b.Path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	names, err := dir.Readdirnames(maxStale)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", b.Path, err)
	}
	return names, nil
}
