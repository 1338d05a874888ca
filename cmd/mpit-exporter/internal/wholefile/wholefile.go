// Package wholefile writes files that others read while they are written.
package wholefile

import (
	"errors"
	"os"
	"path/filepath"
)

// Write is WriteAs of a file that everybody may read.
func Write(path string, text []byte) error { return WriteAs(path, text, 0o644) }

// WriteAs writes a file with a mode, so that a reader never sees half of it. Until it is whole it has another name,
// which begins with a dot and ends in .tmp.
func WriteAs(path string, text []byte, mode os.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*.tmp")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Chmod(mode), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
