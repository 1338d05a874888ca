package cvar

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

var colours = &mpit.Enum{Name: "colour", Items: []mpit.EnumItem{{Value: -1, Name: "none"}, {Value: 2, Name: "red"},
	{Value: 3, Name: "red,green"}, {Value: 7, Name: "2"}}}

func TestParse(t *testing.T) {
	one, three := make([]uint64, 1), make([]uint64, 3)
	of := func(d mpit.Datatype) mpit.ControlVariable { return mpit.ControlVariable{Datatype: d} }
	enum := mpit.ControlVariable{Datatype: mpit.DatatypeInt, Enum: colours}
	minus := func(n int64) uint64 { return uint64(-n) }
	for _, test := range []struct {
		name     string
		variable mpit.ControlVariable
		present  []uint64
		text     string
		want     []uint64
		err      string
	}{
		{"a number", of(mpit.DatatypeInt), one, "42", []uint64{42}, ""},
		{"blanks around it", of(mpit.DatatypeInt), one, " 42\t", []uint64{42}, ""},
		{"below zero", of(mpit.DatatypeInt), one, "-1", []uint64{minus(1)}, ""},
		{"hexadecimal", of(mpit.DatatypeUnsigned), one, "0xff", nil, `"0xff" is not a number`},
		{"a leading zero is no octal number", of(mpit.DatatypeInt), one, "010", []uint64{10}, ""},
		{"the least int", of(mpit.DatatypeInt), one, "-2147483648", []uint64{minus(1 << 31)}, ""},
		{"an int too large", of(mpit.DatatypeInt), one, "2147483648", nil,
			`"2147483648" is not a number of datatype MPI_INT: value out of range`},
		{"an int32 too small", of(mpit.DatatypeInt32), one, "-2147483649", nil,
			`"-2147483649" is not a number of datatype MPI_INT32_T: value out of range`},
		{"the least long", of(mpit.DatatypeLong), one, "-9223372036854775808", []uint64{1 << 63}, ""},
		{"a count too large", of(mpit.DatatypeCount), one, "9223372036854775808", nil,
			"is not a number of datatype MPI_COUNT: value out of range"},
		{"the largest unsigned", of(mpit.DatatypeUnsigned), one, "4294967295", []uint64{math.MaxUint32}, ""},
		{"an unsigned too large", of(mpit.DatatypeUint32), one, "4294967296", nil,
			`"4294967296" is not a number of datatype MPI_UINT32_T: value out of range`},
		{"an unsigned below zero", of(mpit.DatatypeUnsigned), one, "-1", nil,
			`"-1" is not a number of datatype MPI_UNSIGNED`},
		{"the largest of all", of(mpit.DatatypeUnsignedLongLong), one, "18446744073709551615",
			[]uint64{math.MaxUint64}, ""},
		{"one more", of(mpit.DatatypeUint64), one, "18446744073709551616", nil,
			"is not a number of datatype MPI_UINT64_T: value out of range"},
		{"no number", of(mpit.DatatypeInt), one, "many", nil, `"many" is not a number of datatype MPI_INT`},
		{"half a number", of(mpit.DatatypeInt), one, "1.5", nil, `"1.5" is not a number of datatype MPI_INT`},
		{"two signs", of(mpit.DatatypeInt), one, "--1", nil, `"--1" is not a number`},
		{"nothing", of(mpit.DatatypeInt), one, "", nil, `"" is not a number of datatype MPI_INT`},
		{"a double", of(mpit.DatatypeDouble), one, "-2.5e3", []uint64{math.Float64bits(-2500)}, ""},
		{"a float is rounded as the variable will be", of(mpit.DatatypeFloat), one, "0.1",
			[]uint64{math.Float64bits(float64(float32(0.1)))}, ""},
		{"a float too large", of(mpit.DatatypeFloat), one, "1e39", nil,
			`"1e39" is not a number of datatype MPI_FLOAT: value out of range`},
		{"no finite number", of(mpit.DatatypeDouble), one, "inf", nil, `"inf" is not a finite number`},
		{"not a number at all", of(mpit.DatatypeDouble), one, "NaN", nil, `"NaN" is not a finite number`},
		{"true", of(mpit.DatatypeBool), one, "True", []uint64{1}, ""},
		{"false", of(mpit.DatatypeBool), one, "0", []uint64{0}, ""},
		{"neither", of(mpit.DatatypeBool), one, "2", nil, `"2" is neither true nor false (nor 1 nor 0)`},
		{"an item", enum, one, "red", []uint64{2}, ""},
		{"an item by its number", enum, one, "-1", []uint64{minus(1)}, ""},
		{"an item whose name is a number", enum, one, "2", []uint64{7}, ""},
		{"an item with a comma", enum, one, "red,green", []uint64{3}, ""},
		{"no item", enum, one, "blue", nil,
			`"blue" is no item of the enumeration "colour", which has none (-1), red (2), red,green (3), 2 (7)`},
		{"no item's number", enum, one, "5", nil, `"5" is no item`},
		{"a list", of(mpit.DatatypeInt), three, "1, 2,-3", []uint64{1, 2, minus(3)}, ""},
		{"a list of items", enum, three, "red,none,-1", []uint64{2, minus(1), minus(1)}, ""},
		{"a list too short", of(mpit.DatatypeInt), three, "1,2", nil, "2 values where the variable has 3 elements"},
		{"a list too long", of(mpit.DatatypeInt), three, "1,2,3,4", nil, "4 values where the variable has 3 elements"},
		{"a list for one", of(mpit.DatatypeInt), one, "1,2", nil, `"1,2" is not a number`},
		{"an empty array", of(mpit.DatatypeInt), []uint64{}, "", []uint64{}, ""},
		{"a datatype that nobody knows", of(mpit.DatatypeOther), one, "1", nil,
			"values of datatype OTHER can't be written"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := Parse(&test.variable, mpit.CvarValue{Values: test.present}, test.text)
			if test.err != "" {
				assert.ErrorContains(t, err, test.err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, mpit.CvarValue{Values: test.want}, got)
		})
	}
}

