package series

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// A STATE has a series for each item of its enumeration and each element. Those beyond a limit are never made, not
// even for a moment.
func TestStatesBeyondALimitAreNotMade(t *testing.T) {
	const elements, items = 20_000, 128
	v := mpit.Variable{Name: "v", Class: mpit.ClassState, Datatype: tInt, Enum: &mpit.Enum{}}
	for i := range items {
		v.Enum.Items = append(v.Enum.Items, mpit.EnumItem{Value: int64(i), Name: fmt.Sprint("item ", i)})
	}
	a := newAgent()
	a.vars = []mpit.Variable{v}
	a.open(0, 0, elements)
	r := newRank(t)
	limitTo(r, 20_000, mapping.ReasonRankOverLimit)
	r.SetVariableLimit(2_000)
	s := a.sample()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r.Update(s)
	runtime.ReadMemStats(&after)
	require.Len(t, r.Series(), 15*items)
	assert.Less(t, (after.TotalAlloc-before.TotalAlloc)/elements, uint64(4096), "bytes for each element")
}

// Timers whose counters are on other objects have no companion there; that is found out without going through all of
// them.
func BenchmarkTimersWithoutCompanionsOfTheirOwn(b *testing.B) {
	const n = 5_000
	a := newAgent(on("v", mpit.ClassTimer, tDouble), on("v", mpit.ClassCounter, tULong))
	for i := range 2 * n {
		a.next++
		a.objects = append(a.objects, mpit.Object{ID: a.next, Kind: mpit.BindComm, Name: fmt.Sprint("object ", i)})
		a.open(uint32(i%2), a.next, 1).values[0] = word(float64(1))
	}
	r := newRank(b)
	r.SetVariableLimit(2_000)
	s := a.sample()
	r.Update(s)
	b.ReportAllocs()
	for b.Loop() {
		r.Update(s)
	}
}
