package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// alive: the rank has exactly these objects.
func alive(want []string) func(mpit.Sample) error {
	return func(s mpit.Sample) error {
		if got := inventory(s); !slices.Equal(got, want) {
			return fmt.Errorf("there are %q, not %q", got, want)
		}
		return nil
	}
}

// Objects of every kind are seen with what MPI tells of them, once each, and are gone when the program has freed
// them, in the order in which it likes to.
func TestObjects(t *testing.T) {
	t.Parallel()
	for _, mpi := range harness.Both(t) {
		t.Run(mpi.Name, func(t *testing.T) {
			bare := suite.Run(t, harness.Job{MPI: mpi, Program: "objects.c", Args: []string{"-"}, Bare: true}).Wait(t)
			require.Zero(t, bare.Status, bare.Stderr)

			ranks := listen(t)
			run := suite.Run(t, harness.Job{MPI: mpi, Program: "objects.c", Args: []string{harness.HoldDir},
				Socket: ranks.socket})
			run.AtHold(t, "made")
			hello, sample := ranks.await(t, 1, "a sample", func(mpit.Sample) error { return nil })
			assert.False(t, hello.SessionsOnly)
			want := []string{
				`comm "MPI_COMM_WORLD" predefined 1/2`,
				`comm "me" predefined 0/1`, // renamed
				`comm "grid" 1/2 topology=cart dims=2,1 periods=1,0`,
				`comm "net" 1/2 topology=graph nodes=2 edges=2`,
				`comm "ring" 1/2 topology=dist_graph indegree=1 outdegree=1`,
				`comm "" 0/1`, // half
				`comm "bridge" inter 0/1 remote_size=1`,
				`win "box" 1/2 on=grid bytes=64 disp_unit=4 flavor=create model=unified`,
				`win "later" 1/2 on=MPI_COMM_WORLD bytes=0 disp_unit=1 flavor=dynamic model=unified`,
				`win "given" 1/2 on=MPI_COMM_WORLD bytes=256 disp_unit=8 flavor=allocate model=unified`,
				`win "common" 0/1 on=me bytes=128 disp_unit=4 flavor=shared model=unified`,
				fmt.Sprintf(`file %q on=me mode=rdwr,create,delete_on_close`, run.File("data0.1")),
				fmt.Sprintf(`file %q on=me mode=wronly,create,delete_on_close`, run.File("data1.1")),
				`datatype "column" bytes=12 extent=36 lb=0 combiner=vector`,
				`datatype "particle" bytes=20 extent=24 lb=0 combiner=struct`,
				`datatype "" bytes=20 extent=24 lb=0 combiner=dup`,
				`errhandler "" on=comm`,
				`errhandler "" on=win`,
				`errhandler "" on=file`,
				`group "" -1/1`,
				`group "" 1/2`,
				`op "" commutative=true`,
				`op "" commutative=false`,
				`request "" on=grid operation=send_init`,
				`request "" on=grid operation=recv_init`,
				`request "" on=MPI_COMM_WORLD operation=barrier_init`,
				`info "" keys=one,two`,
				`info "" keys=two`,
			}
			want = append(want, worldsGroup(mpi)...) // got twice
			slices.Sort(want)
			assert.Equal(t, want, inventory(sample))
			assert.Zero(t, sample.Layout.ObjectsOverflow)
			for _, o := range sample.Layout.Objects {
				if o.Name == "box" {
					assert.Regexp(t, "^0x[0-9a-f]+$", o.Details[0].Value)
					assert.Equal(t, "base", o.Details[0].Key)
				}
			}

			run.Release(t, "made")
			run.AtHold(t, "freed")
			predefined := []string{`comm "MPI_COMM_WORLD" predefined 1/2`, `comm "me" predefined 0/1`}
			ranks.await(t, 1, "the group that is left", alive(append(slices.Clone(predefined), worldsGroup(mpi)...)))
			run.Release(t, "freed")
			run.AtHold(t, "empty")
			ranks.await(t, 1, "nothing but predefined objects", alive(predefined))

			assert.Equal(t, bare, run.Finish(t, "empty"))
			_, last := ranks.last(t, 1)
			assert.Equal(t, mpit.EndFinalize, last.End)
			assert.Equal(t, predefined, inventory(last))
		})
	}
}

// worldsGroup is what is seen of MPI_COMM_WORLD's group when the program has got it. In MPICH 5's own ABI it is
// predefined.
func worldsGroup(mpi *harness.MPI) []string {
	if mpi.Name == "mpich" && mpi.Major >= 5 && !mpi.ABI5 {
		return nil
	}
	return []string{`group "" 1/2`}
}

