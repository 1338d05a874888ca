/* files - trouble with files. The file is in the working directory, named after the communicator. */
#include "zoo.h"

static char data[1 << 20];

int main(int argc, char **argv)
{
    begin(argc, argv, MPI_THREAD_SINGLE);

    const MPI_Comm other = ordered("other");
    char path[256];
    MPI_File file;
    int word = 0;

    snprintf(path, sizeof path, "%s.out", zoo.name);
    if (is("open-skipped")) { /* the culprit is one collective behind */
        good_steps(20);
        if (!guilty())
            MPI_File_open(zoo.comm, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
        MPI_Barrier(other);
    }
    MPI_File_open(zoo.comm, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    good_steps(20);
    if (is("late-write-all"))
        FOREVER {
            compute(guilty() ? 0.09 : 0.01);
            MPI_File_write_at_all(file, zoo.here * 4096, data, 4096, MPI_BYTE, MPI_STATUS_IGNORE);
            MPI_Barrier(zoo.comm);
        }
    if (is("one-writes")) /* for 80 ms, on any disk, with the others in a barrier */
        FOREVER {
            compute(0.02);
            for (const double begun = MPI_Wtime(); guilty() && MPI_Wtime() - begun < 0.08;)
                MPI_File_write_at(file, 0, data, sizeof data, MPI_BYTE, MPI_STATUS_IGNORE);
            MPI_Barrier(zoo.comm);
        }
    if (is("one-writes-posix")) {
        const int fd = open(path, O_RDWR);

        FOREVER {
            compute(0.02);
            for (const double begun = MPI_Wtime(); guilty() && MPI_Wtime() - begun < 0.08;)
                if (pwrite(fd, data, sizeof data, 0) < 0 || fsync(fd) != 0)
                    MPI_Abort(MPI_COMM_WORLD, 3);
            MPI_Barrier(zoo.comm);
        }
    }
    if (is("all-write")) /* nothing but writing */
        FOREVER
            MPI_File_write_at(file, (MPI_Offset)zoo.here * (MPI_Offset)sizeof data, data, sizeof data, MPI_BYTE,
                              MPI_STATUS_IGNORE);
    if (is("write-all-skipped")) {
        if (!guilty())
            MPI_File_write_at_all(file, zoo.here * 4096, data, 4096, MPI_BYTE, MPI_STATUS_IGNORE);
        MPI_Barrier(other);
    }
    if (is("one-reads-a-pipe")) { /* whose writer has nothing to say */
        int ends[2];

        if (pipe(ends) != 0)
            MPI_Abort(MPI_COMM_WORLD, 3);
        if (guilty() && read(ends[0], &word, sizeof word) < 0)
            MPI_Abort(MPI_COMM_WORLD, 3);
        MPI_Barrier(zoo.comm);
    }
    unknown_kind();
    return 1;
}
