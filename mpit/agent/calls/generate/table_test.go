package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// shipped is the table that the library is made from.
func shipped(t *testing.T) []function {
	t.Helper()
	text, err := os.ReadFile("../functions.txt")
	require.NoError(t, err)
	functions, err := parseTable("functions.txt", string(text))
	require.NoError(t, err)
	return functions
}

func symbols(f function) string {
	var all []string
	for _, w := range f.wrappers {
		all = append(all, w.symbol)
	}
	return strings.Join(all, " ")
}

func TestForms(t *testing.T) {
	for name, test := range map[string]struct {
		line string
		// Functions, and what is counted as each.
		want map[string]string
	}{
		"a function": {
			"MPI_Wait | request status |",
			map[string]string{"MPI_Wait": "MPI_Wait"},
		},
		"large counts are the same function": {
			"MPI_Send _c | buf count type dest tag comm | sent(dest count type)",
			map[string]string{"MPI_Send": "MPI_Send MPI_Send_c"},
		},
		"forms of a collective operation are functions of their own": {
			"MPI_Barrier I init | comm |",
			map[string]string{"MPI_Barrier": "MPI_Barrier", "MPI_Ibarrier": "MPI_Ibarrier",
				"MPI_Barrier_init": "MPI_Barrier_init MPIX_Barrier_init"},
		},
		"all of it": {
			"MPI_Neighbor_allgather I init _c | sendbuf sendcount sendtype recvbuf recvcount recvtype comm | " +
				"neighbor_allgather",
			map[string]string{
				"MPI_Neighbor_allgather":  "MPI_Neighbor_allgather MPI_Neighbor_allgather_c",
				"MPI_Ineighbor_allgather": "MPI_Ineighbor_allgather MPI_Ineighbor_allgather_c",
				"MPI_Neighbor_allgather_init": "MPI_Neighbor_allgather_init MPI_Neighbor_allgather_init_c " +
					"MPIX_Neighbor_allgather_init",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			functions, err := parseTable("table", "[section]\n"+test.line)
			require.NoError(t, err)
			got := map[string]string{}
			for _, f := range functions {
				got[f.name] = symbols(f)
			}
			assert.Equal(t, test.want, got)
		})
	}
}

func TestPersistentFormHasNoBytes(t *testing.T) {
	functions, err := parseTable("table", "[section]\nMPI_Bcast I init | buf count type root comm | bcast")
	require.NoError(t, err)
	require.Len(t, functions, 3)
	assert.Equal(t, received, functions[1].movement.in, "MPI_Ibcast")
	assert.Equal(t, movement{}, functions[2].movement, "MPI_Bcast_init")
}

func TestObjects(t *testing.T) {
	for line, want := range map[string]binding{
		"MPI_Barrier | comm |":                            bindComm,
		"MPI_Win_fence | assert win |":                    bindWin,
		"MPI_File_sync | file |":                          bindFile,
		"MPI_Wait | request status |":                     bindNone,
		"MPI_File_open | comm string amode info newfile|": bindComm,
		"MPI_Comm_free | newcomm |":                       bindNone,
		"MPI_Buffer_flush | |":                            bindNone,
	} {
		functions, err := parseTable("table", "[section]\n"+line)
		require.NoError(t, err, line)
		assert.Equal(t, want, functions[0].bind, line)
	}
}

// What is wrong with a table is said with the line.
func TestMistakes(t *testing.T) {
	for name, test := range map[string]struct{ table, want string }{
		"nothing":          {"# nothing", "table: no function"},
		"a column too few": {"[a]\nMPI_Wait | request status", "table:2: 2 columns, not three"},
		"no section":       {"MPI_Wait | request status |", "table:1: no [section] stands in front of it"},
		"no name":          {"[a]\n | request |", `table:2: "" is no name of an MPI function`},
		"another's name":   {"[a]\nPMPI_Wait | request status |", `table:2: "PMPI_Wait" is no name`},
		"twice": {"[a]\nMPI_Wait | request status |\n\nMPI_Wait | request |",
			"table:4: MPI_Wait stands in line 2 already"},
		"twice, by a form": {"[a]\nMPI_Ibarrier | comm request |\nMPI_Barrier I | comm |",
			"table:3: MPI_Ibarrier stands in line 2 already"},
		"an unknown form": {"[a]\nMPI_Send _x | buf |", `table:2: MPI_Send: "_x" is no form`},
		"an unknown role": {"[a]\nMPI_Send | buffer |", `table:2: MPI_Send: parameter "buffer" has no role`},
		"a role twice":    {"[a]\nMPI_Send | buf count count |", `parameter "count" stands there twice`},
		"a form with a request": {"[a]\nMPI_Barrier I | comm request |",
			`the non-blocking form of MPI_Barrier: parameter "request" stands there twice`},
		"an unknown direction": {"[a]\nMPI_Send | count type | gone(count type)", `"gone" is no direction`},
		"two of one side": {"[a]\nMPI_Send | count type | sent(count type) written(count type)",
			"one of its side too many"},
		"bytes of what isn't": {"[a]\nMPI_Send | count type | sent(dest count type)",
			"sent: the function has no dest"},
		"bytes without a type":   {"[a]\nMPI_Send | buf count | sent(count)", `bytes of "count" can't be computed`},
		"bytes in another order": {"[a]\nMPI_Send | count type dest | sent(count type dest)", "can't be computed"},
		"sent by a status":       {"[a]\nMPI_Recv | status | sent(status)", "a status tells what has come"},
		"an unknown operation": {"[a]\nMPI_Bcast | buf count type root comm | broadcast",
			`bytes "broadcast": neither`},
		"an operation's roles": {"[a]\nMPI_Bcast | buf count type comm | bcast", "the function has no root"},
		"an operation's object": {"[a]\nMPI_Bcast | buf count type root win | bcast",
			"bcast is of a communicator, and there is none"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseTable("table", test.table)
			require.Error(t, err)
			assert.Contains(t, err.Error(), test.want)
		})
	}
}

