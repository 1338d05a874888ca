package series

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mapping/rules"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// Whatever a variable is bound to, the object's name stands in the label of its kind; without a name it is "unnamed".
func TestEveryKindOfObject(t *testing.T) {
	for kind, label := range map[mpit.Bind]string{
		mpit.BindComm: "comm", mpit.BindDatatype: "datatype", mpit.BindErrhandler: "errhandler", mpit.BindFile: "file",
		mpit.BindGroup: "group", mpit.BindOp: "op", mpit.BindRequest: "request", mpit.BindWin: "win",
		mpit.BindMessage: "message",
		mpit.BindInfo:    "info", mpit.BindSession: "session", mpit.BindUnknown: "bound",
	} {
		t.Run(label, func(t *testing.T) {
			v := func(name string, class mpit.Class) mpit.Variable {
				return mpit.Variable{Name: name, Class: class, Datatype: tInt, DatatypeBytes: 4, Bind: kind}
			}
			a := newAgent(v("n", mpit.ClassCounter), v("l", mpit.ClassLevel), v("phase", mpit.ClassState),
				v("low", mpit.ClassLowWatermark))
			x := a.objectOf(kind, "mine", 1)
			y, z := a.objectOf(kind, "", 1), a.objectOf(kind, "", 1)
			other := a.objectOf(mpit.BindComm, "somebody else's", 1)
			for i, object := range []uint32{x, y, z} {
				for _, name := range []string{"n", "l", "phase", "low"} {
					a.set(name, object, i+1)
				}
			}
			r := newRank(t)
			r.Update(a.sample())
			of := func(name, object string) string { return name + "{" + label + "=" + object + "}" }
			state := func(labels ...string) string {
				slices.Sort(labels)
				return "phase_state{" + strings.Join(labels, ",") + "}"
			}
			number := func(object uint32) string { return "object=" + strconv.Itoa(int(object)) }
			want := m{
				of("n_total", "mine"): 1, of("l_level", "mine"): 1, of("low_lowwatermark", "mine"): 1,
				state(label+"=mine", "state=1"): 1,
				of("n_total", "unnamed"):        5, of("l_level", "unnamed"): 5, of("low_lowwatermark", "unnamed"): 2,
				state(label+"=unnamed", number(y), "state=2"): 1, state(label+"=unnamed", number(z), "state=3"): 1,
			}
			got := show(r)
			if kind == mpit.BindComm {
				for key := range got {
					if strings.Contains(key, "somebody") {
						delete(got, key)
					}
				}
				a.free(other)
			}
			assert.Equal(t, want, got)
			assert.Contains(t, r.Objects(), ObjectInfo{Kind: kind, Name: "unnamed", Number: 2})

			a.free(x)
			a.free(y)
			r.Update(a.sample())
			got = show(r)
			assert.Equal(t, 1.0, got[of("n_total", "mine")], "what was counted stays")
			assert.Equal(t, 1.0, got[of("low_lowwatermark", "mine")])
			assert.Equal(t, 2.0, got[of("low_lowwatermark", "unnamed")])
			assert.NotContains(t, got, of("l_level", "mine"))
			assert.Equal(t, 3.0, got[of("l_level", "unnamed")])
			assert.Equal(t, 1.0, got[state(label+"=unnamed", "state=3")], "it has the name alone now")
		})
	}
}

