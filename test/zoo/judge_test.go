package zoo

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The zoo is as large as it promises, and each answer can be given.
func TestAnswers(t *testing.T) {
	kinds, err := Kinds()
	require.NoError(t, err)
	trouble, healthy, pinned := map[string]int{}, 0, 0
	ids, roles := map[string]bool{}, []string{"culprit", "partner", "part", "all"}
	for _, k := range kinds {
		require.False(t, ids[k.ID()], "%s twice", k.ID())
		ids[k.ID()] = true
		require.True(t, (k.Program == "") != (k.Command == nil), k.ID())
		require.NotEmpty(t, k.State, k.ID())
		require.Positive(t, k.Within, k.ID())
		for _, state := range slices.Concat(k.State, k.Also) {
			require.Contains(t, states, state, k.ID())
		}
		for _, role := range slices.Concat(k.Name, k.May) {
			require.Contains(t, roles, role, k.ID())
		}
		if k.Pinned {
			pinned++
			assert.LessOrEqual(t, k.busy(), 2, "%s has more busy ranks than cores", k.ID())
		}
		if k.Healthy() {
			healthy++
			assert.Empty(t, k.Name, "nobody is guilty in %s", k.ID())
		} else {
			trouble[k.Class]++
		}
	}
	in := 0
	for class, count := range trouble {
		in += count
		assert.GreaterOrEqual(t, count, 5, class)
	}
	assert.Len(t, trouble, 10)
	assert.GreaterOrEqual(t, in, 60)
	assert.GreaterOrEqual(t, healthy, 10)
	assert.GreaterOrEqual(t, pinned, 25)
}

// Draws are the same for one seed, and differ between seeds.
func TestDraws(t *testing.T) {
	k := Kind{Kind: "late", Class: "collectives", Ranks: 4}
	assert.Equal(t, k.DrawFor(1, "mpich"), k.DrawFor(1, "mpich"))
	culprits := map[int]bool{}
	for seed := range uint64(50) {
		d := k.DrawFor(seed, "mpich")
		culprits[d.Culprit] = true
		require.NotEqual(t, d.Culprit, d.Partner)
	}
	assert.Len(t, culprits, 4)
}

func TestNamedIn(t *testing.T) {
	for text, want := range map[string][]int{
		"47 % of the time of ranks 0, 1, 3 is waiting for rank 2, which is on the CPU longer":          {2},
		"probably: rank 1 waits in MPI_Recv for rank 2 (tag 7), rank 2 in MPI_Recv for rank 1 (tag 9)": {2, 1},
		"rank 1 is one collective behind on halo (41 of 42); ranks 0, 2 wait for it":                   {1},
		"waiting for rank 0, which is in MPI_Recv: rank 1 has been in MPI_Barrier for 12s":             {0},
		"rank 2 called MPI_Abort(1)": {2},
		"healthy: 98 % useful":       nil,
		"2 of 4 ranks ended without MPI_Finalize, probably rank 3 on node (lost) first": {3},
		"waiting: 4 ranks have been in MPI_Barrier for 12s":                             nil,
	} {
		assert.Equal(t, want, NamedIn(text), text)
	}
}

func TestJudge(t *testing.T) {
	d := Draw{Culprit: 2, Partner: 0, Tag: 123, Name: "halo"}
	late := Kind{Class: "collectives", Ranks: 4, Pinned: true, State: []string{"late rank"},
		Also: []string{"communication"},
		Name: []string{"culprit"}, Says: []string{"MPI_Barrier", "@"}}
	dead := Kind{Class: "messages", Ranks: 4, State: []string{"deadlock"}, Name: []string{"culprit", "partner"},
		Says: []string{"#"}}
	healthy := Kind{Class: "healthy", Ranks: 4, Pinned: true, State: []string{"healthy"}}
	for _, c := range []struct {
		name string
		kind Kind
		said Said
		want Outcome
	}{
		{"all of it", late, Said{State: "late rank", Text: "wait in MPI_Barrier on halo for rank 2", Ranks: []int{2}}, Right},
		{"without the call", late, Said{State: "late rank", Text: "wait for rank 2", Ranks: []int{2}}, Silent},
		{"without the rank", late, Said{State: "late rank", Text: "in MPI_Barrier on halo"}, Silent},
		{"another rank", late, Said{State: "late rank", Text: "wait in MPI_Barrier on halo for rank 1", Ranks: []int{1}},
			Wrong},
		{"less than could be said", late, Said{State: "communication", Text: "60 % in MPI"}, Silent},
		{"less, and another rank", late, Said{State: "communication", Text: "60 % in MPI; rank 3", Ranks: []int{3}}, Wrong},
		{"nothing", late, Said{State: "unknown"}, Silent},
		{"other trouble", late, Said{State: "crashed"}, Misleading},
		{"no trouble", late, Said{State: "healthy"}, Wrong},
		{"no core for ranks with a core each", late, Said{State: "no core"}, Misleading},
		{"no core for more ranks than cores", dead, Said{State: "no core"}, Right},
		{"no core, and which rank", dead, Said{State: "no core", Ranks: []int{1}}, Right},
		{"no core for ranks with a core each, and which", late, Said{State: "no core", Ranks: []int{1}}, Wrong},
		{"today's word", dead, Said{State: "waiting", Text: "tag 123", Ranks: []int{0, 2}}, Right},
		{"a rank that only waits", dead, Said{State: "deadlock", Text: "tag 123", Ranks: []int{0, 1}}, Wrong},
		{"healthy", healthy, Said{State: "healthy"}, Right},
		{"healthy, and a rank", healthy, Said{State: "healthy", Ranks: []int{1}}, Wrong},
		{"healthy, alarmed", healthy, Said{State: "communication"}, Wrong},
	} {
		assert.Equal(t, c.want, c.kind.Judge(d, c.said).Outcome, c.name)
	}
}

func TestScore(t *testing.T) {
	d := Draw{Culprit: 1}
	k := Kind{Class: "collectives", Ranks: 2, Pinned: true, State: []string{"late rank"}, Name: []string{"culprit"},
		Within: 3}
	say := func(second float64, state string, ranks ...int) Said {
		return Said{Second: second, State: state, Ranks: ranks}
	}

	good := k.ScoreOf(d, []Said{say(0, "unknown"), say(1, "healthy"), say(2, "late rank", 1), say(3, "late rank", 1)})
	assert.Equal(t, Right, good.Outcome, "what is said before it is due doesn't count")
	assert.InDelta(t, 2, good.Until, 0)
	assert.Zero(t, good.Flips)

	early := k.ScoreOf(d, []Said{say(0, "late rank", 0), say(3, "late rank", 1)})
	assert.Equal(t, Wrong, early.Outcome, "but a wrong name always does")

	flips := k.ScoreOf(d, []Said{say(3, "late rank", 1), say(4, "healthy"), say(5, "late rank", 1)})
	assert.Equal(t, Wrong, flips.Outcome)
	assert.InDelta(t, 5, flips.Until, 0)
	assert.Equal(t, 2, flips.Flips)

	assert.Equal(t, Silent, k.ScoreOf(d, nil).Outcome)
}
