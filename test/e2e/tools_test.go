package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// toolContext bounds everything that a test asks of ranks.
func toolContext(t *testing.T) context.Context {
	ctx, cancel := harness.Patient(t)
	t.Cleanup(cancel)
	return ctx
}

// tool is a Go program that listens itself, without an exporter.
func tool(t *testing.T) *mpit.Listener {
	t.Helper()
	l, err := mpit.Listen(filepath.Join(suite.Dir(t), "agent.sock"))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, l.Close()) })
	return l
}

// accept returns the sessions of a job's ranks, by rank.
func accept(ctx context.Context, t *testing.T, l *mpit.Listener, ranks int) []*mpit.Session {
	t.Helper()
	sessions := make([]*mpit.Session, ranks)
	for range ranks {
		s, err := l.Accept(ctx)
		require.NoError(t, err)
		t.Cleanup(func() { _ = s.Close() }) // it may have ended by itself
		sessions[s.Hello().Rank] = s
	}
	return sessions
}

// bound finds a variable by its name, and the object of a kind by its own.
func bound(ctx context.Context, t *testing.T, s *mpit.Session, variable string, kind mpit.Bind,
	object string) (sample mpit.Sample, v mpit.Variable, o mpit.Object) {
	t.Helper()
	sample, err := s.Read(ctx)
	require.NoError(t, err)
	for _, each := range sample.Variables.ByID {
		if each.Name == variable {
			v = each
		}
	}
	require.Equal(t, variable, v.Name)
	for _, each := range sample.Layout.Objects {
		if each.Kind == kind && each.Name == object {
			o = each
		}
	}
	require.Equal(t, object, o.Name)
	return sample, v, o
}

// sampled is the agent's own first value of a variable on an object.
func sampled(ctx context.Context, t *testing.T, s *mpit.Session, variable string, kind mpit.Bind,
	object string) uint64 {
	t.Helper()
	sample, v, o := bound(ctx, t, s, variable, kind, object)
	for _, h := range sample.Layout.Handles {
		if h.Variable == v.ID && h.Object == o.ID {
			return sample.Values[h.Offset]
		}
	}
	t.Fatalf("%s on %s is not in the sample", variable, object)
	return 0
}

func readOne(ctx context.Context, t *testing.T, h *mpit.PvarHandle) uint64 {
	t.Helper()
	values, err := h.Read(ctx)
	require.NoError(t, err)
	require.Len(t, values, 1)
	return values[0]
}

// A tool's handle counts what happens while it runs, and whatever the tool does with it the agent's figures stay
// exact: Open MPI's monitoring, which stops for the whole process when one handle is stopped, is the hardest case.
func TestToolsCountBesideTheAgent(t *testing.T) {
	t.Parallel()
	const rounds = 25
	const variable = "coll_monitoring_a2a_count"
	ctx, l := toolContext(t), tool(t)
	run := suite.Run(t, harness.Job{
		MPI: harness.OpenMPI(t), Program: "traffic.c", Args: []string{fmt.Sprint(rounds), "1000", harness.HoldDir},
		Exec: []string{"--monitoring"}, Socket: l.Path(),
	})
	s := accept(ctx, t, l, run.Ranks)[1]
	run.AtHold(t, "ready")
	p, err := s.CreatePvarSession(ctx)
	require.NoError(t, err)
	_, v, sums := bound(ctx, t, s, variable, mpit.BindComm, "sums")
	early, err := p.AllocHandle(ctx, v.ID, sums.ID)
	require.NoError(t, err)
	require.NoError(t, p.StartAll(ctx))
	run.Release(t, "ready")

	run.AtHold(t, "half")
	assert.EqualValues(t, rounds, readOne(ctx, t, early))
	require.ErrorIs(t, early.Stop(ctx), mpit.ErrPvarNoStartStop)
	require.ErrorIs(t, p.StopAll(ctx), mpit.ErrPvarNoStartStop)
	require.ErrorIs(t, early.Reset(ctx), mpit.ErrPvarNoWrite)
	other, err := s.CreatePvarSession(ctx)
	require.NoError(t, err)
	late, err := other.AllocHandle(ctx, v.ID, sums.ID)
	require.NoError(t, err)
	require.NoError(t, late.Start(ctx))
	brief, err := other.AllocHandle(ctx, v.ID, sums.ID)
	require.NoError(t, err)
	require.NoError(t, brief.Start(ctx))
	require.NoError(t, brief.Free(ctx))
	require.NoError(t, p.Free(ctx))
	require.ErrorIs(t, func() error { _, err := early.Read(ctx); return err }(), mpit.ErrInvalidSession)
	run.Release(t, "half")

	run.AtHold(t, "done")
	assert.EqualValues(t, rounds, readOne(ctx, t, late), "what it has counted since its own start")
	assert.EqualValues(t, 2*rounds, sampled(ctx, t, s, variable, mpit.BindComm, "sums"), "the agent's own")
	require.NoError(t, s.Close()) // with a handle that counts
	run.Finish(t, "done")
}

