package series

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mapping/rules"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// The known lies, as docs/mapping.md lists them.
func TestKnownLies(t *testing.T) {
	ompi, mpich, mvapich := mapping.Library{Name: mapping.OpenMPI, Version: "4.1.4"},
		mapping.Library{Name: mapping.MPICH, Version: "4.0.2"},
		mapping.Library{Name: mapping.MVAPICH, Version: "2.3.7"}
	const u, d = mpit.DatatypeUnsignedLong, mpit.DatatypeDouble
	for _, c := range []struct {
		lib      mapping.Library
		name     string
		class    mpit.Class
		datatype mpit.Datatype
		want     string
		kind     mapping.Kind
		unit     string
	}{
		{ompi, "pml_ob1_unexpected_msgq_length", mpit.ClassSize, u, "mpit_pml_ob1_unexpected_msgq_length",
			mapping.KindGauge, "{message}"},
		{ompi, "pml_ob1_posted_recvq_length", mpit.ClassSize, u, "mpit_pml_ob1_posted_recvq_length",
			mapping.KindGauge, "{message}"},
		{ompi, "mpool_hugepage_bytes_allocated", mpit.ClassSize, u, "mpit_mpool_hugepage_allocated_bytes",
			mapping.KindGauge, "By"},
		{ompi, "pml_monitoring_messages_count", mpit.ClassSize, u, "mpit_pml_monitoring_messages_total",
			mapping.KindCounter, "{message}"},
		{ompi, "pml_monitoring_messages_size", mpit.ClassSize, u, "mpit_pml_monitoring_bytes_total",
			mapping.KindCounter, "By"},
		{ompi, "coll_monitoring_messages_count", mpit.ClassSize, u, "mpit_coll_monitoring_messages_total",
			mapping.KindCounter, "{message}"},
		{ompi, "coll_monitoring_messages_size", mpit.ClassSize, u, "mpit_coll_monitoring_bytes_total",
			mapping.KindCounter, "By"},
		{ompi, "osc_monitoring_messages_sent_count", mpit.ClassSize, u, "mpit_osc_monitoring_messages_sent_total",
			mapping.KindCounter, "{message}"},
		{ompi, "osc_monitoring_messages_sent_size", mpit.ClassSize, u, "mpit_osc_monitoring_sent_bytes_total",
			mapping.KindCounter, "By"},
		{ompi, "osc_monitoring_messages_recv_count", mpit.ClassSize, u, "mpit_osc_monitoring_messages_recv_total",
			mapping.KindCounter, "{message}"},
		{ompi, "osc_monitoring_messages_recv_size", mpit.ClassSize, u, "mpit_osc_monitoring_recv_bytes_total",
			mapping.KindCounter, "By"},
		{ompi, "coll_monitoring_o2a_size", mpit.ClassAggregate, u, "mpit_coll_monitoring_o2a_bytes_total",
			mapping.KindCounter, "By"},
		{ompi, "coll_monitoring_a2o_size", mpit.ClassAggregate, u, "mpit_coll_monitoring_a2o_bytes_total",
			mapping.KindCounter, "By"},
		{ompi, "coll_monitoring_a2a_size", mpit.ClassAggregate, u, "mpit_coll_monitoring_a2a_bytes_total",
			mapping.KindCounter, "By"},
		{ompi, "mtl_psm2_tx_eager_num", mpit.ClassCounter, u, "mpit_mtl_psm2_tx_eager_messages_total",
			mapping.KindCounter, "{message}"},
		{ompi, "mtl_psm2_tx_eager_bytes", mpit.ClassCounter, u, "mpit_mtl_psm2_tx_eager_bytes_total",
			mapping.KindCounter, "By"},
		{ompi, "runtime_spc_OMPI_SPC_SEND", mpit.ClassSize, u, "mpit_runtime_spc_calls_total", mapping.KindCounter,
			"{call}"},
		{ompi, "runtime_spc_OMPI_SPC_BYTES_SENT_USER", mpit.ClassSize, u, "mpit_runtime_spc_bytes_total",
			mapping.KindCounter, "By"},
		{ompi, "runtime_spc_OMPI_SPC_MATCH_TIME", mpit.ClassSize, u, "mpit_runtime_spc_match_time_seconds",
			mapping.KindHistogram, "s"},
		{ompi, "runtime_spc_OMPI_SPC_UNEXPECTED_IN_QUEUE", mpit.ClassSize, u, "mpit_runtime_spc_unexpected_in_queue",
			mapping.KindGauge, "{message}"},
		{ompi, "runtime_spc_OMPI_SPC_MAX_UNEXPECTED_IN_QUEUE", mpit.ClassSize, u,
			"mpit_runtime_spc_unexpected_in_queue_highwatermark", mapping.KindGauge, "{message}"},
		{mpich, "nic_sent_bytes_count", mpit.ClassCounter, u, "mpit_nic_sent_bytes_total", mapping.KindCounter, "By"},
		{mpich, "posted_recvq_match_attempts", mpit.ClassCounter, u, "mpit_posted_recvq_match_attempts_total",
			mapping.KindCounter, "{search}"},
		{mpich, "time_failed_matching_postedq", mpit.ClassTimer, d, "mpit_posted_recvq_failed_match_time_seconds",
			mapping.KindHistogram, "s"},
		{mvapich, "mv2_smp_eager_byte_counter_array", mpit.ClassCounter, u, "mpit_mv2_smp_eager_bytes_total",
			mapping.KindCounter, "By"},
		{mvapich, "mv2_pt2pt_mpid_isend", mpit.ClassCounter, u, "mpit_mv2_pt2pt_messages_total", mapping.KindCounter,
			"{message}"},
		{mvapich, "mv2_smp_eager_sent", mpit.ClassCounter, u, "mpit_mv2_smp_eager_sent_bytes_total",
			mapping.KindCounter, "By"},
		{mvapich, "mv2_smp_eager_buffer_max_use", mpit.ClassLevel, u,
			"mpit_mv2_smp_eager_buffer_highwatermark_bytes", mapping.KindGauge, "By"},
		// The key is library, name and class: none of these is one of them.
		{mpich, "pml_ob1_unexpected_msgq_length", mpit.ClassSize, u, "mpit_pml_ob1_unexpected_msgq_length_size",
			mapping.KindGauge, ""},
		{ompi, "pml_ob1_unexpected_msgq_length", mpit.ClassCounter, u, "mpit_pml_ob1_unexpected_msgq_length_total",
			mapping.KindCounter, ""},
	} {
		t.Run(c.lib.Name+" "+c.name, func(t *testing.T) {
			m, reason, ok := shipped().Metric(c.lib, mpit.Variable{Name: c.name,
				Class: c.class, Datatype: c.datatype, DatatypeBytes: 8, Bind: mpit.BindComm})
			require.True(t, ok, reason)
			assert.Equal(t, c.want, m.Name)
			assert.Equal(t, c.kind, m.Kind)
			assert.Equal(t, c.unit, m.Unit)
			checkMetric(t, m)
		})
	}
	t.Run("garbage is left out", func(t *testing.T) {
		_, reason, ok := shipped().Metric(mapping.Library{Name: mapping.OpenMPI,
			Version: "5.0.7"}, mpit.Variable{Name: "runtime_spc_OMPI_SPC_MAX_OOS_IN_QUEUE", Class: mpit.ClassSize,
			Datatype: u})
		assert.False(t, ok)
		assert.Equal(t, mapping.ReasonRule, reason)
	})
	t.Run("garbage that a handle was made with is subtracted", func(t *testing.T) {
		for _, c := range []struct {
			lib         mapping.Library
			name, shown string
		}{
			{mpich, "nic_recvd_bytes_count", "nic_recvd_bytes_total"},
			{mpich, "rma_pref_phy_nic_put_bytes_count", "rma_pref_phy_nic_put_bytes_total"},
			{mpich, "striped_nic_sent_bytes_count", "striped_nic_sent_bytes_total"},
			{mapping.Library{Name: mapping.MVAPICH, Version: "4.0"}, "mvp_mpic_send_byte_counter_array",
				"mvp_mpic_send_bytes_total"},
			{mapping.Library{Name: mapping.MVAPICH, Version: "4.0"}, "mvp_bcast_call_counter",
				"mvp_coll_calls_total{collective=bcast}"},
		} {
			a := newAgent(mpit.Variable{Name: c.name, Class: mpit.ClassCounter, Datatype: u})
			h := a.handles[0]
			h.First, h.values[0] = []uint64{math.MaxUint64 - 1}, math.MaxUint64-1
			r := NewRank(shipped(), variables.Process{Library: c.lib})
			r.Update(a.sample())
			assert.Zero(t, show(r)[c.shown])
			h.values[0] += 1000
			r.Update(a.after(time.Second).sample())
			assert.Equal(t, m{c.shown: 1000}, show(r))
		}
	})
	t.Run("MPICH's watermarks say what they are", func(t *testing.T) {
		m, _, _ := shipped().Metric(mpich,
			mpit.Variable{Name: "unexpected_recvq_length", Class: mpit.ClassHighWatermark, Datatype: u})
		assert.Contains(t, m.Help, "present level")
	})
}

