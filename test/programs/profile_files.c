/*
 * profile_files DIR [FAMILY ...]: reads and writes of every kind, with books (books.h), all ranks in one file
 * DIR/data (with "-": ./data.PID). Families: own, at, collective, nonblocking, shared, ordered, split, rest, large;
 * all of them if none is named. Two rounds: hold points "half" and "done". The books of the end are named "end".
 */
#include "books.h"

#define WORLD "comm:MPI_COMM_WORLD"

enum { BLOCK = 400 }; /* bytes of the file that belong to a rank */

static MPI_File file;
static char data[250], name[200];
static int rank, size;
static int out[100], in[100];
static MPI_Offset mine; /* where my block begins */

/* Beginning with a file that is as long as all blocks. The pointers, each rank's own and the shared one, stand at the
 * beginning. */
static void begin(void)
{
    DO(data, NONE, NONE, MPI_File_set_size, file, size * BLOCK);
    MPI_File_seek(file, mine, MPI_SEEK_SET);
    DO(data, NONE, NONE, MPI_File_seek_shared, file, 0, MPI_SEEK_SET);
    DO(WORLD, NONE, NONE, MPI_Barrier, MPI_COMM_WORLD);
}

static void own(void)
{
    MPI_Status status;
    MPI_Datatype column;
    int got;

    begin();
    DO(data, WRITTEN(40), NONE, MPI_File_write, file, out, 10, MPI_INT, &status);
    DO(data, WRITTEN(0), NONE, MPI_File_write, file, out, 0, MPI_INT, MPI_STATUS_IGNORE);
    MPI_Type_vector(3, 1, 4, MPI_INT, &column);
    MPI_Type_commit(&column);
    DO(data, WRITTEN(24), NONE, MPI_File_write, file, out, 2, column, MPI_STATUS_IGNORE);
    MPI_Type_free(&column);
    MPI_File_seek(file, mine, MPI_SEEK_SET);
    DO(data, NONE, READ(16), MPI_File_read, file, in, 4, MPI_INT, MPI_STATUS_IGNORE);
    EXPECT(in[3] == out[3]);
    /* Less is there than is asked for: what has come counts. */
    MPI_File_seek(file, size * BLOCK - 20, MPI_SEEK_SET);
    DO(data, NONE, READ(20), MPI_File_read, file, in, 50, MPI_INT, &status);
    MPI_Get_count(&status, MPI_INT, &got);
    EXPECT(got == 5);
    DO(data, NONE, READ(0), MPI_File_read, file, in, 50, MPI_INT, MPI_STATUS_IGNORE);
}

static void at(void)
{
    begin();
    DO(data, WRITTEN(28), NONE, MPI_File_write_at, file, mine, out, 7, MPI_INT, MPI_STATUS_IGNORE);
    DO(data, NONE, READ(24), MPI_File_read_at, file, mine, in, 6, MPI_INT, MPI_STATUS_IGNORE);
    DO(data, NONE, READ(12), MPI_File_read_at, file, size * BLOCK - 12, in, 6, MPI_INT, MPI_STATUS_IGNORE);
    EXPECT(in[5] == out[5]);
}

