package conformance

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/test/fixture"
)

const (
	neverLater  = "The library has no variable that it can be made to show later."
	neverNotNow = "The library has no variable that it can be made to refuse for the moment."
)

// 15.3.6: control variables are listed, read and written.
func controlVariables() section {
	var scopes []mpit.Scope
	for s := mpit.ScopeConstant; s <= mpit.ScopeAllEq; s++ {
		scopes = append(scopes, s)
	}
	features := each(scopes, func(s mpit.Scope) string { return "scope " + code(s) }, func(scope mpit.Scope) check {
		return listed(func(v trueVariable) bool { return v.control && v.Scope == scope },
			func(p pair) bool { return p.control && p.scope == scope })
	})
	return section{"15.3.6 Control variables", append(append([]feature{{"listed, with all properties",
		controlsListed}}, features...),
		feature{"appear later", laterControl},
		feature{"index of a name", controlIndex},
		feature{"read: a number", readControl(mpit.DatatypeInt, one)},
		feature{"read: an array", readControl(mpit.DatatypeInt, many)},
		feature{"read: a string", readControl(mpit.DatatypeChar, anyCount)},
		feature{"read: a boolean", readControl(mpit.DatatypeBool, one)},
		feature{"read: an item of an enumeration", readEnum},
		feature{"read: fails", readFails},
		feature{"read, bound to an object of each kind", boundControls},
		feature{"write and read back: a number", writeControl(mpit.DatatypeInt, one)},
		feature{"write and read back: an array", writeControl(mpit.DatatypeInt, many)},
		feature{"write and read back: a string", writeControl(mpit.DatatypeChar, anyCount)},
		feature{"write and read back: a boolean", writeControl(mpit.DatatypeBool, one)},
		feature{"write and read back: an item of an enumeration", writeEnum},
		feature{"write and read back, bound to an object", writeBound},
		feature{"write: refused for scope `CONSTANT`", refusedScope(mpit.ScopeConstant)},
		feature{"write: refused for scope `READONLY`", refusedScope(mpit.ScopeReadOnly)},
		feature{"write: the library says MPI_T_ERR_CVAR_SET_NOT_NOW", notNow},
		feature{"write: refused where the job doesn't allow it", refusedWithoutLeave},
	)}
}

func controlsListed(t *testing.T, s *subject) outcome {
	found := notOffered
	for _, p := range s.pairs(t) {
		if !p.control {
			continue
		}
		found = works
		assert.True(t, string(p.truth.Name) == p.agent.Name, "%.100q %.100q", p.truth.Name, p.agent.Name)
		assert.True(t, string(p.truth.Description) == p.agent.Description, "%.100q", p.agent.Name)
		assert.Equal(t, p.truth.Scope, p.scope, "%.100q", p.agent.Name)
		assert.Equal(t, p.truth.Verbosity, p.agent.Verbosity, "%.100q", p.agent.Name)
		assert.Equal(t, p.truth.Datatype, p.agent.Datatype, "%.100q", p.agent.Name)
		assert.Equal(t, p.truth.Bind, p.agent.Bind, "%.100q", p.agent.Name)
	}
	return found
}

func laterControl(t *testing.T, s *subject) outcome {
	if !s.fixture() {
		return cannotTest(neverLater)
	}
	r := s.start(t, s.library, fixture.Options{})
	_, err := r.session.CvarIndex(within(t), "cvar_later")
	require.ErrorIs(t, err, mpit.ErrInvalidName)
	before := len(r.cvars(t))
	r.Do(t, "appear cvar cvar_later")
	assert.Len(t, r.cvars(t), before+1)
	assert.Equal(t, []uint64{12}, r.control(t, "cvar_later").Values)
	s.end(t, r.Program)
	return works
}

