package mpit_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

func TestNames(t *testing.T) {
	for _, c := range []struct {
		value fmt.Stringer
		name  string
	}{
		{mpit.ClassState, "STATE"},
		{mpit.ClassHighWatermark, "HIGHWATERMARK"},
		{mpit.ClassLowWatermark, "LOWWATERMARK"},
		{mpit.ClassGeneric, "GENERIC"},
		{mpit.ClassUnknown, "UNKNOWN"},
		{mpit.Class(17), "class(17)"},
		{mpit.VerbosityUnknown, "UNKNOWN"},
		{mpit.VerbosityUserBasic, "USER_BASIC"},
		{mpit.VerbosityMPIDevAll, "MPIDEV_ALL"},
		{mpit.BindNone, "NO_OBJECT"},
		{mpit.BindComm, "MPI_COMM"},
		{mpit.BindSession, "MPI_SESSION"},
		{mpit.BindUnknown, "UNKNOWN"},
		{mpit.DatatypeOther, "OTHER"},
		{mpit.DatatypeUnsignedLongLong, "MPI_UNSIGNED_LONG_LONG"},
		{mpit.DatatypeBool, "MPI_C_BOOL"},
		{mpit.ScopeConstant, "CONSTANT"},
		{mpit.ScopeAllEq, "ALL_EQ"},
		{mpit.ScopeUnknown, "UNKNOWN"},
		{mpit.Success, "MPI_SUCCESS"},
		{mpit.ErrInvalidHandle, "MPI_T_ERR_INVALID_HANDLE"},
		{mpit.ErrNotAccessible, "MPI_T_ERR_NOT_ACCESSIBLE"},
		{mpit.ErrOther, "MPI_ERR_OTHER"},
		{mpit.EndNone, "none"},
		{mpit.EndLost, "lost"},
		{mpit.VariableOpen, "open"},
		{mpit.VariableExhausted, "exhausted"},
		{mpit.SampleFinal, "final"},
		{mpit.ABIOpenMPI, "Open MPI"},
		{mpit.ABIMPICH, "MPICH"},
		{mpit.ABIStandard, "MPI standard"},
		{mpit.ABIUnknown, "unknown"},
		{mpit.RankID{0xab, 1}, "ab010000000000000000000000000000"},
	} {
		assert.Equal(t, c.name, c.value.String())
	}
}

func TestBindLabels(t *testing.T) {
	var labels []string
	for b := mpit.BindNone; b <= mpit.BindLast; b++ {
		labels = append(labels, b.Label())
	}
	assert.Equal(t, []string{
		"", "comm", "datatype", "errhandler", "file", "group", "op", "request", "win", "message", "info", "session",
	}, labels)
	assert.Empty(t, mpit.BindUnknown.Label())
	assert.NotContains(t, (mpit.BindLast + 1).String(), "MPI_", "BindLast is not the last")
	for b := mpit.BindComm; b <= mpit.BindLast; b++ {
		got, ok := mpit.BindOfLabel(b.Label())
		assert.True(t, ok)
		assert.Equal(t, b, got)
	}
	for _, none := range []string{"", "none", "MPI_COMM", "bound"} {
		_, ok := mpit.BindOfLabel(none)
		assert.False(t, ok, none)
	}
}

// Every number of every vocabulary survives JSON, also those that have no name.
func TestJSONRoundTrip(t *testing.T) {
	type all struct {
		Class     mpit.Class
		Verbosity mpit.Verbosity
		Bind      mpit.Bind
		Datatype  mpit.Datatype
		Scope     mpit.Scope
		State     mpit.VariableState
	}
	for i := range 256 {
		n := uint8(i)
		in := all{
			mpit.Class(n), mpit.Verbosity(n), mpit.Bind(n), mpit.Datatype(n), mpit.Scope(n),
			mpit.VariableState(n),
		}
		text, err := json.Marshal(in)
		require.NoError(t, err)
		var out all
		require.NoError(t, json.Unmarshal(text, &out), string(text))
		require.Equal(t, in, out, string(text))
	}
}

func TestUnmarshalText(t *testing.T) {
	var class mpit.Class
	for _, s := range []string{"COUNTER", "counter", "MPI_T_PVAR_CLASS_COUNTER", "mpi_t_pvar_class_counter"} {
		class = mpit.ClassUnknown
		require.NoError(t, class.UnmarshalText([]byte(s)), s)
		assert.Equal(t, mpit.ClassCounter, class, s)
	}
	var bind mpit.Bind
	for _, s := range []string{"MPI_WIN", "MPI_T_BIND_MPI_WIN"} {
		require.NoError(t, bind.UnmarshalText([]byte(s)), s)
		assert.Equal(t, mpit.BindWin, bind, s)
	}
	class = mpit.ClassTimer
	for _, s := range []string{"", "COUNT", "class(6)", "class(300)", "class(", "class(17"} {
		assert.Error(t, class.UnmarshalText([]byte(s)), s)
	}
	assert.Equal(t, mpit.ClassTimer, class, "an error changes nothing")
}

func TestReturnCodeIsAnError(t *testing.T) {
	err := fmt.Errorf("allocating: %w", mpit.ErrInvalidHandle)
	assert.ErrorIs(t, err, mpit.ErrInvalidHandle)
	assert.NotErrorIs(t, err, mpit.ErrInvalid)
	assert.EqualError(t, err, "allocating: MPI_T_ERR_INVALID_HANDLE")
	var code mpit.ReturnCode
	require.True(t, errors.As(fmt.Errorf("allocating: %w", mpit.ErrMemory), &code))
	assert.Equal(t, mpit.ErrMemory, code)
}

func TestFloat64(t *testing.T) {
	minus := uint64(math.MaxUint64)
	assert.Equal(t, -1.0, mpit.DatatypeInt.Float64(minus))
	assert.Equal(t, -1.0, mpit.DatatypeCount.Float64(minus))
	assert.Equal(t, math.Ldexp(1, 64), mpit.DatatypeUnsignedLong.Float64(minus))
	assert.Equal(t, 1.0, mpit.DatatypeBool.Float64(1))
	assert.Equal(t, 2.5, mpit.DatatypeDouble.Float64(math.Float64bits(2.5)))
	assert.Equal(t, 2.5, mpit.DatatypeFloat.Float64(math.Float64bits(2.5)))
}

// FuzzUnmarshalText reads a name as each vocabulary: what is accepted has the same value when it is written and read
// again.
func FuzzUnmarshalText(f *testing.F) {
	for _, s := range []string{"COUNTER", "class(17)", "MPI_T_SCOPE_ALL", "comm"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		again(t, text, new(mpit.Class), new(mpit.Class))
		again(t, text, new(mpit.Verbosity), new(mpit.Verbosity))
		again(t, text, new(mpit.Bind), new(mpit.Bind))
		again(t, text, new(mpit.Datatype), new(mpit.Datatype))
		again(t, text, new(mpit.Scope), new(mpit.Scope))
		again(t, text, new(mpit.VariableState), new(mpit.VariableState))
	})
}

type textValue interface {
	MarshalText() ([]byte, error)
	UnmarshalText([]byte) error
}

func again(t *testing.T, text []byte, first, second textValue) {
	t.Helper()
	if first.UnmarshalText(text) != nil {
		return
	}
	written, err := first.MarshalText()
	require.NoError(t, err)
	require.NoError(t, second.UnmarshalText(written))
	require.Equal(t, first, second)
}
