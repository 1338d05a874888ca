package variables

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mapping/rules"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// specCount is how many different ones the Mapper knows.
func specCount(m *Mapper) int {
	m.specs.mu.Lock()
	defer m.specs.mu.Unlock()
	return len(m.specs.byKey)
}

func TestRanksShareWhatVariablesBecome(t *testing.T) {
	calls := mpit.Variable{Name: "calls", Class: mpit.ClassCounter, Datatype: mpit.DatatypeUint64, DatatypeBytes: 8,
		Description: "How many."}
	state := mpit.Variable{
		Name: "mood", Class: mpit.ClassState, Datatype: mpit.DatatypeInt, DatatypeBytes: 4,
		Enum: &mpit.Enum{ID: 1, Name: "moods", Items: []mpit.EnumItem{{Value: 0, Name: "good"},
			{Value: 1, Name: "bad"}}},
	}
	otherwise := func(v mpit.Variable, change func(*mpit.Variable)) mpit.Variable { change(&v); return v }
	for _, c := range []struct {
		name         string
		mine, theirs mpit.Variable
		shared       bool
	}{
		{"the same", calls, calls, true},
		{"described otherwise, which stands in the family's HELP alone", calls,
			otherwise(calls, func(v *mpit.Variable) { v.Description = "Lies." }), true},
		{"of another size", calls, otherwise(calls, func(v *mpit.Variable) { v.DatatypeBytes = 4 }), false},
		{"of another type", calls, otherwise(calls, func(v *mpit.Variable) { v.Datatype = mpit.DatatypeDouble }),
			false},
		{"bound", calls, otherwise(calls, func(v *mpit.Variable) { v.Bind = mpit.BindComm }), false},
		{"of another class", calls, otherwise(calls, func(v *mpit.Variable) { v.Class = mpit.ClassLevel }), false},
		{"another name", calls, otherwise(calls, func(v *mpit.Variable) { v.Name = "puts" }), false},
		{"other labels of one family", otherwise(calls, func(v *mpit.Variable) { v.Name = "x_a" }),
			otherwise(calls, func(v *mpit.Variable) { v.Name = "x_b" }), false},
		{"a state with the same enumeration", state, state, true},
		{"and with another one", state, otherwise(state, func(v *mpit.Variable) {
			v.Enum = &mpit.Enum{ID: 1, Name: "moods", Items: []mpit.EnumItem{{Value: 0, Name: "bad"}}}
		}), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := mapperOf(t, rules.Rule{Match: rules.Match{Regexp: "x_(?P<what>.*)"}, Name: "x"})
			mine, theirs := catalogueOf(m, c.mine), catalogueOf(m, c.theirs)
			assert.Equal(t, c.shared, mine.byID[0].Spec == theirs.byID[0].Spec)
			if c.mine.Enum != nil {
				assert.Equal(t, "good", mine.byID[0].Items[0].Name)
			}
		})
	}
}

// told is a snapshot of these variables, numbered in their order.
func told(vars ...mpit.Variable) *mpit.Variables {
	for i := range vars {
		vars[i].ID = uint32(i)
	}
	return &mpit.Variables{ByID: vars}
}

// catalogueOf is a process with these variables.
func catalogueOf(m *Mapper, vars ...mpit.Variable) *Catalogue {
	c := m.NewCatalogue(Process{})
	c.Update(told(vars...))
	return c
}

func mapperOf(t *testing.T, list ...rules.Rule) *Mapper {
	t.Helper()
	m, err := New(Config{Rules: append([]rules.Rule{}, list...)})
	require.NoError(t, err)
	return m
}

// A counter that isn't shown is merged as the first timer is whose companion it is. That is of this rank alone.
func TestCompanionFollowsInItsOwnRankAlone(t *testing.T) {
	counter := mpit.Variable{Name: "n", Class: mpit.ClassCounter, Datatype: mpit.DatatypeUint64, DatatypeBytes: 8,
		Bind: mpit.BindComm}
	timer := mpit.Variable{Name: "t", Class: mpit.ClassTimer, Datatype: mpit.DatatypeDouble, DatatypeBytes: 8,
		Bind: mpit.BindComm}
	yes := true
	m := mapperOf(t, rules.Rule{Match: rules.Match{Name: "n"}, Drop: &yes},
		rules.Rule{Match: rules.Match{Name: "t"}, Companion: "n", Object: new(bool)})
	alone, both := catalogueOf(m, counter), catalogueOf(m)
	both.Update(told(counter))
	assert.Same(t, alone.byID[0].Spec, both.byID[0].Spec)
	both.Update(told(counter, timer))
	assert.Equal(t, "comm", alone.byID[0].Label)
	assert.Empty(t, both.byID[0].Label)
	assert.Same(t, both.byID[0], both.byID[1].With)
	assert.Equal(t, "comm", catalogueOf(m, counter).byID[0].Label)
}

// What is shared is gone with the last rank that has it, whoever made it.
func TestSharedIsFreed(t *testing.T) {
	m := mapperOf(t)
	variable := func(name string) mpit.Variable {
		return mpit.Variable{Name: name, Class: mpit.ClassCounter, Datatype: mpit.DatatypeUint64, DatatypeBytes: 8}
	}
	stays := catalogueOf(m, variable("stays"), variable("both"))
	made := specCount(m)
	goes := catalogueOf(m, variable("both"), variable("goes"))
	assert.Equal(t, made+1, specCount(m))
	goes.Close()
	settles := func(n int) {
		t.Helper()
		assert.Eventually(t, func() bool { runtime.GC(); return specCount(m) == n }, 2*time.Minute, time.Millisecond)
	}
	settles(2) // and nothing of what variables were before it was known what they become
	assert.Same(t, stays.byID[1].Spec, catalogueOf(m, variable("both")).byID[0].Spec)
	stays.Close()
	runtime.KeepAlive(stays)
	stays = nil
	settles(0)
}
