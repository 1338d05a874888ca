package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/wholefile"
	"github.com/mpit-exporter/mpit-exporter/exporter/api"
)

// File is a report's file, to which the exporters of all nodes of a job write: each what it knows in a file of its
// own, in the directory path.nodes, and what all of them know in the report. A job on one node has the report alone.
type File struct {
	path, node string
}

// NewFile returns the file at path, which ends in .html, .json or .txt, as the node writes it. The node's name is one
// that no other node of the job has.
func NewFile(path, node string) (*File, error) {
	if _, err := writerOf(path); err != nil {
		return nil, err
	}
	return &File{path, node}, nil
}

// writerOf is what writes a report to a file with that name.
func writerOf(path string) (func(r *Report, w io.Writer) error, error) {
	switch filepath.Ext(path) {
	case ".html":
		return (*Report).HTML, nil
	case ".json":
		return (*Report).JSON, nil
	case ".txt":
		return (*Report).Text, nil
	}
	return nil, fmt.Errorf("%s: a report's name ends in .html, .json or .txt", path)
}

// Dir is the directory of the nodes' files.
func (f *File) Dir() string { return f.path + ".nodes" }

// Write writes what this node knows, and the report anew. Nodes may write at the same time: each writes until it has
// seen nothing new, so that the last one has all of it. What another job has written to the directory is left alone.
func (f *File) Write(own api.ValueList) error {
	reports := Of([]api.ValueList{own}, nil)
	if len(reports) == 0 {
		return nil
	}
	// Of several worlds, which one launch has if it has spawned, the one with most ranks.
	largest := slices.MaxFunc(reports, func(a, b *Report) int { return a.Job.Observed - b.Job.Observed })
	if largest.Job.Observed >= largest.Job.WorldSize {
		return f.write(largest)
	}
	if err := f.writePart(own); err != nil {
		return err
	}
	for known := []api.ValueList(nil); ; {
		parts, err := readParts(f.Dir())
		if err != nil || reflect.DeepEqual(parts, known) {
			return err
		}
		known = parts
		for _, r := range Of(parts, nil) {
			if r.Job.ID == largest.Job.ID && r.Job.World == largest.Job.World && r.Job.User == largest.Job.User {
				if err := f.write(r); err != nil {
					return err
				}
			}
		}
	}
}

func (f *File) write(r *Report) error {
	writes, err := writerOf(f.path)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := writes(r, &text); err != nil {
		return err
	}
	if err := wholefile.Write(f.path, text.Bytes()); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

func (f *File) writePart(own api.ValueList) error {
	text, err := json.Marshal(own)
	if err == nil {
		err = os.MkdirAll(f.Dir(), 0o755) //nolint:gosec // G301: the report's readers may read it
	}
	if err == nil {
		err = wholefile.Write(filepath.Join(f.Dir(), f.node+".json"), text)
	}
	if err != nil {
		return fmt.Errorf("writing this node's part of the report: %w", err)
	}
	return nil
}

// readParts reads what the nodes have written to a directory.
func readParts(dir string) ([]api.ValueList, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("reading the nodes' parts of a report: %w", err)
	}
	var parts []api.ValueList
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), ".json") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, file.Name()))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		var part api.ValueList
		if err == nil {
			err = json.Unmarshal(text, &part)
		}
		if err != nil {
			return nil, fmt.Errorf("reading the nodes' parts of a report: %s: %w", file.Name(), err)
		}
		parts = append(parts, part)
	}
	return parts, nil
}

// Load reads the report of a file, or makes the one of a directory with nodes' parts.
func Load(path string) (*Report, error) {
	text, err := os.ReadFile(path)
	if err == nil {
		r, err := Read(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return r, nil
	}
	if about, statErr := os.Stat(path); statErr != nil || !about.IsDir() {
		return nil, err
	}
	parts, err := readParts(path)
	if err != nil {
		return nil, err
	}
	reports := Of(parts, nil)
	if len(reports) == 0 {
		return nil, fmt.Errorf("%s: no part of a report is in this directory", path)
	}
	return slices.MaxFunc(reports, func(a, b *Report) int { return a.Job.Observed - b.Job.Observed }), nil
}
