package place

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cmdtest"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/sockets"
)

const (
	keyOne = "0123456789abcdef"
	keyTwo = "fedcba9876543210"
)

func baseIn(t *testing.T, parents ...string) *Base {
	t.Helper()
	base, err := Open(parents...)
	require.NoError(t, err)
	t.Cleanup(base.Close)
	return base
}

func lockIn(t *testing.T, base *Base, key string) *Dir {
	t.Helper()
	dir, err := base.Lock(key)
	require.NoError(t, err)
	require.NotNil(t, dir, "somebody has the lock")
	return dir
}

// TestOpenBase: in /tmp anybody may have made the directory before its user.
func TestOpenBase(t *testing.T) {
	name := cli.ProgramName + "-" + strconv.Itoa(os.Geteuid())
	for _, test := range []struct {
		name string
		make func(t *testing.T, path string) // what is there already
		err  string
	}{
		{"nothing is there", func(*testing.T, string) {}, ""},
		{"it is there", func(t *testing.T, path string) { require.NoError(t, os.Mkdir(path, 0o700)) }, ""},
		{"a link to a directory of the user's", func(t *testing.T, path string) {
			require.NoError(t, os.Symlink(t.TempDir(), path))
		}, "is not a directory, though it should be one of yours"},
		{"a file", func(t *testing.T, path string) { require.NoError(t, os.WriteFile(path, nil, 0o600)) },
			"is not a directory"},
		{"others may look into it", func(t *testing.T, path string) {
			require.NoError(t, os.Mkdir(path, 0o700))
			require.NoError(t, os.Chmod(path, 0o750))
		}, "is open to others (mode 0750); chmod 700 it"},
		{"another user's", func(t *testing.T, path string) {
			if os.Geteuid() != 0 {
				t.Skip("only root can give it to another user")
			}
			require.NoError(t, os.Mkdir(path, 0o700))
			require.NoError(t, os.Chown(path, 12345, 0))
		}, "belongs to user 12345, not to you"},
	} {
		t.Run(test.name, func(t *testing.T) {
			parent, home := cmdtest.ShortDir(t), cmdtest.ShortDir(t)
			path := filepath.Join(parent, name)
			test.make(t, path)
			base, err := Open(parent)
			if test.err != "" {
				assert.ErrorContains(t, err, test.err)
				assert.ErrorContains(t, err, path)
				assert.ErrorContains(t, err, "--own.dir")
				base = baseIn(t, parent, home)
				assert.Equal(t, filepath.Join(home, name), base.Path, "the next place")
				return
			}
			require.NoError(t, err)
			base.Close()
			info, err := os.Lstat(path)
			require.NoError(t, err)
			assert.Equal(t, os.ModeDir|0o700, info.Mode())
		})
	}
	_, err := Open("/nowhere", "/"+strings.Repeat("long", 20))
	assert.ErrorContains(t, err, "making /nowhere/")
	assert.ErrorContains(t, err, "too long a path for a socket in it; name another directory with --own.dir")
}

// TestParents: the user's own directory comes first, if it is that; the home directory is there for when all else is
// taken.
func TestParents(t *testing.T) {
	dir := t.TempDir()
	own, open, link := filepath.Join(dir, "own"), filepath.Join(dir, "open"), filepath.Join(dir, "link")
	require.NoError(t, os.Mkdir(own, 0o700))
	require.NoError(t, os.Mkdir(open, 0o755))
	require.NoError(t, os.Symlink(own, link))
	for _, test := range []struct {
		name, runtime, home string
		want                []string
	}{
		{"all there is", own, "/home/me", []string{own, "/tmp", "/home/me"}},
		{"neither", "", "", []string{"/tmp"}},
		{"one that is gone", filepath.Join(dir, "none"), "", []string{"/tmp"}},
		{"one that others can look into", open, "", []string{"/tmp"}},
		{"a link", link, "", []string{"/tmp"}},
		{"paths that depend on where one is", ".", "here", []string{"/tmp"}},
	} {
		variables := map[string]string{"XDG_RUNTIME_DIR": test.runtime, "HOME": test.home}
		assert.Equal(t, test.want, Parents(func(name string) string { return variables[name] }), test.name)
	}
	if os.Geteuid() != 0 {
		return // only root can give it to another user
	}
	require.NoError(t, os.Chown(own, 12345, 0))
	assert.Equal(t, []string{"/tmp"}, Parents(func(string) string { return own })[:1])
}

// TestLaunchesDirectoryIsChecked: what stands in the place of a launch's directory is believed as little.
func TestLaunchesDirectoryIsChecked(t *testing.T) {
	base := baseIn(t, cmdtest.ShortDir(t))
	require.NoError(t, os.Symlink(t.TempDir(), filepath.Join(base.Path, keyOne)))
	_, err := base.Lock(keyOne)
	assert.ErrorContains(t, err, "is not a directory")
	require.NoError(t, os.Mkdir(filepath.Join(base.Path, keyTwo), 0o755))
	require.NoError(t, os.Chmod(filepath.Join(base.Path, keyTwo), 0o755))
	_, err = base.Lock(keyTwo)
	assert.ErrorContains(t, err, "is open to others")
}

