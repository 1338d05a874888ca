package e2e

import (
	"debug/elf"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// messages are the calls that the agent must never stand in front of: those that move data or wait for it (MPI-4.1
// chapters 3 to 6, 12, 14), without and with a request or a large count. Their persistent forms (…_init) only make an
// object.
var messages = regexp.MustCompile(`(?i)^P?MPIX?_(` + strings.Join([]string{
	`[BSR]?send`, `I[bsr]?send`, `I?recv`, `I?m?recv`, `Mrecv`, `I?m?probe`, `Mprobe`, `I?sendrecv(_replace)?`,
	`Start`, `Startall`, `(Wait|Test)(all|any|some)?`, `Test_cancelled`, `Cancel`,
	`Request_get_status(_all|_any|_some)?`, `Pready(_range|_list)?`,
	`Parrived`, `Get_count`, `Get_elements`,
	`I?barrier`, `I?bcast`, `I?gatherv?`, `I?scatterv?`, `I?allgatherv?`, `I?alltoall[vw]?`, `I?(all)?reduce`,
	`I?reduce_scatter(_block)?`,
	`Reduce_local`, `I?(ex)?scan`, `I?neighbor_all(gatherv?|toall[vw]?)`,
	`R?(put|get|accumulate|get_accumulate)`, `Fetch_and_op`, `Compare_and_swap`,
	`Win_(fence|start|complete|post|wait|test|lock|lock_all|unlock|unlock_all|flush|flush_all|flush_local|flush_local_all|sync)`,
	`File_i?(read|write)(_at|_shared|_ordered)?(_all)?(_begin|_end)?`, `File_sync`, `File_seek(_shared)?`,
	`(Un)?pack(_external)?`, `Wtime`, `Wtick`, `Initialized`, `Finalized`, `Get_address`,
}, "|") + `)(_c)?$`)

// The agent's file offers MPI functions and nothing else, none of them one that a message goes through. What it asks
// for is TestLibrariesNeedAnOldGlibc's.
func TestAgentsSymbols(t *testing.T) {
	t.Parallel()
	file, err := elf.Open(suite.Agent())
	require.NoError(t, err)
	defer file.Close()

	symbols, err := file.DynamicSymbols()
	require.NoError(t, err)
	defined := map[string]bool{}
	for _, symbol := range symbols {
		if symbol.Section != elf.SHN_UNDEF {
			defined[symbol.Name] = true
			assert.Equal(t, elf.STT_FUNC, elf.ST_TYPE(symbol.Info), "%s is no function", symbol.Name)
		}
	}
	require.NotEmpty(t, defined)
	for name := range defined {
		assert.Regexp(t, `^P?MPIX?_[A-Z]`, name)
		assert.False(t, messages.MatchString(name), "%s is a message call", name)
		other, isP := strings.CutPrefix(name, "P")
		if !isP {
			other = "P" + name
		}
		assert.True(t, defined[other], "%s without %s: Fortran bindings call the one, C programs the other", name,
			other)
	}
	for _, name := range []string{"MPI_Init", "MPI_Init_thread", "MPI_Abort", "MPI_T_init_thread"} {
		assert.True(t, defined[name], "%s is missing", name)
	}
}

// The list above knows message calls when it sees them, and what makes objects isn't among them.
func TestMessageCallsAreKnown(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"MPI_Send", "PMPI_Isend", "MPI_Bsend", "MPI_Irsend", "MPI_Recv", "MPI_Irecv_c", "MPI_Mrecv", "MPI_Imrecv",
		"MPI_Probe", "MPI_Iprobe",
		"MPI_Mprobe", "MPI_Improbe", "MPI_Sendrecv", "MPI_Isendrecv_replace", "MPI_Start", "MPI_Startall",
		"MPI_Wait", "MPI_Waitall",
		"MPI_Testsome", "MPI_Barrier", "MPI_Ibarrier", "MPI_Bcast", "MPI_Allreduce_c", "PMPI_Ialltoallw",
		"MPI_Reduce_scatter_block", "MPI_Exscan",
		"MPI_Ineighbor_allgatherv", "MPI_Put", "MPI_Rget_accumulate", "MPI_Compare_and_swap",
		"MPI_Win_flush_local_all", "MPI_Win_fence",
		"MPI_File_write_at_all", "MPI_File_iread", "MPI_File_read_ordered_begin", "MPI_Pready",
	} {
		assert.True(t, messages.MatchString(name), name)
	}
	for _, name := range []string{
		"MPI_Init", "MPI_Comm_dup", "MPI_Send_init", "MPI_Allreduce_init", "MPI_Win_create", "MPI_File_open",
		"MPI_Request_free",
		"MPI_Type_commit", "MPI_Pcontrol", "MPI_Comm_idup",
	} {
		assert.False(t, messages.MatchString(name), name)
	}
}
