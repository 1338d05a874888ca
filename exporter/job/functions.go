package job

import (
	"slices"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
)

// isOfFile says that a call may take as long as it likes.
func isOfFile(function string) bool {
	return strings.HasPrefix(function, "MPI_File_") && function != "MPI_File_open"
}

// isOfAllOfFile says that a call on a file is collective: what it waits for may be another rank.
func isOfAllOfFile(function string) bool {
	name := binding(function)
	return isOfFile(name) && slices.ContainsFunc([]string{"_all", "_ordered", "_close", "_set_", "_sync", "_preallocate",
		"_seek_shared"}, func(part string) bool { return strings.Contains(name, part) })
}

// finalizes is the function of MPI that a rank may stay in for long although it has done its work.
const finalizes = "MPI_Finalize"

func isOfWindow(function string) bool { return strings.HasPrefix(function, "MPI_Win_") }

// directions says what a message call may do; what waits for requests may do both.
func directions(function string) (sends, receives bool) {
	switch function {
	case "MPI_Send", "MPI_Ssend", "MPI_Rsend", "MPI_Bsend":
		return true, false
	case "MPI_Recv", "MPI_Mrecv", "MPI_Probe", "MPI_Mprobe":
		return false, true
	}
	return true, true
}

// isExchange says that a function waits for two ranks: whom it receives from, and whom it sends to, of which agents
// don't tell.
func isExchange(function string) bool {
	return binding(function) == "MPI_Sendrecv" || binding(function) == "MPI_Sendrecv_replace"
}

// isRequest says that a function begins a message that another call completes.
func isRequest(function string) bool {
	return slices.Contains([]string{"MPI_Isend", "MPI_Issend", "MPI_Irsend", "MPI_Ibsend", "MPI_Irecv", "MPI_Isendrecv",
		"MPI_Isendrecv_replace", "MPI_Start", "MPI_Startall"}, binding(function))
}

// binding is a function's name without what tells its binding for large counts, which is the same function.
func binding(function string) string { return strings.TrimSuffix(function, "_c") }

// blocking is the function that a collective call waits in: of a request's, its blocking form.
func blocking(c *api.CallUnderWay) string {
	if c.Of == "MPI_Comm_idup" || c.Of == "MPI_Comm_idup_with_info" {
		return "MPI_Comm_dup"
	}
	if name, is := strings.CutPrefix(c.Of, "MPI_I"); is && name != "" {
		return "MPI_" + strings.ToUpper(name[:1]) + name[1:]
	}
	return c.Function
}

// isRooted says that a collective function has a root.
func isRooted(function string) bool {
	name := strings.TrimPrefix(strings.TrimPrefix(binding(function), "MPI_"), "I")
	return slices.Contains([]string{"bcast", "gather", "gatherv", "reduce", "scatter", "scatterv"}, strings.ToLower(name))
}

// isCollective says whether a function may have to wait for all members of a communicator.
func isCollective(function string) bool {
	name, _ := strings.CutPrefix(function, "MPI_")
	return slices.ContainsFunc([]string{"All", "Barrier", "Bcast", "Cart_create", "Comm_", "Exscan", "Gather", "Graph_",
		"Neighbor_", "Reduce", "Scan", "Scatter", "Win_allocate", "Win_create", "Win_fence"},
		func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// isOfOtherWorlds says that a function waits for processes that aren't in the world, or may.
func isOfOtherWorlds(function string) bool {
	return slices.Contains([]string{"MPI_Comm_accept", "MPI_Comm_connect", "MPI_Comm_disconnect", "MPI_Comm_join",
		"MPI_Comm_spawn", "MPI_Comm_spawn_multiple", "MPI_Intercomm_create", "MPI_Intercomm_merge"}, function)
}
