package api

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// The rank that has spent least in a call has waited for nobody, however long that was.
func TestNobodyWaitsForItself(t *testing.T) {
	for _, inside := range []time.Duration{1, 3, 3722465502933, 52872227296825} {
		at := mpit.Site{Function: "MPI_Barrier", Bind: mpit.BindComm, Object: 1, Module: "/bin/app", Offset: 1, Calls: 1,
			Inside: inside}
		assert.Empty(t, mostWaited(ranksWith([]mpit.Site{at}, []mpit.Site{at})), inside)
	}
}

// The sites at which most is waited, of all ranks and communicators of a name together.
func TestMostWaited(t *testing.T) {
	at := func(offset uint64, inside time.Duration) mpit.Site {
		return mpit.Site{Function: "MPI_Barrier", Bind: mpit.BindComm, Object: 1, Module: "/bin/app", Offset: offset, Calls: 2,
			Inside: inside, BuildID: "aa"}
	}
	send := mpit.Site{Function: "MPI_Send", Bind: mpit.BindComm, Object: 1, Module: "/bin/app", Calls: 1, Inside: 99, Peer: 1}
	ranks := ranksWith(
		[]mpit.Site{at(1, 3*time.Second), at(2, time.Second), at(3, time.Second), at(9, time.Second), send},
		[]mpit.Site{at(1, time.Second), at(2, time.Second), at(3, 4*time.Second)})
	site := func(offset uint64, waited float64) Site {
		return Site{Function: "MPI_Barrier", Kind: "comm", Object: "world", Module: "/bin/app", Offset: offset, BuildID: "aa",
			Calls: 4, Waited: waited}
	}
	assert.Equal(t, []Site{site(3, 3), site(1, 2)}, mostWaited(ranks))
	assert.Empty(t, mostWaited(nil))
}
