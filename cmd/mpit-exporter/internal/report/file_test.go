package report

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/exporter/job"
	"github.com/mpit-exporter/mpit-exporter/exporter/job/jobtest"
)

// Two nodes write to one file, in any order; each leaves a report of all that is known then.
func TestFileOfSeveralNodes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.json")
	for i, answer := range jobtest.Late() {
		f, err := NewFile(path, fmt.Sprintf("node%d", i), 0o600)
		require.NoError(t, err)
		require.NoError(t, f.Write(t.Context(), answer, nil))
		r, err := Load(t.Context(), path)
		require.NoError(t, err)
		assert.Equal(t, 2*(i+1), r.Job.Observed)
	}
	whole, err := Load(t.Context(), path)
	require.NoError(t, err)
	assert.Equal(t, job.Of(jobtest.Late(), nil)[0].Written(), whole)
	again, err := Load(t.Context(), path+".nodes")
	require.NoError(t, err)
	assert.Equal(t, whole, again, "the directory tells the same")

	// A part of another job, in the same place, is another report.
	other := jobtest.Late()[0]
	for i := range other.Ranks {
		other.Ranks[i].Rank.JobID = "18"
	}
	f, err := NewFile(path, "node3", 0o600)
	require.NoError(t, err)
	require.NoError(t, f.Write(t.Context(), other, nil))
	r, err := Load(t.Context(), path)
	require.NoError(t, err)
	assert.Equal(t, "18", r.Job.ID)
	assert.Equal(t, 2, r.Job.Observed)
}

// Others may write to a shared directory: what isn't a plain file of one's own is no part, and nothing waits for it.
func TestPartsOfOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.json")
	f, err := NewFile(path, "node1", 0o640)
	require.NoError(t, err)
	require.NoError(t, f.Write(t.Context(), jobtest.Late()[0], nil))
	require.NoError(t, unix.Mkfifo(filepath.Join(f.Dir(), "pipe.json"), 0o600))
	require.NoError(t, os.Symlink(filepath.Join(f.Dir(), "node1.0.json"), filepath.Join(f.Dir(), "link.json")))
	require.NoError(t, os.WriteFile(filepath.Join(f.Dir(), "half.json"), []byte("{"), 0o600))
	require.NoError(t, f.Write(t.Context(), jobtest.Late()[0], nil))
	r, err := Load(t.Context(), path)
	require.NoError(t, err)
	assert.Equal(t, 2, r.Job.Observed)
	about, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o640), about.Mode().Perm())
}

// What can't be written is known before the job begins.
func TestFileThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	for path, want := range map[string]string{
		filepath.Join(dir, "none", "report.txt"): "no such file or directory",
		dir + "/.txt":                            "",
	} {
		f, err := NewFile(path, "node1", 0o600)
		require.NoError(t, err)
		err = f.Try()
		if want == "" {
			assert.NoError(t, err)
		} else {
			assert.ErrorContains(t, err, want)
		}
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir, "a.html"), 0o700))
	f, err := NewFile(filepath.Join(dir, "a.html"), "node1", 0o600)
	require.NoError(t, err)
	assert.ErrorContains(t, f.Try(), "no regular file")
	require.NoError(t, os.Symlink("nowhere", filepath.Join(dir, "b.html")))
	f, err = NewFile(filepath.Join(dir, "b.html"), "node1", 0o600)
	require.NoError(t, err)
	assert.ErrorContains(t, f.Try(), "is a link")
	all := jobtest.Late()
	all[0].Ranks = append(all[0].Ranks, all[1].Ranks...)
	assert.ErrorContains(t, f.Write(t.Context(), all[0], nil), "is a link", "nor is it replaced")
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, files, 2, "nothing is left of the trial")
}

// On a disk that is full, too.
func TestFileOnAFullDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can mount one")
	}
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, "size=32k"); err != nil {
		t.Skip("nothing can be mounted here: ", err)
	}
	defer func() { assert.NoError(t, unix.Unmount(dir, unix.MNT_DETACH)) }()
	f, err := NewFile(filepath.Join(dir, "run.html"), "node1", 0o600)
	require.NoError(t, err)
	require.ErrorIs(t, f.Try(), unix.ENOSPC)
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, files, "of the trial")
}

// A job on one node leaves its report and nothing else.
func TestFileOfOneNode(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.html")
	f, err := NewFile(path, "node1", 0o600)
	require.NoError(t, err)
	all := jobtest.Late()
	all[0].Ranks = append(all[0].Ranks, all[1].Ranks...)
	require.ErrorIs(t, f.Write(t.Context(), api.ValueList{}, nil), ErrNoRanks)
	require.NoError(t, f.Write(t.Context(), all[0], nil))
	require.NoError(t, f.Write(t.Context(), api.ValueList{}, nil), "its ranks have ended")
	files, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	assert.Len(t, files, 1)

	_, err = NewFile("report.pdf", "node1", 0o600)
	assert.ErrorContains(t, err, "ends in .html, .json or .txt")
	_, err = Load(t.Context(), t.TempDir())
	assert.ErrorContains(t, err, "no part of a report of yours")
}