func TestFirstMatchWinsPerProperty(t *testing.T) {
	m := newMapper(t,
		rules.Rule{Match: rules.Match{Name: "foo_*"}, Unit: "KiBy"},
		rules.Rule{Match: rules.Match{Name: "foo_*"}, Unit: "s", Class: "level", Name: "bar_$1"},
		rules.Rule{Match: rules.Match{Class: rules.List{"counter"}}, Class: "aggregate", Help: "Second."},
	)
	got, _, ok := m.Metric(mapping.Library{}, mpit.Variable{Name: "foo_a", Class: mpit.ClassCounter,
		Datatype: mpit.DatatypeInt})
	require.True(t, ok)
	assert.Equal(t, "mpit_bar_a_bytes", got.Name)
	assert.Equal(t, mapping.KindGauge, got.Kind)
	assert.Contains(t, got.Help, "Second.")
	assert.Contains(t, got.Help, "class COUNTER (really LEVEL), unit By")
}

func TestWrongRules(t *testing.T) {
	zero, nan := 0.0, math.NaN()
	for why, r := range map[string]rules.Rule{
		"library":  {Match: rules.Match{Library: rules.List{"lam"}}},
		"version":  {Match: rules.Match{Version: "4"}},
		"class":    {Class: "meter"},
		"match":    {Match: rules.Match{Class: rules.List{"COUNTER"}}},
		"bind":     {Match: rules.Match{Bind: rules.List{"communicator"}}},
		"unit":     {Unit: "bytes"},
		"merge":    {Merge: "avg"},
		"elements": {Elements: "each"},
		"scale":    {Scale: &zero},
		"nan":      {Scale: &nan},
		"name":     {Name: "Foo"},
		"star":     {Match: rules.Match{Name: "a*"}, Name: "$2"},
	} {
		_, err := variables.New(variables.Config{Rules: []rules.Rule{{}, r}})
		require.Error(t, err, why)
		assert.Contains(t, err.Error(), "rule 2", why)
	}
	for _, b := range [][]float64{{}, {1, 1}, {0}, {math.Inf(1)}} {
		_, err := variables.New(variables.Config{Rules: []rules.Rule{{Buckets: b}}})
		assert.Error(t, err)
	}
}

