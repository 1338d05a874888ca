// Package place is where exporters of launches have their sockets, in a directory that nobody but their user can look
// into, and the election of who starts one: whoever gets the lock of a launch's directory.
//
// A directory's life: Base.Lock makes and locks it, the lock goes on to the exporter (Take), which removes it at its
// end (Base.RemoveAll). What a killed one has left, the next one to start removes (Base.Clean).
package place

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
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/own/launch"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/sockets"
)

// Files in the directory of a launch. Any other file there keeps the directory from being removed.
const (
	PresenceFile = "own.sock" // the socket at which processes say that they are there
	LogFile      = "log"
	SDFile       = "sd"     // path of the file-SD file
	failedFile   = "failed" // the exporter could not be started; not long ago, if it is young
	lockFile     = "lock"   // not the directory itself, which is locked by whoever makes a socket in it
)

var files = []string{sockets.AgentFile, sockets.ControlFile, PresenceFile, LogFile, failedFile, SDFile}

const (
	// failedFor is how long after a failure nobody tries again: the other ranks of a launch come within that.
	failedFor = time.Minute
	// maxPath leaves room for a launch's directory and a socket in it: the kernel's paths of sockets have 107 bytes.
	maxPath = 107 - len("/0123456789abcdef/"+sockets.ControlFile)
	// maxStale bounds how many directories one start looks at.
	maxStale = 1000
)

// Base is the directory of all launches of one user on this node. Nobody else can look into it.
type Base struct {
	Path string
	root *os.Root
}

// Parents are where the directory of all launches may be, the best place first: the user's own where there is one, and
// /tmp, where anybody may have taken the name. Nobody can take one in the user's home directory; it comes last, as it
// may be on a file system that knows neither sockets nor locks. All processes of a launch find the same.
func Parents(getenv func(string) string) (parents []string) {
	if dir := getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		if root, err := openPrivate(dir, dir, os.Lstat, os.OpenRoot); err == nil {
			_ = root.Close()
			parents = append(parents, dir)
		}
	}
	parents = append(parents, "/tmp")
	if dir := getenv("HOME"); filepath.IsAbs(dir) {
		parents = append(parents, dir)
	}
	return parents
}

// Open opens mpit-exporter-<uid> in the first of the parents that has it, or in which it can be made.
func Open(parents ...string) (base *Base, err error) {
	for i, parent := range parents {
		base, openErr := openIn(parent)
		if openErr == nil {
			return base, nil
		}
		if i == 0 {
			err = openErr
		} else {
			err = fmt.Errorf("%w; %w", err, openErr)
		}
	}
	return nil, fmt.Errorf("%w; name another directory with --own.dir", err)
}

// openIn opens parent/mpit-exporter-<uid>, and makes it where it is not there. In /tmp anybody may have made it before:
// it must be a directory, no link to one, the user's, and closed to all others.
func openIn(parent string) (*Base, error) {
	path := filepath.Join(parent, fmt.Sprintf("%s-%d", cli.ProgramName, os.Geteuid()))
	if len(path) > maxPath {
		return nil, fmt.Errorf("%s is too long a path for a socket in it", path)
	}
	if err := unix.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("making %s: %w", path, err)
	}
	root, err := openPrivate(path, path, os.Lstat, os.OpenRoot)
	if err != nil {
		return nil, err
	}
	return &Base{Path: path, root: root}, nil
}

// Close lets go of the directory.
func (b *Base) Close() { _ = b.root.Close() }

// openPrivate opens a directory that belongs to this user and to nobody else. lstat and open take its name, path is
// for errors.
func openPrivate(
	name, path string, lstat func(string) (fs.FileInfo, error), open func(string) (*os.Root, error),
) (*os.Root, error) {
	named, err := lstat(name)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", path, cause(err))
	}
	noDirectory := fmt.Errorf("%s is not a directory, though it should be one of yours", path)
	if !named.IsDir() {
		return nil, noDirectory
	}
	root, err := open(name)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", path, cause(err))
	}
	info, err := root.Stat(".")
	switch {
	case err != nil:
		err = fmt.Errorf("looking at %s: %w", path, cause(err))
	case !os.SameFile(info, named): // a link has taken its place meanwhile
		err = noDirectory
	case int(info.Sys().(*syscall.Stat_t).Uid) != os.Geteuid():
		err = fmt.Errorf("%s belongs to user %d, not to you", path, info.Sys().(*syscall.Stat_t).Uid)
	case info.Mode().Perm()&0o077 != 0:
		err = fmt.Errorf("%s is open to others (mode %#o); chmod 700 it", path, info.Mode().Perm())
	default:
		return root, nil
	}
	return nil, errors.Join(err, root.Close())
}

