package client

import (
	"cmp"
	"context"
	"debug/dwarf"
	"debug/elf"
	"encoding/hex"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/google/pprof/profile"
	"golang.org/x/sys/unix"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/exporter/job"
)

// maxDebugInfo is how large a file's debugging information may be that is looked at: it is read whole.
const maxDebugInfo = 256 << 20

// Callers names the code that has made calls, and remembers what it has found. It is for one goroutine.
type Callers struct {
	found map[codeAt]string
}

type codeAt struct {
	path   string
	build  string // that the file must be of; empty: any
	offset uint64
}

// OfRank names the code that has made a rank's long call; "": it has none, or that isn't known.
func (r *Callers) OfRank(of *api.RankStatus) string {
	if of.Calls == nil {
		return ""
	}
	return r.Of(of.PID, of.UID, of.Calls.Long)
}

// Of names the code that has made a call, nil for none, of the ranks of whoever runs this: of others no file is opened
// that they have named.
func (r *Callers) Of(pid int, uid uint32, call *api.LongCall) string {
	if call == nil || !Own(uid) {
		return ""
	}
	return r.name(pid, codeAt{call.Module, "", call.Offset})
}

// siteTimeout is how long the ranks of a job may take to say at which places they have waited.
const siteTimeout = 2 * time.Second

// AskSites completes a report with the places in the program where its ranks have waited most, named likewise. It asks
// only if all ranks answer; with an error, as of an exporter that is older, there are none.
func (r *Callers) AskSites(ctx context.Context, exporter *HTTP, of *job.Report) {
	if !of.Answers() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, siteTimeout)
	defer cancel()
	var list api.SiteList
	if exporter.Of(of.Job.ID, of.Job.World, of.Job.User).Get(ctx, "asking for sites", "", "sites", &list) != nil {
		return
	}
	of.Sites = job.SitesOf(list.Sites)
	for i := range of.Sites {
		s := &of.Sites[i]
		if first := &of.Ranks[0]; Own(first.UID) {
			s.From = cmp.Or(r.name(first.PID, codeAt{s.Module, s.BuildID, s.Offset}), s.From)
		}
	}
}

// name names the code that calls what returns to an offset in a file, as "function (file.c:12)" or what of it is
// known, and "" if nothing is. pid is the process that has mapped the file, which may see other files than this one
// does; 0: not known.
func (r *Callers) name(pid int, at codeAt) string {
	if at.path == "" || at.offset == 0 {
		return ""
	}
	if r.found == nil {
		r.found = map[codeAt]string{}
	}
	at.path = seenBy(pid, at.path)
	at.offset-- // the call itself: behind it another function may begin
	name, known := r.found[at]
	if !known {
		name = caller(at)
		r.found[at] = name
	}
	return name
}

// seenBy is the path under which a process's file can be opened here: of a process in a container, another one.
func seenBy(pid int, path string) string {
	if own := filepath.Join("/proc", strconv.Itoa(pid), "root", path); pid > 0 {
		if _, err := os.Stat(own); err == nil {
			return own
		}
	}
	return path
}

// caller is "" for a file that can't be read; then module and offset are shown.
func caller(at codeAt) string {
	f := openCode(at.path)
	if f == nil {
		return ""
	}
	defer f.close()
	if at.build != "" && at.build != f.buildID() {
		return ""
	}
	name, file, line := f.at(at.offset)
	where := filepath.Base(file) + ":" + strconv.Itoa(line)
	switch {
	case file == "":
		return name
	case name == "":
		return where
	}
	return name + " (" + where + ")"
}