// All datatypes that a variable can have, in all classes that can have them.
func TestEveryDatatype(t *testing.T) {
	for _, c := range []struct {
		datatype mpit.Datatype
		bytes    int
		word     uint64
		want     float64
	}{
		{mpit.DatatypeInt, 4, uint64(math.MaxUint64), -1},
		{mpit.DatatypeUnsigned, 4, math.MaxUint32, math.MaxUint32},
		{mpit.DatatypeUnsignedLong, 8, math.MaxUint64, math.MaxUint64},
		{mpit.DatatypeUnsignedLongLong, 8, 1 << 63, 1 << 63},
		{mpit.DatatypeCount, 8, math.MaxInt64, math.MaxInt64},
		{mpit.DatatypeDouble, 8, math.Float64bits(-0.25), -0.25},
		{mpit.DatatypeInt32, 4, 5, 5},
		{mpit.DatatypeInt64, 8, 1 << 63, math.MinInt64},
		{mpit.DatatypeUint32, 4, 1 << 31, 1 << 31},
		{mpit.DatatypeUint64, 8, 1<<53 + 2, 1<<53 + 2},
		{mpit.DatatypeLong, 8, 7, 7},
		{mpit.DatatypeLongLong, 8, math.MaxUint64 - 1, -2},
		{mpit.DatatypeFloat, 4, math.Float64bits(0.5), 0.5},
		{mpit.DatatypeBool, 1, 1, 1},
	} {
		for class, name := range map[mpit.Class]string{
			mpit.ClassLevel: "v_level", mpit.ClassSize: "v_size", mpit.ClassHighWatermark: "v_highwatermark",
			mpit.ClassLowWatermark: "v_lowwatermark",
			mpit.ClassGeneric:      "v_generic", mpit.ClassCounter: "v_total",
			mpit.ClassAggregate: "v_aggregate_total",
		} {
			a := newAgent(mpit.Variable{Name: "v", Class: class, Datatype: c.datatype, DatatypeBytes: c.bytes})
			a.handles[0].values[0] = c.word
			r := newRank(t)
			r.Update(a.sample())
			want := m{name: c.want}
			if c.want < 0 && (class == mpit.ClassCounter || class == mpit.ClassAggregate) {
				want = m{}
			}
			assert.Equal(t, want, show(r), "%s %s", class, c.datatype)
		}
	}
	for _, c := range []struct {
		datatype mpit.Datatype
		class    mpit.Class
		reason   mapping.Reason
	}{
		{mpit.DatatypeChar, mpit.ClassGeneric, mapping.ReasonGenericString},
		{mpit.DatatypeChar, mpit.ClassLevel, mapping.ReasonDatatype},
		{mpit.DatatypeOther, mpit.ClassGeneric, mapping.ReasonDatatype},
	} {
		a := newAgent(mpit.Variable{Name: "v", Class: c.class, Datatype: c.datatype, DatatypeBytes: 1})
		r := newRank(t)
		r.Update(a.sample())
		assert.Empty(t, show(r))
		assert.Equal(t, map[mapping.Reason]uint64{c.reason: 1}, r.Dropped())
	}
}

// One name in all ten classes is ten variables and ten families.
func TestOneNameInEveryClass(t *testing.T) {
	a := newAgent()
	for class := mpit.ClassState; class <= mpit.ClassGeneric; class++ {
		d := tULong
		if class == mpit.ClassPercentage || class == mpit.ClassTimer {
			d = tDouble
		}
		a.add(mpit.Variable{Name: "q", Class: class, Datatype: d})
		h := a.handles[len(a.handles)-1]
		if h.values[0] = 10 + uint64(class); d == tDouble {
			h.values[0] = word(float64(class) / 10)
		}
	}
	r := newRank(t)
	r.Update(a.sample())
	assert.Equal(t, m{
		"q_state{state=10}": 1, "q_level": 11, "q_size": 12, "q_ratio": 0.3, "q_highwatermark": 14,
		"q_lowwatermark": 15, "q_total": 16,
		"q_aggregate_total": 17, "q_time_seconds sum": 0.8, "q_time_seconds count": 16, "q_generic": 19,
	}, show(r))
	assert.Empty(t, r.Dropped())
}

func TestPercentagesOutOfRange(t *testing.T) {
	for _, c := range []struct {
		unit  string
		value float64
		want  m
	}{
		{"", 0, m{"v_ratio": 0}},
		{"", 1, m{"v_ratio": 1}},
		{"", 1 + 1e-12, m{"v_ratio": 1}},
		{"", -1e-12, m{"v_ratio": 0}},
		{"", 1.01, m{}},
		{"", -0.5, m{}},
		{"", 42, m{}},
		{"%", 42, m{"v_ratio": 0.42}},
		{"%", 142, m{}},
	} {
		a := newAgent(mpit.Variable{Name: "v", Class: mpit.ClassPercentage, Datatype: tDouble})
		a.set("v", 0, c.value)
		r := newRank(t, rules.Rule{Unit: c.unit})
		r.Update(a.sample())
		assert.Equal(t, c.want, show(r), "%v%s", c.value, c.unit)
		assert.Equal(t, uint64(1-len(c.want)), r.Dropped()[mapping.ReasonOutOfRange], "%v%s", c.value, c.unit)
	}
}

