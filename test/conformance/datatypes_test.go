package conformance

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/test/fixture"
)

// extremes are values that a wrong width or sign would spoil; a float64 holds them exactly.
var extremes = map[fixture.Type][]float64{
	fixture.Int:              {math.MinInt32, math.MaxInt32},
	fixture.Unsigned:         {0, math.MaxUint32},
	fixture.UnsignedLong:     {1 << 32, 1<<63 + 1<<62},
	fixture.UnsignedLongLong: {1 << 32, 1<<63 + 1<<62},
	fixture.Count:            {-1 << 33, 1 << 62},
	fixture.Double:           {-0.375, 1e300},
	fixture.Int32:            {math.MinInt32, math.MaxInt32},
	fixture.Int64:            {-1 << 62, 1 << 62},
	fixture.Uint32:           {0, math.MaxUint32},
	fixture.Uint64:           {1 << 32, 1<<63 + 1<<62},
	fixture.Long:             {-1 << 62, 1 << 62},
	fixture.LongLong:         {-1 << 62, 1 << 62},
	fixture.Float:            {-0.375, 1 << 100},
	fixture.Bool:             {1, 0},
}

// 15.3.5: each datatype that a variable may have, and those that libraries use against the standard.
func datatypes() section {
	standard := []fixture.Type{
		fixture.Int, fixture.Unsigned, fixture.UnsignedLong, fixture.UnsignedLongLong, fixture.Count, fixture.Char,
		fixture.Double,
		fixture.Int32, fixture.Int64, fixture.Uint32, fixture.Uint64,
	}
	others := []fixture.Type{fixture.Long, fixture.LongLong, fixture.Float, fixture.Bool}
	features := each(standard, func(d fixture.Type) string { return code(d.Datatype) }, datatype)
	features = append(features, each(others, func(d fixture.Type) string {
		return code(d.Datatype) +
			", which the standard doesn't list"
	}, datatype)...)
	features = append(features,
		feature{"`MPI_CHAR` as a performance variable", charVariables},
		feature{"any other datatype", otherDatatypes},
		feature{"enumerations, all items", enumerations},
		feature{"a state on `/metrics` by its item's name, others 0", stateItems},
		feature{"a state without an enumeration, or outside of it", statesOutside},
	)
	return section{"15.3.5 Datatypes and enumerations", features}
}

// trueValue is what the program itself reads of a control variable.
type trueValue struct {
	Values []json.Number
	Text   latin1
}

func (s *subject) trueValue(t *testing.T, index int) trueValue {
	t.Helper()
	var v trueValue
	require.NoError(t, json.Unmarshal([]byte(s.Do(t, "tool-cvar %d", index)), &v))
	return v
}

func datatype(d fixture.Type) check {
	return func(t *testing.T, s *subject) outcome {
		if found := listed(func(v trueVariable) bool { return v.Datatype == d.Datatype },
			func(p pair) bool { return p.agent.Datatype == d.Datatype })(t, s); found != works {
			return found
		}
		if s.fixture() {
			scriptedValues(t, s, d)
		}
		sameControls(t, s, d.Datatype)
		if !s.fixture() {
			if d == fixture.Char {
				return works
			}
			for _, v := range s.variables {
				if v.Datatype == d.Datatype && v.State == mpit.VariableOpen && v.Bind == mpit.BindNone {
					assert.Len(t, values(t, s.sample(t), v, 0), 1, v.Name)
				}
			}
		}
		return works
	}
}

// scriptedValues: the fixture's variables of the type show what they are set to.
func scriptedValues(t *testing.T, s *subject, d fixture.Type) {
	t.Helper()
	count := 0
	for _, v := range s.library.Variables {
		prefixed := strings.HasPrefix(v.Name, "type_") || strings.HasPrefix(v.Name, "other_") ||
			strings.HasPrefix(v.Name, "minus_")
		if !prefixed || v.Type != d || v.Enum != "" || !slicesContain(present, v.Class) {
			continue
		}
		agent := s.variable(t, v.Name, v.Class)
		assert.Equal(t, d.Bytes(), agent.DatatypeBytes)
		if d == fixture.Char {
			assert.Equal(t, mpit.VariableBadDatatype, agent.State, v.Name)
			continue
		}
		for _, value := range extremes[d] {
			s.Set(t, v, "-", value)
			assert.Equal(t, []float64{value}, values(t, s.sample(t), agent, 0), "%s set to %v", v.Name, value)
		}
		count++
	}
	assert.True(t, count > 0 || d == fixture.Char, "no variable of %v was set", d)
	for _, c := range s.library.ControlVariables {
		if c.Type != d || d == fixture.Char || !strings.HasPrefix(c.Name, "cvar_"+d.String()) {
			continue
		}
		for _, value := range extremes[d] {
			s.Do(t, "set cvar %s - %s", c.Name, literal(d, value))
			assert.Equal(t, []float64{value}, floats(d.Datatype, s.control(t, c.Name).Values), "%s set to %v",
				c.Name, value)
		}
	}
}

// present are the classes that show what is there now, whatever was there before.
var present = []mpit.Class{mpit.ClassLevel, mpit.ClassSize, mpit.ClassGeneric}

func slicesContain(list []mpit.Class, c mpit.Class) bool {
	for _, x := range list {
		if x == c {
			return true
		}
	}
	return false
}