// hold makes a rank of lib with one variable, which holds its family until the rank is closed.
func hold(t *testing.T, m *variables.Mapper, lib mapping.Library, name string) *Rank {
	t.Helper()
	r := NewRank(m, variables.Process{Library: lib})
	a := newAgent(mpit.Variable{Name: name, Class: mpit.ClassLevel, Datatype: tInt, Description: lib.Name})
	r.Update(a.sample())
	return r
}

func TestClashesAreReported(t *testing.T) {
	m := newMapper(t,
		rules.Rule{Match: rules.Match{Library: rules.List{mapping.OpenMPI}}, Name: "same", Class: "level"},
		rules.Rule{Match: rules.Match{Library: rules.List{mapping.MPICH}, Name: "b"}, Name: "same", Class: "generic"},
		rules.Rule{Match: rules.Match{Library: rules.List{mapping.MPICH}, Name: "c"}, Name: "same", Class: "level",
			Unit: "{call}"},
	)
	first := hold(t, m, mapping.Library{Name: mapping.OpenMPI}, "a")
	require.Len(t, first.Series(), 1)

	other := hold(t, m, mapping.Library{Name: mapping.MPICH}, "b")
	assert.Empty(t, other.Series(), "a gauge and an untyped one can't share a family")
	assert.Equal(t, uint64(1), other.Dropped()[mapping.ReasonTypeConflict])
	_, reason, ok := m.Metric(mapping.Library{Name: mapping.MPICH}, mpit.Variable{Name: "b", Datatype: tInt})
	assert.False(t, ok)
	assert.Equal(t, mapping.ReasonTypeConflict, reason)

	// What one library's rule knows of the unit, another's need not: the first holder's HELP and unit stand.
	alike := hold(t, m, mapping.Library{Name: mapping.MPICH}, "c")
	require.Len(t, alike.Series(), 1)
	assert.Same(t, first.Series()[0].Metric, alike.Series()[0].Metric)
}

