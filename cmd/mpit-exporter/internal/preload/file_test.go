package preload

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// compile makes a program, and skips the test where the compiler can't.
func compile(t *testing.T, dir, name, text string, command ...string) string {
	t.Helper()
	source, path := filepath.Join(dir, name+".c"), filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(source, []byte(text), 0o600))
	args := append(command[1:], "-o", path, source)
	out, err := exec.CommandContext(t.Context(), command[0], args...).CombinedOutput()
	if err != nil {
		t.Skipf("%v can't make a program here: %v\n%s", command, err, out)
	}
	return path
}

const (
	greeting = `#include <stdio.h>
int main(void) { puts("hello"); return 7; }
`
	// without a C library, which may not be there for what isn't this machine
	bare = "void _start(void) { for (;;) ; }\n"
)

// emptyLibrary stands for the agent's.
func emptyLibrary(t *testing.T) string {
	t.Helper()
	return compile(t, t.TempDir(), AgentLibraryName, "", "cc", "-shared", "-fPIC")
}

func TestLookAt(t *testing.T) {
	library := emptyLibrary(t)
	const foreign = "it is a program for 386 with 32 bits, and libmpit-agent.so is for X86_64"
	const unknown = "its dynamic loader /lib/ld-uClibc.so.0 is neither glibc's nor musl's"
	const statically = "it is linked statically, and nothing can be preloaded into it"
	for _, test := range []struct {
		name, text string
		command    []string
		want       programFile
		script     programFile // of a script that has it as its interpreter
	}{
		{"usual", greeting, []string{"cc"}, programFile{}, programFile{}},
		{"at a fixed address", greeting, []string{"cc", "-no-pie"}, programFile{}, programFile{}},
		{"static", greeting, []string{"cc", "-static"}, programFile{unobserved: statically}, programFile{}},
		{"static at any address", greeting, []string{"cc", "-static-pie"}, programFile{unobserved: statically},
			programFile{}},
		{"another machine's", bare, []string{"cc", "-m32", "-nostdlib", "-static"},
			programFile{unobserved: foreign, alone: true}, programFile{unobserved: foreign, alone: true}},
		{"another C library's", greeting, []string{"cc", "-Wl,--dynamic-linker=/lib/ld-uClibc.so.0"},
			programFile{unobserved: unknown, alone: true}, programFile{unobserved: unknown, alone: true}},
		{"musl's", greeting, []string{"musl-gcc"}, programFile{}, programFile{}},
		{"with AddressSanitizer", greeting, []string{"cc", "-fsanitize=address"}, programFile{}, programFile{}},
		{"with ThreadSanitizer", greeting, []string{"cc", "-fsanitize=thread"}, programFile{threadSanitizer: true},
			programFile{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			program := compile(t, dir, "program", test.text, test.command...)
			assert.Equal(t, test.want, lookAt(program, library))
			inner, outer := filepath.Join(dir, "inner"), filepath.Join(dir, "outer")
			require.NoError(t, os.WriteFile(inner, []byte("#!"+program+"\n"), 0o755))
			require.NoError(t, os.WriteFile(outer, []byte("#! "+inner+" argument\n"), 0o755))
			assert.Equal(t, test.script, lookAt(outer, library))
		})
	}
}

// What can't be understood is left to the kernel.
func TestLookAtAnything(t *testing.T) {
	library, dir := emptyLibrary(t), t.TempDir()
	for name, text := range map[string]string{"empty": "", "bare": "echo hello\n",
		"lost": "#!/no/such/interpreter\n", "nobody": "#!\n", "damaged": "\x7fELF\x02\x01\x01"} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o755))
		assert.Zero(t, lookAt(path, library), name)
	}
	circle := filepath.Join(dir, "circle")
	require.NoError(t, os.WriteFile(circle, []byte("#!"+circle+"\n"), 0o755))
	assert.Zero(t, lookAt(circle, library))
	pipe := filepath.Join(dir, "pipe")
	require.NoError(t, exec.CommandContext(t.Context(), "mkfifo", pipe).Run())
	assert.Zero(t, lookAt(pipe, library))
	assert.Zero(t, lookAt(dir, library))

	// The loader run as a command is no static program.
	loader, err := filepath.EvalSymlinks("/lib64/ld-linux-x86-64.so.2")
	if err != nil {
		t.Skip("no loader of glibc for this machine:", err)
	}
	assert.Zero(t, lookAt(loader, library))
}

func TestLookAtPrivileged(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give files away")
	}
	program := compile(t, t.TempDir(), "program", greeting, "cc")
	for _, test := range []struct {
		uid, gid int
		mode     os.FileMode
		want     bool
	}{
		{1, 1, 0o755, false},
		{1, 0, 0o755 | os.ModeSetuid, true},
		{0, 0, 0o755 | os.ModeSetuid, false}, // its owner's own
		{0, 1, 0o755 | os.ModeSetgid, true},
	} {
		require.NoError(t, os.Chown(program, test.uid, test.gid))
		require.NoError(t, os.Chmod(program, test.mode))
		assert.Equal(t, test.want, lookAt(program, emptyLibrary(t)).unobserved != "", "%+v", test)
	}
}