// literal writes a value as the script reads it.
func literal(d fixture.Type, value float64) string {
	switch {
	case d.Floating():
		return fmt.Sprintf("%g", value)
	case value < 0:
		return fmt.Sprintf("%d", int64(value))
	default:
		return fmt.Sprintf("%d", uint64(value))
	}
}

// sameControls compares control variables of a type, not more than some, with what the program reads.
func sameControls(t *testing.T, s *subject, d mpit.Datatype) {
	t.Helper()
	compared := 0
	for _, c := range s.cvars(t) {
		if c.Datatype != d || c.Bind != mpit.BindNone || c.Code != mpit.Success || compared == 40 {
			continue
		}
		compared++
		sameValue(t, s, c)
	}
}

func sameValue(t *testing.T, s *subject, c mpit.ControlVariable) {
	t.Helper()
	want := s.trueValue(t, c.Index)
	if c.Datatype == mpit.DatatypeChar {
		assert.True(t, string(want.Text) == c.Text, "%s is %.100q, the agent says %.100q", c.Name, want.Text, c.Text)
		return
	}
	var numbers []float64
	for _, n := range want.Values {
		f, err := n.Float64()
		require.NoError(t, err)
		if c.Datatype.Signed() && f >= 1<<63 {
			f -= 1 << 64
		}
		numbers = append(numbers, f)
	}
	if c.Datatype == mpit.DatatypeFloat || (c.Datatype == mpit.DatatypeInt32) {
		return // the program doesn't tell these apart from unsigned numbers; scriptedValues has compared them
	}
	assert.Equal(t, numbers, floats(c.Datatype, c.Values), c.Name)
}

// otherDatatypes are listed with their state, and not read.
func otherDatatypes(t *testing.T, s *subject) outcome {
	is := func(d mpit.Datatype) bool { return d == mpit.DatatypeOther }
	found := listed(func(v trueVariable) bool { return is(v.Datatype) },
		func(p pair) bool { return is(p.agent.Datatype) })(t, s)
	if found != works {
		return found
	}
	for _, v := range s.variables {
		if is(v.Datatype) {
			assert.Equal(t, mpit.VariableBadDatatype, v.State, v.Name)
		}
	}
	for _, c := range s.controls {
		if is(c.Datatype) {
			assert.False(t, c.HasValue, c.Name)
			assert.NotEqual(t, mpit.Success, c.Code, c.Name)
		}
	}
	return notSupported("The standard gives no variable another datatype. Such a variable is listed and counted, " +
		"but not read.")
}

// charVariables are listed with their state, and not read.
func charVariables(t *testing.T, s *subject) outcome {
	found := notOffered
	for _, v := range s.variables {
		if v.Datatype == mpit.DatatypeChar {
			// Open MPI's only one is denied before anybody looks at what it is of; since 5.0 that it has a count.
			if v.State != mpit.VariableDenied {
				assert.Equal(t, mpit.VariableBadDatatype, v.State, v.Name)
			}
			found = notSupported("A text is not a number. The variable is listed and counted, but not read.")
		}
	}
	assert.Equal(t, found == notOffered, !s.offers(func(v trueVariable) bool { return v.Datatype == mpit.DatatypeChar }))
	return found
}

func enumerations(t *testing.T, s *subject) outcome {
	found := notOffered
	unread := 0
	for _, p := range s.pairs(t) {
		if p.truth.Enum != nil && p.agent.Enum == nil && p.code != mpit.Success && !s.fixture() {
			unread++ // its component is unloaded: neither its value nor its enumeration lies in memory any more
			continue
		}
		if p.truth.Enum == nil {
			assert.Nil(t, p.agent.Enum, p.agent.Name)
			continue
		}
		found = works
		if !assert.NotNil(t, p.agent.Enum, p.agent.Name) {
			continue
		}
		assert.Equal(t, string(p.truth.Enum.Name), p.agent.Enum.Name)
		var want, have []string
		for _, item := range p.truth.Enum.Items {
			want = append(want, fmt.Sprintf("%d %q", item.Value, item.Name))
		}
		for _, item := range p.agent.Enum.Items {
			have = append(have, fmt.Sprintf("%d %q", item.Value, item.Name))
		}
		assert.Equal(t, want, have, p.agent.Name)
	}
	if unread > 0 && found == works {
		assert.LessOrEqual(t, unread, 9, "as many as can't be read")
		return outcome{works.word, "Except a few control variables whose component is unloaded: reading them would " +
			"crash."}
	}
	return found
}

func isState(v trueVariable) bool { return v.Class == mpit.ClassState }

func stateItems(t *testing.T, s *subject) outcome {
	if !s.offers(isState) {
		return notOffered
	}
	v := s.library.Variable("state_thousands", mpit.ClassState)
	for _, value := range []float64{0, 3 * 17, 3 * 3999} {
		s.page.Set(t, v, "-", value)
		s.page.exporter.Await(t, "the item", s.page.Shows(v, "-"))
	}
	return works
}

func statesOutside(t *testing.T, s *subject) outcome {
	if !s.offers(isState) {
		return notOffered
	}
	for _, name := range []string{"state_without_enum", "state_outside"} {
		v := s.library.Variable(name, mpit.ClassState)
		s.page.exporter.Await(t, "the number", s.page.Shows(v, "-"))
	}
	return works
}
