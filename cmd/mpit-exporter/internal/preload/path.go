package preload

import (
	"errors"
	"io/fs"
	"os/exec"
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
		return "", cli.Errorf(cli.NotFound,
			"exec: %s: not found in PATH; if the one in this directory is meant, write ./%s", name, name)
	}
	return "", programError(name, found)
}

// executable says why the file can't be executed, if so. The path has a slash in it, so that it is not looked for.
func executable(path string) error {
	_, err := exec.LookPath(path)
	return errors.Unwrap(err)
}

func programError(name string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		where := "not found in PATH"
		if strings.Contains(name, "/") {
			where = "no such file"
		}
		return cli.Errorf(cli.NotFound, "exec: %s: %s", name, where)
	case errors.Is(err, syscall.EISDIR):
		return cli.Errorf(cli.NotExecutable, "exec: %s: is a directory", name)
	case errors.Is(err, fs.ErrPermission):
		return cli.Errorf(cli.NotExecutable, "exec: %s: permission denied; is it executable?", name)
	}
	return cli.Errorf(cli.NotExecutable, "exec: %s: %w", name, err)
}
