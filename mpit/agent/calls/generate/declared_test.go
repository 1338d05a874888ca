package main

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What mpi.h declares and the table leaves out, with the reason. The first pattern that fits holds.
var leftOut = []struct{ reason, patterns string }{
	{"MPI's beginning and end, in which there is nothing else to see",
		"MPI_Init MPI_Init_thread MPI_Finalize MPI_Session_init MPI_Session_finalize MPI_Abort"},
	{"local questions of what MPI is", "MPI_Initialized MPI_Finalized MPI_Query_thread MPI_Is_thread_main " +
		"MPI_Get_version MPI_Get_library_version MPI_Get_processor_name MPI_Wtime MPI_Wtick"},
	{"local: the hardware that MPI sees, and what its standard ABI is", "MPI_Get_hw_resource_info MPI_Abi_*"},
	{"the program's word to tools", "MPI_Pcontrol"},
	{"the interface of tools", "MPI_T_*"},
	{"local: datatypes, packing, addresses, memory", "MPI_Type_* MPI_Pack* MPI_Unpack* MPI_Address MPI_Get_address " +
		"MPI_Aint_* MPI_Alloc_mem MPI_Free_mem MPI_Sizeof MPI_Register_datarep*"},
	{"local: what a status says", "MPI_Get_count* MPI_Get_elements* MPI_Status_* MPI_Test_cancelled"},
	{"local: reductions and operations", "MPI_Op_* MPI_Reduce_local*"},
	{"local: groups, infos, attributes, error handlers, error codes", "MPI_Group_* MPI_Info_* MPI_Attr_* " +
		"MPI_Keyval_* MPI_*_keyval MPI_*_attr MPI_Errhandler_* MPI_*_errhandler MPI_Add_error_* MPI_Error_* " +
		"MPI_Remove_error_*"},
	{"handles of Fortran, and as numbers", "MPI_*_toint MPI_*_c2f MPI_*_f2c MPI_*_f2f08 MPI_*_f082f MPI_*_c2f08 " +
		"MPI_*_f082c"},
	{"local: what a communicator or a session is", "MPI_Comm_rank MPI_Comm_size MPI_Comm_remote_* " +
		"MPI_Comm_test_inter MPI_Comm_compare MPI_Comm_group MPI_Comm_get_* MPI_Comm_set_* MPI_Session_get_* " +
		"MPI_Session_set_info"},
	{"local: topologies", "MPI_Topo_test MPI_Cart_coords MPI_Cart_get MPI_Cart_map MPI_Cart_rank MPI_Cart_shift " +
		"MPI_Cartdim_get MPI_Dims_create MPI_Graph_get MPI_Graph_map MPI_Graph_neighbors* MPI_Graphdims_get " +
		"MPI_Dist_graph_neighbors*"},
	{"local: what a window is, and memory of a dynamic one",
		"MPI_Win_get_* MPI_Win_set_* MPI_Win_shared_query* MPI_Win_attach MPI_Win_detach"},
	{"local: what a file is, and where this process's pointer stands", "MPI_File_get_amode MPI_File_get_atomicity " +
		"MPI_File_get_byte_offset MPI_File_get_group MPI_File_get_info MPI_File_get_position " +
		"MPI_File_get_type_extent* MPI_File_get_view MPI_File_seek"},
	{"local: ends a request, or asks for its end", "MPI_Cancel MPI_Request_free MPI_Grequest_complete " +
		"MPIX_Grequest_*"},
	{"local: gives memory; what takes it back waits, and is measured",
		"MPI_Buffer_attach* MPI_Comm_attach_buffer* MPI_Session_attach_buffer*"},
	{"names of servers: no messages", "MPI_Open_port MPI_Close_port MPI_Publish_name MPI_Unpublish_name " +
		"MPI_Lookup_name"},
	{"extensions that are no part of the standard", "MPIX_Comm_* MPIX_Delete_error_* MPIX_Query_* MPIX_Type_iov* " +
		"MPIX_Info_set_hex MPIX_Op_create_x MPIX_*_create_errhandler_x MPIX_Request_is_complete"},
	{"MPICH's extensions: streams, threads as processes, progress by hand", "MPIX_Stream_* MPIX_*_enqueue " +
		"MPIX_*_enqueue_c MPIX_Threadcomm_* MPIX_Start_progress_thread MPIX_Stop_progress_thread MPIX_Async_*"},
}

