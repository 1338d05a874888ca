package api

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"time"

	"github.com/mpit-exporter/mpit-exporter/exporter/internal/clean"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// place is calls of a function on an object from some code, in all threads of a rank.
type place struct {
	function, kind, object string
	comm                   string // which communicator in all its members; empty: not known
	peer                   uint32 // as mpit.Site has it
	code
}

// code is an address in a file, and what has called it, of which there is one of each, so that equal stacks are equal.
type code struct {
	file
	offset uint64
	caller *code // nil: not known
}

// file is a build of a program or library.
type file struct{ module, build string }

// placed is what was counted at a place.
type placed struct {
	calls, inside, bytes, waited int64
	size                         int // of the communicator
}

func (p *placed) add(calls, inside, bytes int64) {
	p.calls += calls
	p.inside += inside
	p.bytes += bytes
}

const maxFrames = 16 // of what has called a place; agents have no more

// cLibrary is the file that has called a program's main, or a thread's function. Agents look no further.
var cLibrary = regexp.MustCompile(`/(libc\.so\.|libc-2\.|ld-musl-)[^/]*$`)

// codeOf is the code that has called MPI, and what has called that, as far as files are known. It ends where the C
// library has called the program. known has what was there before.
func (r *rankSites) codeOf(s *mpit.Site, known map[code]*code) code {
	var above *code
	for n := 0; ; n++ {
		at := code{file{clean.Path(s.Module), clean.Label(s.BuildID)}, s.Offset, above}
		if at.module == "" {
			at.file, at.offset = file{}, 0 // nobody else has the same address
		}
		if s.Of == 0 || int(s.Of) >= len(r.sites) {
			return at
		}
		below := &r.sites[s.Of]
		switch begins := above == nil && cLibrary.MatchString(at.module); {
		case below.Of >= s.Of || n == maxFrames: // no agent says so
			return at
		case at.module == "" || begins:
			above = nil
		case known[at] == nil:
			known[at] = &at
			above = &at
		default:
			above = known[at]
		}
		s = below
	}
}

// placesOf adds up what belongs together.
func placesOf(r *rankSites, known map[code]*code) map[place]*placed {
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
		at := place{function: cmp.Or(clean.Label(s.Function), otherSites), peer: s.Peer, code: r.codeOf(s, known)}
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

func comparePlaces(a, b place) int {
	own := func(c code) code { return code{file: c.file, offset: c.offset} }
	return cmp.Or(compareCode(own(a.code), own(b.code)), cmp.Compare(a.function, b.function),
		cmp.Compare(a.object, b.object), cmp.Compare(a.comm, b.comm), cmp.Compare(a.peer, b.peer),
		compareCode(a.code, b.code))
}

func compareCode(a, b code) int {
	order := cmp.Or(cmp.Compare(a.module, b.module), cmp.Compare(a.build, b.build), cmp.Compare(a.offset, b.offset))
	switch {
	case order != 0 || a.caller == b.caller:
		return order
	case a.caller == nil:
		return -1
	case b.caller == nil:
		return 1
	}
	return compareCode(*a.caller, *b.caller)
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
			if at.caller = nil; at.comm == "" {
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
				p.waited = int64(float64(m.inside-least) * float64(p.inside) / float64(max(m.inside, 1)))
			}
		}
	}
}

// mostSites is how many sites a list has.
const mostSites = 5

// mostWaited are the sites of one MPI_COMM_WORLD at which most time was waited.
func mostWaited(asked []rankSites) []Site {
	all, known := make([]map[place]*placed, len(asked)), map[code]*code{}
	for i := range asked {
		all[i] = placesOf(&asked[i], known)
	}
	await(all)
	sum := map[place]*Site{}
	for _, of := range all {
		for at, p := range of {
			if at.comm, at.peer, at.caller = "", 0, nil; sum[at] == nil {
				sum[at] = &Site{Function: at.function, Kind: at.kind, Object: at.object, Module: at.module,
					Offset: at.offset, BuildID: at.build}
			}
			sum[at].Calls += float64(p.calls)
			sum[at].Waited += time.Duration(p.waited).Seconds()
		}
	}
	sites := []Site{}
	for _, at := range slices.SortedFunc(maps.Keys(sum), comparePlaces) {
		if sum[at].Waited > 0 {
			sites = append(sites, *sum[at])
		}
	}
	slices.SortStableFunc(sites, func(a, b Site) int { return cmp.Compare(b.Waited, a.Waited) })
	return sites[:min(len(sites), mostSites)]
}
