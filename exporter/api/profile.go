package api

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/google/pprof/profile"

	"github.com/mpit-exporter/mpit-exporter/exporter/internal/clean"
	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// What stands in a profile for what has no name.
const (
	otherSites  = "[other]"   // for calls whose place found no room
	unknownCode = "[unknown]" // for code in no file, or in one that has been unloaded
)

const (
	// imageBase is where the linker puts a program that isn't position-independent, so that its addresses are right.
	imageBase = 0x400000
	// imageStep is how far the addresses of files are apart. They mean nothing else: of position-independent code only
	// offsets count, which are the same in all ranks.
	imageStep = 1 << 40
)

// place is calls of a function on an object from an address, in all threads of a rank.
type place struct {
	function, kind, object string
	comm                   string // which communicator in all its members; empty: not known
	peer                   uint32 // as mpit.Site has it
	file
	offset  uint64
	callers *caller // of that code; nil: not known
}

// caller is code that has called other code. There is one of each in a profile, so that two that differ are two.
type caller struct {
	file
	offset uint64
	caller *caller // of this one; nil: not known
}

// file is a build of a program or library.
type file struct{ module, build string }

type placed struct {
	calls, inside, bytes, waited int64
	size                         int // of the communicator
}

func (p *placed) add(calls, inside, bytes int64) {
	p.calls += calls
	p.inside += inside
	p.bytes += bytes
}

// fileOf is where the code is.
func fileOf(s *mpit.Site) file { return file{clean.Path(s.Module), clean.Label(s.BuildID)} }

const maxFrames = 32 // of a stack; agents have half as many

// cLibrary is the file that has called a program's main, or a thread's function.
var cLibrary = regexp.MustCompile(`/(libc\.so\.|libc-2\.|ld-musl-)[^/]*$`)

// stack is the code that has called MPI, and what has called that, as far as files are known. It ends where the C
// library has called the program.
func (r *rankSites) stack(s *mpit.Site, known map[caller]*caller) (calls *mpit.Site, callers *caller) {
	for n := 0; s.Of > 0 && int(s.Of) < len(r.sites); n++ {
		at := caller{fileOf(s), s.Offset, callers}
		switch begins := callers == nil && cLibrary.MatchString(at.module); {
		case s.Module == "" || begins:
			callers = nil
		case known[at] == nil:
			known[at] = &at
			callers = &at
		default:
			callers = known[at]
		}
		below := &r.sites[s.Of]
		if below.Of >= s.Of || n == maxFrames { // no agent says so
			return below, nil
		}
		s = below
	}
	return s, callers
}

// placesOf adds up what belongs together.
func placesOf(r *rankSites, known map[caller]*caller) map[place]*placed {
	comms := map[uint32]*Comm{}
	if r.Status.Calls != nil {
		for i := range r.Status.Calls.Comms {
			comms[r.Status.Calls.Comms[i].object] = &r.Status.Calls.Comms[i]
		}
	}
	sample := mpit.Sample{Layout: r.Layout}
	all := map[place]*placed{}
	for i := range r.sites {
		s := &r.sites[i]
		calls, callers := r.stack(s, known)
		at := place{function: cmp.Or(clean.Label(s.Function), otherSites), peer: s.Peer, file: fileOf(calls),
			offset: calls.Offset, callers: callers}
		if at.module == "" {
			at.offset = 0 // nobody else has the same address
		}
		if s.Function != "" {
			at.kind, at.object = objectOf(&sample, s.Bind, s.Object)
		}
		size := 0
		if c := comms[s.Object]; s.Bind == mpit.BindComm && c != nil && !c.Inter {
			at.comm, size = c.ID, c.Size
		}
		p := all[at]
		if p == nil {
			p = &placed{size: size}
			all[at] = p
		}
		p.add(int64(s.Calls), int64(s.Inside), int64(s.Bytes))
	}
	return all
}

// await says what each rank has waited: of calls that no rank leaves before all have come, what it has spent in them
// beyond the rank that has spent least, if all members of the communicator make them there. Each of several callers has
// its share.
func await(ranks []map[place]*placed) {
	type member struct {
		placed
		parts []*placed
	}
	members := map[place][]*member{}
	for _, all := range ranks {
		of := map[place]*member{}
		for at, p := range all {
			if at.callers = nil; at.comm == "" {
				continue
			}
			m := of[at]
			if m == nil {
				m = &member{placed: placed{size: p.size}}
				of[at] = m
				members[at] = append(members[at], m)
			}
			m.add(p.calls, p.inside, p.bytes)
			m.parts = append(m.parts, p)
		}
	}
	for at, of := range members {
		if len(of) != of[0].size || slices.ContainsFunc(of, func(m *member) bool {
			return !Synchronises(at.function, float64(m.calls), float64(m.bytes))
		}) {
			continue
		}
		least := slices.MinFunc(of, func(a, b *member) int { return cmp.Compare(a.inside, b.inside) }).inside
		for _, m := range of {
			for _, p := range m.parts {
				p.waited = p.inside - int64(float64(least)*float64(p.inside)/float64(max(m.inside, 1)))
			}
		}
	}
}

