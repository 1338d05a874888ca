package mpittest

import (
	"context"
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// value returns a variable's elements without an object.
func value(t *testing.T, r *Rank, name string, class mpit.Class) []uint64 {
	t.Helper()
	h, _, err := r.find(name, class, 0)
	require.NoError(t, err)
	return h.values
}

func TestSetKeepsToTheDatatype(t *testing.T) {
	negative := func(i int64) uint64 { return uint64(i) }
	for name, c := range map[string]struct {
		datatype mpit.Datatype
		bytes    int
		set      any
		want     uint64
	}{
		"a negative int":           {mpit.DatatypeInt, 4, -5, negative(-5)},
		"an int that wraps":        {mpit.DatatypeInt, 4, int64(math.MaxInt32) + 1, negative(math.MinInt32)},
		"an unsigned that wraps":   {mpit.DatatypeUnsigned, 4, int64(math.MaxUint32) + 3, 2},
		"an unsigned below zero":   {mpit.DatatypeUnsigned, 4, -1, math.MaxUint32},
		"the largest number":       {mpit.DatatypeUnsignedLong, 8, uint64(math.MaxUint64), math.MaxUint64},
		"a double":                 {mpit.DatatypeDouble, 8, 0.25, math.Float64bits(0.25)},
		"a whole double":           {mpit.DatatypeDouble, 8, 3, math.Float64bits(3)},
		"a duration":               {mpit.DatatypeDouble, 8, 1500 * time.Millisecond, math.Float64bits(1.5)},
		"a truth":                  {mpit.DatatypeBool, 1, true, 1},
		"a fraction of an integer": {mpit.DatatypeUnsigned, 4, 2.75, 2},
	} {
		t.Run(name, func(t *testing.T) {
			r := New(Config{Variables: []mpit.Variable{{Name: "v", Datatype: c.datatype, DatatypeBytes: c.bytes}}})
			require.NoError(t, r.Set("v", mpit.ClassState, 0, c.set))
			assert.Equal(t, []uint64{c.want}, value(t, r, "v", mpit.ClassState))
		})
	}
}

func TestAdd(t *testing.T) {
	r := New(Config{
		Variables: []mpit.Variable{
			{Name: "count", Class: mpit.ClassCounter, Datatype: mpit.DatatypeUnsigned, DatatypeBytes: 4},
			{Name: "time", Class: mpit.ClassTimer, Datatype: mpit.DatatypeDouble, DatatypeBytes: 8},
		},
		Elements: map[string]int{"count": 2},
	})
	require.NoError(t, r.Set("count", mpit.ClassCounter, 0, uint32(math.MaxUint32)))
	require.NoError(t, r.Add("count", mpit.ClassCounter, 0, 1, 0))
	assert.Equal(t, []uint64{0, math.MaxUint32}, value(t, r, "count", mpit.ClassCounter))
	require.NoError(t, r.Add("time", mpit.ClassTimer, 0, 0.5))
	require.NoError(t, r.Add("time", mpit.ClassTimer, 0, 0.25))
	assert.Equal(t, []uint64{math.Float64bits(0.75)}, value(t, r, "time", mpit.ClassTimer))
}

func TestMistakes(t *testing.T) {
	r := New(Config{Variables: []mpit.Variable{{Name: "v"}}, Elements: map[string]int{"v": 3}})
	assert.ErrorContains(t, r.Set("w", mpit.ClassState, 0, 1), "no handle")
	assert.ErrorContains(t, r.Set("v", mpit.ClassCounter, 0, 1), "no handle")
	assert.ErrorContains(t, r.Set("v", mpit.ClassState, 0, 1, 2), "2 values for 3 elements")
	assert.ErrorIs(t, r.Set("v", mpit.ClassState, 0, "one"), errNotANumber)
	assert.Error(t, r.FreeObject(1))
	assert.Error(t, r.RenameObject(1, "x"))
	assert.Error(t, r.FailRead("w", mpit.ClassState, 0, mpit.ErrInvalid))
	assert.Error(t, r.SetState("w", mpit.ClassState, mpit.VariableDenied, mpit.Success))
	assert.ErrorContains(t, r.SendRaw(nil), "not connected")
	assert.Error(t, r.Connect(context.Background(), filepath.Join(t.TempDir(), "nobody")))

	wrong := New(Config{Values: []Value{{Name: "nothing"}}})
	assert.ErrorContains(t, wrong.Connect(context.Background(), "anywhere"), "no handle",
		"a mistake in a Config is told at Connect")
	assert.ErrorContains(t, wrong.Run(context.Background(), "anywhere"), "no handle")
}

// What remains of freed objects is merged by name, and the names are bounded.
func TestRemains(t *testing.T) {
	r := New(Config{
		Variables: []mpit.Variable{
			{Name: "count", Class: mpit.ClassCounter, Datatype: mpit.DatatypeInt, DatatypeBytes: 4,
				Bind: mpit.BindComm},
		},
		Initial:    map[string]float64{"count": 100},
		MaxObjects: 2,
	})
	life := func(name string, last int) {
		id := r.AddObject(mpit.Object{Kind: mpit.BindComm, Name: name})
		require.NotZero(t, id)
		require.NoError(t, r.Set("count", mpit.ClassCounter, id, last))
		require.NoError(t, r.FreeObject(id))
	}
	life("a", 107)
	life("a", 101)
	life("b", 150)
	life("c", 150)
	require.Len(t, r.remains, 2)
	a := r.remains[0]
	assert.Equal(t, "a", a.Name)
	assert.Equal(t, 2, a.Contributions)
	assert.Equal(t, []uint64{8}, a.Gained)
	assert.Equal(t, []uint64{200}, a.First)
	assert.Equal(t, []uint64{107}, a.Max)
	assert.Equal(t, []uint64{101}, a.Min)
	assert.Equal(t, uint64(1), r.lost, "no room for c")

	first := r.AddObject(mpit.Object{Kind: mpit.BindComm})
	assert.Greater(t, r.AddObject(mpit.Object{Kind: mpit.BindComm}), first)
	assert.Zero(t, r.AddObject(mpit.Object{Kind: mpit.BindComm}), "over the limit")
	assert.Equal(t, uint64(1), r.overflow)
}

// A rename begins a new contribution.
func TestRename(t *testing.T) {
	r := New(Config{
		Variables: []mpit.Variable{{Name: "count", Class: mpit.ClassCounter, Datatype: mpit.DatatypeInt,
			DatatypeBytes: 4, Bind: mpit.BindComm}},
		Objects: []mpit.Object{{Kind: mpit.BindComm}},
	})
	require.NoError(t, r.Set("count", mpit.ClassCounter, 1, 5))
	require.NoError(t, r.RenameObject(1, "late"))
	require.NoError(t, r.RenameObject(1, "late"), "nothing new")
	require.NoError(t, r.Set("count", mpit.ClassCounter, 1, 12))
	require.NoError(t, r.FreeObject(1))
	require.Len(t, r.remains, 2)
	assert.Empty(t, r.remains[0].Name)
	assert.Equal(t, []uint64{5}, r.remains[0].Gained)
	assert.Equal(t, "late", r.remains[1].Name)
	assert.Equal(t, []uint64{7}, r.remains[1].Gained)
}

func TestEverythingIsTheSameEachTime(t *testing.T) {
	first, second := Everything(), Everything()
	assert.NoError(t, New(first).err)
	first.Clock, second.Clock = nil, nil
	assert.Equal(t, first, second)
	seen := make(map[string]bool)
	for _, v := range first.Variables {
		key := v.Class.String() + " " + v.Name
		assert.False(t, seen[key], key)
		seen[key] = true
	}
}

func TestJobsMoveAlike(t *testing.T) {
	jobs := []*Job{NewJob(2), NewJob(2), NewJob(1)}
	for _, j := range jobs {
		for range 130 {
			require.NoError(t, j.Step())
		}
	}
	same := value(t, jobs[0].Ranks[1], barrier, mpit.ClassTimer)
	assert.Equal(t, same, value(t, jobs[1].Ranks[1], barrier, mpit.ClassTimer))
	assert.Greater(t, math.Float64frombits(same[0]), 1.0)
	assert.NotEqual(t, jobs[0].Ranks[0].Hello().ID, jobs[0].Ranks[1].Hello().ID)
}