func controlIndex(t *testing.T, s *subject) outcome {
	asked := 0
	for _, c := range s.truth.Cvars {
		if !asciiOnly(string(c.Name)) || asked == 200 {
			continue // a name that has been read as Latin-1 is no longer the library's
		}
		asked++
		index, err := s.session.CvarIndex(within(t), string(c.Name))
		require.NoError(t, err, "%.100q", c.Name)
		assert.Equal(t, c.Name, nameOf(s.truth.Cvars, index), "index %d", index)
	}
	_, err := s.session.CvarIndex(within(t), "no such variable")
	require.ErrorIs(t, err, mpit.ErrInvalidName)
	return works
}

func asciiOnly(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r > '~' })
}

func nameOf(list []trueVariable, index int) latin1 {
	for _, v := range list {
		if v.Index == index {
			return v.Name
		}
	}
	return ""
}

// How many elements a check wants.
func one(n int) bool      { return n == 1 }
func many(n int) bool     { return n > 1 }
func anyCount(n int) bool { return true }

// fitting are the unbound control variables of a datatype, without an enumeration, that could be read.
func (s *subject) fitting(t *testing.T, d mpit.Datatype, count func(int) bool) []mpit.ControlVariable {
	t.Helper()
	var list []mpit.ControlVariable
	for _, c := range s.cvars(t) {
		if c.Datatype == d && c.Bind == mpit.BindNone && c.Code == mpit.Success && count(len(c.Values)) {
			list = append(list, c)
		}
	}
	return list
}

func readControl(d mpit.Datatype, count func(int) bool) check {
	return func(t *testing.T, s *subject) outcome {
		list := s.fitting(t, d, count)
		if len(list) == 0 {
			return notOffered
		}
		for _, c := range list[:min(len(list), 60)] {
			sameValue(t, s, c)
			v, err := s.session.ReadCvar(within(t), c.Index, 0)
			require.NoError(t, err, c.Name)
			assert.Equal(t, c.Values, v.Values, c.Name)
			assert.True(t, c.Text == v.Text, c.Name)
			assert.Equal(t, d == mpit.DatatypeChar, v.IsText, c.Name)
		}
		return works
	}
}

func readEnum(t *testing.T, s *subject) outcome {
	found := notOffered
	for _, c := range s.cvars(t) {
		if c.Enum != nil && c.Code == mpit.Success {
			sameValue(t, s, c)
			found = works
		}
	}
	return found
}

func readFails(t *testing.T, s *subject) outcome {
	if s.fixture() {
		c := s.control(t, "cvar_unreadable")
		assert.Equal(t, mpit.ErrInvalidHandle, c.Code)
		assert.False(t, c.HasValue)
		_, err := s.session.ReadCvar(within(t), c.Index, 0)
		require.ErrorIs(t, err, mpit.ErrInvalidHandle)
		return works
	}
	found := notOffered
	for _, c := range s.controls {
		if c.Code != mpit.Success {
			_, err := s.session.ReadCvar(within(t), c.Index, 0)
			require.ErrorIs(t, err, c.Code, c.Name)
			found = works
		}
	}
	return found
}

func boundControls(t *testing.T, s *subject) outcome {
	if !slices.ContainsFunc(s.truth.Cvars, func(v trueVariable) bool { return v.Bind != mpit.BindNone }) {
		return notOffered
	}
	for _, bind := range fixture.Binds[1:] {
		if bind == mpit.BindMessage {
			continue
		}
		name, o, free := s.made(t, bind)
		cvar := "cvar_on_" + bindWord(bind)
		s.Do(t, "set cvar %s %s 99", cvar, name)
		c := s.control(t, cvar)
		v, err := s.session.ReadCvar(within(t), c.Index, o.ID)
		require.NoError(t, err, cvar)
		assert.Equal(t, []uint64{99}, v.Values, cvar)
		at := slices.IndexFunc(c.Objects, func(v mpit.ObjectValue) bool { return v.Object == o.ID })
		if assert.GreaterOrEqual(t, at, 0, "%s lists %+v, not object %d", cvar, c.Objects, o.ID) {
			assert.Equal(t, []uint64{99}, c.Objects[at].Values, cvar)
		}
		free()
	}
	return works
}