// Symbolise names the callers in a profile of the API's, as far as their files can be read and are of the ranks' build.
// The ranks must be the caller's own: others' name files that are better not opened.
func Symbolise(p *profile.Profile) {
	open := map[*profile.Mapping]*codeFile{}
	for _, l := range p.Location {
		if l.Mapping == nil || len(l.Line) != 1 { // a function of MPI
			continue
		}
		f, known := open[l.Mapping]
		if !known {
			if f = openCode(l.Mapping.File); f != nil {
				defer f.close()
				id := f.buildID()
				if l.Mapping.BuildID = cmp.Or(l.Mapping.BuildID, id); l.Mapping.BuildID != id {
					f = nil // another build, or another file, as that of a rank in a container
				}
			}
			open[l.Mapping] = f
		}
		if f == nil {
			continue
		}
		if name, file, line := f.at(l.Address - l.Mapping.Start + l.Mapping.Offset); name != "" {
			at := l.Line[0].Function
			at.Name, at.SystemName, at.Filename = name, name, file
			l.Line[0].Line = int64(line)
			l.Mapping.HasFilenames = l.Mapping.HasFilenames || file != ""
			l.Mapping.HasLineNumbers = l.Mapping.HasFilenames
		}
	}
}

// codeFile is a program's file or a library, and what it says of its code.
type codeFile struct {
	file    *os.File
	elf     *elf.File
	symbols []elf.Symbol
	lines   *dwarf.Data // nil: it doesn't say
}

// openCode opens a file; nil: it can't be read, or isn't such a file.
func openCode(path string) *codeFile {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0) // a pipe would wait for a writer
	if err != nil {
		return nil
	}
	c := &codeFile{file: f}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		c.close()
		return nil
	}
	if c.elf, err = elf.NewFile(f); err != nil {
		c.close()
		return nil
	}
	symbols, _ := c.elf.Symbols() // a stripped file has none
	dynamic, _ := c.elf.DynamicSymbols()
	c.symbols = append(symbols, dynamic...)
	size := uint64(0)
	for _, s := range c.elf.Sections {
		if strings.HasPrefix(s.Name, ".debug_") {
			size += s.Size
		}
	}
	if size > 0 && size <= maxDebugInfo {
		c.lines, _ = c.elf.DWARF()
	}
	return c
}

func (c *codeFile) close() { _ = c.file.Close() }

// buildID is what the linker has called this build of the file, in hexadecimal digits; "": nothing.
func (c *codeFile) buildID() string {
	const before, most = 16, 256 // the note's lengths, kind and name, and its size
	section := c.elf.Section(".note.gnu.build-id")
	if section == nil || section.Size > most {
		return ""
	}
	note, err := section.Data()
	if err != nil || len(note) < before {
		return ""
	}
	return hex.EncodeToString(note[before:])
}

// at is the function that stands at an offset in the file, with its source file and line; what isn't known is empty.
func (c *codeFile) at(offset uint64) (function, file string, line int) {
	for _, p := range c.elf.Progs {
		if p.Type == elf.PT_LOAD && offset >= p.Off && offset-p.Off < p.Filesz {
			address := p.Vaddr + (offset - p.Off) // that the linker has given it
			file, line = c.lineAt(address)
			return c.functionAt(address), file, line
		}
	}
	return "", "", 0
}

// functionAt is the symbol of the function that an address is in; "": none.
func (c *codeFile) functionAt(address uint64) string {
	for _, s := range c.symbols {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && address >= s.Value && address-s.Value < s.Size {
			return s.Name
		}
	}
	return ""
}

// lineAt is the source file and line of an address; "": the file doesn't say.
func (c *codeFile) lineAt(address uint64) (file string, line int) {
	if c.lines == nil {
		return "", 0
	}
	unit, err := c.lines.Reader().SeekPC(address)
	if err != nil {
		return "", 0
	}
	lines, err := c.lines.LineReader(unit)
	if err != nil || lines == nil {
		return "", 0
	}
	// Not SeekPC, which supposes that the sequences of a table are in the order of their addresses: compilers put main
	// before all others.
	var before, entry dwarf.LineEntry
	for ; lines.Next(&entry) == nil; before = entry {
		if before.File != nil && !before.EndSequence && before.Address <= address && address < entry.Address {
			return before.File.Name, before.Line
		}
	}
	return "", 0
}