// profileOf makes the profile of an MPI_COMM_WORLD: a function of MPI calls nothing, and what has called it is an
// address in a file, which whoever may read the file can look up. It has no samples if no call was counted.
func profileOf(ranks []rankSites, now time.Time) *profile.Profile {
	of := &ranks[0].Status
	m := maker{program: of.Executable, functions: map[string]*profile.Location{}, modules: map[file]*profile.Mapping{},
		places: map[caller]*profile.Location{}, Profile: profile.Profile{
			SampleType: []*profile.ValueType{{Type: "calls", Unit: "count"}, {Type: "inside", Unit: "nanoseconds"},
				{Type: "waiting", Unit: "nanoseconds"}, {Type: "bytes", Unit: "bytes"}},
			DefaultSampleType: "inside",
			TimeNanos:         now.UnixNano(),
			Comments: []string{fmt.Sprintf("job %s, world %s, user %s, %d of %d ranks: %s", of.JobID, of.World, of.User,
				len(ranks), of.WorldSize, path.Base(of.Executable))},
		}}
	all, known := make([]map[place]*placed, len(ranks)), map[caller]*caller{}
	for i := range ranks {
		all[i] = placesOf(&ranks[i], known)
		if c := ranks[i].Status.Calls; c != nil {
			m.DurationNanos = max(m.DurationNanos, int64((c.State[Outside]+c.State.Inside())*1e9))
		}
	}
	await(all)
	for i := range ranks {
		for _, at := range slices.SortedFunc(maps.Keys(all[i]), comparePlaces) {
			if p := all[i][at]; p.calls > 0 {
				m.add(ranks[i].Status.Rank, at, p)
			}
		}
	}
	m.order()
	return &m.Profile
}

func comparePlaces(a, b place) int {
	return cmp.Or(cmp.Compare(a.module, b.module), cmp.Compare(a.build, b.build), cmp.Compare(a.offset, b.offset),
		cmp.Compare(a.function, b.function), cmp.Compare(a.object, b.object), cmp.Compare(a.comm, b.comm),
		cmp.Compare(a.peer, b.peer), compareCallers(a.callers, b.callers))
}

func compareCallers(a, b *caller) int {
	switch {
	case a == b:
		return 0
	case a == nil:
		return -1
	case b == nil:
		return 1
	}
	return cmp.Or(cmp.Compare(a.module, b.module), cmp.Compare(a.build, b.build), cmp.Compare(a.offset, b.offset),
		compareCallers(a.caller, b.caller))
}

// maker puts a profile together.
type maker struct {
	profile.Profile
	program   string
	functions map[string]*profile.Location
	modules   map[file]*profile.Mapping
	places    map[caller]*profile.Location // by file and offset
}

func (m *maker) add(rank int, at place, p *placed) {
	s := &profile.Sample{
		Location: []*profile.Location{m.function(at.function)},
		Value:    []int64{p.calls, p.inside, p.waited, p.bytes},
		Label:    map[string][]string{"rank": {strconv.Itoa(rank)}}, // as a number, 0 would be none
	}
	if at.function != otherSites {
		s.Location = append(s.Location, m.code(at.file, at.offset))
		for up := at.callers; up != nil; up = up.caller {
			s.Location = append(s.Location, m.code(up.file, up.offset))
		}
	}
	if label := map[string]string{"comm": "communicator", "win": "window"}[at.kind]; at.kind != "" {
		s.Label[cmp.Or(label, at.kind)] = []string{cmp.Or(at.object, mapping.Unnamed)}
	}
	if at.peer > 0 {
		s.Label["peer"] = []string{strconv.Itoa(int(at.peer - 1))}
	}
	m.Sample = append(m.Sample, s)
}

// function is a location that is known by its name alone.
func (m *maker) function(name string) *profile.Location {
	l := m.functions[name]
	if l == nil {
		l = m.location(&profile.Location{Line: []profile.Line{{Function: m.named(name)}}})
		m.functions[name] = l
	}
	return l
}

func (m *maker) named(name string) *profile.Function {
	f := &profile.Function{ID: uint64(len(m.Function) + 1), Name: name, SystemName: name}
	m.Function = append(m.Function, f)
	return f
}

// code is what has made a call: the address before the one that it returns to, behind which another function may begin.
func (m *maker) code(in file, offset uint64) *profile.Location {
	if in.module == "" || offset == 0 || offset >= imageStep {
		return m.function(unknownCode)
	}
	key := caller{file: in, offset: offset}
	l := m.places[key]
	if l == nil {
		image := m.module(in)
		// A name, or go tool pprof would ask this exporter for one.
		f := m.named(fmt.Sprintf("%s+%#x", path.Base(in.module), offset))
		l = m.location(&profile.Location{Mapping: image, Address: image.Start + offset - 1,
			Line: []profile.Line{{Function: f}}})
		m.places[key] = l
	}
	return l
}

func (m *maker) module(of file) *profile.Mapping {
	in := m.modules[of]
	if in == nil {
		in = &profile.Mapping{File: of.module, BuildID: of.build,
			Start: imageBase + imageStep*uint64(len(m.modules)+1), HasFunctions: true}
		if of.module == m.program {
			in.Start = imageBase
			m.program = "" // another build of it, in other ranks, stands elsewhere
		}
		in.Limit = in.Start + imageStep // of any size, so that profiles of several runs agree
		m.modules[of] = in
		m.Mapping = append(m.Mapping, in)
	}
	return in
}

func (m *maker) location(l *profile.Location) *profile.Location {
	l.ID = uint64(len(m.Location) + 1)
	m.Location = append(m.Location, l)
	return l
}

// order puts the program's own file first: it is what a profile is of.
func (m *maker) order() {
	slices.SortStableFunc(m.Mapping, func(a, b *profile.Mapping) int { return cmp.Compare(a.Start, b.Start) })
	for i, file := range m.Mapping {
		file.ID = uint64(i + 1)
	}
}