// cause is an error without the call and the path, which stand in front of it already.
func cause(err error) error {
	if inner := (*fs.PathError)(nil); errors.As(err, &inner) {
		return inner.Err
	}
	return err
}

// Dir is the directory of one launch. The process that has its lock starts the exporter, or is the exporter: the lock
// belongs to an open file, is handed on with it, and ends with the last process that has it open.
type Dir struct {
	Path     string
	LockFile *os.File
	root     *os.Root
}

// Take opens the directory of a launch whose lock somebody has handed on, and the base that it lies in.
func Take(path string, lock *os.File) (*Base, *Dir, error) {
	base, err := Open(filepath.Dir(filepath.Dir(path)))
	if err != nil {
		return nil, nil, err
	}
	root, err := openPrivate(filepath.Base(path), path, base.root.Lstat, base.root.OpenRoot)
	if err != nil {
		return nil, nil, err
	}
	return base, &Dir{Path: path, LockFile: lock, root: root}, nil
}

// File is the path of a file in it.
func (d *Dir) File(name string) string { return filepath.Join(d.Path, name) }

// Close gives up this process's part of the lock.
func (d *Dir) Close() {
	_ = d.LockFile.Close()
	_ = d.root.Close()
}

// Lock takes the lock of a launch's directory, which it makes if there is none. Without an error, nil means that
// somebody else has the lock, or had it a moment ago.
func (b *Base) Lock(key string) (*Dir, error) {
	if err := b.root.Mkdir(key, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil // an exporter at its end has removed the base: it is to be opened anew
		}
		return nil, fmt.Errorf("making %s: %w", filepath.Join(b.Path, key), cause(err))
	}
	return b.lockThere(key)
}

// lockThere is Lock of a directory that must be there.
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
	path := filepath.Join(b.Path, key)
	root, err := openPrivate(key, path, b.root.Lstat, b.root.OpenRoot)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	lock, err := root.OpenFile(lockFile, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		_ = root.Close()
		if errors.Is(err, fs.ErrNotExist) { // the directory has been removed by now
			return nil, nil
		}
		return nil, fmt.Errorf("opening %s: %w; name another place with --own.dir",
			filepath.Join(path, lockFile), cause(err))
	}
	return &Dir{Path: path, LockFile: lock, root: root}, nil
}

// take takes the lock, unless somebody else has it.
func (b *Base) take(d *Dir) (bool, error) {
	if err := unix.Flock(int(d.LockFile.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.EINTR) {
			return false, nil
		}
		return false, fmt.Errorf("locking %s: %w; name a place on a local file system with --own.dir",
			d.File(lockFile), err)
	}
	// It may have been removed between the two calls: then the lock is of a file that nobody else will find.
	mine, err := d.LockFile.Stat()
	if err != nil {
		return false, nil //nolint:nilerr // as if it were removed
	}
	there, err := b.root.Lstat(filepath.Join(filepath.Base(d.Path), lockFile))
	return err == nil && os.SameFile(mine, there), nil
}

// Failed says whether the exporter could not be started a moment ago.
func (d *Dir) Failed(now time.Time) bool {
	info, err := d.root.Lstat(failedFile)
	return err == nil && now.Sub(info.ModTime()).Abs() < failedFor
}

// Fail leaves word for the other ranks.
func (d *Dir) Fail() {
	if d.root.WriteFile(failedFile, nil, 0o600) == nil {
		now := time.Now()
		_ = d.root.Chtimes(failedFile, now, now)
	}
}

// Empty removes what exporters make in the directory but the lock's file, and the file-SD file that it names.
func (d *Dir) Empty() {
	if sd, err := d.root.ReadFile(SDFile); err == nil {
		if path := string(sd); strings.Contains(filepath.Base(path), filepath.Base(d.Path)) {
			_ = os.Remove(path)
		}
	}
	for _, name := range files {
		_ = d.root.Remove(name)
	}
}

// remove removes the directory of a launch, whose lock is held. The lock's file goes last: whoever finds none makes
// one, and then the directory is theirs.
func (b *Base) remove(d *Dir) {
	d.Empty()
	_ = d.root.Remove(lockFile)
	_ = b.root.Remove(filepath.Base(d.Path)) // fails where there is something of somebody's
}

// RemoveAll does so, and removes the directory of all launches if it was the last.
func (b *Base) RemoveAll(d *Dir) {
	b.remove(d)
	_ = os.Remove(b.Path) // fails where others are in it
}

// Clean removes what dead exporters have left: directories whose lock nobody has. A process that comes to one of them
// meanwhile finds it locked, or gone, and tries again.
func (b *Base) Clean(now time.Time, except string) {
	dir, err := b.root.Open(".")
	if err != nil {
		return
	}
	defer func() { _ = dir.Close() }()
	names, _ := dir.Readdirnames(maxStale)
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