// Fortran's bindings come to the same functions by another way.
func TestObjectsInFortran(t *testing.T) {
	t.Parallel()
	for _, mpi := range harness.Both(t) {
		for _, program := range []string{"objects_mpifh.f", "objects_f08.f90"} {
			t.Run(mpi.Name+"/"+program, func(t *testing.T) {
				ranks := listen(t)
				run := suite.Run(t, harness.Job{MPI: mpi, Ranks: 1, Program: program,
					Args: []string{harness.HoldDir}, Socket: ranks.socket})
				run.AtHold(t, "made")
				_, sample := ranks.await(t, 0, "a sample", func(mpit.Sample) error { return nil })
				predefined := []string{`comm "MPI_COMM_SELF" predefined 0/1`, `comm "MPI_COMM_WORLD" predefined 0/1`}
				want := append([]string{
					fmt.Sprintf(`file %q on=MPI_COMM_SELF mode=rdwr,create,delete_on_close`, run.File("data.0")),
					`datatype "column" bytes=12 extent=36 lb=0 combiner=vector`,
					`request "" on=MPI_COMM_WORLD operation=send_init`,
					`info "" keys=one`,
				}, predefined...)
				if mpi.Name == "openmpi" || mpi.Major < 5 { // MPICH 5's Fortran makes it by a function of its own
					want = append(want, `op "" commutative=true`, `group "" 0/1`) // the group is worldsGroup
				}
				if mpi.Name == "mpich" && mpi.Major < 5 { // as Open MPI's does with this one
					want = append(want, `errhandler "" on=comm`)
				}
				slices.Sort(want)
				assert.Equal(t, want, inventory(sample))

				run.Release(t, "made")
				run.AtHold(t, "freed")
				ranks.await(t, 0, "nothing but predefined objects", alive(predefined))
				assert.Equal(t, "objects: done\n", strings.TrimLeft(run.Finish(t, "freed").Stdout, " "))
			})
		}
	}
}

// The bound on objects is each kind's own: so many groups don't keep a file from being seen.
func TestObjectsBoundOfEachKind(t *testing.T) {
	t.Parallel()
	for _, mpi := range harness.Both(t) {
		t.Run(mpi.Name, func(t *testing.T) {
			ranks := listen(t)
			run := suite.Run(t, harness.Job{
				MPI: mpi, Program: "objects.c", Args: []string{harness.HoldDir}, Socket: ranks.socket,
				Env: []string{"MPIT_AGENT_MAX_OBJECTS=2"},
			})
			run.AtHold(t, "made")
			_, sample := ranks.await(t, 0, "a sample", func(mpit.Sample) error { return nil })
			kinds := map[mpit.Bind]int{}
			for _, o := range sample.Layout.Objects {
				kinds[o.Kind]++
			}
			for _, kind := range []mpit.Bind{
				mpit.BindComm, mpit.BindWin, mpit.BindFile, mpit.BindDatatype, mpit.BindErrhandler, mpit.BindGroup,
				mpit.BindOp, mpit.BindRequest, mpit.BindInfo,
			} {
				assert.Equal(t, 2, kinds[kind], kind)
			}
			// Communicators, windows, datatypes (one of them freed again), error handlers, groups, requests.
			assert.Equal(t, uint64(5+2+2+1+len(worldsGroup(mpi))+1), sample.Layout.ObjectsOverflow)
			run.Finish(t, "made", "freed", "empty")
		})
	}
}

// What a function of the program's frees, called from inside a function that frees, is gone too.
func TestAnObjectFreedInsideAFree(t *testing.T) {
	t.Parallel()
	requests := func(sample mpit.Sample) int {
		n := 0
		for _, o := range sample.Layout.Objects {
			if o.Kind == mpit.BindRequest {
				n++
			}
		}
		return n
	}
	for _, mpi := range harness.Both(t) {
		t.Run(mpi.Name, func(t *testing.T) {
			ranks := listen(t)
			run := suite.Run(t, harness.Job{MPI: mpi, Ranks: 1, Program: "nested.c", Args: []string{harness.HoldDir},
				Socket: ranks.socket})
			run.AtHold(t, "made")
			_, sample := ranks.await(t, 0, "a sample", func(mpit.Sample) error { return nil })
			assert.Equal(t, 1, requests(sample))
			run.Release(t, "made")
			run.AtHold(t, "freed")
			_, sample = ranks.await(t, 0, "a sample after the end", func(mpit.Sample) error { return nil })
			assert.Equal(t, 0, requests(sample))
			result := run.Finish(t, "freed")
			assert.Equal(t, "freed\n", result.Stdout)
		})
	}
}
