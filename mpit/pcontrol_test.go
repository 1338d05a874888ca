package mpit_test

import (
	"math"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// clocked is small with a clock that the test moves.
func clocked() (cfg mpittest.Config, move func(time.Duration)) {
	cfg = small()
	var mu sync.Mutex
	now := cfg.Clock()
	cfg.Clock = func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	}
	return cfg, func(d time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(d)
	}
}

// layoutHandle returns the handle of a variable on an object.
func layoutHandle(t *testing.T, s mpit.Sample, name string, object uint32) mpit.Handle {
	t.Helper()
	for _, h := range s.Layout.Handles {
		if h.Object == object && s.Variables.ByID[h.Variable].Name == name {
			return h
		}
	}
	t.Fatalf("no handle of %q on object %d", name, object)
	return mpit.Handle{}
}

// MPI_Pcontrol(0) freezes what samples show; what was counted until MPI_Pcontrol(1) is to be subtracted then.
func TestPcontrolOffAndOn(t *testing.T) {
	cfg, move := clocked()
	s, r := session(t, cfg)
	require.NoError(t, r.Set("messages", mpit.ClassCounter, 0, 10))
	before := read(t, s)
	assert.Equal(t, 1, before.Stats.PcontrolLevel, "before any call")

	r.Pcontrol(0)
	require.NoError(t, r.Set("messages", mpit.ClassCounter, 0, 17))
	require.NoError(t, r.Set("time", mpit.ClassTimer, 2, -90.5))
	comm := r.AddObject(mpit.Object{Kind: mpit.BindComm, Size: 1})
	require.NoError(t, r.Set("time", mpit.ClassTimer, comm, -60))
	move(2 * time.Second)
	off := read(t, s)
	assert.Equal(t, mpit.SamplePaused, off.Status)
	assert.Equal(t, "paused", off.Status.String())
	assert.Equal(t, []uint64{10}, values(t, off, "messages", 0))
	assert.Equal(t, []uint64{math.Float64bits(-97.5)}, values(t, off, "time", 2))
	assert.Equal(t, []uint64{math.Float64bits(-100)}, values(t, off, "time", comm), "made since: its first value")
	assert.Equal(t, before.Time, off.Time, "of the moment when it was switched off")
	assert.Equal(t, before.Monotonic, off.Monotonic)
	assert.Nil(t, layoutHandle(t, off, "messages", 0).Before().Excluded, "the present pause is in no handle yet")
	assert.Equal(t, mpit.AgentStats{
		Samples: 2, ObjectsAlive: 3, PcontrolLevel: 0, PcontrolCalls: 1, PausedTime: 2 * time.Second, CategoryStamp: 1,
	}, off.Stats)

	r.Pcontrol(1)
	require.NoError(t, r.Set("messages", mpit.ClassCounter, 0, 20))
	move(time.Second)
	on := read(t, s)
	assert.Equal(t, mpit.SampleFresh, on.Status)
	assert.Equal(t, []uint64{20}, values(t, on, "messages", 0), "as the library has it")
	assert.Equal(t, []uint64{7}, layoutHandle(t, on, "messages", 0).Before().Excluded)
	assert.Equal(t, []uint64{math.Float64bits(7)}, layoutHandle(t, on, "time", 2).Before().Excluded)
	assert.Equal(t, []uint64{math.Float64bits(40)}, layoutHandle(t, on, "time", comm).Before().Excluded)
	assert.Nil(t, layoutHandle(t, on, "queue", 1).Before().Excluded, "nothing moved")
	assert.Equal(t, 1, on.Stats.PcontrolLevel)
	assert.Equal(t, 2*time.Second, on.Stats.PausedTime)

	r.Pcontrol(0)
	r.Pcontrol(0)
	r.Pcontrol(5) // tells, and switches nothing
	require.NoError(t, r.Set("messages", mpit.ClassCounter, 0, 25))
	assert.Equal(t, mpit.SamplePaused, read(t, s).Status)
	r.Pcontrol(1)
	again := read(t, s)
	assert.Equal(t, []uint64{12}, layoutHandle(t, again, "messages", 0).Before().Excluded, "all pauses")
	assert.Equal(t, uint64(6), again.Stats.PcontrolCalls)
}

// What was excluded is in no remains; a rename begins anew.
func TestPcontrolAndRemains(t *testing.T) {
	s, r := session(t, small())
	set := func(v float64) { require.NoError(t, r.Set("time", mpit.ClassTimer, 2, v)) }
	gained := func(name string) float64 {
		sample := read(t, s)
		for _, m := range sample.Remains.List {
			if m.Name == name && sample.Variables.ByID[m.Variable].Name == "time" {
				return math.Float64frombits(m.Gained[0])
			}
		}
		t.Fatalf("nothing remains of %q", name)
		return 0
	}
	set(-90) // 10 gained
	r.Pcontrol(0)
	set(-50)
	require.NoError(t, r.RenameObject(2, "second"))
	set(-30)
	r.Pcontrol(1)
	set(-29) // 1 gained
	assert.Equal(t, 10.0, gained(""))
	h := layoutHandle(t, read(t, s), "time", 2)
	assert.Equal(t, []uint64{math.Float64bits(-90)}, h.Before().Origin, "what was shown at the rename")
	assert.Equal(t, []uint64{math.Float64bits(60)}, h.Before().Excluded)
	r.Pcontrol(0)
	set(1000)
	require.NoError(t, r.FreeObject(2))
	assert.Equal(t, 1.0, gained("second"))
}
