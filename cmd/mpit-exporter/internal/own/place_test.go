package own

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
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/sockets"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

const (
	keyOne = "0123456789abcdef"
	keyTwo = "fedcba9876543210"
)

func baseIn(t *testing.T, parents ...string) base {
	t.Helper()
	base, err := makeBase(parents...)
	require.NoError(t, err)
	return base
}

func lockIn(t *testing.T, base base, key string) *launchDir {
	t.Helper()
	dir, err := base.lock(key)
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
			parent, home := mpittest.ShortDir(t), mpittest.ShortDir(t)
			path := filepath.Join(parent, name)
			test.make(t, path)
			_, err := makeBase(parent)
			if test.err != "" {
				assert.ErrorContains(t, err, test.err)
				assert.ErrorContains(t, err, path)
				assert.ErrorContains(t, err, "--own.dir")
				base := baseIn(t, parent, home)
				assert.Equal(t, filepath.Join(home, name), string(base), "the next place")
				return
			}
			require.NoError(t, err)
			info, err := os.Lstat(path)
			require.NoError(t, err)
			assert.Equal(t, os.ModeDir|0o700, info.Mode())
		})
	}
	_, err := makeBase("/nowhere", "/"+strings.Repeat("long", 20))
	assert.ErrorContains(t, err, "mkdir /nowhere/")
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
		assert.Equal(t, test.want, placesForBase(func(name string) string { return variables[name] }), test.name)
	}
	if os.Geteuid() != 0 {
		return // only root can give it to another user
	}
	require.NoError(t, os.Chown(own, 12345, 0))
	assert.Equal(t, []string{"/tmp"}, placesForBase(func(string) string { return own })[:1])
}

// TestLaunchesDirectoryIsChecked: what stands in the place of a launch's directory is believed as little.
func TestLaunchesDirectoryIsChecked(t *testing.T) {
	base := baseIn(t, mpittest.ShortDir(t))
	require.NoError(t, os.Symlink(t.TempDir(), filepath.Join(string(base), keyOne)))
	_, err := base.lock(keyOne)
	assert.ErrorContains(t, err, "is not a directory")
	require.NoError(t, os.Mkdir(filepath.Join(string(base), keyTwo), 0o755))
	require.NoError(t, os.Chmod(filepath.Join(string(base), keyTwo), 0o755))
	_, err = base.lock(keyTwo)
	assert.ErrorContains(t, err, "is open to others")
}

func TestLock(t *testing.T) {
	base := baseIn(t, mpittest.ShortDir(t))
	dir := lockIn(t, base, keyOne)
	other, err := base.lock(keyOne)
	require.NoError(t, err)
	assert.Nil(t, other, "one has it already")
	lockIn(t, base, keyTwo).close()

	// The lock belongs to a directory that is removed: who comes then makes another one.
	dir.remove()
	again := lockIn(t, base, keyOne)
	dir.close()
	other, err = base.lock(keyOne)
	require.NoError(t, err)
	assert.Nil(t, other)
	again.close()
	lockIn(t, base, keyOne).close()
}

// TestLockOfARemovedDirectory: who has opened the directory just before it was removed does not take a lock that
// nobody else can find.
func TestLockOfARemovedDirectory(t *testing.T) {
	base := baseIn(t, mpittest.ShortDir(t))
	lockIn(t, base, keyOne).close()
	path := filepath.Join(string(base), keyOne)
	opened, err := os.Open(filepath.Join(path, lockFile))
	require.NoError(t, err)
	defer func() { _ = opened.Close() }()
	late := &launchDir{path: path, lockFile: opened}
	assert.True(t, late.inPlace())
	ending := lockIn(t, base, keyOne)
	ending.remove()
	ending.close()
	assert.False(t, late.inPlace(), "it is gone")
	lockIn(t, base, keyOne).close()
	assert.False(t, late.inPlace(), "another one has taken its place")
	require.NoError(t, os.RemoveAll(string(base)))
	none, err := base.lock(keyOne)
	require.NoError(t, err)
	assert.Nil(t, none, "the base is gone: it is to be opened anew")
}

// removeAll is what an exporter does at its end.
func removeAll(dir *launchDir) { (&Mode{dir: dir, begun: true}).end() }

// TestRemoveLeavesNothing that is ours, and all that isn't.
func TestRemoveLeavesNothing(t *testing.T) {
	parent := mpittest.ShortDir(t)
	base := baseIn(t, parent)
	dir := lockIn(t, base, keyOne)
	for _, name := range launchFiles {
		require.NoError(t, os.WriteFile(dir.file(name), nil, 0o600))
	}
	removeAll(dir)
	dir.close()
	assert.NoDirExists(t, string(base))

	base = baseIn(t, parent)
	dir = lockIn(t, base, keyOne)
	require.NoError(t, os.WriteFile(dir.file("precious"), nil, 0o600))
	removeAll(dir)
	dir.close()
	assert.FileExists(t, dir.file("precious"))
}

// TestCleanTheDead: what exporters have left that were killed goes when the next one starts, and nothing else.
func TestCleanTheDead(t *testing.T) {
	parent, elsewhere := mpittest.ShortDir(t), t.TempDir()
	base := baseIn(t, parent)
	names := []string{"0000000000000000", "1111111111111111", "2222222222222222", "3333333333333333",
		"4444444444444444"}
	dead, living, failed, failedLongAgo, precious := names[0], names[1], names[2], names[3], names[4]
	var locked *launchDir
	for _, name := range names {
		dir := lockIn(t, base, name)
		for _, file := range []string{sockets.AgentFile, sockets.ControlFile, presenceFile} {
			require.NoError(t, os.WriteFile(dir.file(file), nil, 0o600))
		}
		if name == living {
			locked = dir
		} else {
			dir.close()
		}
	}
	defer locked.close()
	path := func(key string, file ...string) string {
		return filepath.Join(append([]string{string(base), key}, file...)...)
	}
	for _, file := range []string{path(failed, failedFile), path(failedLongAgo, failedFile),
		path(precious, "precious")} {
		require.NoError(t, os.WriteFile(file, nil, 0o600))
	}
	long := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(path(failedLongAgo, failedFile), long, long))
	require.NoError(t, os.Mkdir(path("notes"), 0o700))
	require.NoError(t, os.Symlink(elsewhere, path("6666666666666666")))

	base.clean(time.Now(), keyOne)
	assert.NoDirExists(t, path(dead))
	assert.FileExists(t, path(living, sockets.AgentFile), "its exporter has the lock")
	assert.DirExists(t, path(failed), "the other ranks of the launch are still to see it")
	assert.NoDirExists(t, path(failedLongAgo))
	assert.FileExists(t, path(precious, "precious"))
	assert.NoFileExists(t, path(precious, sockets.AgentFile))
	assert.DirExists(t, path("notes"))
	assert.DirExists(t, elsewhere)
	base.clean(time.Now(), living) // by its own starter: it is in use
	assert.FileExists(t, path(living, sockets.AgentFile))
}

func TestFailedIsForgotten(t *testing.T) {
	base := baseIn(t, mpittest.ShortDir(t))
	dir := lockIn(t, base, keyOne)
	defer dir.close()
	now := time.Now()
	assert.False(t, dir.failed(now))
	dir.fail()
	assert.True(t, dir.failed(now))
	assert.False(t, dir.failed(now.Add(failedFor+time.Second)))
	dir.empty()
	assert.False(t, dir.failed(now))
}
