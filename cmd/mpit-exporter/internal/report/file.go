package report

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/exporter/job"
)

// maxPart bounds one node's part of a report, in bytes.
const maxPart = 64 << 20

// form writes a report in one.
type form func(r *job.Report, w io.Writer) error

// File is a report's file, to which the exporters of all nodes of a job write: each what it knows in a file of its
// own, in the directory path.nodes, and what all of them know in the report. A job on one node has the report alone.
type File struct {
	path, node string
	mode       os.FileMode
	form       form
	written    bool
}

// ErrNoRanks is what Write says as long as there has been nothing to write.
var ErrNoRanks = errors.New("no process has called MPI_Init, or not with the agent (docs/agent.md)")

// NewFile returns the file at path, which ends in .html, .json or .txt, as the node writes it. The node's name is one
// that no other node of the job has. mode is that of what is written.
func NewFile(path, node string, mode os.FileMode) (*File, error) {
	forms := map[string]form{".html": HTML, ".json": JSON,
		".txt": func(r *job.Report, w io.Writer) error { return Text(r, w, 0) }}
	form, known := forms[filepath.Ext(path)]
	if !known {
		return nil, fmt.Errorf("%s: a report's name ends in .html, .json or .txt", path)
	}
	return &File{path: path, node: node, mode: mode, form: form}, nil
}

// tried is how much is written on trial: a disk that is full refuses it.
const tried = 64 << 10

// replaceable fails if another file can't stand in the place of this one, or shouldn't: what a link leads to is what
// was meant to be written.
func (f *File) replaceable() error {
	dir := filepath.Dir(f.path)
	var file, in unix.Stat_t
	if unix.Lstat(f.path, &file) == nil && unix.Stat(dir, &in) == nil {
		me := uint32(os.Geteuid())
		switch {
		case file.Mode&unix.S_IFMT == unix.S_IFLNK:
			return fmt.Errorf("%s is a link", f.path)
		case file.Mode&unix.S_IFMT != unix.S_IFREG:
			return fmt.Errorf("%s is no regular file", f.path)
		case in.Mode&unix.S_ISVTX != 0 && me != 0 && me != file.Uid && me != in.Uid:
			return fmt.Errorf("%s belongs to user %d, and nobody else can replace it in %s", f.path, file.Uid, dir)
		}
	}
	return nil
}

// Try fails if the file can't be written.
func (f *File) Try() error {
	if err := f.replaceable(); err != nil {
		return err
	}
	temporary, err := os.CreateTemp(filepath.Dir(f.path), "."+filepath.Base(f.path)+"-*.tmp")
	if err != nil {
		return err
	}
	_, err = temporary.Write(make([]byte, tried))
	return errors.Join(err, temporary.Close(), os.Remove(temporary.Name()))
}

// Dir is the directory of the nodes' files.
func (f *File) Dir() string { return f.path + ".nodes" }

// Write writes what this node knows, and the report anew. Nodes may write at the same time: each writes until it has
// seen nothing new, so that the last one has all of it. Parts of other jobs are left alone. Of several worlds, which a
// job has that spawns, the report is of the one with most ranks. It must not be called twice at a time. place says
// where a rank has made its long call; nil: module and offset are shown.
func (f *File) Write(ctx context.Context, own api.ValueList, place func(r *api.RankStatus) string) error {
	reports := job.Of([]api.ValueList{own}, place)
	if len(reports) == 0 && !f.written {
		return ErrNoRanks
	}
	if len(reports) == 0 {
		return nil
	}
	f.written = true
	if !slices.ContainsFunc(reports, func(r *job.Report) bool { return r.Job.Observed < r.Job.WorldSize }) {
		return f.write(largest(reports))
	}
	if err := f.writeParts(reports); err != nil {
		return err
	}
	for known := []*job.Report(nil); ; {
		parts, err := readParts(ctx, f.Dir())
		if err != nil {
			return err
		}
		parts = slices.DeleteFunc(parts, func(r *job.Report) bool { return r.Job.ID != reports[0].Job.ID })
		if reflect.DeepEqual(parts, known) {
			return nil
		}
		known = parts
		if err := f.write(largest(job.Merge(parts))); err != nil {
			return err
		}
	}
}

// largest is the report of the largest world.
func largest(reports []*job.Report) *job.Report {
	return slices.MaxFunc(reports, func(a, b *job.Report) int { return a.Job.WorldSize - b.Job.WorldSize })
}

func (f *File) write(r *job.Report) error {
	if err := f.replaceable(); err != nil {
		return err
	}
	return f.writeFile(f.path, r, f.form)
}

func (f *File) writeFile(path string, r *job.Report, form form) error {
	var text bytes.Buffer
	if err := form(r, &text); err != nil {
		return err
	}
	return written(cli.WriteFile(path, text.Bytes(), f.mode))
}

// writeParts writes this node's part of each world's report.
func (f *File) writeParts(reports []*job.Report) error {
	err := os.Mkdir(f.Dir(), 0o700)
	if err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("making the directory for the nodes' parts of the report: %w", err)
	}
	for i, r := range reports {
		path := filepath.Join(f.Dir(), fmt.Sprintf("%s.%d.json", f.node, i))
		if err := f.writeFile(path, r, JSON); err != nil {
			return err
		}
	}
	return nil
}

// readParts reads what the nodes have written to a directory. What isn't a plain file of this user's is left alone:
// others may write to a directory that is shared.
func readParts(ctx context.Context, dir string) (parts []*job.Report, err error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("reading the nodes' parts of a report: %w", err)
	}
	for _, file := range files {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("reading the nodes' parts of a report: %w", ctx.Err())
		}
		if !strings.HasSuffix(file.Name(), ".json") {
			continue
		}
		text, err := readPart(filepath.Join(dir, file.Name()))
		if err != nil || text == nil {
			continue // it is being replaced, or somebody else's
		}
		if r, err := job.Read(text); err == nil {
			parts = append(parts, r)
		}
	}
	return parts, nil
}

// readPart reads a file that is this user's; nil: it is none of those.
func readPart(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	var about unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &about); err != nil {
		return nil, err
	}
	if about.Mode&unix.S_IFMT != unix.S_IFREG || int(about.Uid) != os.Geteuid() || about.Size > maxPart {
		return nil, nil
	}
	return io.ReadAll(io.LimitReader(f, maxPart))
}

// Load reads the report of a file, or makes the one of a directory with nodes' parts: of the job that has begun last.
func Load(ctx context.Context, path string) (*job.Report, error) {
	if about, err := os.Stat(path); err == nil && about.IsDir() {
		parts, err := readParts(ctx, path)
		if err != nil {
			return nil, err
		}
		if len(parts) == 0 {
			return nil, fmt.Errorf("%s: no part of a report of yours is in this directory", path)
		}
		last := slices.MaxFunc(parts, func(a, b *job.Report) int { return a.Begun().Compare(b.Begun()) })
		parts = slices.DeleteFunc(parts, func(r *job.Report) bool { return r.Job.ID != last.Job.ID })
		return largest(job.Merge(parts)), nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r, err := job.Read(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}
