/* onesided - trouble in one-sided communication. */
#include "zoo.h"

int main(int argc, char **argv)
{
    begin(argc, argv, MPI_THREAD_SINGLE);

    const MPI_Comm other = ordered("other");
    const int partner = zoo.rank == zoo.partner;
    MPI_Win win;
    int *memory;
    long one = 1;

    MPI_Win_allocate(4096, sizeof(int), MPI_INFO_NULL, zoo.comm, &memory, &win);
    MPI_Win_set_name(win, zoo.name);
    good_steps(20);
    if (is("lock-held")) /* the culprit computes in a lock that the others want */
        FOREVER {
            MPI_Win_lock(MPI_LOCK_EXCLUSIVE, place(zoo.culprit), 0, win);
            MPI_Put(&one, 1, MPI_INT, place(zoo.culprit), 0, 1, MPI_INT, win);
            MPI_Win_flush(place(zoo.culprit), win);
            compute(guilty() ? 0.1 : 0.001);
            MPI_Win_unlock(place(zoo.culprit), win);
            compute(guilty() ? 0.001 : 0.01);
        }
    if (is("lock-for-ever")) {
        if (guilty()) {
            MPI_Win_lock(MPI_LOCK_EXCLUSIVE, place(zoo.culprit), 0, win);
            MPI_Put(&one, 1, MPI_INT, place(zoo.culprit), 0, 1, MPI_INT, win);
            MPI_Win_flush(place(zoo.culprit), win);
            MPI_Barrier(other);
            FOREVER
                compute(1);
        }
        MPI_Barrier(other);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, place(zoo.culprit), 0, win);
        MPI_Put(&one, 1, MPI_INT, place(zoo.culprit), 0, 1, MPI_INT, win);
        MPI_Win_unlock(place(zoo.culprit), win);
    }
    if (is("locks-crossed")) { /* two ranks, each wants the lock that the other one has */
        if (guilty() || partner) {
            const int mine = place(guilty() ? zoo.culprit : zoo.partner);
            const int yours = place(guilty() ? zoo.partner : zoo.culprit);

            MPI_Win_lock(MPI_LOCK_EXCLUSIVE, mine, 0, win);
            MPI_Put(&one, 1, MPI_INT, mine, 0, 1, MPI_INT, win);
            MPI_Win_flush(mine, win);
            MPI_Barrier(other);
            MPI_Win_lock(MPI_LOCK_EXCLUSIVE, yours, 0, win);
            MPI_Put(&one, 1, MPI_INT, yours, 0, 1, MPI_INT, win);
            MPI_Win_flush(yours, win);
        } else {
            MPI_Barrier(other);
        }
        MPI_Barrier(zoo.comm);
    }
    if (is("late-fence"))
        FOREVER {
            compute(guilty() ? 0.09 : 0.01);
            MPI_Win_fence(0, win);
        }
    if (is("fence-skipped")) {
        if (!guilty())
            MPI_Win_fence(0, win);
        MPI_Barrier(other);
    }
    if (is("late-post") || is("post-missing")) { /* all others access the culprit's memory */
        MPI_Group all, target, origins;
        int rank = place(zoo.culprit);

        MPI_Comm_group(zoo.comm, &all);
        MPI_Group_incl(all, 1, &rank, &target);
        MPI_Group_excl(all, 1, &rank, &origins);
        FOREVER {
            if (guilty()) {
                if (is("post-missing"))
                    FOREVER
                        compute(1);
                compute(0.09);
                MPI_Win_post(origins, 0, win);
                MPI_Win_wait(win);
            } else {
                compute(0.01);
                MPI_Win_start(target, 0, win);
                MPI_Put(&one, 1, MPI_INT, rank, 0, 1, MPI_INT, win);
                MPI_Win_complete(win);
            }
        }
    }
    if (is("late-win-create"))
        FOREVER {
            MPI_Win again;

            compute(guilty() ? 0.09 : 0.01);
            MPI_Win_create(words_in, 4096, sizeof(int), MPI_INFO_NULL, zoo.comm, &again);
            MPI_Win_free(&again);
        }
    unknown_kind();
    return 1;
}
