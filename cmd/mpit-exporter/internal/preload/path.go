package preload

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
)

// lookProgram finds a program as a shell does: in PATH, unless its name has a slash. Errors carry the shell's exit
// statuses.
func lookProgram(name string, env Environment) (string, error) {
	if strings.Contains(name, "/") {
		if err := executable(name); err != nil {
			return "", programError(name, err)
		}
		return name, nil
	}
	search, ok := env.Lookup("PATH")
	if !ok {
		search = "/bin:/usr/bin"
	}
	found := fs.ErrNotExist
	for dir := range strings.SplitSeq(search, ":") {
		path := filepath.Join(dir, name)
		if dir == "" || dir == "." {
			path = "./" + name
		}
		switch err := executable(path); {
		case err == nil:
			return path, nil
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR):
			found = err
		}
	}
	if errors.Is(found, fs.ErrNotExist) && executable("./"+name) == nil {
		return "", &cli.Error{Status: cli.NotFound, Err: fmt.Errorf("exec: %s: not found in PATH; if the one in "+
			"this directory is meant, write ./%s", name, name)}
	}
	return "", programError(name, found)
}

// executable says why the file can't be executed, if so.
func executable(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return syscall.EISDIR
	}
	const xOK = 1
	return syscall.Access(path, xOK)
}

func programError(name string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		where := "not found in PATH"
		if strings.Contains(name, "/") {
			where = "no such file"
		}
		return &cli.Error{Status: cli.NotFound, Err: fmt.Errorf("exec: %s: %s", name, where)}
	case errors.Is(err, syscall.EISDIR):
		return &cli.Error{Status: cli.NotExecutable, Err: fmt.Errorf("exec: %s: is a directory", name)}
	case errors.Is(err, fs.ErrPermission):
		return &cli.Error{Status: cli.NotExecutable, Err: fmt.Errorf("exec: %s: permission denied; is it executable?", name)}
	}
	return &cli.Error{Status: cli.NotExecutable, Err: fmt.Errorf("exec: %s: %w", name, err)}
}
