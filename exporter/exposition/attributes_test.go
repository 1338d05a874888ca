package exposition

import (
	"strconv"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/otel/attribute"

	"github.com/mpit-exporter/mpit-exporter/mapping"
)

func TestAttributes(t *testing.T) {
	described := &Family{Name: "mpit_pvar_info", Type: dto.MetricType_GAUGE, Labels: []Label{
		{Name: "rank"}, {Name: "name", Attribute: "mpi.pvar.name"},
		{Name: "size", Attribute: "mpi.object.size", Integer: true}, {Name: "result"},
	}}
	for _, test := range []struct {
		own          map[string]Label
		label, value string
		want         attribute.KeyValue
	}{
		{nil, "jobid", "100_3", attribute.String("mpi.job.id", "100_3")},
		{nil, "rank", "12", attribute.Int("mpi.rank", 12)},
		{nil, "dup", "1", attribute.Int("mpi.dup", 1)},
		{nil, "comm", "MPI_COMM_WORLD", attribute.String("mpi.comm.name", "MPI_COMM_WORLD")},
		{nil, "session", "x", attribute.String("mpi.session.name", "x")},
		{nil, "bound", "x", attribute.String("mpi.bound.name", "x")},
		{nil, "object", "3", attribute.Int("mpi.object.number", 3)},
		{nil, "peer", "12", attribute.String("mpi.peer", "12")}, // for it may be
		{nil, "peer", "other", attribute.String("mpi.peer", "other")},
		{nil, "state", "idle", attribute.String("state", "idle")},
		{nil, "host", "given by a rule", attribute.String("host", "given by a rule")},
		{nil, "name", "given by a rule", attribute.String("name", "given by a rule")},
		{nil, "rank", "what is no number", attribute.String("mpi.rank", "what is no number")},
		{described.attributes(), "name", "x", attribute.String("mpi.pvar.name", "x")},
		{described.attributes(), "rank", "3", attribute.Int("mpi.rank", 3)},
		{described.attributes(), "size", "3", attribute.Int("mpi.object.size", 3)},
		{described.attributes(), "result", "late", attribute.String("result", "late")},
	} {
		assert.Equal(t, test.want, AsAttributes.keyValue(test.own, test.label, test.value), "%s %s", test.label,
			test.value)
		assert.Equal(t, attribute.String(test.label, test.value), AsLabels.keyValue(test.own, test.label, test.value))
	}
}

// Series with the same labels share a set, even in different families: those of a rank mostly have none of their own.
func TestSetsAreShared(t *testing.T) {
	p := New(nil)
	var list []*mapping.Series
	for i := range 40 {
		m := &mapping.Metric{Name: "mpit_x" + strconv.Itoa(i), Kind: mapping.KindGauge}
		list = append(list, &mapping.Series{Metric: m},
			&mapping.Series{Metric: m, Labels: []mapping.Label{{Name: "comm", Value: "a"}}})
	}
	s := NewSheet(someone{})
	p.Fill(s, list, func(string) bool { return false })
	sets, distinct := attributeSets{}, map[attribute.Set]bool{}
	of := func() {
		for _, part := range s.parts {
			for i := part.from; i < part.to; i++ {
				distinct[sets.of(part.family, s, int(i))] = true
			}
		}
	}
	of()
	assert.Len(t, distinct, 2)
	assert.Len(t, sets.made, 2)
	assert.Zero(t, testing.AllocsPerRun(10, of), "none is made again")
}