// A handle whose communicator or window is freed ends before it, with the job none the wiser.
func TestToolsHandleEndsWithItsObject(t *testing.T) {
	t.Parallel()
	const variable = "pml_ob1_unexpected_msgq_length"
	ctx, l := toolContext(t), tool(t)
	run := suite.Run(t, harness.Job{MPI: harness.OpenMPI(t), Program: "tour.c", Args: []string{harness.HoldDir},
		Socket: l.Path()})
	s := accept(ctx, t, l, run.Ranks)[0]
	run.AtHold(t, "made")
	p, err := s.CreatePvarSession(ctx)
	require.NoError(t, err)
	_, v, ring := bound(ctx, t, s, variable, mpit.BindComm, "ring")
	h, err := p.AllocHandle(ctx, v.ID, ring.ID)
	require.NoError(t, err)
	assert.Equal(t, run.Ranks, h.Count(), "a queue for each peer")
	_, err = h.Read(ctx)
	require.NoError(t, err)
	_, err = p.AllocHandle(ctx, v.ID, 0)
	require.ErrorIs(t, err, mpit.ErrInvalidHandle, "on which communicator?")
	run.Release(t, "made")

	run.AtHold(t, "freed")
	_, err = h.Read(ctx)
	require.ErrorIs(t, err, mpit.ErrInvalidHandle)
	_, err = p.AllocHandle(ctx, v.ID, ring.ID)
	require.ErrorIs(t, err, mpit.ErrInvalidHandle)
	run.Finish(t, "freed")
}

// settable are control variables of Debian's libraries that nothing looks at any more: a number and a string each.
var settable = map[string]struct{ number, text string }{
	"openmpi": {"allocator_bucket_num_buckets", "dl_dlopen_filename_suffixes"},
	"mpich":   {"MPIR_CVAR_REQUEST_POLL_FREQ", "MPIR_CVAR_IBCAST_TREE_TYPE"},
}

// What a tool sets is what the program itself reads afterwards, where the job's environment allows it and nowhere else.
func TestToolsSetControlVariables(t *testing.T) {
	t.Parallel()
	for _, mpi := range harness.Both(t) {
		for _, c := range []struct {
			name, variable string
			allowed        bool
			value          mpit.CvarValue
			want           string
		}{
			{"a number", settable[mpi.Name].number, true, mpit.CvarValue{Values: []uint64{77}}, "is 77"},
			{"a string", settable[mpi.Name].text, true, mpit.CvarValue{Text: "a longer string than it had before",
				IsText: true}, `is "a longer string than it had before"`},
			{"not allowed", settable[mpi.Name].number, false, mpit.CvarValue{Values: []uint64{77}}, ""},
		} {
			t.Run(mpi.Name+" "+c.name, func(t *testing.T) {
				ctx, l := toolContext(t), tool(t)
				job := harness.Job{MPI: mpi, Ranks: 1, Program: "cvars.c",
					Args: []string{c.variable, harness.HoldDir}, Socket: l.Path()}
				if c.allowed {
					job.Exec = []string{"--allow-write"}
				}
				run := suite.Run(t, job)
				s := accept(ctx, t, l, run.Ranks)[0]
				run.AtHold(t, "asked")
				assert.Equal(t, c.allowed, s.Hello().WriteAllowed)
				index, err := s.CvarIndex(ctx, c.variable)
				require.NoError(t, err)
				before, err := s.ReadCvar(ctx, index, 0)
				require.NoError(t, err)
				require.NotEqual(t, c.value, before)
				err = s.WriteCvar(ctx, index, 0, c.value)
				if !c.allowed {
					require.ErrorIs(t, err, mpit.ErrNotAccessible)
					run.Finish(t, "asked")
					return
				}
				require.NoError(t, err)
				after, err := s.ReadCvar(ctx, index, 0)
				require.NoError(t, err)
				assert.Equal(t, c.value, after)
				assert.Contains(t, run.Finish(t, "asked").Stdout, c.want)
			})
		}
	}
}
