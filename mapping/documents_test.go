package mapping

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

const exampleRules = "../examples/rules"

// Every example can be used as it is, alone and with all others.
func TestExampleFiles(t *testing.T) {
	files, err := filepath.Glob(exampleRules + "/*.yaml")
	require.NoError(t, err)
	assert.GreaterOrEqual(t, len(files), 4)
	for _, path := range append(files, exampleRules) {
		s, err := Load([]string{path})
		require.NoError(t, err)
		_, err = New(Config{Rules: s.Rules, Rank: s.Rank})
		assert.NoError(t, err)
	}
}

// What the examples say of themselves.
func TestWhatTheExamplesDo(t *testing.T) {
	for _, c := range []struct {
		file    string
		library string
		v       mpit.Variable
		want    string // the first series, or why there is none
	}{
		{"developer-variables", OpenMPI, mpit.Variable{Name: "x", Class: mpit.ClassLevel, Verbosity: mpit.VerbosityMPIDevAll}, "rule"},
		{"developer-variables", OpenMPI, mpit.Variable{Name: "x", Class: mpit.ClassLevel, Verbosity: mpit.VerbosityUserAll}, `mpit_x_level{jobid="…",world="…",user="…",rank="0"}`},
		{"developer-variables", MPICH, mpit.Variable{Name: "rma_winfence", Class: mpit.ClassTimer, Verbosity: mpit.VerbosityMPIDevDetail}, `mpit_rma_winfence_time_seconds_bucket{jobid="…",world="…",user="…",rank="0",le="1e-06"}`},
		{"developer-variables", MPICH, mpit.Variable{Name: "rma_winfence", Class: mpit.ClassCounter, Verbosity: mpit.VerbosityMPIDevDetail}, "rule"},
		{"wide-nodes", MPICH, mpit.Variable{Name: "x", Class: mpit.ClassLevel}, `mpit_x_level{jobid="…",world="…",user="…"}`},
		{"wide-nodes", MPICH, mpit.Variable{Name: "unexpected_recvq_length", Class: mpit.ClassLevel}, `mpit_unexpected_recvq_length{jobid="…",world="…",user="…",rank="0"}`},
		{"wide-nodes", OpenMPI, mpit.Variable{Name: "pml_monitoring_messages_count", Class: mpit.ClassSize, Bind: mpit.BindComm}, `mpit_pml_monitoring_messages_total{jobid="…",world="…",user="…",comm="MPI_COMM_WORLD"}`},
		{"wide-nodes", OpenMPI, mpit.Variable{Name: "osc_monitoring_messages_sent_count", Class: mpit.ClassSize, Bind: mpit.BindComm}, `mpit_osc_monitoring_messages_sent_total{jobid="…",world="…",user="…"}`},
		{"peers", OpenMPI, mpit.Variable{Name: "coll_monitoring_messages_size", Class: mpit.ClassSize, Bind: mpit.BindComm}, `mpit_coll_monitoring_bytes_total{jobid="…",world="…",user="…",rank="0",comm="MPI_COMM_WORLD",peer="0"}`},
		{"psm2-bytes", OpenMPI, mpit.Variable{Name: "mtl_psm2_tx_eager_bytes", Class: mpit.ClassCounter}, `mpit_mtl_psm2_tx_eager_bytes_total{jobid="…",world="…",user="…",rank="0"}`},
		{"psm2-bytes", OpenMPI, mpit.Variable{Name: "mtl_psm2_tx_eager_num", Class: mpit.ClassCounter}, `mpit_mtl_psm2_tx_eager_messages_total{jobid="…",world="…",user="…",rank="0"}`},
		{"function-families", MVAPICH, mpit.Variable{Name: "mv2_coll_timer_bcast_binomial", Class: mpit.ClassTimer}, `mpit_coll_time_seconds_bucket{jobid="…",world="…",user="…",rank="0",algorithm="binomial",function="bcast",le="1e-05"}`},
		{"function-families", MVAPICH, mpit.Variable{Name: "mv2_coll_timer_bcast_binomial", Class: mpit.ClassCounter}, "rule"},
		{"function-families", MVAPICH, mpit.Variable{Name: "mv2_coll_bcast_binomial_bytes_send", Class: mpit.ClassCounter}, `mpit_coll_bytes_total{jobid="…",world="…",user="…",rank="0",algorithm="binomial",direction="send",function="bcast"}`},
		{"function-families", MVAPICH, mpit.Variable{Name: "mv2_coll_reduce_scatter_ring_count_recv", Class: mpit.ClassCounter}, `mpit_coll_messages_total{jobid="…",world="…",user="…",rank="0",algorithm="ring",direction="recv",function="reduce_scatter"}`},
		{"function-families", MVAPICH, mpit.Variable{Name: "mv2_coll_bcast_scatter_ring_allgather", Class: mpit.ClassCounter}, `mpit_coll_calls_total{jobid="…",world="…",user="…",rank="0",algorithm="scatter_ring_allgather",function="bcast"}`},
		{"calls", MPICH, mpit.Variable{Name: "mpit_call_time_MPI_Iprobe", Class: mpit.ClassTimer, Bind: mpit.BindComm}, "rule"},
		{"calls", MPICH, mpit.Variable{Name: "mpit_call_time_MPI_Cart_create", Class: mpit.ClassTimer, Bind: mpit.BindComm}, "rule"},
		{"calls", MPICH, mpit.Variable{Name: "mpit_call_time_MPI_Win_allocate_shared", Class: mpit.ClassTimer, Bind: mpit.BindComm}, "rule"},
		{"calls", MPICH, mpit.Variable{Name: "mpit_call_time_MPI_Waitall", Class: mpit.ClassTimer}, `mpit_call_time_seconds_bucket{jobid="…",world="…",user="…",rank="0",function="MPI_Waitall",le="1.52587890625e-05"}`},
		{"calls", MPICH, mpit.Variable{Name: "mpit_call_time_MPI_Win_complete", Class: mpit.ClassTimer, Bind: mpit.BindWin}, `mpit_call_time_seconds_bucket{jobid="…",world="…",user="…",rank="0",function="MPI_Win_complete",win="unnamed",le="1.52587890625e-05"}`},
		{"calls", MPICH, mpit.Variable{Name: "mpit_call_bytes_sent_MPI_Send", Class: mpit.ClassAggregate, Bind: mpit.BindComm}, `mpit_call_bytes_total{jobid="…",world="…",user="…",rank="0",comm="MPI_COMM_WORLD",direction="sent",function="MPI_Send"}`},
		{"limits", MPICH, mpit.Variable{Name: "x", Class: mpit.ClassTimer}, `mpit_x_time_seconds_bucket{jobid="…",world="…",user="…",rank="0",le="0.0001"}`},
	} {
		t.Run(c.file+" "+c.v.Name, func(t *testing.T) {
			s, err := Load([]string{filepath.Join(exampleRules, c.file+".yaml")})
			require.NoError(t, err)
			m, err := New(Config{Rules: s.Rules, Rank: s.Rank})
			require.NoError(t, err)
			c.v.Datatype = tDouble
			e := m.Explain(Library{Name: c.library}, c.v, nil)
			if e.Drop != "" {
				assert.Equal(t, c.want, string(e.Drop))
				return
			}
			assert.Equal(t, c.want, e.Series[0])
		})
	}
}

