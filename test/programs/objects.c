/* objects DIR: one object of every kind that a program can make, with details that are known; freed at the end. Two
 * ranks or more. */
#include "hold.h"
#include <mpi.h>

#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif

static void add(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *count; i++)
        ((int *)inout)[i] += ((int *)in)[i];
}

static void comm_error(MPI_Comm *comm, int *code, ...)
{
    (void)comm, (void)code;
}

static void file_error(MPI_File *file, int *code, ...)
{
    (void)file, (void)code;
}

static void win_error(MPI_Win *win, int *code, ...)
{
    (void)win, (void)code;
}

static struct {
    MPI_Comm cart, graph, distributed, half, inter;
    MPI_Win created, dynamic, allocated, shared;
    MPI_File file, second_file;
    MPI_Datatype vector, structure, named_late;
    MPI_Errhandler comm_errors, win_errors, file_errors, again;
    MPI_Group world, world_again, other, union_of;
    MPI_Op op, ordered;
    MPI_Request send, recv, barrier;
    MPI_Info info, copy;
} o;

static int rank, size, box[16], number[2];
static char path[2][4096];

static void make_comms(void)
{
    int dims[2] = {0, 1}, periods[2] = {1, 0}, index[64], edges[64], next = (rank + 1) % size, before = (rank + size - 1) % size, weight = 1;

    MPI_Comm_set_name(MPI_COMM_SELF, "me");
    MPI_Dims_create(size, 2, dims);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &o.cart);
    MPI_Comm_set_name(o.cart, "grid");
    for (int i = 0; i < size; i++) {
        index[i] = i + 1;
        edges[i] = (i + 1) % size;
    }
    MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &o.graph);
    MPI_Comm_set_name(o.graph, "net");
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &before, &weight, 1, &next, &weight, MPI_INFO_NULL, 0, &o.distributed);
    MPI_Comm_set_name(o.distributed, "ring");
    MPI_Comm_split(MPI_COMM_WORLD, rank == 0, rank, &o.half);
    MPI_Intercomm_create(o.half, 0, MPI_COMM_WORLD, rank == 0, 7, &o.inter);
    MPI_Comm_set_name(o.inter, "bridge");
}

static void make_wins(void)
{
    void *base;

    MPI_Win_create(box, sizeof box, sizeof box[0], MPI_INFO_NULL, o.cart, &o.created);
    MPI_Win_set_name(o.created, "box");
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &o.dynamic);
    MPI_Win_set_name(o.dynamic, "later");
    MPI_Win_allocate(256, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &o.allocated);
    MPI_Win_set_name(o.allocated, "given");
    /* MPICH 5 on UCX takes each process for a node of its own. */
    MPI_Win_allocate_shared(128, 4, MPI_INFO_NULL, MPI_COMM_SELF, &base, &o.shared);
    MPI_Win_set_name(o.shared, "common");
}

static void make_files(const char *dir)
{
    /* Each rank its own: nothing of a parallel file system is needed. */
    for (int i = 0; i < 2; i++) {
        snprintf(path[i], sizeof path[i], "%s/data%d.%d", strcmp(dir, "-") == 0 ? "/tmp" : dir, i, rank);
        if (strcmp(dir, "-") == 0)
            snprintf(path[i] + strlen(path[i]), 32, ".%ld", (long)getpid());
    }
    MPI_File_open(MPI_COMM_SELF, path[0], MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &o.file);
    MPI_File_open(MPI_COMM_SELF, path[1], MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &o.second_file);
}

static void make_types(void)
{
    int lengths[2] = {1, 2};
    MPI_Aint places[2] = {0, 8};
    MPI_Datatype types[2] = {MPI_INT, MPI_DOUBLE}, column;

    MPI_Type_vector(3, 1, 4, MPI_INT, &o.vector);
    MPI_Type_set_name(o.vector, "column");
    MPI_Type_commit(&o.vector);
    MPI_Type_commit(&o.vector); /* allowed, and nothing new */
    MPI_Type_create_struct(2, lengths, places, types, &o.structure);
    MPI_Type_commit(&o.structure);
    MPI_Type_set_name(o.structure, "particle");
    MPI_Type_dup(o.structure, &o.named_late);
    MPI_Type_commit(&o.named_late);
#if MPI_VERSION >= 4
    MPI_Type_contiguous_c((MPI_Count)3 << 32, MPI_INT, &column); /* what the functions of before can't describe */
#else
    MPI_Type_contiguous(3, MPI_INT, &column);
#endif
    MPI_Type_commit(&column);
    MPI_Type_free(&column);
    column = MPI_INT;
    MPI_Type_commit(&column); /* a predefined one: nothing new either */
}

