package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest/uptodate"
)

var update = flag.Bool("update", false, "write golden files and the table in docs/calls-reference.md anew")

const updating = "go test ./mpit/agent/calls/generate -update"

// Three wrappers as they are: one with a status of its own, one of a collective operation, one with large counts and
// both sides.
func TestGoldenWrappers(t *testing.T) {
	for _, symbol := range []string{"MPI_Recv", "MPI_Gatherv", "MPI_Get_accumulate_c"} {
		t.Run(symbol, func(t *testing.T) {
			var got bytes.Buffer
			for _, f := range shipped(t) {
				for _, w := range f.wrappers {
					if w.symbol == symbol {
						writeWrapper(&got, f, w)
					}
				}
			}
			file := filepath.Join("testdata", symbol+".c")
			if *update {
				require.NoError(t, os.WriteFile(file, got.Bytes(), 0o600))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			uptodate.Check(t, file, string(want), got.String(), updating)
		})
	}
}

// Every section has a file of wrappers, and every symbol stands in exactly one.
func TestFiles(t *testing.T) {
	functions := shipped(t)
	out := t.TempDir()
	require.NoError(t, run("../functions.txt", out))
	files, err := os.ReadDir(out)
	require.NoError(t, err)
	assert.Len(t, files, 4+len(sections(functions)))

	var wrappers []byte
	for _, s := range sections(functions) {
		content, err := os.ReadFile(filepath.Join(out, wrappersFile(s)))
		require.NoError(t, err)
		wrappers = append(wrappers, content...)
	}
	for _, f := range functions {
		for _, w := range f.wrappers {
			for _, symbol := range []string{w.symbol, "P" + w.symbol} {
				assert.Equal(t, 1, bytes.Count(wrappers, []byte("EXPORT int "+symbol+"(")), symbol)
			}
		}
	}
}

// What is right already is not written again: make would compile it again.
func TestUnchangedFilesKeepTheirTime(t *testing.T) {
	out := t.TempDir()
	require.NoError(t, run("../functions.txt", out))
	file := filepath.Join(out, "functions.h")
	before, err := os.Stat(file)
	require.NoError(t, err)
	require.NoError(t, os.Chmod(file, 0o400))
	require.NoError(t, run("../functions.txt", out))
	after, err := os.Stat(file)
	require.NoError(t, err)
	assert.Equal(t, before.ModTime(), after.ModTime())
}

func TestRunSaysWhatIsMissing(t *testing.T) {
	assert.ErrorContains(t, run("../functions.txt", ""), "give -out")
	assert.ErrorContains(t, run(filepath.Join(t.TempDir(), "none.txt"), t.TempDir()), "reading the table of functions")
}
