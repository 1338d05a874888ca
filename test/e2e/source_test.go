package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// sourceIndex is the least index of a variable that another library measures (docs/internals/protocol.md, VARIABLES).
const sourceIndex = 1 << 20

// source is a library that offers variables through the agent.
func source(t *testing.T) string {
	t.Helper()
	return suite.PlainProgram(t, "libsource.c", "library", "-shared", "-fPIC", "-I",
		filepath.Join(suite.Root(), "mpit", "agent"), "-ldl")
}

// sourced runs a program with both libraries, in one order or the other. told are the lines of what the library has
// been told, sorted.
func sourced(t *testing.T, job harness.Job, agentFirst bool, env ...string) (run *harness.Run, told func() []string) {
	t.Helper()
	file := filepath.Join(suite.Dir(t), "told")
	libraries := []string{source(t), suite.Agent()}
	if agentFirst {
		slices.Reverse(libraries)
	}
	job.Bare, job.Env = true, append([]string{"LIBSOURCE_FILE=" + file}, env...)
	job.Wrap = []string{"env", "LD_PRELOAD=" + strings.Join(libraries, ":")}
	return suite.Run(t, job), func() []string {
		text, err := os.ReadFile(file)
		if os.IsNotExist(err) {
			return nil
		}
		require.NoError(t, err)
		lines := strings.Fields(strings.ReplaceAll(strings.TrimSpace(string(text)), " ", "_"))
		slices.Sort(lines)
		return lines
	}
}

func ofObjects(line string) bool {
	return strings.HasPrefix(line, "made") || strings.HasPrefix(line, "freed")
}

func times(n int, line string) []string { return slices.Repeat([]string{line}, n) }

// What another library measures is read as the MPI library's own variables are, whichever of the two comes first; it
// is switched off in children, and before the last sample.
func TestAnotherLibraryMeasures(t *testing.T) {
	t.Parallel()
	for _, mpi := range harness.Both(t) {
		for _, agentFirst := range []bool{false, true} {
			t.Run(mpi.Name+map[bool]string{false: "/source, agent", true: "/agent, source"}[agentFirst],
				func(t *testing.T) {
					ctx, l := toolContext(t), tool(t)
					job := harness.Job{MPI: mpi, Program: "forks.c", Args: []string{harness.HoldDir}, Socket: l.Path()}
					run, told := sourced(t, job, agentFirst)
					s := accept(ctx, t, l, run.Ranks)[1]
					run.AtHold(t, "forked")

					sample, v, world := bound(ctx, t, s, "measured_time", mpit.BindComm, "MPI_COMM_WORLD")
					assert.True(t, v.Distribution && v.ReadOnly && v.Continuous)
					assert.Equal(t, mpit.ClassTimer, v.Class)
					assert.Equal(t, sourceIndex+2, v.Index)
					h := sample.Layout.Handles[slices.IndexFunc(sample.Layout.Handles,
						func(h mpit.Handle) bool { return h.Variable == v.ID && h.Object == world.ID })]
					assert.WithinRange(t, h.Created, world.Created, sample.Time) // named right after it was made
					assert.Nil(t, h.Before().First)
					want := make([]uint64, 45)
					want[0], want[4] = 5, 1
					assert.Equal(t, want, sample.Values[h.Offset:h.Offset+h.Count])
					assert.EqualValues(t, run.Ranks, sampled(ctx, t, s, "measured_size", mpit.BindComm,
						"MPI_COMM_WORLD"))
					assert.EqualValues(t, 1, sampled(ctx, t, s, "measured_size", mpit.BindComm, "MPI_COMM_SELF"))

					all, stamp, err := s.Categories(ctx)
					require.NoError(t, err)
					assert.Equal(t, sample.Stats.CategoryStamp, stamp)
					categories := slices.DeleteFunc(all, func(c mpit.Category) bool {
						return !slices.Contains(c.Variables, v.Index)
					})
					require.Len(t, categories, 1)
					assert.Equal(t, "measured", categories[0].Name)
					assert.Equal(t, []int{sourceIndex, sourceIndex + 1, sourceIndex + 2}, categories[0].Variables)

					index, variable, known, err := s.PvarIndex(ctx, "measured_time", mpit.ClassTimer)
					require.NoError(t, err)
					assert.True(t, known)
					assert.Equal(t, v.Index, index)
					assert.Equal(t, v.ID, variable)
					p, err := s.CreatePvarSession(ctx)
					require.NoError(t, err)
					_, err = p.AllocHandle(ctx, v.ID, world.ID)
					assert.ErrorIs(t, err, mpit.ErrNotSupported)

					assert.Zero(t, run.Finish(t, "forked").Status)
					// Off where MPI_Finalize begins, and for good before the last sample.
					lines := slices.Concat(times(2, "begin"), times(4, "made_1"), times(4, "off"),
						times(6, "off_in_a_child"), times(2, "on"))
					assert.Equal(t, lines, told())
				})
		}
	}
}

// Every communicator, window and file that the program makes is told, and its end after the last reading.
func TestAnotherLibraryIsToldOfObjects(t *testing.T) {
	t.Parallel()
	for _, mpi := range harness.Both(t) {
		t.Run(mpi.Name, func(t *testing.T) {
			exporter := suite.Exporter(t)
			run, told := sourced(t, harness.Job{MPI: mpi, Program: "objects.c", Args: []string{harness.HoldDir},
				Socket: exporter.Socket}, false)
			run.AtHold(t, "made")
			exporter.Await(t, "the objects", all(up(run), objects(run, "comm", "grid", 1)))
			run.Release(t, "made")
			run.AtHold(t, "freed")
			exporter.Await(t, "the ends", all(up(run), objects(run, "comm", "grid", 0)))
			assert.Zero(t, run.Finish(t, "freed", "empty").Status)
			lines := slices.Concat(times(2, "begin"), times(10, "freed_1"), times(4, "freed_4"), times(8, "freed_8"),
				times(14, "made_1"), times(4, "made_4"), times(8, "made_8"), times(4, "off"), times(2, "on"))
			assert.Equal(t, lines, told())
		})
	}
}

// A library that can't measure, or that doesn't know this agent's version, leaves everything as it is without it; the
// log says why. Where the agent is switched off nothing is measured.
func TestAnotherLibraryIsLeftAlone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		env   []string
		log   string
		lines []string
	}{
		{"taken", nil, "measured is measured in this process",
			slices.Concat(times(2, "begin"), times(4, "off"), times(2, "on"))},
		{"refuses", []string{"LIBSOURCE_REFUSES=1"}, "measured can't be measured: it was told so", times(2, "begin")},
		{"of another version", []string{"LIBSOURCE_STRANGE=1"},
			"mpit_agent_source is of another version than this agent's 9", nil},
		{"agent switched off", []string{"MPIT_AGENT_DISABLE=1"}, "", nil},
	} {
		for _, mpi := range harness.Both(t) {
			t.Run(c.name+"/"+mpi.Name, func(t *testing.T) {
				job := harness.Job{MPI: mpi, Program: "calls.c", Args: []string{"-"},
					Socket: filepath.Join(suite.Dir(t), "nobody.sock")}
				run, told := sourced(t, job, false, append(c.env, "MPIT_AGENT_LOG=1")...)
				result := run.Finish(t)
				assert.Zero(t, result.Status)
				assert.Contains(t, result.Stderr, c.log)
				assert.Equal(t, c.lines, slices.DeleteFunc(told(), ofObjects))
			})
		}
	}
}
