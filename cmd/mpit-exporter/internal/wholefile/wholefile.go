// Package wholefile writes files that others read while they are written.
package wholefile

import (
	"errors"
	"os"
	"path/filepath"
)

// Write writes a file that everybody may read, so that a reader never sees half of it. Until it is whole it has
// another name, which begins with a dot and ends in .tmp.
func Write(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*.tmp")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
