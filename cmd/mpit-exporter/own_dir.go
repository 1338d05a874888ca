package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Files in the directory of a launch. What else stands there is somebody's, and keeps the directory from being removed.
const (
	ownSocketFile = "own.sock" // ranks say here that they are there
	ownLogFile    = "log"
	ownFailedFile = "failed" // the exporter could not be started; not long ago, if it is young
	ownSDFile     = "sd"     // path of the file-SD file
	ownLockFile   = "lock"   // not the directory itself, which is locked by whoever makes a socket in it
)

var ownFiles = []string{socketFile, controlFile, ownSocketFile, ownLogFile, ownFailedFile, ownSDFile}

const (
	// failedFor is how long after a failure nobody tries again: the other ranks of a launch come within that.
	failedFor = time.Minute
	// maxStale bounds how many directories one start looks at.
	maxStale = 1000
)

// ownBase is the directory of all launches of one user on this node. Nobody else can look into it.
type ownBase struct {
	path string
	dir  *os.File
}

// openBase opens parent/mpit-exporter-<uid>, and makes it where it is not there. In /tmp anybody may have made it before: it must be a
// directory, no link to one, the user's, and closed to all others.
func openBase(parent string) (*ownBase, error) {
	path := filepath.Join(parent, fmt.Sprintf("%s-%d", programName, os.Geteuid()))
	if err := unix.Mkdir(path, 0o700); err != nil && !errors.Is(err, unix.EEXIST) {
		return nil, fmt.Errorf("making %s: %w; name another directory with --own.dir", path, err)
	}
	dir, err := openPrivate(unix.AT_FDCWD, path, path)
	if err != nil {
		return nil, err
	}
	return &ownBase{path: path, dir: dir}, nil
}

func (b *ownBase) close() { _ = b.dir.Close() }

// openPrivate opens a directory that belongs to this user and to nobody else. shown is its path for errors.
func openPrivate(at int, name, shown string) (*os.File, error) {
	fd, err := unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		return nil, fmt.Errorf("%s is not a directory, though it should be one of yours; remove it or name another place with --own.dir", shown)
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
		return nil, fmt.Errorf("%s is open to others (mode %#o); chmod 700 it or name another place with --own.dir", shown, st.Mode&0o777)
	}
	return dir, nil
}

// ownDir is the directory of one launch. Who has its lock starts the exporter, or is it: the lock is an open file's, goes to the exporter
// with it, and ends with the last process that has it open, however that ends.
type ownDir struct {
	path string
	dir  *os.File
	lock *os.File
}

func (d *ownDir) file(name string) string { return filepath.Join(d.path, name) }

// close gives up this process's part of the lock.
func (d *ownDir) close() {
	_ = d.lock.Close()
	_ = d.dir.Close()
}

// lock takes the lock of a launch's directory, which it makes where it is not there. Without an error, nil says that somebody else has the
// lock, or had it a moment ago.
func (b *ownBase) lock(key string) (*ownDir, error) {
	at := int(b.dir.Fd())
	if err := unix.Mkdirat(at, key, 0o700); err != nil && !errors.Is(err, unix.EEXIST) {
		if errors.Is(err, unix.ENOENT) {
			return nil, nil // an exporter at its end has removed the base: it is to be opened anew
		}
		return nil, fmt.Errorf("making %s: %w", filepath.Join(b.path, key), err)
	}
	return b.lockThere(key)
}

// lockThere is lock of a directory that must be there.
func (b *ownBase) lockThere(key string) (*ownDir, error) {
	d, err := b.open(key)
	if err != nil || d == nil {
		return nil, err
	}
	locked, err := b.take(d)
	if err != nil || !locked {
		d.close()
		return nil, err
	}
	return d, nil
}

