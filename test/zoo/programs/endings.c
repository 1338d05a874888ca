/* endings - ranks that end, or don't, when the others don't expect it. */
#include "zoo.h"

#include <signal.h>
#include <sys/prctl.h>

int main(int argc, char **argv)
{
    begin(argc, argv, MPI_THREAD_SINGLE);
    prctl(PR_SET_DUMPABLE, 0); /* no core file */
    good_steps(50);
    if (is("segfault") && guilty())
        raise(SIGSEGV);
    if (is("abort") && guilty())
        MPI_Abort(MPI_COMM_WORLD, 1);
    if (is("killed") && guilty())
        raise(SIGKILL);
    if (is("assertion") && guilty())
        abort();
    if (is("exits") && guilty())
        exit(0);
    if (is("cancelled")) /* from outside, by the launcher's end */
        FOREVER {
            compute(0.05);
            MPI_Barrier(zoo.comm);
        }
    if (is("uneven")) { /* no message: the others wait in MPI_Finalize */
        compute(guilty() ? 45 : 3);
        MPI_Finalize();
        return 0;
    }
    if (is("never-finalizes")) {
        if (guilty())
            FOREVER
                doze(1);
        MPI_Finalize();
        return 0;
    }
    if (is("segfault") || is("abort") || is("killed") || is("assertion") || is("exits"))
        MPI_Barrier(zoo.comm);
    unknown_kind();
    return 1;
}
