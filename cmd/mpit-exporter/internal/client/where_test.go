package client

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

const program = `#include <stdlib.h>
__attribute__((noinline)) int first(void) { return rand(); }
__attribute__((noinline)) int second(void)
{
	int n = rand();
	return n + rand();
}
int main(void) { return first() + second(); }
`

// compiled is a program with what flags leave in it, and an offset in the middle of a function.
func compiled(t *testing.T, function string, flags ...string) (path string, offset uint64) {
	t.Helper()
	if _, err := exec.LookPath("cc"); err != nil {
		t.Skip("no C compiler")
	}
	dir := t.TempDir()
	source := filepath.Join(dir, "program.c")
	require.NoError(t, os.WriteFile(source, []byte(program), 0o600))
	path = filepath.Join(dir, "program")
	build := exec.Command("cc", append([]string{"-O2", "-rdynamic", "-o", path, source}, flags...)...)
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	f, err := elf.Open(path)
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	symbols, err := f.DynamicSymbols()
	require.NoError(t, err)
	for _, s := range symbols {
		if s.Name == function {
			for _, p := range f.Progs {
				if p.Type == elf.PT_LOAD && s.Value >= p.Vaddr && s.Value < p.Vaddr+p.Filesz {
					return path, s.Value - p.Vaddr + p.Off + s.Size/2
				}
			}
		}
	}
	t.Fatal("no function " + function)
	return "", 0
}

func TestCaller(t *testing.T) {
	for name, test := range map[string]struct {
		function string
		flags    []string
		want     string
	}{
		"with lines":               {"second", []string{"-g"}, `^second \(program\.c:[3-7]\)$`},
		"before the others":        {"main", []string{"-g"}, `^main \(program\.c:8\)$`},
		"at a fixed address":       {"second", []string{"-g", "-no-pie"}, `^second \(program\.c:[3-7]\)$`},
		"with symbols":             {"second", nil, `^second$`},
		"with those of its linker": {"second", []string{"-s"}, `^second$`},
	} {
		t.Run(name, func(t *testing.T) {
			path, offset := compiled(t, test.function, test.flags...)
			var r Callers
			assert.Regexp(t, test.want, r.name(0, codeAt{path, "", offset}))
			assert.Regexp(t, test.want, r.name(os.Getpid(), codeAt{path, "", offset}), "as this process sees it")
			assert.Regexp(t, test.want, r.name(1<<30, codeAt{path, "", offset}), "its process has gone")
			require.NoError(t, os.Remove(path))
			assert.Regexp(t, test.want, r.name(0, codeAt{path, "", offset}), "it is remembered")
		})
	}
}

func TestSymbolise(t *testing.T) {
	path, offset := compiled(t, "second", "-g", "-Wl,--build-id=0x0123456789abcdef")
	file := &profile.Mapping{ID: 1, Start: 1 << 40, Limit: 1 << 41, File: path}
	none := &profile.Mapping{ID: 2, Start: 1 << 42, Limit: 1 << 43, File: "/nonexistent"}
	old := &profile.Mapping{ID: 3, Start: 1 << 44, Limit: 1 << 45, File: path, BuildID: "0123456789abcdee"}
	p := &profile.Profile{Mapping: []*profile.Mapping{file, none, old}}
	for i, at := range []profile.Location{{Mapping: file, Address: 1<<40 + offset}, {Mapping: none, Address: 1<<42 + offset},
		{Mapping: file, Address: 1<<40 + 1<<30}, {}, {Mapping: old, Address: 1<<44 + offset}} {
		f := &profile.Function{ID: uint64(i + 1), Name: "before"}
		at.ID, at.Line = f.ID, []profile.Line{{Function: f}}
		p.Function, p.Location = append(p.Function, f), append(p.Location, &at)
	}
	Symbolise(p)
	require.NoError(t, p.CheckValid())
	assert.Equal(t, "second", p.Function[0].Name)
	assert.Equal(t, "program.c", filepath.Base(p.Function[0].Filename))
	assert.Positive(t, p.Location[0].Line[0].Line)
	for _, f := range p.Function[1:] {
		assert.Equal(t, "before", f.Name)
	}
	assert.True(t, file.HasLineNumbers)
	assert.False(t, none.HasLineNumbers)
	assert.Equal(t, "0123456789abcdef", file.BuildID)
	var r Callers
	assert.NotEmpty(t, r.name(0, codeAt{path, "0123456789abcdef", offset}))
	assert.Empty(t, r.name(0, codeAt{path, "0123456789abcdee", offset}), "another build")
	assert.Empty(t, none.BuildID)
}

// The call is the last of its function: the address that it returns to is the next one's.
func TestCallerAtTheEndOfAFunction(t *testing.T) {
	path, _ := compiled(t, "second")
	f, err := elf.Open(path)
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	symbols, err := f.DynamicSymbols()
	require.NoError(t, err)
	var r Callers
	for _, s := range symbols {
		if s.Name != "second" {
			continue
		}
		for _, p := range f.Progs {
			if p.Type == elf.PT_LOAD && s.Value >= p.Vaddr && s.Value < p.Vaddr+p.Filesz {
				assert.Equal(t, "second", r.name(0, codeAt{path, "", s.Value - p.Vaddr + p.Off + s.Size}))
				assert.NotEqual(t, "second", r.name(0, codeAt{path, "", s.Value - p.Vaddr + p.Off}))
			}
		}
	}
}

func TestWhatHasNoSymbolsIsNowhere(t *testing.T) {
	dir := t.TempDir()
	text, pipe := filepath.Join(dir, "text"), filepath.Join(dir, "pipe")
	require.NoError(t, os.WriteFile(text, []byte("no program"), 0o600))
	require.NoError(t, unix.Mkfifo(pipe, 0o600))
	self, err := os.Executable()
	require.NoError(t, err)
	var r Callers
	for name, c := range map[string]codeAt{
		"no file":           {filepath.Join(dir, "none"), "", 1},
		"no program":        {text, "", 1},
		"nobody writes":     {pipe, "", 1},
		"a directory":       {dir, "", 1},
		"not known":         {"", "", 0x1000},
		"beyond its end":    {self, "", 1 << 40},
		"at its very start": {self, "", 0},
	} {
		assert.Empty(t, r.name(0, c), name)
	}
}
