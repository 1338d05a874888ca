package main

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/client"
	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// Into a pipe it writes text after text, and no word to a terminal.
func TestTopInAPipe(t *testing.T) {
	t.Parallel() // it waits for new values, twice
	e := startExporter(t, filepath.Join(mpittest.ShortDir(t), "agent.sock"))
	keepConnected(t, e.socket, mpittest.New(mpittest.Config{Hello: mpit.Hello{Size: 8},
		Variables: []mpit.Variable{{Name: "steps\x1b[31m", Class: mpit.ClassCounter, Datatype: mpit.DatatypeUnsignedLong,
			DatatypeBytes: 8}}}))
	e.awaitRanks(t, 1)
	out := runBinary(t, cleanEnviron(), "top", "--url="+e.url, "--interval=200ms", "--count=2")
	assert.Zero(t, out.status, out.stderr)
	assert.Equal(t, 2, strings.Count(out.stdout, "Job "), out.stdout)
	assert.NotRegexp(t, "[\x00-\x09\x0b-\x1f]", out.stdout)
	assert.Contains(t, out.stdout, "no MPI call has been measured (exec --calls)")
}

// TestTopOpensNoFileOfOthers: where a call was made is looked up for the ranks of whoever runs it alone.
func TestTopOpensNoFileOfOthers(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	compile := exec.Command("cc", "-g", "-o", program, "-x", "c", "-")
	compile.Stdin = strings.NewReader("int main(void) { return 0; }\n")
	out, err := compile.CombinedOutput()
	require.NoError(t, err, string(out))
	file, err := elf.Open(program)
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	symbols, err := file.Symbols()
	require.NoError(t, err)
	at := slices.IndexFunc(symbols, func(s elf.Symbol) bool { return s.Name == "main" })
	code := file.Section(".text")
	call := &api.LongCall{Module: program, Offset: symbols[at].Value - code.Addr + code.Offset + 1}
	for uid, want := range map[uint32]string{uint32(os.Getuid()): "main (<stdin>:1)", uint32(os.Getuid()) + 1: ""} {
		assert.Equal(t, want, new(client.Callers).Of(0, uid, call), "user %d", uid)
	}
}
