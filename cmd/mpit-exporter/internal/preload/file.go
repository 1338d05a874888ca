package preload

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
)

// programFile is what the file of a program tells before it is started. The zero value knows nothing of it.
type programFile struct {
	unobserved      string // why the agent can't be in it
	alone           bool   // it is unobserved, and must be started without the agent's libraries
	threadSanitizer bool   // it is linked with ThreadSanitizer's library
}

// scriptDepth is how many interpreters the kernel follows from one #! line to the next.
const scriptDepth = 5

// lookAt reads the file of a program that is to run under the given library. Of a script it looks at the interpreter,
// and only for what makes preloading impossible: a script may start anything.
func lookAt(path, library string) programFile {
	script := false
	var text *os.File
	for range scriptDepth {
		var err error
		// Not blocked by a pipe, which can't be executed anyway.
		if text, err = os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0); err != nil {
			return programFile{} // not readable, or not there: the kernel will say
		}
		defer text.Close()
		interpreter := interpreterOf(text)
		if interpreter == "" {
			break
		}
		path, script = interpreter, true
	}
	file, err := elf.NewFile(text)
	if err != nil {
		return programFile{} // a script without a first line, or nothing that Linux runs
	}
	loader := loaderOf(file)
	agent, err := elf.Open(library)
	if err == nil {
		defer agent.Close()
		if machine, ours := machineOf(file), machineOf(agent); machine != ours {
			return programFile{alone: true, unobserved: fmt.Sprintf("it is a program for %s, and %s is for %s",
				machine, filepath.Base(library), ours)}
		}
	}
	switch {
	case loader != "" && !knownLoader(loader):
		return programFile{alone: true, unobserved: "its dynamic loader " + loader + " is neither glibc's nor musl's"}
	case script:
		return programFile{}
	case loader == "" && static(file):
		return programFile{unobserved: "it is linked statically, and nothing can be preloaded into it"}
	case privileged(path):
		return programFile{unobserved: "it gets rights of its own (setuid, setgid or capabilities), and nothing is " +
			"preloaded into such programs"}
	}
	libraries, _ := file.ImportedLibraries() // of a damaged file nothing is known
	return programFile{threadSanitizer: slices.ContainsFunc(libraries,
		func(name string) bool { return strings.HasPrefix(name, "libtsan.so") })}
}

// interpreterOf returns the interpreter that a script's first line names, if it is a script.
func interpreterOf(file *os.File) string {
	start := make([]byte, 256) // as much as the kernel reads
	n, _ := file.ReadAt(start, 0)
	line, _, _ := bytes.Cut(start[:n], []byte("\n"))
	rest, ok := bytes.CutPrefix(line, []byte("#!"))
	if fields := bytes.Fields(rest); ok && len(fields) > 0 {
		return string(fields[0])
	}
	return ""
}

// loaderOf returns the path of the dynamic loader (PT_INTERP), if the program names one.
func loaderOf(file *elf.File) string {
	for _, part := range file.Progs {
		const longest = 4096
		if part.Type == elf.PT_INTERP && part.Filesz <= longest {
			text := make([]byte, part.Filesz)
			if _, err := part.ReadAt(text, 0); err == nil {
				return string(bytes.TrimRight(text, "\x00"))
			}
		}
	}
	return ""
}

// knownLoader says whether the loader is one that the libraries have been tried with. Their directory may be any:
// software stacks bring a C library of their own.
func knownLoader(loader string) bool {
	name := filepath.Base(loader)
	return slices.ContainsFunc([]string{"ld-linux", "ld-musl-", "ld64.so.", "ld.so."},
		func(known string) bool { return strings.HasPrefix(name, known) })
}

// static says whether a program without an interpreter is a static one, and not a loader that is run as a command.
func static(file *elf.File) bool {
	if file.Type == elf.ET_EXEC {
		return true
	}
	flags, _ := file.DynValue(elf.DT_FLAGS_1)
	return len(flags) > 0 && elf.DynFlag1(flags[0])&elf.DF_1_PIE != 0
}

func machineOf(file *elf.File) string {
	machine := strings.TrimPrefix(file.Machine.String(), "EM_")
	if file.Class == elf.ELFCLASS32 {
		machine += " with 32 bits"
	}
	if file.Data == elf.ELFDATA2MSB {
		machine += ", big-endian"
	}
	return machine
}

// privileged says whether the program gets rights that its user doesn't have: the dynamic loader ignores LD_PRELOAD
// then.
func privileged(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok {
		if info.Mode()&os.ModeSetuid != 0 && int(owner.Uid) != os.Getuid() || info.Mode()&os.ModeSetgid != 0 &&
			int(owner.Gid) != os.Getgid() {
			return true
		}
	}
	size, err := syscall.Getxattr(path, "security.capability", nil)
	return err == nil && size > 0 && os.Getuid() != 0
}

// lookProgram finds a program: in PATH, unless its name has a slash. Errors carry a shell's exit statuses.
func lookProgram(name string) (string, error) {
	path, err := exec.LookPath(name)
	switch {
	case err == nil, errors.Is(err, exec.ErrDot): // PATH names this directory, as the user wants
		return path, nil
	case errors.Is(err, exec.ErrNotFound):
		if _, err := exec.LookPath("./" + name); err == nil {
			return "", cli.Errorf(cli.NotFound,
				"exec: %s: not found in PATH; if the one in this directory is meant, write ./%s", name, name)
		}
		return "", cli.Errorf(cli.NotFound, "exec: %s: not found in PATH", name)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return "", cli.Errorf(cli.NotFound, "exec: %s: no such file", name)
	case errors.Is(err, fs.ErrPermission):
		return "", cli.Errorf(cli.NotExecutable, "exec: %s: permission denied; is it executable?", name)
	}
	return "", cli.Errorf(cli.NotExecutable, "exec: %s: %w", name, errors.Unwrap(err))
}
