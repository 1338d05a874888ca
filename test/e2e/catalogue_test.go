package e2e

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// Debian's MPICH has no performance variables; what there is, is there: ranks, identity, ends, control variables.
func TestMPICHControlVariables(t *testing.T) {
	t.Parallel()
	server := suite.Exporter(t)
	run := suite.Run(t, harness.Job{
		MPI: harness.MPICH(t), Program: "tour.c", Args: []string{harness.HoldDir}, Socket: server.Socket,
		Env: []string{"MPIR_CVAR_BCAST_MIN_PROCS=17"},
	})
	run.AtHold(t, "made")
	server.Await(t, "the ranks", up(run))

	var list api.CatalogueList
	server.GetJSON(t, "/api/v1/catalogue?jobid="+run.ID+"&rank=0", &list)
	require.Empty(t, list.Errors)
	require.Len(t, list.Catalogues, 1)
	catalogue := list.Catalogues[0]
	assert.Equal(t, "mpich", catalogue.Rank.Library)
	assert.Empty(t, catalogue.Variables)
	count := suite.Run(t, harness.Job{MPI: harness.MPICH(t), Alone: true, Bare: true,
		Program: "cvarcount.c"}).Finish(t).Stdout
	assert.Equal(t, strings.TrimSpace(count), strconv.Itoa(len(catalogue.ControlVariables)), "what MPI_T itself says")
	assert.NotEmpty(t, catalogue.Categories)
	at := slices.IndexFunc(catalogue.ControlVariables, func(v api.ControlVariableStatus) bool {
		return v.Name == "MPIR_CVAR_BCAST_MIN_PROCS"
	})
	require.GreaterOrEqual(t, at, 0)
	require.NotNil(t, catalogue.ControlVariables[at].Value)
	assert.Equal(t, "17", *catalogue.ControlVariables[at].Value, "not what the job's environment says")

	// Whatever is asked of a rank, it goes on.
	assert.Equal(t, "tour: 2 ranks, sum 6\n", run.Finish(t, "made", "freed").Stdout)
	server.Await(t, "a regular end", all(ended(run, "finalize"), healthy))
}

// Of Open MPI the catalogue has performance variables with what becomes of them, those that would crash the rank
// marked as denied.
func TestOpenMPICatalogue(t *testing.T) {
	t.Parallel()
	server := suite.Exporter(t)
	run := suite.Run(t, harness.Job{
		MPI: harness.OpenMPI(t), Program: "tour.c", Args: []string{harness.HoldDir}, Socket: server.Socket,
		Exec: []string{"--monitoring"},
	})
	run.AtHold(t, "made")
	server.Await(t, "the ranks", up(run))

	var ranks api.RankList
	server.GetJSON(t, "/api/v1/ranks", &ranks)
	require.Len(t, ranks.Ranks, 2)
	assert.Equal(t, "up", ranks.Ranks[1].State)
	assert.Equal(t, 1, ranks.Ranks[1].Rank)

	var list api.CatalogueList
	server.GetJSON(t, "/api/v1/catalogue", &list)
	require.Empty(t, list.Errors)
	require.Len(t, list.Catalogues, 1, "one for the one world that is there")
	variables := map[string]api.VariableStatus{}
	for _, v := range list.Catalogues[0].Variables {
		variables[v.Name] = v
	}
	assert.Equal(t, unexpectedQueue, variables["pml_ob1_unexpected_msgq_length"].Metric)
	assert.Equal(t, mpit.BindComm, variables["pml_ob1_unexpected_msgq_length"].Bind)
	assert.Equal(t, mpit.VariableOpen, variables["pml_ob1_unexpected_msgq_length"].State)
	assert.Equal(t, allToAllBytes, variables["coll_monitoring_a2a_size"].Metric)
	assert.Equal(t, "By", variables["coll_monitoring_a2a_size"].Unit)
	assert.Equal(t, mpit.VariableDenied, variables["osc_rdma_put_retry_count"].State)
	assert.Greater(t, len(list.Catalogues[0].ControlVariables), 500)

	run.Finish(t, "made", "freed")
	server.Await(t, "a regular end", all(ended(run, "finalize"), healthy))
}