// No rank can keep a name, its type or its HELP from others for longer than it is on the page.
func TestAFamilyGoesWithItsLastRank(t *testing.T) {
	m := newMapper(t)
	first, second := hold(t, m, mapping.Library{Name: mapping.OpenMPI}, "a"),
		hold(t, m, mapping.Library{Name: mapping.MPICH}, "a")
	help := first.Series()[0].Metric.Help
	assert.Contains(t, help, mapping.OpenMPI)
	first.Close()
	first.Close() // again: nothing
	assert.Contains(t, hold(t, m, mapping.Library{Name: mapping.MPICH}, "a").Series()[0].Metric.Help,
		mapping.OpenMPI, "the second rank still holds it")
	assert.Equal(t, 1, familiesOf(m))
	second.Close()
	m = newMapper(t)
	hold(t, m, mapping.Library{Name: mapping.OpenMPI}, "a").Close()
	assert.Zero(t, familiesOf(m))
	assert.Contains(t, hold(t, m, mapping.Library{Name: mapping.MPICH}, "a").Series()[0].Metric.Help, mapping.MPICH)
}

func TestFamiliesAreBounded(t *testing.T) {
	m, err := variables.New(variables.Config{MaxFamilies: 1})
	require.NoError(t, err)
	first := hold(t, m, mapping.Library{}, "a")
	assert.Equal(t, uint64(1), hold(t, m, mapping.Library{}, "b").Dropped()[mapping.ReasonFamiliesOverMax])
	first.Close()
	assert.Empty(t, hold(t, m, mapping.Library{}, "b").Dropped())
}

func TestAskingWhatAVariableBecomesHoldsNothing(t *testing.T) {
	m := newMapper(t, rules.Defaults()...)
	_, _, ok := m.Metric(mapping.Library{}, mpit.Variable{Name: "a", Datatype: mpit.DatatypeInt})
	assert.True(t, ok)
	assert.Zero(t, familiesOf(m))
}

func TestWhatIsNoNumber(t *testing.T) {
	m := newMapper(t)
	for _, c := range []struct {
		v    mpit.Variable
		want mapping.Reason
	}{
		{mpit.Variable{Class: mpit.ClassGeneric, Datatype: mpit.DatatypeChar}, mapping.ReasonGenericString},
		{mpit.Variable{Class: mpit.ClassState, Datatype: mpit.DatatypeChar}, mapping.ReasonDatatype},
		{mpit.Variable{Class: mpit.ClassCounter, Datatype: mpit.DatatypeOther}, mapping.ReasonDatatype},
	} {
		_, reason, ok := m.Metric(mapping.Library{}, c.v)
		assert.False(t, ok)
		assert.Equal(t, c.want, reason)
	}
}

// One Mapper serves all ranks at once (run with -race).
func TestMapperIsSafeForConcurrentUse(t *testing.T) {
	m := newMapper(t, rules.Defaults()...)
	got := make(chan *mapping.Metric)
	for i := range 8 {
		go func() {
			v := mpit.Variable{Name: "v", Class: mpit.ClassTimer, Datatype: mpit.DatatypeDouble}
			a := newAgent(v)
			r := NewRank(m, variables.Process{Library: mapping.Library{Name: mapping.MPICH, Version: "4.0"}})
			a.set("v", 0, float64(i))
			r.Update(a.sample())
			got <- r.Series()[0].Metric
		}()
	}
	first := <-got
	for range 7 {
		assert.Same(t, first, <-got)
	}
}

// One user's ranks invent names without end, and another's new job is shown whole.
func TestUsersShareTheFamilies(t *testing.T) {
	m, err := variables.New(variables.Config{MaxFamilies: 64})
	require.NoError(t, err)
	rank := func(user uint32, number, names int) *Rank {
		a := newAgent()
		for i := range names {
			a.add(mpit.Variable{Name: fmt.Sprintf("u%d_r%d_v%d", user, number, i), Class: mpit.ClassCounter,
				Datatype: tULong})
		}
		r := NewRank(m, variables.Process{User: user})
		r.Update(a.sample())
		return r
	}
	greedy := []*Rank{rank(1, 0, 30), rank(1, 1, 30), rank(1, 2, 30)}
	assert.Len(t, greedy[0].Series(), 30)
	assert.Len(t, greedy[1].Series(), 2, "half of all")
	assert.Empty(t, greedy[2].Series())
	assert.Equal(t, uint64(28), greedy[1].Dropped()[mapping.ReasonFamiliesOverMax])
	assert.Len(t, rank(2, 0, 10).Series(), 10)
	assert.Len(t, rank(3, 0, 10).Series(), 10)
	greedy[0].Close()
	assert.Len(t, rank(1, 3, 5).Series(), 5, "what is given back can be had again")
}

// familiesOf is how many families ranks hold.
func familiesOf(m *variables.Mapper) int {
	families, _ := m.Families()
	return families
}
