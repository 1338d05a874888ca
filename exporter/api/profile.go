package api

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"time"

	"github.com/google/pprof/profile"

	"github.com/mpit-exporter/mpit-exporter/mapping"
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

// profileOf makes the profile of an MPI_COMM_WORLD: a function of MPI calls nothing, and what has called it is an
// address in a file, which whoever may read the file can look up. It has no samples if no call was counted.
func profileOf(ranks []rankSites, now time.Time) *profile.Profile {
	of := &ranks[0].Status
	m := maker{program: of.Executable, functions: map[string]*profile.Location{}, modules: map[file]*profile.Mapping{},
		places: map[code]*profile.Location{}, Profile: profile.Profile{
			SampleType: []*profile.ValueType{{Type: "calls", Unit: "count"}, {Type: "inside", Unit: "nanoseconds"},
				{Type: "waiting", Unit: "nanoseconds"}, {Type: "bytes", Unit: "bytes"}},
			DefaultSampleType: "inside",
			TimeNanos:         now.UnixNano(),
			Comments: []string{fmt.Sprintf("job %s, world %s, user %s, %d of %d ranks: %s", of.JobID, of.World, of.User,
				len(ranks), of.WorldSize, path.Base(of.Executable))},
		}}
	all, known := make([]map[place]*placed, len(ranks)), map[code]*code{}
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

// maker puts a profile together.
type maker struct {
	profile.Profile
	program   string
	functions map[string]*profile.Location
	modules   map[file]*profile.Mapping
	places    map[code]*profile.Location // by file and offset
}

func (m *maker) add(rank int, at place, p *placed) {
	s := &profile.Sample{
		Location: []*profile.Location{m.function(at.function)},
		Value:    []int64{p.calls, p.inside, p.waited, p.bytes},
		Label:    map[string][]string{"rank": {strconv.Itoa(rank)}}, // as a number, 0 would be none
	}
	if at.function != otherSites {
		for c := &at.code; c != nil; c = c.caller {
			s.Location = append(s.Location, m.address(c))
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

// address is where code has made a call: before the address that the call returns to, behind which another function may
// begin.
func (m *maker) address(of *code) *profile.Location {
	if of.module == "" || of.offset == 0 || of.offset >= imageStep {
		return m.function(unknownCode)
	}
	key := code{file: of.file, offset: of.offset}
	l := m.places[key]
	if l == nil {
		in := m.module(of.file)
		// A name, or go tool pprof would ask this exporter for one.
		f := m.named(fmt.Sprintf("%s+%#x", path.Base(of.module), of.offset))
		l = m.location(&profile.Location{Mapping: in, Address: in.Start + of.offset - 1,
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