var declaration = regexp.MustCompile(`\b(?:int|double|MPI_Aint)\s+(MPIX?_[A-Z][a-z_]\w*)\s*\(`)

// Every function that an mpi.h of this machine declares stands in the table or in leftOut: none is forgotten.
func TestNothingForgotten(t *testing.T) {
	known := map[string]bool{}
	for _, f := range shipped(t) {
		for _, w := range f.wrappers {
			known[w.symbol] = true
		}
	}
	for _, family := range []string{"openmpi", "mpich"} {
		t.Run(family, func(t *testing.T) {
			found := declaredBy(t, family)
			var forgotten, needless []string
			for _, name := range found {
				excused := slices.ContainsFunc(leftOut,
					func(l struct{ reason, patterns string }) bool { return matches(l.patterns, name) })
				switch {
				case known[name] && excused:
					needless = append(needless, name)
				case !known[name] && !excused:
					forgotten = append(forgotten, name)
				}
			}
			assert.Empty(t, forgotten, "declared in mpi.h, and neither in functions.txt nor in leftOut with a reason")
			assert.Empty(t, needless, "in functions.txt now: take them out of leftOut")
		})
	}
}

func matches(patterns, name string) bool {
	for pattern := range strings.FieldsSeq(patterns) {
		if ok, err := path.Match(pattern, name); ok && err == nil {
			return true
		}
	}
	return false
}

// declaredBy is the functions that a library's mpi.h, and the headers of functions beside it, declare.
func declaredBy(t *testing.T, family string) []string {
	t.Helper()
	//nolint:noctx // it looks at a few directories
	out, err := exec.Command("../../../../scripts/mpi-include", family).Output()
	if err != nil {
		t.Skipf("%s has no mpi.h here", family)
	}
	directory := strings.TrimSpace(string(out))
	var names []string
	for _, header := range []string{"mpi.h", "mpi_proto.h", "mpio.h", "mpiext/mpiext_pcollreq_c.h"} {
		text, err := os.ReadFile(filepath.Join(directory, header))
		if os.IsNotExist(err) {
			continue
		}
		require.NoError(t, err)
		for _, d := range declarations(string(text)) {
			if !slices.Contains(names, d) {
				names = append(names, d)
			}
		}
	}
	require.Greater(t, len(names), 300, "mpi.h is not understood")
	return names
}

var (
	comments = regexp.MustCompile(`(?s)/\*.*?\*/`)
	macros   = regexp.MustCompile(`(?m)^[ \t]*#.*$`)
)

func declarations(header string) []string {
	header = comments.ReplaceAllString(header, "")
	header = macros.ReplaceAllString(strings.ReplaceAll(header, "\\\n", ""), "")
	var names []string
	for _, d := range declaration.FindAllStringSubmatch(header, -1) {
		names = append(names, d[1])
	}
	return names
}

func TestDeclarations(t *testing.T) {
	assert.Equal(t, []string{"MPI_Send", "MPI_Wtime", "MPIX_Bcast_init"}, declarations(`
#define MPI_Comm_old(x) \
	MPI_Comm_older(x)
/* MPI_Gone(int) was removed */
typedef int (MPI_Copy_function)(MPI_Comm, int);
typedef void (MPI_User_function)(void *);
OMPI_DECLSPEC  int MPI_Send(const void *buf, int count);
double MPI_Wtime (void) MPICH_API_PUBLIC;
int MPIX_Bcast_init(void *buffer);
int PMPI_Send(const void *buf);
`))
}
