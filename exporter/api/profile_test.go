package api

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// ranksWith are ranks of one world of two, in two communicators, of which one is the parts' of a split.
func ranksWith(sites ...[]mpit.Site) []rankSites {
	all := make([]rankSites, len(sites))
	for i := range sites {
		all[i] = rankSites{sites: sites[i], Connected: Connected{
			Status: RankStatus{Rank: i, WorldSize: 2, Executable: "/bin/app", Calls: &Calls{Comms: []Comm{
				{ID: "w", Size: 2, object: 1}, {ID: "p", Size: 1, object: 2}, {ID: "i", Size: 2, Inter: true, object: 3}}}},
			Layout: &mpit.Layout{Objects: []mpit.Object{{ID: 1, Kind: mpit.BindComm, Name: "world"},
				{ID: 2, Kind: mpit.BindComm, Name: "part"}, {ID: 3, Kind: mpit.BindComm, Name: "bridge"},
				{ID: 4, Kind: mpit.BindFile, Name: "out"}}},
		}}
	}
	return all
}

// lines has what a profile says after it was written and read, a line for each sample: what calls what, the labels, and
// calls, time, waiting and bytes.
func lines(t *testing.T, p *profile.Profile) []string {
	t.Helper()
	var text bytes.Buffer
	require.NoError(t, p.Write(&text))
	p, err := profile.Parse(&text)
	require.NoError(t, err)
	var all []string
	for _, s := range p.Sample {
		line := s.Location[0].Line[0].Function.Name
		for _, from := range s.Location[1:] {
			if from.Mapping != nil {
				line += " from " + from.Mapping.File
			} else {
				line += " from " + from.Line[0].Function.Name
			}
		}
		for _, name := range []string{"rank", "communicator", "window", "file", "peer"} {
			line += " " + strings.Join(s.Label[name], "")
		}
		all = append(all, strings.Join(strings.Fields(line+" "+fmt.Sprint(s.Value)), " "))
	}
	return all
}

func TestProfile(t *testing.T) {
	barrier := mpit.Site{Function: "MPI_Barrier", Bind: mpit.BindComm, Object: 1, Module: "/bin/app", Offset: 64, Calls: 2}
	at := func(s mpit.Site, offset uint64, inside time.Duration) mpit.Site {
		s.Offset, s.Inside = offset, inside
		return s
	}
	empty := mpit.Site{Function: "MPI_Allreduce", Bind: mpit.BindComm, Object: 1, Module: "/bin/app", Calls: 1}
	part, bridge, file := barrier, barrier, barrier
	part.Object, bridge.Object = 2, 3
	file.Function, file.Bind, file.Object, file.Bytes = "MPI_File_write", mpit.BindFile, 4, 9
	gone := mpit.Site{Function: "MPI_Send", Bind: mpit.BindComm, Object: 77, Offset: 5, Calls: 1, Bytes: 3}
	to := mpit.Site{Function: "MPI_Send", Bind: mpit.BindComm, Object: 1, Module: "/bin/app", Offset: 128, Calls: 1, Peer: 1}
	other := to
	other.Peer = 2
	p := profileOf(ranksWith(
		[]mpit.Site{{Calls: 1, Bytes: 1}, at(barrier, 64, 5), at(barrier, 64, 2), at(barrier, 99, 8), at(empty, 32, 4),
			at(part, 16, 7), at(bridge, 8, 7), at(file, 4, 1), gone, {Function: "MPI_Test", Module: "/lib/x.so", Offset: 1},
			to, other, to},
		[]mpit.Site{at(barrier, 64, 3), at(empty, 32, 1), at(part, 16, 1), at(bridge, 8, 1)},
	), time.Unix(1, 0))
	assert.Equal(t, []string{
		"MPI_Send from [unknown] 0 unnamed [1 0 0 3]",
		"[other] 0 [1 0 0 1]",
		"MPI_File_write from /bin/app 0 out [2 1 0 9]",
		"MPI_Barrier from /bin/app 0 bridge [2 7 0 0]",
		"MPI_Barrier from /bin/app 0 part [2 7 0 0]",
		"MPI_Allreduce from /bin/app 0 world [1 4 0 0]", // without data
		"MPI_Barrier from /bin/app 0 world [4 7 4 0]",   // two threads; beyond rank 1
		"MPI_Barrier from /bin/app 0 world [2 8 0 0]",   // the other one isn't there
		"MPI_Send from /bin/app 0 world 0 [2 0 0 0]",
		"MPI_Send from /bin/app 0 world 1 [1 0 0 0]",
		"MPI_Barrier from /bin/app 1 bridge [2 1 0 0]",
		"MPI_Barrier from /bin/app 1 part [2 1 0 0]",
		"MPI_Allreduce from /bin/app 1 world [1 1 0 0]",
		"MPI_Barrier from /bin/app 1 world [2 3 0 0]",
	}, lines(t, p))
	assert.Equal(t, uint64(imageBase+64-1), p.Sample[6].Location[1].Address, "the call, not what is behind it")
	assert.Empty(t, profileOf(ranksWith(nil), time.Unix(1, 0)).Sample)
}

