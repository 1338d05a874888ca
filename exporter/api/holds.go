package api

import (
	"slices"
	"strings"
)

// Holding are the functions that no member of an intracommunicator leaves before all have begun them; those that move
// data only in calls with more than 0 bytes. Of others, libraries let ranks go that have what they need. The caller
// owns the list.
func Holding() []string {
	return []string{"MPI_Barrier", "MPI_Allreduce", "MPI_Allgather", "MPI_Alltoall", "MPI_Reduce_scatter_block",
		"MPI_Comm_dup", "MPI_Comm_dup_with_info", "MPI_Comm_split", "MPI_Comm_create"}
}

// Synchronises says that no rank leaves so many calls of a function before all members of the communicator have begun
// them. bytes is how many they have moved: of calls without data libraries let ranks go.
func Synchronises(function string, calls, bytes float64) bool {
	switch strings.TrimSuffix(function, "_c") {
	case "MPI_Allreduce", "MPI_Allgather", "MPI_Alltoall", "MPI_Reduce_scatter_block":
		return calls > 0 && bytes >= calls
	}
	return Holds(function)
}

// Holds says whether a function is one of these, also as its binding for large counts.
func Holds(function string) bool {
	return slices.Contains(Holding(), strings.TrimSuffix(function, "_c"))
}
