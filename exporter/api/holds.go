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

// Holds says whether a function is one of these, also as its binding for large counts.
func Holds(function string) bool {
	return slices.Contains(Holding(), strings.TrimSuffix(function, "_c"))
}