// What has called the code that calls MPI, as far as it is known: the code where a thread begins says nothing. What is waited
// at a place is its callers' by their time.
func TestProfileOfStacks(t *testing.T) {
	barrier := mpit.Site{Function: "MPI_Barrier", Bind: mpit.BindComm, Object: 1, Module: "/bin/app", Offset: 64}
	above := func(of uint32, module string, calls uint64, inside time.Duration) mpit.Site {
		s := barrier
		s.Of, s.Module, s.Offset, s.Calls, s.Inside = of, module, uint64(of)+100, calls, inside
		return s
	}
	rank := func(inside time.Duration) []mpit.Site {
		return []mpit.Site{{}, barrier, above(1, "/bin/app", 1, inside), above(1, "/lib/solver.so", 0, 0),
			above(3, "/bin/app", 3, 3*inside), above(4, "/lib/libc.so.6", 2, inside), above(3, "", 1, 0), above(5, "/lib/x.so", 1, 0),
			above(8, "/bin/app", 1, inside)}
	}
	p := profileOf(ranksWith(rank(3), rank(1)), time.Unix(1, 0))
	assert.Equal(t, []string{
		"MPI_Barrier from /bin/app from /bin/app 0 world [1 3 2 0]",
		"MPI_Barrier from /bin/app from /lib/solver.so 0 world [1 0 0 0]",
		"MPI_Barrier from /bin/app from /lib/solver.so from /bin/app 0 world [5 12 8 0]",
		"MPI_Barrier from /bin/app from /lib/solver.so from /bin/app from /lib/libc.so.6 from /lib/x.so 0 world [1 0 0 0]",
		"MPI_Barrier from /bin/app 0 world [1 3 2 0]", // its agent says that it has called itself
	}, lines(t, p)[:5])
	assert.Equal(t, p.Sample[1].Location[2], p.Sample[2].Location[2], "one location for one address")

	endless := []mpit.Site{{}, barrier}
	for len(endless) < 1000 {
		endless = append(endless, above(uint32(len(endless)-1), "/bin/app", 1, 1))
	}
	for _, s := range profileOf(ranksWith(endless), time.Unix(1, 0)).Sample {
		assert.LessOrEqual(t, len(s.Location), maxFrames+2)
	}
}

// A file is known by its build too: the same offset in another build is other code.
func TestProfileOfTwoBuilds(t *testing.T) {
	at := func(build string) []mpit.Site {
		return []mpit.Site{{Function: "MPI_Barrier", Bind: mpit.BindComm, Object: 1, Module: "/bin/app", Offset: 64, Calls: 1,
			BuildID: build}}
	}
	p := profileOf(ranksWith(at("aa"), at("bb")), time.Unix(1, 0))
	require.Len(t, p.Mapping, 2)
	assert.Equal(t, []string{"aa", "bb"}, []string{p.Mapping[0].BuildID, p.Mapping[1].BuildID})
	assert.Equal(t, []string{"MPI_Barrier from /bin/app 0 world [1 0 0 0]", "MPI_Barrier from /bin/app 1 world [1 0 0 0]"},
		lines(t, p))
	assert.NotEqual(t, p.Sample[0].Location[1], p.Sample[1].Location[1])
}

// A profile has so many sites at most, of whole ranks; of the others it says that they are left out.
func TestProfileIsBounded(t *testing.T) {
	half := make([]mpit.Site, maxSites/2)
	all := ranksWith(half, make([]mpit.Site, maxSites/2+1), half)
	out := bound(all)
	require.Len(t, out, 1)
	assert.ErrorContains(t, out[0], "rank 1 is left out")
	assert.Empty(t, all[1].sites)
	assert.Len(t, all[2].sites, maxSites/2)
}