/* Inside, the libraries call MPI themselves. */
static void collective(void)
{
    begin();
    DO(data, WRITTEN(32), NONE, MPI_File_write_all, file, out, 8, MPI_INT, MPI_STATUS_IGNORE);
    DO(data, WRITTEN(4 * (rank + 1)), NONE, MPI_File_write_at_all, file, mine, out, rank + 1, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_seek(file, mine, MPI_SEEK_SET);
    DO(data, NONE, READ(20), MPI_File_read_all, file, in, 5, MPI_INT, MPI_STATUS_IGNORE);
    DO(data, NONE, READ(36), MPI_File_read_at_all, file, mine, in, 9, MPI_INT, MPI_STATUS_IGNORE);
}

static void nonblocking(void)
{
    MPI_Request r[4];

    begin();
    DO(data, WRITTEN(8), NONE, MPI_File_iwrite, file, out, 2, MPI_INT, &r[0]);
    DO("-", NONE, NONE, MPI_Wait, &r[0], MPI_STATUS_IGNORE);
    DO(data, WRITTEN(12), NONE, MPI_File_iwrite_at, file, mine + 100, out, 3, MPI_INT, &r[0]);
    DO("-", NONE, NONE, MPI_Wait, &r[0], MPI_STATUS_IGNORE);
    /* A read without waiting tells what there is room for. */
    DO(data, NONE, POSTED(16), MPI_File_iread, file, in, 4, MPI_INT, &r[0]);
    DO("-", NONE, NONE, MPI_Wait, &r[0], MPI_STATUS_IGNORE);
    DO(data, NONE, POSTED(20), MPI_File_iread_at, file, mine, in, 5, MPI_INT, &r[0]);
    DO("-", NONE, NONE, MPI_Wait, &r[0], MPI_STATUS_IGNORE);
    DO(data, WRITTEN(24), NONE, MPI_File_iwrite_all, file, out, 6, MPI_INT, &r[0]);
    DO("-", NONE, NONE, MPI_Wait, &r[0], MPI_STATUS_IGNORE);
    DO(data, WRITTEN(28), NONE, MPI_File_iwrite_at_all, file, mine, out, 7, MPI_INT, &r[0]);
    DO("-", NONE, NONE, MPI_Wait, &r[0], MPI_STATUS_IGNORE);
    DO(data, NONE, POSTED(32), MPI_File_iread_all, file, in, 8, MPI_INT, &r[0]);
    DO("-", NONE, NONE, MPI_Wait, &r[0], MPI_STATUS_IGNORE);
    DO(data, NONE, POSTED(36), MPI_File_iread_at_all, file, mine, in, 9, MPI_INT, &r[0]);
    DO("-", NONE, NONE, MPI_Wait, &r[0], MPI_STATUS_IGNORE);
}

static void shared(void)
{
    MPI_Request request;

    begin();
    DO(data, WRITTEN(40), NONE, MPI_File_write_shared, file, out, 10, MPI_INT, MPI_STATUS_IGNORE);
    DO(data, NONE, READ(16), MPI_File_read_shared, file, in, 4, MPI_INT, MPI_STATUS_IGNORE);
    DO(data, WRITTEN(20), NONE, MPI_File_iwrite_shared, file, out, 5, MPI_INT, &request);
    DO("-", NONE, NONE, MPI_Wait, &request, MPI_STATUS_IGNORE);
    DO(data, NONE, POSTED(24), MPI_File_iread_shared, file, in, 6, MPI_INT, &request);
    DO("-", NONE, NONE, MPI_Wait, &request, MPI_STATUS_IGNORE);
}

static void ordered(void)
{
    begin();
    DO(data, WRITTEN(4 * (rank + 1)), NONE, MPI_File_write_ordered, file, out, rank + 1, MPI_INT, MPI_STATUS_IGNORE);
    DO(data, NONE, NONE, MPI_File_seek_shared, file, 0, MPI_SEEK_SET);
    DO(data, NONE, READ(4 * (rank + 1)), MPI_File_read_ordered, file, in, rank + 1, MPI_INT, MPI_STATUS_IGNORE);
    EXPECT(in[rank] == rank * 100 + rank);
}

/* The beginning says how much is written, the end how much has been read. */
static void split(void)
{
    begin();
    DO(data, WRITTEN(8), NONE, MPI_File_write_all_begin, file, out, 2, MPI_INT);
    DO(data, NONE, NONE, MPI_File_write_all_end, file, out, MPI_STATUS_IGNORE);
    DO(data, WRITTEN(12), NONE, MPI_File_write_at_all_begin, file, mine, out, 3, MPI_INT);
    DO(data, NONE, NONE, MPI_File_write_at_all_end, file, out, MPI_STATUS_IGNORE);
    MPI_File_seek(file, mine, MPI_SEEK_SET);
    DO(data, NONE, NONE, MPI_File_read_all_begin, file, in, 4, MPI_INT);
    DO(data, NONE, READ(16), MPI_File_read_all_end, file, in, MPI_STATUS_IGNORE);
    DO(data, NONE, NONE, MPI_File_read_at_all_begin, file, mine, in, 5, MPI_INT);
    DO(data, NONE, READ(20), MPI_File_read_at_all_end, file, in, MPI_STATUS_IGNORE);
    DO(data, WRITTEN(24), NONE, MPI_File_write_ordered_begin, file, out, 6, MPI_INT);
    DO(data, NONE, NONE, MPI_File_write_ordered_end, file, out, MPI_STATUS_IGNORE);
    DO(data, NONE, NONE, MPI_File_seek_shared, file, 0, MPI_SEEK_SET);
    DO(data, NONE, NONE, MPI_File_read_ordered_begin, file, in, 6, MPI_INT);
    DO(data, NONE, READ(24), MPI_File_read_ordered_end, file, in, MPI_STATUS_IGNORE);
}

/* What moves nothing; and what only asks, which isn't counted. */
static void rest(void)
{
    MPI_Offset number, displacement;
    MPI_Datatype etype, filetype;
    MPI_Group group;
    MPI_Info info;
    MPI_Aint extent;
    char representation[MPI_MAX_DATAREP_STRING];
    int flag;

    begin();
    DO(data, NONE, NONE, MPI_File_sync, file);
    DO(data, NONE, NONE, MPI_File_preallocate, file, size * BLOCK);
    DO(data, NONE, NONE, MPI_File_set_view, file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
    DO(data, NONE, NONE, MPI_File_set_atomicity, file, 1);
    MPI_File_get_atomicity(file, &flag);
    DO(data, NONE, NONE, MPI_File_set_atomicity, file, 0);
    DO(data, NONE, NONE, MPI_File_get_size, file, &number);
    MPI_File_get_position(file, &number);
    DO(data, NONE, NONE, MPI_File_get_position_shared, file, &number);
    MPI_File_get_byte_offset(file, 0, &number);
    MPI_File_get_view(file, &displacement, &etype, &filetype, representation);
    MPI_File_get_type_extent(file, MPI_INT, &extent);
    MPI_File_get_info(file, &info);
    DO(data, NONE, NONE, MPI_File_set_info, file, info);
    MPI_Info_free(&info);
    MPI_File_get_group(file, &group);
    MPI_Group_free(&group);
}

/* The functions of MPI-4 for large counts count as the plain ones. */
static void large(void)
{
#if MPI_VERSION >= 4
    begin();
    DO(data, WRITTEN(28), NONE, MPI_File_write_at_c, file, mine, out, 7, MPI_INT, MPI_STATUS_IGNORE);
    DO(data, NONE, READ(24), MPI_File_read_at_c, file, mine, in, 6, MPI_INT, MPI_STATUS_IGNORE);
    DO(data, WRITTEN(32), NONE, MPI_File_write_all_c, file, out, 8, MPI_INT, MPI_STATUS_IGNORE);
#endif
}

int main(int argc, char **argv)
{
    const char *dir = argc > 1 ? argv[1] : "-";
    static const struct {
        const char *name;
        void (*calls)(void);
    } families[] = {
        {"own", own}, {"at", at}, {"collective", collective}, {"nonblocking", nonblocking}, {"shared", shared}, {"ordered", ordered},
        {"split", split}, {"rest", rest},
        {"large", large},
    };

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    mine = (MPI_Offset)rank * BLOCK;
    for (int i = 0; i < 100; i++)
        out[i] = rank * 100 + i;
    if (strcmp(dir, "-") != 0)
        snprintf(name, sizeof name, "%s/data", dir);
    else
        snprintf(name, sizeof name, "data.%ld", (long)getpid());
    DO(WORLD, SENT(rank == 0 ? sizeof name : 0), RECEIVED(rank == 0 ? 0 : sizeof name), MPI_Bcast, name, sizeof name, MPI_CHAR, 0,
       MPI_COMM_WORLD);
    snprintf(data, sizeof data, "file:%s", name);
    DO(WORLD, NONE, NONE, MPI_File_open, MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
            if (books_wanted(families[i].name, argc, argv))
                families[i].calls();
        books_hold(dir, round == 0 ? "half" : "done", rank);
    }
    DO("-", NONE, NONE, MPI_File_close, &file);
    if (rank == 0)
        DO("-", NONE, NONE, MPI_File_delete, name, MPI_INFO_NULL);
    books_leave(dir, "end", rank);
    MPI_Finalize();
    if (rank == 0)
        puts("profile_files: done");
    return 0;
}
