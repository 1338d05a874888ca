package main

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	keyOne = "0123456789abcdef"
	keyTwo = "fedcba9876543210"
)

func baseIn(t *testing.T, parent string) *ownBase {
	t.Helper()
	base, err := openBase(parent)
	require.NoError(t, err)
	t.Cleanup(base.close)
	return base
}

func lockIn(t *testing.T, base *ownBase, key string) *ownDir {
	t.Helper()
	dir, err := base.lock(key)
	require.NoError(t, err)
	require.NotNil(t, dir, "somebody has the lock")
	return dir
}

// TestOpenBase: in /tmp anybody may have made the directory before its user.
func TestOpenBase(t *testing.T) {
	name := programName + "-" + strconv.Itoa(os.Geteuid())
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
		{"a file", func(t *testing.T, path string) { require.NoError(t, os.WriteFile(path, nil, 0o600)) }, "is not a directory"},
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
			parent := t.TempDir()
			path := filepath.Join(parent, name)
			test.make(t, path)
			base, err := openBase(parent)
			if test.err != "" {
				assert.ErrorContains(t, err, test.err)
				assert.ErrorContains(t, err, path)
				assert.ErrorContains(t, err, "--own.dir")
				return
			}
			require.NoError(t, err)
			base.close()
			info, err := os.Lstat(path)
			require.NoError(t, err)
			assert.Equal(t, os.ModeDir|0o700, info.Mode())
		})
	}
	_, err := openBase("/nowhere")
	assert.ErrorContains(t, err, "--own.dir")
}

// TestLaunchesDirectoryIsChecked: what stands in the place of a launch's directory is believed as little.
func TestLaunchesDirectoryIsChecked(t *testing.T) {
	base := baseIn(t, t.TempDir())
	require.NoError(t, os.Symlink(t.TempDir(), filepath.Join(base.path, keyOne)))
	_, err := base.lock(keyOne)
	assert.ErrorContains(t, err, "is not a directory")
	require.NoError(t, os.Mkdir(filepath.Join(base.path, keyTwo), 0o755))
	require.NoError(t, os.Chmod(filepath.Join(base.path, keyTwo), 0o755))
	_, err = base.lock(keyTwo)
	assert.ErrorContains(t, err, "is open to others")
}

func TestLock(t *testing.T) {
	base := baseIn(t, t.TempDir())
	dir := lockIn(t, base, keyOne)
	other, err := base.lock(keyOne)
	require.NoError(t, err)
	assert.Nil(t, other, "one has it already")
	lockIn(t, base, keyTwo).close()

	// The lock belongs to a directory that is removed: who comes then makes another one.
	base.remove(dir)
	again := lockIn(t, base, keyOne)
	dir.close()
	other, err = base.lock(keyOne)
	require.NoError(t, err)
	assert.Nil(t, other)
	again.close()
	lockIn(t, base, keyOne).close()
}

// TestLockOfARemovedDirectory: who has opened the directory just before it was removed does not take a lock that nobody else can find.
func TestLockOfARemovedDirectory(t *testing.T) {
	base := baseIn(t, t.TempDir())
	lockIn(t, base, keyOne).close()
	opened, err := base.open(keyOne)
	require.NoError(t, err)
	defer opened.close()
	ending := lockIn(t, base, keyOne)
	base.remove(ending)
	ending.close()
	locked, err := base.take(opened)
	require.NoError(t, err)
	assert.False(t, locked, "it is gone")
	again := lockIn(t, base, keyOne)
	locked, err = base.take(opened)
	require.NoError(t, err)
	assert.False(t, locked, "another one has taken its place")
	again.close()
	require.NoError(t, os.RemoveAll(base.path))
	none, err := base.lock(keyOne)
	require.NoError(t, err)
	assert.Nil(t, none, "the base is gone: it is to be opened anew")
}

// TestRemoveLeavesNothing that is ours, and all that isn't.
func TestRemoveLeavesNothing(t *testing.T) {
	parent := t.TempDir()
	base := baseIn(t, parent)
	dir := lockIn(t, base, keyOne)
	for _, name := range ownFiles {
		require.NoError(t, os.WriteFile(dir.file(name), nil, 0o600))
	}
	base.removeAll(dir)
	dir.close()
	assert.NoDirExists(t, base.path)

	base = baseIn(t, parent)
	dir = lockIn(t, base, keyOne)
	require.NoError(t, os.WriteFile(dir.file("precious"), nil, 0o600))
	base.removeAll(dir)
	dir.close()
	assert.FileExists(t, dir.file("precious"))
}

// TestCleanTheDead: what exporters have left that were killed goes when the next one starts, and nothing else.
func TestCleanTheDead(t *testing.T) {
	parent, sd := t.TempDir(), t.TempDir()
	base := baseIn(t, parent)
	names := []string{"0000000000000000", "1111111111111111", "2222222222222222", "3333333333333333", "4444444444444444", "5555555555555555"}
	dead, living, failed, failedLongAgo, precious, liar := names[0], names[1], names[2], names[3], names[4], names[5]
	var locked *ownDir
	for _, name := range names {
		dir := lockIn(t, base, name)
		for _, file := range []string{socketFile, controlFile, ownSocketFile} {
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
		return filepath.Join(append([]string{base.path, key}, file...)...)
	}
	target, other := sdPath(sd, "node", dead), filepath.Join(sd, "other.json")
	for _, file := range []string{target, other, path(failed, ownFailedFile), path(failedLongAgo, ownFailedFile), path(precious, "precious")} {
		require.NoError(t, os.WriteFile(file, nil, 0o600))
	}
	require.NoError(t, os.WriteFile(path(dead, ownSDFile), []byte(target), 0o600))
	require.NoError(t, os.WriteFile(path(liar, ownSDFile), []byte(other), 0o600))
	long := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(path(failedLongAgo, ownFailedFile), long, long))
	require.NoError(t, os.Mkdir(path("notes"), 0o700))
	require.NoError(t, os.Symlink(sd, path("6666666666666666")))

	base.clean(time.Now(), keyOne)
	assert.NoDirExists(t, path(dead))
	assert.NoFileExists(t, target)
	assert.FileExists(t, path(living, socketFile), "its exporter has the lock")
	assert.DirExists(t, path(failed), "the other ranks of the launch are still to see it")
	assert.NoDirExists(t, path(failedLongAgo))
	assert.FileExists(t, path(precious, "precious"))
	assert.NoFileExists(t, path(precious, socketFile))
	assert.FileExists(t, other, "not a file of that launch")
	assert.DirExists(t, path("notes"))
	assert.DirExists(t, sd)
	base.clean(time.Now(), living) // by its own starter: it is in use
	assert.FileExists(t, path(living, socketFile))
}

func TestFailedIsForgotten(t *testing.T) {
	base := baseIn(t, t.TempDir())
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