// bindWord is a kind's word in the fixture's scripts.
func bindWord(b mpit.Bind) string {
	v := fixture.Bound(mpit.ClassLevel, b)
	return strings.Split(v.Name, "_")[1]
}

// harmless are control variables of the real libraries that may be set at any time: nothing reads them any more.
var harmless = map[string][]string{
	"openmpi": {"coll_tuned_bcast_algorithm_chain_fanout", "dl_dlopen_filename_suffixes", "crs_none_select_warning",
		"coll_tuned_barrier_algorithm"},
	"mpich": {"MPIR_CVAR_DIMS_VERBOSE", "MPIR_CVAR_MEMDUMP", "MPIR_CVAR_NETLOC_NODE_FILE",
		"MPIR_CVAR_CH3_PORT_RANGE"},
}

// writable are those of a list that a check may write.
func (s *subject) writable(list []mpit.ControlVariable) []mpit.ControlVariable {
	var out []mpit.ControlVariable
	for _, c := range list {
		fine := s.fixture() && strings.HasPrefix(c.Name, "cvar_") && c.Name != "cvar_not_now" &&
			c.Scope >= mpit.ScopeLocal
		if !s.fixture() {
			fine = slices.Contains(harmless[s.mpi.Name], c.Name)
		}
		if fine {
			out = append(out, c)
		}
	}
	return out
}

func writeControl(d mpit.Datatype, count func(int) bool) check {
	return func(t *testing.T, s *subject) outcome {
		all := s.fitting(t, d, count)
		if len(all) == 0 {
			return notOffered
		}
		list := slices.DeleteFunc(s.writable(all), func(c mpit.ControlVariable) bool {
			return c.Enum != nil &&
				d != mpit.DatatypeBool
		})
		if len(list) == 0 && !s.fixture() {
			return cannotTest("None of its control variables of this type may be set at any time without doing " +
				"something.")
		}
		require.NotEmpty(t, list, "none that can be written")
		for _, c := range list {
			v := mpit.CvarValue{IsText: d == mpit.DatatypeChar, Text: c.Text}
			if v.IsText {
				v.Text = "set"
			}
			for _, word := range c.Values {
				if d == mpit.DatatypeBool {
					v.Values = append(v.Values, 1-word)
				} else {
					v.Values = append(v.Values, word^1) // in range, whatever it is
				}
			}
			s.write(t, c, 0, v)
			s.write(t, c, 0, mpit.CvarValue{IsText: v.IsText, Text: c.Text, Values: c.Values}) // as it was
		}
		return works
	}
}

// write sets a control variable; the agent and the program itself read what was written.
func (s *subject) write(t *testing.T, c mpit.ControlVariable, object uint32, v mpit.CvarValue) {
	t.Helper()
	require.NoError(t, s.session.WriteCvar(within(t), c.Index, object, v), c.Name)
	now, err := s.session.ReadCvar(within(t), c.Index, object)
	require.NoError(t, err, c.Name)
	assert.Equal(t, v.Values, now.Values, c.Name)
	assert.Equal(t, v.Text, now.Text, c.Name)
	if object == 0 {
		c.Values, c.Text = v.Values, v.Text
		sameValue(t, s, c)
	}
}

func writeEnum(t *testing.T, s *subject) outcome {
	var all []mpit.ControlVariable
	for _, c := range s.cvars(t) {
		if c.Enum != nil && c.Code == mpit.Success && c.Scope >= mpit.ScopeLocal {
			all = append(all, c)
		}
	}
	if len(all) == 0 {
		return notOffered
	}
	list := s.writable(all)
	require.NotEmpty(t, list, "of %d", len(all))
	for _, c := range list {
		for _, item := range c.Enum.Items {
			s.write(t, c, 0, mpit.CvarValue{Values: []uint64{uint64(item.Value)}})
		}
		s.write(t, c, 0, mpit.CvarValue{Values: c.Values})
	}
	return works
}