// What holds for the table as it is, and no rule of the parser's says.
func TestShippedTable(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range shipped(t) {
		for _, w := range f.wrappers {
			assert.False(t, seen[w.symbol], "%s is made twice", w.symbol)
			seen[w.symbol] = true
		}
		m := f.movement
		switch f.bind {
		case bindComm:
			assert.NotContains(t, []direction{written, read}, m.out, f.name)
		case bindFile:
			assert.Contains(t, []direction{noDirection, written}, m.out, f.name)
			assert.Contains(t, []direction{noDirection, read, posted}, m.in, f.name)
		case bindWin:
			assert.Contains(t, []direction{noDirection, sent}, m.out, f.name)
			assert.Contains(t, []direction{noDirection, received}, m.in, f.name)
		case bindNone:
		}
		// The names say what a function does: of a form for large counts there is a count, and a status is only asked
		// of what has one.
		kinds := map[kind]bool{}
		for _, p := range f.parameters {
			kinds[p.kind] = true
		}
		wide := len(f.wrappers) > 1 && f.wrappers[1].wide
		hasCount := kinds[kindCount] || kinds[kindCounts] || kinds[kindUnit] || f.name == "MPI_Buffer_detach" ||
			f.name == "MPI_Comm_detach_buffer" ||
			f.name == "MPI_Session_detach_buffer"
		assert.Equal(t, hasCount, wide, "%s has a count, or has none, and so has a form for large counts, or has none",
			f.name)
		// A blocking receive or read knows what has come; a non-blocking one, room.
		if m.needsStatus() {
			assert.False(t, kinds[kindRequestAt], f.name)
		}
		if m.in == posted {
			assert.True(t, kinds[kindRequestAt], f.name)
		}
	}
	// Each rule of movement.go is used: a collective operation that nothing names has a misspelt one.
	used := map[string]bool{}
	for _, f := range shipped(t) {
		used[f.movement.collective] = true
	}
	for name := range collectives {
		assert.True(t, used[name], "no function's bytes are %q", name)
	}
}

// What calls do that wait for others, and what they do that don't.
func TestActivities(t *testing.T) {
	got := map[string]activity{}
	for _, f := range shipped(t) {
		got[f.name] = f.activity()
	}
	for name, want := range map[string]activity{
		"MPI_Send": sending, "MPI_Ssend": sending, "MPI_Isend": sending, "MPI_Irecv": sending, "MPI_Start": sending,
		"MPI_Send_init": sending, "MPI_Pready": sending, "MPI_Ibarrier": sending, "MPI_Allreduce_init": sending,
		"MPI_Put": sending, "MPI_Rget": sending, "MPI_Comm_idup": sending, "MPI_Isendrecv": sending,
		"MPI_Test": polling, "MPI_Testsome": polling, "MPI_Iprobe": polling, "MPI_Improbe": polling,
		"MPI_Win_test": polling, "MPI_Parrived": polling, "MPI_Request_get_status": polling,
		"MPI_Recv": waiting, "MPI_Mrecv": waiting, "MPI_Probe": waiting, "MPI_Sendrecv": waiting,
		"MPI_Sendrecv_replace": waiting, "MPI_Waitall": waiting,
		"MPI_Buffer_detach": waiting, "MPI_Comm_flush_buffer": waiting, "MPI_Win_fence": waiting,
		"MPI_Win_unlock": waiting, "MPI_Barrier": inCollective, "MPI_Bcast": inCollective,
		"MPI_Neighbor_alltoall": inCollective, "MPI_Comm_split": inCollective, "MPI_Win_allocate_shared": inCollective,
		"MPI_Win_free": inCollective, "MPI_File_open": inFile, "MPI_File_write_all": inFile, "MPI_File_iread": inFile,
	} {
		assert.Equal(t, want, got[name], name)
	}
}
