package series

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mapping/rules"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// What the examples say of themselves.
func TestWhatTheExamplesDo(t *testing.T) {
	for _, c := range []struct {
		file    string
		library string
		v       mpit.Variable
		want    string // the metric and what rules decide of its series, or why there is none
	}{
		{"developer-variables", mapping.OpenMPI, mpit.Variable{Name: "x", Class: mpit.ClassLevel,
			Verbosity: mpit.VerbosityMPIDevAll}, "rule"},
		{"developer-variables", mapping.OpenMPI, mpit.Variable{Name: "x", Class: mpit.ClassLevel,
			Verbosity: mpit.VerbosityUserAll}, `mpit_x_level`},
		{"developer-variables", mapping.MPICH, mpit.Variable{Name: "rma_winfence", Class: mpit.ClassTimer,
			Verbosity: mpit.VerbosityMPIDevDetail}, `mpit_rma_winfence_time_seconds`},
		{"developer-variables", mapping.MPICH, mpit.Variable{Name: "rma_winfence", Class: mpit.ClassCounter,
			Verbosity: mpit.VerbosityMPIDevDetail}, "rule"},
		{"developer-variables", mapping.MVAPICH, mpit.Variable{Name: "num_malloc_calls", Class: mpit.ClassCounter,
			Verbosity: mpit.VerbosityTunerDetail}, "rule"},
		{"wide-nodes", mapping.MPICH, mpit.Variable{Name: "x", Class: mpit.ClassLevel}, `mpit_x_level`},
		{"wide-nodes", mapping.OpenMPI, mpit.Variable{Name: "osc_monitoring_messages_sent_count",
			Class: mpit.ClassSize, Bind: mpit.BindComm},
			`mpit_osc_monitoring_messages_sent_total; elements sum; object false`},
		{"peers", mapping.OpenMPI, mpit.Variable{Name: "coll_monitoring_messages_size", Class: mpit.ClassSize,
			Bind: mpit.BindComm}, `mpit_coll_monitoring_bytes_total; elements peer`},
		{"psm2-bytes", mapping.OpenMPI, mpit.Variable{Name: "mtl_psm2_tx_eager_bytes", Class: mpit.ClassCounter},
			`mpit_mtl_psm2_tx_eager_bytes_total`},
		{"psm2-bytes", mapping.OpenMPI, mpit.Variable{Name: "mtl_psm2_tx_eager_num", Class: mpit.ClassCounter},
			`mpit_mtl_psm2_tx_eager_messages_total`},
		{"function-families", mapping.MVAPICH, mpit.Variable{Name: "mv2_coll_timer_bcast_binomial",
			Class: mpit.ClassTimer}, `mpit_coll_time_seconds; labels algorithm="binomial",function="bcast"; buckets [1e-05`},
		{"function-families", mapping.MVAPICH, mpit.Variable{Name: "mv2_coll_timer_bcast_binomial",
			Class: mpit.ClassCounter}, "rule"},
		{"function-families", mapping.MVAPICH, mpit.Variable{Name: "mv2_coll_bcast_binomial_bytes_send",
			Class: mpit.ClassCounter}, `mpit_coll_bytes_total; labels algorithm="binomial",direction="send",function="bcast"`},
		{"function-families", mapping.MVAPICH, mpit.Variable{Name: "mv2_coll_reduce_scatter_ring_count_recv",
			Class: mpit.ClassCounter}, `mpit_coll_messages_total; labels algorithm="ring",direction="recv",function="reduce_scatter"`},
		{"function-families", mapping.MVAPICH, mpit.Variable{Name: "mv2_coll_bcast_scatter_ring_allgather",
			Class: mpit.ClassCounter}, `mpit_coll_calls_total; labels algorithm="scatter_ring_allgather",function="bcast"`},
		{"calls", mapping.MPICH, mpit.Variable{Name: "mpit_call_time_MPI_Iprobe", Class: mpit.ClassTimer,
			Bind: mpit.BindComm}, "rule"},
		{"calls", mapping.MPICH, mpit.Variable{Name: "mpit_call_time_MPI_Cart_create", Class: mpit.ClassTimer,
			Bind: mpit.BindComm}, "rule"},
		{"calls", mapping.MPICH, mpit.Variable{Name: "mpit_call_time_MPI_Win_allocate_shared",
			Class: mpit.ClassTimer, Bind: mpit.BindComm}, "rule"},
		{"calls", mapping.MPICH, mpit.Variable{Name: "mpit_call_time_MPI_Waitall", Class: mpit.ClassTimer},
			`mpit_call_time_seconds; labels function="MPI_Waitall"; buckets [1.52587890625e-05`},
		{"calls", mapping.MPICH, mpit.Variable{Name: "mpit_call_time_MPI_Win_complete", Class: mpit.ClassTimer,
			Bind: mpit.BindWin}, `mpit_call_time_seconds; labels function="MPI_Win_complete"; buckets [1.52587890625e-05`},
		{"calls", mapping.MPICH, mpit.Variable{Name: "mpit_call_bytes_sent_MPI_Send", Class: mpit.ClassAggregate,
			Bind: mpit.BindComm}, `mpit_call_bytes_total; labels direction="sent",function="MPI_Send"`},
		{"calls", mapping.MPICH, mpit.Variable{Name: "mpit_call_size_MPI_Send", Class: mpit.ClassAggregate,
			Distribution: true, Bind: mpit.BindComm}, `mpit_call_size_bytes; labels function="MPI_Send"; buckets [64`},
		{"limits", mapping.MPICH, mpit.Variable{Name: "x", Class: mpit.ClassTimer},
			`mpit_x_time_seconds; buckets [0.0001`},
	} {
		t.Run(c.file+" "+c.v.Name, func(t *testing.T) {
			s, err := rules.Load([]string{filepath.Join("../../examples/rules", c.file+".yaml")})
			require.NoError(t, err)
			m, err := variables.New(variables.Config{Rules: s.Rules})
			require.NoError(t, err)
			if c.v.Datatype = tDouble; c.v.Distribution {
				c.v.Datatype = mpit.DatatypeUint64
			}
			lib := mapping.Library{Name: c.library}
			metric, reason, ok := m.Metric(lib, c.v)
			if !ok {
				assert.Equal(t, c.want, string(reason))
				return
			}
			got := metric.Name
			decisions, _ := m.Explain(lib, c.v)
			for _, d := range decisions {
				if slices.Contains([]string{"labels", "elements", "object", "buckets"}, d.Property) && d.By != rules.Agent {
					first, _, _ := strings.Cut(d.Value, ", ")
					got += "; " + d.Property + " " + first
				}
			}
			assert.Equal(t, c.want, got)
		})
	}
}
