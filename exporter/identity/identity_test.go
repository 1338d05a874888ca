package identity

import (
	"slices"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mapping/rules"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// Rules rename after the control group has been compared, and nothing renames the user.
func TestIdentify(t *testing.T) {
	proc := fstest.MapFS{
		"12/cgroup": {Data: []byte("0::/system.slice/slurmstepd.scope/job_4711/step_0\n")},
		"12/status": {Data: []byte("Uid:\t1000\t1000\t1000\t1000\n")},
	}
	own, err := Compile([]rules.Relabel{
		{SourceLabels: []string{"source", "user", "cgroup_jobid"}, Separator: text("-"), TargetLabel: "jobid"},
		{SourceLabels: []string{"host", "rank", "library", "env_PALS_RANKID"}, Separator: text(" "),
			TargetLabel: "partition"},
	})
	require.NoError(t, err)
	hello := mpit.Hello{
		Host: "node7", Rank: 3, LibraryVersion: "Open MPI v4.1.4",
		Attributes: map[string]string{"SLURM_JOB_ID": "4711", "SLURM_STEP_ID": "0", "SLURM_JOB_NAME": "cfd",
			"PALS_RANKID": "blue\x1b", "SLURM_JOB_ACCOUNT": "physics", "SLURM_JOB_QOS": "normal\x1b"},
	}
	p, err := own.Identify(proc, &hello, mpit.Peer{PID: 12, UID: 1000}, "alice")
	require.NoError(t, err)
	assert.Equal(t, Process{
		ID:     Identity{JobID: "slurm-alice-4711", World: "0", User: "alice", Rank: 3},
		Source: "slurm", JobName: "cfd", Partition: "node7 3 openmpi blue\uFFFD", CgroupJobID: "4711", Check: Verified,
		Account: "physics", QOS: "normal\uFFFD",
	}, p)

	t.Run("without a control group", func(t *testing.T) {
		p, err := (&Rules{}).Identify(proc, &hello, mpit.Peer{PID: 13, UID: 1000}, "alice")
		require.Error(t, err)
		want := FromHello(&hello)
		want.ID.User = "alice"
		assert.Equal(t, want, p)
		assert.Equal(t, Unknown, p.Check)
	})
}

func TestCompare(t *testing.T) {
	sorted := []Identity{
		{JobID: "1", World: "0", User: "a", Rank: 9},
		{JobID: "1", World: "0", User: "b", Rank: 2},
		{JobID: "1", World: "0", User: "b", Rank: 10},
		{JobID: "1", World: "0", User: "b", Rank: 10, Dup: 1},
		{JobID: "1", World: "1", User: "a"},
		{JobID: "2"},
	}
	assert.True(t, slices.IsSortedFunc(sorted, Identity.Compare))
	for i := range sorted[1:] {
		assert.Negative(t, sorted[i].Compare(sorted[i+1]), "%d", i)
	}
}
