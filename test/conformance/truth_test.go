package conformance

import (
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// truth is what the library says to the program itself, which has asked MPI_T by the standard alone
// (programs/driver_tool.c).
type truth struct {
	Pvars, Cvars []trueVariable
	Categories   []trueCategory
}

type trueVariable struct {
	control     bool
	Index       int
	Name        latin1
	Description latin1
	Class       mpit.Class
	Scope       mpit.Scope
	Verbosity   mpit.Verbosity
	Datatype    mpit.Datatype
	Bind        mpit.Bind
	ReadOnly    bool
	Continuous  bool
	Atomic      bool
	Enum        *struct {
		Name  latin1
		Items []struct {
			Value int64
			Name  latin1
		}
	}
}

type trueCategory struct {
	Index                    int
	Name, Description        latin1
	Pvars, Cvars, Categories []int
}

// latin1 is a library's string as it should be read: as UTF-8 if it is that, else as Latin-1.
type latin1 string

// UnmarshalText reads a string whose bytes have come each as the character of its number.
func (l *latin1) UnmarshalText(text []byte) error {
	var b []byte
	for _, r := range string(text) {
		b = append(b, byte(r))
	}
	*l = latin1(text)
	if utf8.Valid(b) {
		*l = latin1(b)
	}
	return nil
}

// pair is a variable of either sort as the library and as the agent describe it.
type pair struct {
	truth   trueVariable
	agent   mpit.Variable // of a control variable only the fields that both sorts have
	control bool
	scope   mpit.Scope
	code    mpit.ReturnCode // of reading a control variable
}

// pairs matches what the agent lists with what the library has, by index: nothing more, nothing less.
func (s *subject) pairs(t *testing.T) []pair {
	t.Helper()
	var list []pair
	agent := map[int]mpit.Variable{}
	for _, v := range s.variables {
		if !countsEvents(&v) {
			agent[v.Index] = v
		}
	}
	require.Len(t, agent, len(s.truth.Pvars), "performance variables that the agent lists")
	for _, v := range s.truth.Pvars {
		require.Contains(t, agent, v.Index, "index of %q", v.Name)
		list = append(list, pair{truth: v, agent: agent[v.Index]})
	}
	controls := map[int]mpit.ControlVariable{}
	for _, c := range s.controls {
		controls[c.Index] = c
	}
	require.Len(t, controls, len(s.truth.Cvars), "control variables that the agent lists")
	for _, v := range s.truth.Cvars {
		require.Contains(t, controls, v.Index, "index of %q", v.Name)
		c := controls[v.Index]
		list = append(list, pair{truth: v, control: true, scope: c.Scope, code: c.Code, agent: mpit.Variable{
			Index: c.Index, Name: c.Name, Description: c.Description, Verbosity: c.Verbosity, Datatype: c.Datatype,
			Bind: c.Bind, Enum: c.Enum,
		}})
	}
	return list
}

// listed checks one property that variables may have: the agent says it of those that have it, and of no others.
// Where the library has no variable with it, it is not offered.
func listed(has func(trueVariable) bool, says func(pair) bool) check {
	return func(t *testing.T, s *subject) outcome {
		count := 0
		for _, p := range s.pairs(t) {
			if has(p.truth) {
				count++
			}
			assert.Equal(t, has(p.truth), says(p), "%s (a control variable: %v): the library says %+v, the agent %+v",
				p.truth.Name, p.control, p.truth, p.agent)
		}
		if count == 0 {
			return notOffered
		}
		return works
	}
}

// offers says whether the library has a performance variable of some kind.
func (s *subject) offers(is func(trueVariable) bool) bool {
	for _, v := range s.truth.Pvars {
		if is(v) {
			return true
		}
	}
	return false
}
