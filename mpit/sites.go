package mpit

import (
	"context"
	"time"

	"github.com/mpit-exporter/mpit-exporter/mpit/internal/wire"
)

// Site is the calls of one function on one object from one place in the program. A place may have several, each with
// calls of its own: as many as there were threads at one time.
type Site struct {
	Function string // with MPI_; empty: all calls together for whose place there was no room, and the rest is zeros
	Bind     Bind   // kind of object that it names
	Object   uint32 // Object.ID, which may have ended; 0: none, or not tracked
	// Module is the file of the code that has made the call, as the rank sees it, and Offset that of the address there
	// that the call returns to. Empty: it is in no file, or not in one any more.
	Module string
	Offset uint64
	Calls  uint64
	Inside time.Duration // in these calls
	Bytes  uint64        // of the larger buffer of each call that has succeeded
	// BuildID is the linker's id of the module's build, in hexadecimal digits. Empty: it has none, the rank can't read
	// the file, or its agent is older.
	BuildID string
	// Peer is 1 + the rank in MPI_COMM_WORLD whom messages are sent to or received from. 0: none, any, or not counted.
	Peer uint32
	// Of is the place in the list of the site that code here has called, of which these calls are no part. 0: it has
	// called MPI itself.
	Of uint32
}

// Sites asks for all places that the program has called MPI from; none: they aren't counted (exec --calls=sites), or
// there was no call yet. It waits until the context ends. A *RequestError: the rank's agent is too old.
func (s *Session) Sites(ctx context.Context) ([]Site, error) {
	size := func(of *Site) int { return 128 + len(of.Function) + len(of.Module) + len(of.BuildID) }
	list, _, _, err := pages(ctx, s, "call sites", wire.TypeAskSites, wire.TypeSites, s.siteSlot, decodeSite, size)
	return list, err
}

// decodeSite reads a record of SITES.
func decodeSite(r *wire.Decoder, _ map[uint32]*Enum) (Site, int) {
	index := r.Int("number of a call site")
	return Site{
		Function: text(r, "function of a call site"),
		Bind:     known(r.Word(), BindLast, BindUnknown),
		Object:   r.Uint32("object of a call site"),
		Module:   text(r, "module of a call site"),
		Offset:   r.Word(),
		Calls:    r.Word(),
		Inside:   r.Duration("time of a call site"),
		Bytes:    r.Word(),
		BuildID:  text(r, "build id of a call site"),
		Peer:     r.Uint32("peer of a call site"),
		Of:       r.Uint32("what a call site has called"),
	}, index
}