// open opens a launch's directory and its lock's file; nil where there is no such directory.
func (b *ownBase) open(key string) (*ownDir, error) {
	at, path := int(b.dir.Fd()), filepath.Join(b.path, key)
	dir, err := openPrivate(at, key, path)
	if errors.Is(err, unix.ENOENT) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	fd, err := unix.Openat(int(dir.Fd()), ownLockFile, unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if errors.Is(err, unix.ENOENT) { // the directory has been removed by now
		_ = dir.Close()
		return nil, nil
	}
	if err != nil {
		_ = dir.Close()
		return nil, fmt.Errorf("opening %s: %w; name another place with --own.dir", filepath.Join(path, ownLockFile), err)
	}
	return &ownDir{path: path, dir: dir, lock: os.NewFile(uintptr(fd), filepath.Join(path, ownLockFile))}, nil
}

// take takes the lock, unless somebody else has it.
func (b *ownBase) take(d *ownDir) (bool, error) {
	fd := int(d.lock.Fd())
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.EINTR) {
			return false, nil
		}
		return false, fmt.Errorf("locking %s: %w; name a place on a local file system with --own.dir", d.lock.Name(), err)
	}
	// It may have been removed between the two calls: then the lock is of a file that nobody else will find.
	var mine, there unix.Stat_t
	name := filepath.Join(filepath.Base(d.path), ownLockFile)
	if unix.Fstat(fd, &mine) != nil || unix.Fstatat(int(b.dir.Fd()), name, &there, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return false, nil
	}
	return mine.Ino == there.Ino && mine.Dev == there.Dev, nil
}

// failed says whether the exporter could not be started a moment ago.
func (d *ownDir) failed(now time.Time) bool {
	var st unix.Stat_t
	if unix.Fstatat(int(d.dir.Fd()), ownFailedFile, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return false
	}
	age := now.Sub(time.Unix(st.Mtim.Unix()))
	return age > -failedFor && age < failedFor
}

// fail leaves word for the other ranks.
func (d *ownDir) fail() {
	if fd, err := unix.Openat(int(d.dir.Fd()), ownFailedFile, unix.O_CREAT|unix.O_WRONLY|unix.O_TRUNC|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600); err == nil {
		now := unix.NsecToTimeval(time.Now().UnixNano())
		_ = unix.Futimes(fd, []unix.Timeval{now, now})
		_ = unix.Close(fd)
	}
}

// empty removes what exporters make in the directory but the lock's file, and the file-SD file that it names.
func (d *ownDir) empty() {
	if path := d.named(ownSDFile); path != "" && strings.Contains(filepath.Base(path), filepath.Base(d.path)) {
		_ = os.Remove(path)
	}
	for _, name := range ownFiles {
		_ = unix.Unlinkat(int(d.dir.Fd()), name, 0)
	}
}

// named is the path that a file of the directory holds.
func (d *ownDir) named(name string) string {
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

// remove removes the directory of a launch, whose lock is held. The lock's file goes last: whoever finds none makes one, and then the directory
// is his.
func (b *ownBase) remove(d *ownDir) {
	d.empty()
	_ = unix.Unlinkat(int(d.dir.Fd()), ownLockFile, 0)
	_ = unix.Unlinkat(int(b.dir.Fd()), filepath.Base(d.path), unix.AT_REMOVEDIR) // fails where there is something of somebody's
}

// removeAll does so, and removes the directory of all launches if it was the last.
func (b *ownBase) removeAll(d *ownDir) {
	b.remove(d)
	_ = unix.Rmdir(b.path) // fails where others are in it
}

// clean removes what dead exporters have left: directories whose lock nobody has. A process that comes to one of them meanwhile finds it
// locked, or gone, and tries again.
func (b *ownBase) clean(now time.Time, except string) {
	names, err := b.names()
	if err != nil {
		return
	}
	for _, name := range names {
		if !isKey(name) || name == except {
			continue
		}
		d, err := b.lockThere(name)
		if err != nil || d == nil {
			continue
		}
		if !d.failed(now) {
			b.remove(d)
		}
		d.close()
	}
}

func (b *ownBase) names() ([]string, error) {
	// Through a descriptor of its own: reading moves the position.
	dir, err := openPrivate(int(b.dir.Fd()), ".", b.path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	names, err := dir.Readdirnames(maxStale)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", b.path, err)
	}
	return names, nil
}