func writeBound(t *testing.T, s *subject) outcome {
	if !slices.ContainsFunc(s.truth.Cvars, func(v trueVariable) bool { return v.Bind != mpit.BindNone }) {
		return notOffered
	}
	name, o, free := s.made(t, mpit.BindComm)
	other := s.object(t, mpit.BindComm, "MPI_COMM_WORLD")
	c := s.control(t, "cvar_on_comm")
	before, err := s.session.ReadCvar(within(t), c.Index, other.ID)
	require.NoError(t, err)
	s.write(t, c, o.ID, mpit.CvarValue{Values: []uint64{123}})
	assert.Equal(t, "123", s.Do(t, "get cvar cvar_on_comm %s", name))
	after, err := s.session.ReadCvar(within(t), c.Index, other.ID)
	require.NoError(t, err)
	assert.Equal(t, before, after, "the value on another object")
	array := s.control(t, "cvar_array_on_comm")
	s.write(t, array, o.ID, mpit.CvarValue{Values: []uint64{1, 2, 3, 4}})
	free()
	return works
}

func refusedScope(scope mpit.Scope) check {
	return func(t *testing.T, s *subject) outcome {
		found := notOffered
		for _, c := range s.cvars(t) {
			if c.Scope != scope || c.Bind != mpit.BindNone {
				continue
			}
			found = works
			err := s.session.WriteCvar(within(t), c.Index, 0,
				mpit.CvarValue{Values: c.Values, Text: c.Text, IsText: c.Datatype == mpit.DatatypeChar})
			if c.Code != mpit.Success || c.Name == "cvar_text_long" {
				require.Error(t, err, c.Name)
				continue
			}
			require.ErrorIs(t, err, mpit.ErrCvarSetNever, c.Name)
			var refused *mpit.RefusedError
			require.ErrorAs(t, err, &refused, c.Name)
			assert.Contains(t, refused.Why, scope.String(), "the agent doesn't even ask the library")
		}
		return found
	}
}

func notNow(t *testing.T, s *subject) outcome {
	name := "cvar_not_now"
	if !s.fixture() {
		if s.mpi.Name != "openmpi" {
			return cannotTest(neverNotNow)
		}
		name = "mpool_base_default_priority" // since MPI_Init it is too late
	}
	c := s.control(t, name)
	err := s.session.WriteCvar(within(t), c.Index, 0, mpit.CvarValue{Values: []uint64{c.Values[0] + 1}})
	require.ErrorIs(t, err, mpit.ErrCvarSetNotNow)
	var refused *mpit.RefusedError
	require.ErrorAs(t, err, &refused)
	assert.Empty(t, refused.Why, "it was the library")
	assert.Equal(t, c.Values, s.control(t, name).Values)
	return works
}

func refusedWithoutLeave(t *testing.T, s *subject) outcome {
	r := s.start(t, s.library, fixture.Options{})
	assert.False(t, r.session.Hello().WriteAllowed)
	assert.True(t, s.session.Hello().WriteAllowed)
	tried := 0
	for _, c := range r.cvars(t) {
		if c.Datatype != mpit.DatatypeInt || c.Bind != mpit.BindNone || c.Scope < mpit.ScopeLocal ||
			c.Code != mpit.Success || tried == 20 {
			continue
		}
		tried++
		err := r.session.WriteCvar(within(t), c.Index, 0, mpit.CvarValue{Values: c.Values})
		require.ErrorIs(t, err, mpit.ErrNotAccessible, c.Name)
	}
	require.NotZero(t, tried)
	if s.fixture() {
		assert.Zero(t, r.Stats(t).Calls["MPI_T_cvar_write"])
	}
	s.end(t, r.Program)
	return works
}
