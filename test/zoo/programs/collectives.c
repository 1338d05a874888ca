/* collectives - trouble in collective operations. */
#include "zoo.h"

static int in, out;

static void allreduce(MPI_Comm comm) { MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_SUM, comm); }

int main(int argc, char **argv)
{
    begin(argc, argv, MPI_THREAD_SINGLE);

    /* Made by all kinds, so that its name alone tells nothing. */
    const MPI_Comm other = ordered("other");
    const int root = place(zoo.partner);

    good_steps(20);
    if (is("late"))
        FOREVER {
            compute(guilty() ? 0.09 : 0.01);
            allreduce(zoo.comm);
        }
    if (is("late-barrier"))
        FOREVER {
            compute(guilty() ? 0.09 : 0.01);
            MPI_Barrier(zoo.comm);
        }
    if (is("late-for-root")) /* of a Reduce: the root alone waits */
        FOREVER {
            compute(guilty() ? 0.09 : 0.01);
            MPI_Reduce(words_out, words_in, MANY / 16, MPI_INT, MPI_SUM, root, zoo.comm);
        }
    if (is("late-root")) /* of a Bcast: all wait for it */
        FOREVER {
            compute(guilty() ? 0.09 : 0.01);
            MPI_Bcast(words_out, 1024, MPI_INT, place(zoo.culprit), zoo.comm);
        }
    if (is("late-alltoall"))
        FOREVER {
            compute(guilty() ? 0.09 : 0.01);
            MPI_Alltoall(words_out, 64, MPI_INT, words_in, 64, MPI_INT, zoo.comm);
        }
    if (is("late-dup")) /* in a constructor of communicators */
        FOREVER {
            MPI_Comm copy;

            compute(guilty() ? 0.09 : 0.01);
            MPI_Comm_dup(zoo.comm, &copy);
            MPI_Comm_free(&copy);
        }
    if (is("late-nonblocking"))
        FOREVER {
            MPI_Request request;

            compute(0.01);
            MPI_Iallreduce(&in, &out, 1, MPI_INT, MPI_SUM, zoo.comm, &request);
            compute(guilty() ? 0.08 : 0.02);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
    if (is("in-turn"))
        for (int step = 0;; step++) {
            compute(step % zoo.size == zoo.rank ? 0.09 : 0.02);
            allreduce(zoo.comm);
        }
    if (is("alltoall")) /* nothing but communication */
        FOREVER
            MPI_Alltoall(words_out, MANY / zoo.size, MPI_INT, words_in, MANY / zoo.size, MPI_INT, zoo.comm);
    if (is("never-comes")) { /* the culprit computes for ever */
        if (guilty())
            FOREVER
                compute(1);
        allreduce(zoo.comm);
    }
    if (is("barrier-skipped")) { /* the culprit is one collective behind */
        if (!guilty())
            MPI_Barrier(zoo.comm);
        MPI_Barrier(other);
    }
    if (is("two-functions")) {
        if (guilty())
            MPI_Bcast(words_out, MANY, MPI_INT, root, zoo.comm);
        else
            MPI_Allreduce(words_out, words_in, MANY, MPI_INT, MPI_SUM, zoo.comm);
        MPI_Barrier(zoo.comm);
    }
    if (is("two-roots")) {
        MPI_Bcast(words_out, MANY, MPI_INT, guilty() ? place(zoo.culprit) : root, zoo.comm);
        MPI_Barrier(zoo.comm);
    }
    if (is("opposite-order")) {
        MPI_Barrier(guilty() ? other : zoo.comm);
        MPI_Barrier(guilty() ? zoo.comm : other);
    }
    if (is("extra-collective")) { /* the culprit waits in one that is nobody else's */
        if (guilty())
            allreduce(zoo.comm);
        FOREVER {
            compute(0.02);
            MPI_Barrier(other);
        }
    }
    unknown_kind();
    return 1;
}