func TestLock(t *testing.T) {
	base := baseIn(t, cmdtest.ShortDir(t))
	dir := lockIn(t, base, keyOne)
	other, err := base.Lock(keyOne)
	require.NoError(t, err)
	assert.Nil(t, other, "one has it already")
	lockIn(t, base, keyTwo).Close()

	// The lock belongs to a directory that is removed: who comes then makes another one.
	base.remove(dir)
	again := lockIn(t, base, keyOne)
	dir.Close()
	other, err = base.Lock(keyOne)
	require.NoError(t, err)
	assert.Nil(t, other)
	again.Close()
	lockIn(t, base, keyOne).Close()
}

// TestLockOfARemovedDirectory: who has opened the directory just before it was removed does not take a lock that
// nobody else can find.
func TestLockOfARemovedDirectory(t *testing.T) {
	base := baseIn(t, cmdtest.ShortDir(t))
	lockIn(t, base, keyOne).Close()
	opened, err := base.open(keyOne)
	require.NoError(t, err)
	defer opened.Close()
	ending := lockIn(t, base, keyOne)
	base.remove(ending)
	ending.Close()
	locked, err := base.take(opened)
	require.NoError(t, err)
	assert.False(t, locked, "it is gone")
	again := lockIn(t, base, keyOne)
	locked, err = base.take(opened)
	require.NoError(t, err)
	assert.False(t, locked, "another one has taken its place")
	again.Close()
	require.NoError(t, os.RemoveAll(base.Path))
	none, err := base.Lock(keyOne)
	require.NoError(t, err)
	assert.Nil(t, none, "the base is gone: it is to be opened anew")
}

// TestRemoveLeavesNothing that is ours, and all that isn't.
func TestRemoveLeavesNothing(t *testing.T) {
	parent := cmdtest.ShortDir(t)
	base := baseIn(t, parent)
	dir := lockIn(t, base, keyOne)
	for _, name := range files {
		require.NoError(t, os.WriteFile(dir.File(name), nil, 0o600))
	}
	base.RemoveAll(dir)
	dir.Close()
	assert.NoDirExists(t, base.Path)

	base = baseIn(t, parent)
	dir = lockIn(t, base, keyOne)
	require.NoError(t, os.WriteFile(dir.File("precious"), nil, 0o600))
	base.RemoveAll(dir)
	dir.Close()
	assert.FileExists(t, dir.File("precious"))
}

// TestCleanTheDead: what exporters have left that were killed goes when the next one starts, and nothing else.
func TestCleanTheDead(t *testing.T) {
	parent, sd := cmdtest.ShortDir(t), t.TempDir()
	base := baseIn(t, parent)
	names := []string{"0000000000000000", "1111111111111111", "2222222222222222", "3333333333333333",
		"4444444444444444", "5555555555555555"}
	dead, living, failed, failedLongAgo, precious, liar := names[0], names[1], names[2], names[3], names[4], names[5]
	var locked *Dir
	for _, name := range names {
		dir := lockIn(t, base, name)
		for _, file := range []string{sockets.AgentFile, sockets.ControlFile, PresenceFile} {
			require.NoError(t, os.WriteFile(dir.File(file), nil, 0o600))
		}
		if name == living {
			locked = dir
		} else {
			dir.Close()
		}
	}
	defer locked.Close()
	path := func(key string, file ...string) string {
		return filepath.Join(append([]string{base.Path, key}, file...)...)
	}
	target, other := filepath.Join(sd, cli.ProgramName+"-node-"+dead+".json"), filepath.Join(sd, "other.json")
	for _, file := range []string{target, other, path(failed, failedFile), path(failedLongAgo, failedFile),
		path(precious, "precious")} {
		require.NoError(t, os.WriteFile(file, nil, 0o600))
	}
	require.NoError(t, os.WriteFile(path(dead, SDFile), []byte(target), 0o600))
	require.NoError(t, os.WriteFile(path(liar, SDFile), []byte(other), 0o600))
	long := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(path(failedLongAgo, failedFile), long, long))
	require.NoError(t, os.Mkdir(path("notes"), 0o700))
	require.NoError(t, os.Symlink(sd, path("6666666666666666")))

	base.Clean(time.Now(), keyOne)
	assert.NoDirExists(t, path(dead))
	assert.NoFileExists(t, target)
	assert.FileExists(t, path(living, sockets.AgentFile), "its exporter has the lock")
	assert.DirExists(t, path(failed), "the other ranks of the launch are still to see it")
	assert.NoDirExists(t, path(failedLongAgo))
	assert.FileExists(t, path(precious, "precious"))
	assert.NoFileExists(t, path(precious, sockets.AgentFile))
	assert.FileExists(t, other, "not a file of that launch")
	assert.DirExists(t, path("notes"))
	assert.DirExists(t, sd)
	base.Clean(time.Now(), living) // by its own starter: it is in use
	assert.FileExists(t, path(living, sockets.AgentFile))
}

func TestFailedIsForgotten(t *testing.T) {
	base := baseIn(t, cmdtest.ShortDir(t))
	dir := lockIn(t, base, keyOne)
	defer dir.Close()
	now := time.Now()
	assert.False(t, dir.Failed(now))
	dir.Fail()
	assert.True(t, dir.Failed(now))
	assert.False(t, dir.Failed(now.Add(failedFor+time.Second)))
	dir.Empty()
	assert.False(t, dir.Failed(now))
}