var cString = regexp.MustCompile(`"([A-Za-z_][A-Za-z0-9_]*)"`)

// What rules of identity may read of a rank's environment is what the agent sends of it, and what the documentation
// says.
func TestEnvironmentIsWhatTheAgentSends(t *testing.T) {
	source, err := os.ReadFile("../mpit/agent/identity.c")
	require.NoError(t, err)
	_, list, ok := strings.Cut(string(source), "variables[] = {")
	require.True(t, ok)
	list, _, _ = strings.Cut(list, "};")
	var sent []string
	for _, m := range cString.FindAllStringSubmatch(list, -1) {
		sent = append(sent, m[1])
	}
	assert.Equal(t, sent, environment)
	text, err := os.ReadFile("../docs/labels.md")
	require.NoError(t, err)
	for _, name := range environment {
		assert.Contains(t, string(text), "`"+name+"`")
	}
}

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// What stands in the documentation can be copied out of it, and there is nothing of which it says nothing.
func TestDocumentedRules(t *testing.T) {
	text, err := os.ReadFile("../docs/rules.md")
	require.NoError(t, err)
	blocks := yamlBlock.FindAllStringSubmatch(string(text), -1)
	assert.GreaterOrEqual(t, len(blocks), 6)
	for _, b := range blocks {
		_, err := Parse("docs/rules.md", []byte(b[1]))
		assert.NoError(t, err, b[1])
	}
	for _, of := range []reflect.Type{reflect.TypeFor[File](), reflect.TypeFor[Match](), reflect.TypeFor[Rule](), reflect.TypeFor[Limits](), reflect.TypeFor[Relabel]()} {
		for key := range keysOf(of) {
			assert.True(t, strings.Contains(string(text), "`"+key+"`"), "%s of %v", key, of)
		}
	}
	words := slices.Concat(sourceLabels, targetLabels, reservedLabels, bindWords(), verbosityWords(), []string{OpenMPI, MPICH, MVAPICH, IntelMPI, CrayMPICH})
	for _, c := range classNames {
		words = append(words, string(c))
	}
	for u := range units {
		words = append(words, u)
	}
	for _, w := range words {
		assert.True(t, strings.Contains(string(text), "`"+w+"`"), w)
	}
}
