package e2e

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/exporter/control"
	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// controlVariables of Debian's libraries: a LOCAL one that can be set and that nothing in a tour looks at, and one
// that all ranks must have alike.
var controlVariables = map[string]struct{ local, all string }{
	"openmpi": {"allocator_bucket_num_buckets", "coll_tuned_use_dynamic_rules"},
	"mpich":   {"MPIR_CVAR_REQUEST_POLL_FREQ", "MPIR_CVAR_BCAST_MIN_PROCS"},
}

// cvar runs "mpit-exporter cvar" and returns its answer.
func cvar(t *testing.T, server *harness.Exporter, status int, args ...string) control.Answer {
	t.Helper()
	command := append([]string{suite.Binary(), "cvar", args[0],
		"--control.socket=" + filepath.Join(filepath.Dir(server.Socket), "control.sock"), "--output=json"},
		args[1:]...)
	result := suite.Start(t, command, nil).Wait(t)
	require.Equal(t, status, result.Status, "%v: %s", args, result.Stderr)
	var answer control.Answer
	require.NoError(t, json.Unmarshal([]byte(result.Stdout), &answer), result.Stdout)
	return answer
}

// values are what ranks have, in their order.
func values(answer control.Answer) []string {
	var list []string
	for _, r := range answer.Ranks {
		if r.Value == nil {
			list = append(list, "?")
			continue
		}
		list = append(list, *r.Value)
	}
	return list
}

// A control variable of a running job is set in the ranks that are named and in no other, the job goes on, and what
// MPI forbids is refused.
func TestSetControlVariable(t *testing.T) {
	t.Parallel()
	for _, mpi := range harness.Both(t) {
		t.Run(mpi.Name, func(t *testing.T) {
			names := controlVariables[mpi.Name]
			server := suite.Exporter(t)
			run := suite.Run(t, harness.Job{
				MPI: mpi, Program: "tour.c", Args: []string{harness.HoldDir}, Socket: server.Socket,
				Exec: []string{"--allow-write"},
			})
			run.AtHold(t, "made")
			server.Await(t, "the ranks", up(run))
			job := "--jobid=" + run.ID

			before := cvar(t, server, 0, "get", job, names.local)
			require.Len(t, before.Ranks, 2)
			require.Equal(t, mpit.ScopeLocal, *before.Scope)
			old := values(before)
			require.NotContains(t, old, "77")

			set := cvar(t, server, 0, "set", job, "--rank=1", names.local+"=77")
			assert.Equal(t, control.OK, set.Result)
			require.Len(t, set.Ranks, 1)
			assert.Equal(t, 1, set.Ranks[0].Rank)
			assert.Equal(t, control.Written, set.Ranks[0].State)
			assert.Equal(t, old[1], *set.Ranks[0].Old)
			assert.Equal(t, []string{old[0], "77"}, values(cvar(t, server, 0, "get", job, names.local)))

			// The catalogue is read from the library anew, and has it too.
			var list api.CatalogueList
			server.GetJSON(t, "/api/v1/catalogue?jobid="+run.ID+"&rank=1", &list)
			require.Len(t, list.Catalogues, 1)
			for _, v := range list.Catalogues[0].ControlVariables {
				if v.Name == names.local {
					assert.Equal(t, "77", *v.Value)
				}
			}
			assert.Contains(t, server.Log(), `msg="Control variable set"`)
			assert.Contains(t, server.Log(), "ranks=1 name="+names.local)

			assert.Equal(t, []string{"78", "78"}, values(cvar(t, server, 0, "set", job, names.local+"=78")),
				"without --rank all are meant")
			cvar(t, server, 1, "set", job, names.local+"=2147483648")
			cvar(t, server, 1, "set", job, "--rank=7", names.local+"=1")
			cvar(t, server, 1, "set", job, "no_such_variable=1")
			part := cvar(t, server, 1, "set", job, "--rank=0", names.all+"=1")
			assert.Equal(t, control.Refused, part.Result)
			assert.Regexp(t, "has the scope (ALL_EQ|ALL|CONSTANT|READONLY)", part.Error)
			assert.Equal(t, []string{"78", "78"}, values(cvar(t, server, 0, "get", job, names.local)),
				"what was refused has changed nothing")
			text, _ := server.Get(t, "/metrics", "")
			assert.Contains(t, string(text), `mpit_exporter_cvar_writes_total{result="ok"} 2`)
			assert.Contains(t, string(text), `mpit_exporter_cvar_writes_total{result="refused"} 4`)

			assert.Equal(t, "tour: 2 ranks, sum 6\n", run.Finish(t, "made", "freed").Stdout)
			server.Await(t, "a regular end", all(ended(run, "finalize"), healthy))
		})
	}
}

// What all ranks must have alike is set in all of them.
func TestSetControlVariableOfAll(t *testing.T) {
	t.Parallel()
	mpi := harness.MPICH(t)
	server := suite.Exporter(t)
	run := suite.Run(t, harness.Job{
		MPI: mpi, Program: "tour.c", Args: []string{harness.HoldDir}, Socket: server.Socket,
		Exec: []string{"--allow-write"},
	})
	run.AtHold(t, "made")
	server.Await(t, "the ranks", up(run))
	answer := cvar(t, server, 0, "set", "MPIR_CVAR_BCAST_MIN_PROCS=17")
	assert.Equal(t, mpit.ScopeAllEq, *answer.Scope)
	assert.Equal(t, []string{"17", "17"}, values(answer), "the only job is meant")
	assert.Equal(t, "tour: 2 ranks, sum 6\n", run.Finish(t, "made", "freed").Stdout)
	server.Await(t, "a regular end", all(ended(run, "finalize"), healthy))
}

// A job that has not said so is not written to, not even by root.
func TestControlVariablesAreNotSetUnasked(t *testing.T) {
	t.Parallel()
	for _, mpi := range harness.Both(t) {
		t.Run(mpi.Name, func(t *testing.T) {
			server := suite.Exporter(t)
			run := suite.Run(t, harness.Job{MPI: mpi, Program: "tour.c", Args: []string{harness.HoldDir},
				Socket: server.Socket})
			run.AtHold(t, "made")
			server.Await(t, "the ranks", up(run))
			name := controlVariables[mpi.Name].local
			old := values(cvar(t, server, 0, "get", name))
			refused := cvar(t, server, 1, "set", name+"=77")
			assert.Equal(t, control.Refused, refused.Result)
			assert.Contains(t, refused.Error, "its job does not allow control variables to be written")
			assert.Equal(t, old, values(cvar(t, server, 0, "get", name)))
			run.Finish(t, "made", "freed")
		})
	}
}
