package series

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mapping/rules"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// A rule that names the peer itself: whoever wants elements by peer as well has none of that variable.
func TestLabelPeer(t *testing.T) {
	a := newAgent(on("to_3", mpit.ClassCounter, tULong), on("to", mpit.ClassCounter, tULong))
	x := a.object("c", 2)
	a.set("to_3", x, 1, 2)
	a.set("to", x, 3, 4)
	r := newRank(t, rules.Rule{Match: rules.Match{Regexp: "to_(?P<peer>[0-9]+)"}, Name: "sent"},
		rules.Rule{Elements: mapping.MergePeer})
	r.Update(a.sample())
	assert.Equal(t, m{"sent_total{comm=c,peer=3}": 3, "to_total{comm=c,peer=0}": 3, "to_total{comm=c,peer=1}": 4}, show(r))
}

// Variables whose labels differ are one family; the labels stand with those of objects and elements, sorted.
func TestLabelsOfRules(t *testing.T) {
	list := []rules.Rule{
		{Match: rules.Match{Regexp: "x_(?P<function>[a-z]+)_(?P<zone>[a-z]+)", Class: rules.List{"counter"}},
			Name: "calls", Elements: mapping.MergePeer},
		{Match: rules.Match{Regexp: "x_(?P<function>[a-z]+)_(?P<zone>[a-z]+)"}, Name: "time"},
		{Match: rules.Match{Regexp: "state_(?P<a>.)"}, Name: "phase"},
	}
	a := newAgent(on("x_send_node", mpit.ClassCounter, tULong), on("x_recv_node", mpit.ClassCounter, tULong),
		mpit.Variable{Name: "state_1", Class: mpit.ClassState, Datatype: tInt})
	x := a.object("c", 2)
	a.set("x_send_node", x, 1, 2)
	a.set("x_recv_node", x, 3, 4)
	mapper := newMapper(t, list...)
	r := NewRank(mapper, variables.Process{})
	r.Update(a.sample())
	want := m{
		"calls_total{comm=c,function=send,peer=0,zone=node}": 1,
		"calls_total{comm=c,function=send,peer=1,zone=node}": 2,
		"calls_total{comm=c,function=recv,peer=0,zone=node}": 3,
		"calls_total{comm=c,function=recv,peer=1,zone=node}": 4,
		"phase{a=1,state=0}": 1,
	}
	assert.Equal(t, want, show(r))
	held := func(t *testing.T, families, variables int) {
		t.Helper()
		haveFamilies, haveVariables := mapper.Families()
		assert.Equal(t, []int{families, variables}, []int{haveFamilies, haveVariables})
	}
	held(t, 2, 3)

	t.Run("of one Metric", func(t *testing.T) {
		assert.Same(t, r.Series()[0].Metric, r.Series()[2].Metric)
	})
	t.Run("one goes, the other stays", func(t *testing.T) {
		a.vars[0].Name, a.lastVars = "x_scan_node", nil
		r.Update(a.sample())
		assert.Contains(t, show(r), "calls_total{comm=c,function=scan,peer=0,zone=node}")
		assert.NotContains(t, show(r), "calls_total{comm=c,function=send,peer=0,zone=node}")
		held(t, 2, 3)
	})
	t.Run("the last one takes the family along", func(t *testing.T) {
		other := NewRank(mapper, variables.Process{})
		other.Update(a.sample())
		held(t, 2, 6)
		r.Close()
		r.Close()
		held(t, 2, 3)
		other.Close()
		held(t, 0, 0)
	})
}

