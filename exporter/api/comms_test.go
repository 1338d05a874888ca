package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// named are communicators by their names.
func named(c *api.Calls) map[string]api.Comm {
	found := map[string]api.Comm{}
	for _, comm := range c.Comms {
		found[comm.Name] = comm
	}
	return found
}

// TestComms: an exporter is told of changes only, and knows what has not changed, and what has gone.
func TestComms(t *testing.T) {
	comms := api.Comms{Most: 256}
	take := func(s mpit.Sample, world string) *api.Calls {
		s.UnderWay = &mpit.UnderWay{}
		c := api.CallsOf(&s, api.StateSeconds{}, nil)
		comms.Take(&s, world, c)
		return c
	}
	both := mpit.Object{ID: 1, Kind: mpit.BindComm, Name: "MPI_COMM_WORLD", Size: 2}
	layout := &mpit.Layout{Objects: []mpit.Object{both, {ID: 2, Kind: mpit.BindComm, Size: 1},
		{ID: 3, Kind: mpit.BindComm, Name: "halo", Size: 2},
		{ID: 4, Kind: mpit.BindComm, Name: "bridge", Size: 1, Inter: true},
		{ID: 5, Kind: mpit.BindComm, Name: "other", Size: 2}, {ID: 6, Kind: mpit.BindWin, On: 3}}}
	got := take(mpit.Sample{Layout: layout, Comms: []mpit.Comm{{Object: 1, Identity: 7, Begun: 5, Counted: true},
		{Object: 2, Identity: 8}, {Object: 3, Identity: 9, Counted: true}, {Object: 4, Identity: 10},
		{Object: 5, Counted: true}, {Object: 6, Identity: 11}, {Object: 99, Identity: 12}}}, "w")
	first := named(got)
	require.Len(t, got.Comms, 3, "not those of one process, of no identity, of another kind, or that aren't there")
	assert.Equal(t, uint64(5), *first["MPI_COMM_WORLD"].Number)
	assert.Equal(t, uint64(0), *first["halo"].Number, "nothing has begun, which is known")
	assert.Nil(t, first["bridge"].Number)
	assert.True(t, first["bridge"].Inter)
	assert.Len(t, first["halo"].ID, 16)
	assert.NotEqual(t, first["halo"].ID, first["MPI_COMM_WORLD"].ID)

	second := named(take(mpit.Sample{Comms: []mpit.Comm{{Object: 1, Identity: 7, Begun: 6, Counted: true}}}, "w"))
	assert.Equal(t, uint64(6), *second["MPI_COMM_WORLD"].Number)
	assert.Equal(t, first["halo"], second["halo"])
	assert.Equal(t, uint64(5), *first["MPI_COMM_WORLD"].Number, "what has been given away stays as it is")
	assert.Equal(t, "MPI_COMM_WORLD", take(mpit.Sample{}, "w").Comms[2].Name, "it has changed last")

	renamed := &mpit.Layout{Objects: []mpit.Object{both, {ID: 3, Kind: mpit.BindComm, Name: "fluid", Size: 2}}}
	third := named(take(mpit.Sample{Layout: renamed}, "w"))
	require.Len(t, third, 2)
	assert.Equal(t, first["halo"].ID, third["fluid"].ID)

	calling := mpit.Sample{Layout: layout, UnderWay: &mpit.UnderWay{Threads: []mpit.Thread{
		{Begun: 1, Bind: mpit.BindComm, Object: 3, Number: 4}, {Begun: 1, Bind: mpit.BindWin, Object: 6},
		{Begun: 1, Bind: mpit.BindWin, Object: 60}, {Begun: 1, Bind: mpit.BindComm}, {}}}}
	calls := api.CallsOf(&calling, api.StateSeconds{}, nil)
	comms.Take(&calling, "w", calls)
	at := func(i int) *api.CallUnderWay { return calls.Threads[i].Call }
	halo := first["halo"].ID
	assert.Equal(t, []string{halo, halo, "", ""}, []string{at(0).Comm, at(1).Comm, at(2).Comm, at(3).Comm})
	assert.Equal(t, uint64(4), at(0).Number)
	comms.Take(&calling, "w", nil) // no call profile

	comms = api.Comms{Most: 256}
	elsewhere := take(mpit.Sample{Layout: layout, Comms: []mpit.Comm{{Object: 1, Identity: 7}}}, "spawned")
	assert.NotEqual(t, first["MPI_COMM_WORLD"].ID, elsewhere.Comms[0].ID, "another world's")
}

// A rank may have many communicators, and say so each time.
func TestCommsAreBounded(t *testing.T) {
	const many = 10_000
	var (
		comms = api.Comms{Most: 16}
		s     = mpit.Sample{Layout: &mpit.Layout{}, UnderWay: &mpit.UnderWay{}}
	)
	for i := range uint32(many) {
		s.Layout.Objects = append(s.Layout.Objects, mpit.Object{ID: i + 1, Kind: mpit.BindComm, Size: 2,
			Name: fmt.Sprint(i+1, strings.Repeat("x", 10_000))})
		s.Comms = append(s.Comms, mpit.Comm{Object: i + 1, Identity: uint64(i + 1), Counted: true})
	}
	began := time.Now()
	c := api.CallsOf(&s, api.StateSeconds{}, nil)
	comms.Take(&s, "w", c)
	require.Len(t, c.Comms, 16)
	assert.True(t, strings.HasPrefix(c.Comms[0].Name, "1x"), "the first of a first sample")
	assert.Less(t, len(c.Comms[0].Name), 1000)
	s.Comms = []mpit.Comm{{Object: many, Identity: many, Counted: true}}
	comms.Take(&s, "w", c)
	require.Len(t, c.Comms, 16)
	assert.True(t, strings.HasPrefix(c.Comms[15].Name, fmt.Sprint(many)), "those that changed last")
	assert.Less(t, time.Since(began), 5*time.Second)
}
