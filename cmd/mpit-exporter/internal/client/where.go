package client

import (
	"debug/dwarf"
	"debug/elf"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
)

// maxDebugInfo is how large a file's debugging information may be that is looked at: it is read whole.
const maxDebugInfo = 256 << 20

// Callers names the code that has made calls, and remembers what it has found. It is for one goroutine.
type Callers struct {
	found map[codeAt]string
}

type codeAt struct {
	path   string
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
	return r.name(pid, call.Module, call.Offset)
}

// name names the code that calls what returns to an offset in a file, as "function (file.c:12)" or what of it is
// known, and "" if nothing is. pid is the process that has mapped the file, which may see other files than this one
// does; 0: not known.
func (r *Callers) name(pid int, path string, offset uint64) string {
	if path == "" || offset == 0 {
		return ""
	}
	if r.found == nil {
		r.found = map[codeAt]string{}
	}
	at := codeAt{seenBy(pid, path), offset - 1} // the call itself: behind it another function may begin
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
	f, err := os.OpenFile(at.path, os.O_RDONLY|unix.O_NONBLOCK, 0) // a pipe would wait for a writer
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	program, err := elf.NewFile(f)
	if err != nil {
		return ""
	}
	address, ok := addressOf(program, at.offset)
	if !ok {
		return ""
	}
	name, line := functionAt(program, address), lineAt(program, address)
	switch {
	case line == "":
		return name
	case name == "":
		return line
	}
	return name + " (" + line + ")"
}

// addressOf is the address that the linker has given to what stands at an offset in the file.
func addressOf(f *elf.File, offset uint64) (uint64, bool) {
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && offset >= p.Off && offset-p.Off < p.Filesz {
			return p.Vaddr + (offset - p.Off), true
		}
	}
	return 0, false
}

// functionAt is the symbol of the function that an address is in; "": none.
func functionAt(f *elf.File, address uint64) string {
	symbols, _ := f.Symbols() // a stripped file has none
	dynamic, _ := f.DynamicSymbols()
	for _, s := range append(symbols, dynamic...) {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && address >= s.Value && address-s.Value < s.Size {
			return s.Name
		}
	}
	return ""
}

// lineAt is the source file, without its directory, and line of an address; "": the file doesn't say.
func lineAt(f *elf.File, address uint64) string {
	size := uint64(0)
	for _, s := range f.Sections {
		if len(s.Name) > 7 && s.Name[:7] == ".debug_" {
			size += s.Size
		}
	}
	if size == 0 || size > maxDebugInfo {
		return ""
	}
	data, err := f.DWARF()
	if err != nil {
		return ""
	}
	unit, err := data.Reader().SeekPC(address)
	if err != nil {
		return ""
	}
	lines, err := data.LineReader(unit)
	if err != nil || lines == nil {
		return ""
	}
	// Not SeekPC, which supposes that the sequences of a table are in the order of their addresses: compilers put main
	// before all others.
	var before, entry dwarf.LineEntry
	for ; lines.Next(&entry) == nil; before = entry {
		if before.File != nil && !before.EndSequence && before.Address <= address && address < entry.Address {
			return filepath.Base(before.File.Name) + ":" + strconv.Itoa(before.Line)
		}
	}
	return ""
}