// Who can't be told apart from another is left out, and the reason says which of the two it is.
func TestConflicts(t *testing.T) {
	same := rules.Rule{Match: rules.Match{Name: "?_var"}, Name: "x"}
	none := func(name string, class mpit.Class) mpit.Variable {
		return mpit.Variable{Name: name, Class: class, Datatype: tULong}
	}
	for _, c := range []struct {
		name string
		vars []mpit.Variable
		rule rules.Rule
		want map[mapping.Reason]uint64
	}{
		{"the same labels", []mpit.Variable{none("a_var", mpit.ClassCounter), none("b_var", mpit.ClassCounter),
			none("c_var", mpit.ClassCounter)}, same, map[mapping.Reason]uint64{mapping.ReasonLabelConflict: 2}},
		{"another kind", []mpit.Variable{none("a_var", mpit.ClassLevel), none("b_var", mpit.ClassGeneric)}, same,
			map[mapping.Reason]uint64{mapping.ReasonTypeConflict: 1}},
		{"another kind, with a label", []mpit.Variable{none("a_var", mpit.ClassLevel), none("b_var",
			mpit.ClassGeneric)}, rules.Rule{Match: rules.Match{Regexp: "(?P<which>.)_var"}, Name: "x"},
			map[mapping.Reason]uint64{mapping.ReasonTypeConflict: 1}},
		{"bound to something else: the label tells", []mpit.Variable{on("a_var", mpit.ClassCounter, tULong),
			none("b_var", mpit.ClassCounter)}, same, map[mapping.Reason]uint64{}},
		{"with a label", []mpit.Variable{none("a_var", mpit.ClassCounter), none("b_var", mpit.ClassCounter)},
			rules.Rule{Match: rules.Match{Regexp: "(?P<which>.)_var"}, Name: "x"}, map[mapping.Reason]uint64{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			mapper := newMapper(t, c.rule)
			r := NewRank(mapper, variables.Process{})
			a := newAgent(c.vars...)
			a.object("c", 1)
			r.Update(a.sample())
			show(r) // panics where two series are the same
			assert.Equal(t, c.want, r.Dropped())
			dropped := 0
			for i, info := range r.Infos() {
				_, ids, _ := r.Select()
				assert.Equal(t, info.Metric != nil, ids[uint32(i)], "what is left out need not be read")
				if info.Metric == nil {
					dropped++
				}
			}
			r.Close()
			assert.Zero(t, familiesOf(mapper))
			total := 0
			for _, n := range c.want {
				total += int(n)
			}
			assert.Equal(t, total, dropped)
		})
	}
}

// Of variables that share a family, each knows its own series.
func TestInfoOwnsSeries(t *testing.T) {
	none := func(name string) mpit.Variable {
		return mpit.Variable{Name: name, Class: mpit.ClassCounter, Datatype: tULong}
	}
	a := newAgent(none("mpit_calls"), on("calls", mpit.ClassCounter, tULong), none("x_send"),
		on("x_recv", mpit.ClassCounter, tULong),
		on("pool", mpit.ClassLevel, tULong), on("pool", mpit.ClassSize, tULong),
		on("pool", mpit.ClassHighWatermark, tULong))
	x := a.object("c", 2)
	for _, name := range []string{"calls", "x_recv", "pool"} {
		a.set(name, x, 2)
	}
	r := NewRank(newMapper(t, rules.Rule{Match: rules.Match{Name: "mpit_calls"}, Name: "calls"},
		rules.Rule{Match: rules.Match{Regexp: "x_(?P<function>[a-z]+)"}, Name: "calls"}),
		variables.Process{})
	r.Update(a.sample())
	infos := r.Infos()
	owners := map[string]string{}
	for _, s := range r.Series() {
		best, fit := "nobody", 0
		for i := range infos {
			if n := infos[i].Owns(s); n > fit {
				best, fit = infos[i].Name+" "+infos[i].Class.String(), n
			}
		}
		name := s.Metric.Name
		for _, l := range s.Labels {
			name += " " + l.Value
		}
		owners[name] = best
	}
	assert.Equal(t, map[string]string{
		"mpit_calls_total send": "x_send COUNTER", "mpit_calls_total c recv": "x_recv COUNTER",
		"mpit_calls_total c": "calls COUNTER",
		"mpit_calls_total":   "mpit_calls COUNTER",
		"mpit_pool_level c":  "pool LEVEL", "mpit_pool_size c": "pool SIZE",
		"mpit_pool_highwatermark c": "pool HIGHWATERMARK",
	}, owners)
}
