/*
 * coupled - several parts in one world. The lower half of MPI_COMM_WORLD is one part, the upper half the other; the
 * culprit's part is the one that is in trouble, and called NAME.
 */
#include "zoo.h"

static MPI_Comm part;
static int in_trouble, in, out;

static void allreduce(void) { MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_SUM, part); }

int main(int argc, char **argv)
{
    begin(argc, argv, MPI_THREAD_SINGLE);

    const int half = zoo.size / 2, upper = zoo.rank >= half;

    in_trouble = upper == (zoo.culprit >= half);
    MPI_Comm_split(MPI_COMM_WORLD, upper, place(zoo.rank), &part);
    MPI_Comm_set_name(part, in_trouble ? zoo.name : "other");
    good_steps(20);
    if (is("replicas")) /* healthy: one is slower, and none waits for another */
        FOREVER {
            compute(in_trouble ? 0.09 : 0.01);
            allreduce();
        }
    if (is("late-in-replica"))
        FOREVER {
            compute(guilty() ? 0.09 : 0.01);
            allreduce();
        }
    if (is("part-deadlocked")) { /* the culprit has skipped a collective of its part; the other part goes on */
        if (in_trouble) {
            if (!guilty())
                allreduce();
            MPI_Recv(&in, 1, MPI_INT, MPI_ANY_SOURCE, zoo.tag, part, MPI_STATUS_IGNORE);
        }
        FOREVER {
            compute(0.05);
            allreduce();
        }
    }
    if (is("part-waits")) { /* at each coupling, for the part that takes longer */
        const int partner = (zoo.rank + half) % zoo.size;

        FOREVER {
            compute(in_trouble ? 0.09 : 0.01);
            allreduce();
            MPI_Sendrecv(&in, 1, MPI_INT, partner, zoo.tag, &out, 1, MPI_INT, partner, zoo.tag, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
        }
    }
    if (is("observer")) { /* healthy: the culprit looks at a result now and then */
        FOREVER {
            MPI_Comm solver;

            MPI_Comm_split(zoo.comm, guilty() ? MPI_UNDEFINED : 0, zoo.here, &solver);
            if (guilty())
                FOREVER {
                    MPI_Recv(&in, 1, MPI_INT, MPI_ANY_SOURCE, zoo.tag, zoo.comm, MPI_STATUS_IGNORE);
                    compute(0.001);
                }
            MPI_Comm_set_name(solver, "solver");
            for (int step = 0;; step++) {
                compute(0.05);
                MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_SUM, solver);
                if (step % 20 == 0 && zoo.rank == zoo.partner)
                    MPI_Send(&out, 1, MPI_INT, place(zoo.culprit), zoo.tag, zoo.comm);
            }
        }
    }
    if (is("slow-master") || is("farm")) { /* the culprit hands out work; a slow one takes longer than its workers */
        MPI_Status status;

        if (guilty())
            FOREVER {
                MPI_Recv(&in, 1, MPI_INT, MPI_ANY_SOURCE, zoo.tag, zoo.comm, &status);
                compute(is("farm") ? 0.0005 : 0.03);
                MPI_Send(&in, 1, MPI_INT, status.MPI_SOURCE, zoo.tag, zoo.comm);
            }
        FOREVER {
            MPI_Sendrecv(&in, 1, MPI_INT, place(zoo.culprit), zoo.tag, &out, 1, MPI_INT, place(zoo.culprit), zoo.tag,
                         zoo.comm, MPI_STATUS_IGNORE);
            compute(is("farm") ? 0.05 : 0.01);
        }
    }
    if (is("slow-stage")) /* of a pipeline: those behind it wait for its messages, those before it to be rid of theirs */
        FOREVER {
            if (zoo.here > 0)
                MPI_Recv(&in, 1, MPI_INT, zoo.here - 1, zoo.tag, zoo.comm, MPI_STATUS_IGNORE);
            compute(guilty() ? 0.09 : 0.02);
            if (zoo.here < zoo.size - 1)
                MPI_Ssend(&in, 1, MPI_INT, zoo.here + 1, zoo.tag, zoo.comm);
        }
    unknown_kind();
    return 1;
}