func TestArraysOfWhatIsNeverMerged(t *testing.T) {
	e := &mpit.Enum{Items: []mpit.EnumItem{{Value: 0, Name: "idle"}, {Value: 1, Name: "busy"}}}
	state := on("phase", mpit.ClassState, tInt)
	state.Enum = e
	a := newAgent(state, on("any", mpit.ClassGeneric, tDouble))
	x := a.object("c", 2)
	a.set("phase", x, 1, 9)
	a.set("any", x, 0.5, -1.5)
	r := newRank(t)
	r.Update(a.sample())
	assert.Equal(t, m{
		"phase_state{comm=c,index=0,state=idle}": 0, "phase_state{comm=c,index=0,state=busy}": 1,
		"phase_state{comm=c,index=1,state=idle}": 0, "phase_state{comm=c,index=1,state=busy}": 0,
		"phase_state{comm=c,index=1,state=9}": 1,
		"any_generic{comm=c,index=0}":         0.5, "any_generic{comm=c,index=1}": -1.5,
	}, show(r))
}

func TestStatesOfOddEnumerations(t *testing.T) {
	large := &mpit.Enum{}
	for i := range 128 + 1 {
		large.Items = append(large.Items, mpit.EnumItem{Value: int64(i), Name: "item " + strconv.Itoa(i)})
	}
	number := &mpit.Enum{Items: []mpit.EnumItem{{Value: 1, Name: "7"}, {Value: 2, Name: "(7)"}}}
	for _, c := range []struct {
		name  string
		enum  *mpit.Enum
		value int
		want  m
	}{
		{"of a large one the present item alone", large, 100, m{"v_state{state=item 100}": 1}},
		{"outside a large one", large, -4, m{"v_state{state=-4}": 1}},
		{"an item called by another value's number", number, 7,
			m{"v_state{state=7}": 0, "v_state{state=(7)}": 0, "v_state{state=((7))}": 1}},
		{"such an item", number, 1, m{"v_state{state=7}": 1, "v_state{state=(7)}": 0}},
		{"no items at all", &mpit.Enum{}, 7, m{"v_state{state=7}": 1}},
	} {
		a := newAgent(mpit.Variable{Name: "v", Class: mpit.ClassState, Datatype: tInt, DatatypeBytes: 4, Enum: c.enum})
		a.set("v", 0, c.value)
		r := newRank(t)
		r.Update(a.sample())
		assert.Equal(t, c.want, show(r), c.name)
		structure := r.Structure()
		r.Update(a.sample())
		assert.Equal(t, structure, r.Structure(), c.name)
	}
}

// What the program calls its objects need be no UTF-8, and can be anything.
func TestNamesOfObjects(t *testing.T) {
	for name, want := range map[string]string{
		"caf\xe9":                       "café", // ISO 8859-1
		"\xe9\xe8":                      "éè",
		"Größe":                         "Größe",
		"a\xffé":                        "aÿé",
		"two\nlines, \"quotes\" and \\": "two\nlines, \"quotes\" and \\",
		"\x00\a\b\t\v\f\r\x1b\x1f\x7f":  strings.Repeat("\uFFFD", 10),
		"\xc2\x80\x9b2J":                "\uFFFD\uFFFD2J", // of UTF-8 and of ISO 8859-1
		"":                              mapping.Unnamed,
		" ":                             " ",
		strings.Repeat("x", 64<<10):     strings.Repeat("x", 128),
		strings.Repeat("\xe9", 64<<10):  strings.Repeat("é", 64),
		strings.Repeat("x", 127) + "é":  strings.Repeat("x", 127),
		"x":                             "x",
		"\u2028 line separator":         "\uFFFD line separator",
	} {
		a := newAgent(on("v", mpit.ClassLevel, tInt))
		a.object(name, 1)
		r := newRank(t)
		r.Update(a.sample())
		assert.Equal(t, m{"v_level{comm=" + want + "}": 0}, show(r))
		require.Len(t, r.Objects(), 1)
		assert.Equal(t, want, r.Objects()[0].Name)
	}
}
