/* healthy - programs with which nothing is wrong, though much of it looks like trouble. */
#include "zoo.h"

int main(int argc, char **argv)
{
    int in = 0, out;

    begin(argc, argv, MPI_THREAD_SINGLE);
    good_steps(20);
    if (is("balanced"))
        FOREVER {
            compute(0.05);
            MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_SUM, zoo.comm);
        }
    if (is("long-steps"))
        FOREVER {
            compute(20);
            MPI_Barrier(zoo.comm);
        }
    if (is("no-messages"))
        FOREVER
            compute(1);
    if (is("overlap"))
        FOREVER {
            MPI_Request requests[2];

            MPI_Irecv(words_in, 4096, MPI_INT, before(), zoo.tag, zoo.comm, &requests[0]);
            MPI_Isend(words_out, 4096, MPI_INT, next(), zoo.tag, zoo.comm, &requests[1]);
            compute(0.05);
            MPI_Waitall(2, requests, statuses);
        }
    if (is("checkpoint")) /* all write a little now and then */
        for (int step = 0;; step++) {
            compute(0.05);
            MPI_Barrier(zoo.comm);
            if (step % 100 == 0) {
                MPI_File file;

                MPI_File_open(zoo.comm, "checkpoint.out", MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
                MPI_File_write_at_all(file, zoo.here * 4096, words_out, 4096, MPI_BYTE, MPI_STATUS_IGNORE);
                MPI_File_close(&file);
            }
        }
    if (is("slightly-uneven")) /* the culprit has 8 % more */
        FOREVER {
            compute(guilty() ? 0.054 : 0.05);
            MPI_Barrier(zoo.comm);
        }
    unknown_kind();
    return 1;
}
