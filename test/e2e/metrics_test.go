package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/exporter"
	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest/catalogue"
	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// Whatever stands on the page of a node with real jobs stands in docs/metrics.md: Open MPI with monitoring, and MPICH.
func TestMetricsAreDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "metrics.md"))
	require.NoError(t, err)
	documented := map[string]bool{}
	for _, m := range regexp.MustCompile("`(mpit_[a-z0-9_]+)`").FindAllSubmatch(text, -1) {
		documented[string(m[1])] = true
	}

	server := suite.Exporter(t)
	for _, mpi := range harness.Both(t) {
		run := suite.Run(t, harness.Job{
			MPI: mpi, Program: "traffic.c", Args: []string{"5", "100", harness.HoldDir}, Socket: server.Socket,
			Exec: monitoring(mpi),
		})
		run.AtHold(t, "ready")
		server.Await(t, "the ranks", up(run))
		run.Release(t, "ready")
		run.AtHold(t, "half")
		page := server.Await(t, "the ranks at work", up(run))
		variables := 0
		for _, name := range page.Names("mpit_") {
			assert.True(t, documented[name], "%s is not in docs/metrics.md", name)
			if !exporter.Reserved(name) {
				variables++
			}
		}
		assert.Greater(t, variables, 5, "families of performance variables")
		run.Finish(t, "half", "done")
		server.Await(t, "the end", ended(run, "finalize"))
	}
}

// The catalogue that rules and documentation are tested with is what the library has.
func TestCatalogueOfOpenMPI(t *testing.T) {
	t.Parallel()
	list, err := catalogue.Read(filepath.Join("..", "..", "mapping", "testdata", "catalogues"))
	require.NoError(t, err)
	at := slices.IndexFunc(list, func(c *catalogue.Catalogue) bool { return c.Name == "openmpi-4.1.4-debian" })
	require.GreaterOrEqual(t, at, 0)
	type facts struct {
		class     mpit.Class
		datatype  mpit.Datatype
		bind      mpit.Bind
		verbosity mpit.Verbosity
		category  []string
	}
	want := map[string]facts{}
	for i, v := range list[at].MPIT() {
		want[v.Name] = facts{v.Class, v.Datatype, v.Bind, v.Verbosity, []string{list[at].Variables[i].Category}}
	}

	mpi := harness.OpenMPI(t)
	if !strings.HasPrefix(list[at].Name, "openmpi-"+mpi.Version+"-") {
		t.Skipf("there is no catalogue of Open MPI %s", mpi.Version)
	}
	server := suite.Exporter(t)
	run := suite.Run(t, harness.Job{
		MPI: mpi, Program: "tour.c", Args: []string{harness.HoldDir}, Socket: server.Socket,
		Exec: []string{"--monitoring"},
	})
	run.AtHold(t, "made")
	server.Await(t, "the ranks", up(run))
	var answer api.CatalogueList
	server.GetJSON(t, "/api/v1/catalogue?jobid="+run.ID+"&rank=0", &answer)
	require.Len(t, answer.Catalogues, 1)
	got := map[string]facts{}
	for _, v := range answer.Catalogues[0].Variables {
		if strings.HasPrefix(v.Name, "mtl_psm2_") { // of a component that is not in use: they would crash
			assert.Equal(t, mpit.VariableDenied, v.State, v.Name)
			continue
		}
		got[v.Name] = facts{v.Class, v.Datatype, v.Bind, v.Verbosity, v.Categories}
	}
	assert.Equal(t, want, got)
	run.Finish(t, "made", "freed")
}