func TestParseText(t *testing.T) {
	v := mpit.ControlVariable{Datatype: mpit.DatatypeChar}
	got, err := Parse(&v, mpit.CvarValue{IsText: true, Text: "old"}, " self,sm ")
	require.NoError(t, err)
	assert.Equal(t, mpit.CvarValue{IsText: true, Text: " self,sm "}, got, "as it stands")
	_, err = Parse(&v, mpit.CvarValue{IsText: true}, "a\x00b")
	assert.ErrorContains(t, err, "zero byte")
}

// An array of names is no way to make a text of gigabytes, and a name that is too long is a number, which can be read
// again.
func TestFormatIsBounded(t *testing.T) {
	enum := &mpit.Enum{Items: []mpit.EnumItem{{Value: 1, Name: strings.Repeat("x", maxItemName)},
		{Value: 2, Name: strings.Repeat("y", maxItemName+1)}}}
	many := mpit.CvarValue{Values: slices.Repeat([]uint64{1}, 262144)}
	text := Format(mpit.DatatypeInt, enum, many)
	assert.LessOrEqual(t, len(text), maxText+2*maxItemName)
	assert.True(t, strings.HasSuffix(text, ",…"), "it is seen that there are more")
	_, err := parseItem(enum, "z")
	assert.NotContains(t, err.Error(), enum.Items[1].Name)
	assert.Equal(t, enum.Items[0].Name+",2", Format(mpit.DatatypeInt, enum, mpit.CvarValue{Values: []uint64{1, 2}}))
}

// What is read can be written again, whatever it is.
func FuzzValue(f *testing.F) {
	f.Add(uint8(mpit.DatatypeInt), "-1", false)
	f.Add(uint8(mpit.DatatypeFloat), "1e-40", false)
	f.Add(uint8(mpit.DatatypeInt), "red,green", true)
	f.Add(uint8(mpit.DatatypeUnsigned), "0xffffffff", false)
	f.Fuzz(func(t *testing.T, datatype uint8, text string, enum bool) {
		v := mpit.ControlVariable{Datatype: mpit.Datatype(datatype)}
		if enum {
			v.Enum = colours
		}
		got, err := Parse(&v, mpit.CvarValue{Values: make([]uint64, 1)}, text)
		if err != nil {
			return
		}
		again, err := Parse(&v, got, Format(v.Datatype, v.Enum, got))
		if err != nil || !Same(got, again) {
			t.Fatalf("%q gives %v, its text %v (%v)", text, got, again, err)
		}
	})
}

func TestSame(t *testing.T) {
	half := math.Float64bits(0.5)
	assert.True(t, Same(mpit.CvarValue{Values: []uint64{half}}, mpit.CvarValue{Values: []uint64{half}}))
	assert.False(t, Same(mpit.CvarValue{Values: []uint64{half}}, mpit.CvarValue{Values: []uint64{half, half}}))
	assert.False(t, Same(mpit.CvarValue{IsText: true}, mpit.CvarValue{}))
}

func TestText(t *testing.T) {
	enum := &mpit.Enum{Items: []mpit.EnumItem{{Value: -1, Name: "none"}, {Value: 2, Name: "both"}}}
	for _, test := range []struct {
		v    mpit.ControlVariable
		want string
	}{
		{mpit.ControlVariable{Datatype: mpit.DatatypeChar, Text: "self,vader"}, "self,vader"},
		{mpit.ControlVariable{Datatype: mpit.DatatypeInt, Values: []uint64{1, ^uint64(0)}}, "1,-1"},
		{mpit.ControlVariable{Datatype: mpit.DatatypeUint64, Values: []uint64{^uint64(0)}}, "18446744073709551615"},
		{mpit.ControlVariable{Datatype: mpit.DatatypeDouble, Values: []uint64{0x3ff8000000000000}}, "1.5"},
		{mpit.ControlVariable{Datatype: mpit.DatatypeInt, Enum: enum, Values: []uint64{2, ^uint64(0), 7}},
			"both,none,7"},
		{mpit.ControlVariable{Datatype: mpit.DatatypeInt}, ""},
	} {
		assert.Equal(t, test.want, Text(&test.v))
	}
}
