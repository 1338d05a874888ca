package preload

import (
	"errors"
	"io/fs"
	"os/exec"
	"syscall"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
)

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
