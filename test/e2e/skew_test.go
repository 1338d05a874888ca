package e2e

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// release010 is the commit of release 0.1.0.
const release010 = "4921083d7071"

// Jobs run on while a node's exporter is updated, and an image of a job may be newer than its node. Either way all that
// both sides know is exact, what the older one doesn't know isn't there, and neither complains.
func TestVersionSkew(t *testing.T) {
	harness.LeftToCI(t)
	t.Parallel()
	binary := suite.Earlier(t, release010)
	for _, skew := range []struct {
		name, exporter, exec string
		calls                []string // what /api/v1/ranks has of a rank's calls
		spent, kind          string   // the family of a rank's time by kind of call, and its label
	}{
		{"agent 0.1.0", suite.Binary(), binary, []string{"running_seconds", "state_seconds"}, "mpit_rank_seconds_total",
			"state"},
		{"exporter 0.1.0", binary, suite.Binary(), []string{"inside_seconds", "kind_seconds", "observed_seconds",
			"running_seconds"}, "mpit_call_kind_seconds_total", "kind"},
	} {
		for _, mpi := range harness.Both(t) {
			exporter := func(t *testing.T) *harness.Exporter {
				return suite.ExporterWith(t, harness.ExporterConfig{Binary: skew.exporter})
			}
			t.Run(skew.name+"/"+mpi.Name+"/variables", func(t *testing.T) {
				exporter := exporter(t)
				run := suite.Run(t, harness.Job{MPI: mpi, Program: "traffic.c", Args: []string{"30", "500", harness.HoldDir},
					Socket: exporter.Socket, Binary: skew.exec, Exec: append(monitoring(mpi), "--calls"),
					Env: []string{"MPIT_AGENT_FINAL_WAIT=60000"}})
				run.AtHold(t, "ready")
				run.Release(t, "ready")
				run.AtHold(t, "half")
				scrape := exporter.Await(t, "half of the traffic", all(up(run), halves(run, mpi, 1)))
				spent, err := scrape.One(skew.spent, run.Labels(1).With(skew.kind, "collective"))
				require.NoError(t, err)
				assert.Positive(t, spent.Value)
				for _, calls := range toldOfCalls(t, exporter) {
					assert.Equal(t, skew.calls, slices.Sorted(maps.Keys(calls)))
				}
				if skew.exec == binary {
					assert.NoError(t, scrape.Expect("mpit_exporter_ranks_without_cpu_times", nil, 2))
				}
				run.Release(t, "half")
				run.AtHold(t, "done")
				result := run.Finish(t, "done")
				exporter.Await(t, "all of the traffic", all(ended(run, "finalize"), halves(run, mpi, 2), healthy))
				assert.NotContains(t, result.Stderr, "mpit")
				assert.NotRegexp(t, `level=(WARN|ERROR)`, exporter.Log())
			})
			t.Run(skew.name+"/"+mpi.Name+"/calls", func(t *testing.T) {
				exporter := exporter(t)
				profilePrograms[0].run(t, exporter, harness.Job{MPI: mpi, Binary: skew.exec, Exec: []string{"--calls"}})
				assert.NotRegexp(t, `level=(WARN|ERROR)`, exporter.Log())
			})
		}
	}
}

// toldOfCalls is what the API has of ranks' calls, as it was written.
func toldOfCalls(t *testing.T, exporter *harness.Exporter) (calls []map[string]json.RawMessage) {
	t.Helper()
	var list struct {
		Ranks []struct{ Calls map[string]json.RawMessage }
	}
	exporter.GetJSON(t, "/api/v1/ranks", &list)
	require.NotEmpty(t, list.Ranks)
	for _, r := range list.Ranks {
		calls = append(calls, r.Calls)
	}
	return calls
}