static void make_rest(void)
{
    int evens = 0;

    MPI_Comm_create_errhandler(comm_error, &o.comm_errors);
    MPI_Win_create_errhandler(win_error, &o.win_errors);
    MPI_File_create_errhandler(file_error, &o.file_errors);
    MPI_Comm_set_errhandler(o.cart, o.comm_errors);
    MPI_Comm_get_errhandler(o.cart, &o.again); /* another reference */

    MPI_Comm_group(MPI_COMM_WORLD, &o.world);
    MPI_Comm_group(MPI_COMM_WORLD, &o.world_again);
    MPI_Group_incl(o.world, 1, &evens, &o.other);
    MPI_Group_union(o.other, o.world, &o.union_of);

    MPI_Op_create(add, 1, &o.op);
    MPI_Op_create(add, 0, &o.ordered);

    MPI_Send_init(number, 1, MPI_INT, (rank + 1) % size, 0, o.cart, &o.send);
    MPI_Recv_init(number + 1, 1, MPI_INT, (rank + size - 1) % size, 0, o.cart, &o.recv);
#if MPI_VERSION >= 4 || defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5 /* which says that it is 3.1 */
    MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &o.barrier);
#elif defined(OMPI_HAVE_MPI_EXT_PCOLLREQ)
    MPIX_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &o.barrier);
#endif

    MPI_Info_create(&o.info);
    MPI_Info_set(o.info, "one", "1");
    MPI_Info_set(o.info, "two", "2");
    MPI_Info_dup(o.info, &o.copy);
    MPI_Info_delete(o.copy, "one");
}

static void free_all(void)
{
    MPI_Win_free(&o.created);
    MPI_Win_free(&o.dynamic);
    MPI_Win_free(&o.allocated);
    MPI_Win_free(&o.shared);
    MPI_Request_free(&o.send);
    MPI_Request_free(&o.recv);
    if (o.barrier != 0)
        MPI_Request_free(&o.barrier);
    MPI_File_close(&o.file);
    MPI_File_close(&o.second_file);
    MPI_Type_free(&o.vector);
    MPI_Type_free(&o.structure);
    MPI_Type_free(&o.named_late);
    MPI_Errhandler_free(&o.comm_errors);
    MPI_Errhandler_free(&o.again);
    MPI_Errhandler_free(&o.win_errors);
    MPI_Errhandler_free(&o.file_errors);
    MPI_Group_free(&o.world_again);
    MPI_Group_free(&o.other);
    MPI_Group_free(&o.union_of);
    MPI_Op_free(&o.op);
    MPI_Op_free(&o.ordered);
    MPI_Info_free(&o.info);
    MPI_Info_free(&o.copy);
    MPI_Comm_free(&o.inter);
    MPI_Comm_free(&o.half);
    MPI_Comm_free(&o.distributed);
    MPI_Comm_free(&o.graph);
    MPI_Comm_free(&o.cart);
}

int main(int argc, char **argv)
{
    const char *dir = argc > 1 ? argv[1] : "-";
    int sum;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);

    make_comms();
    make_wins();
    make_files(dir);
    make_types();
    make_rest();
    /* What was made works. */
    number[0] = rank;
    MPI_Start(&o.recv);
    MPI_Start(&o.send);
    MPI_Wait(&o.send, MPI_STATUS_IGNORE);
    MPI_Wait(&o.recv, MPI_STATUS_IGNORE);
    MPI_Allreduce(&number[1], &sum, 1, MPI_INT, o.op, o.cart);
    MPI_File_write_at(o.file, 0, number, 1, o.vector, MPI_STATUS_IGNORE);
    hold(dir, "made", rank);

    free_all();
    hold(dir, "freed", rank); /* o.world is the one that is left */

    MPI_Group_free(&o.world);
    hold(dir, "empty", rank);

    MPI_Finalize();
    if (rank == 0)
        printf("objects: sum %d\n", sum);
    return 0;
}
