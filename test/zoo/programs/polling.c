/* polling - programs that ask again and again in place of waiting. */
#include "zoo.h"

static int word;

int main(int argc, char **argv)
{
    MPI_Request request;
    int done = 0;

    begin(argc, argv, MPI_THREAD_SINGLE);
    good_steps(20);
    if (is("test-and-sleep")) /* all wait like that for the culprit */
        FOREVER {
            compute(guilty() ? 0.09 : 0.01);
            MPI_Ibarrier(zoo.comm, &request);
            for (done = 0; !done; MPI_Test(&request, &done, MPI_STATUS_IGNORE))
                doze(0.0005);
        }
    if (is("test-bare"))
        FOREVER {
            compute(guilty() ? 0.09 : 0.02);
            MPI_Ibarrier(zoo.comm, &request);
            for (done = 0; !done;)
                MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        }
    if (is("probe-never")) /* all look for a message that nobody sends */
        FOREVER
            MPI_Iprobe(MPI_ANY_SOURCE, zoo.tag, zoo.comm, &done, MPI_STATUS_IGNORE);
    if (is("probe-and-sleep-never"))
        FOREVER {
            MPI_Iprobe(MPI_ANY_SOURCE, zoo.tag, zoo.comm, &done, MPI_STATUS_IGNORE);
            doze(0.002);
        }
    if (is("cycle")) { /* the culprit and its partner poll for each other's message */
        if (guilty() || zoo.rank == zoo.partner) {
            MPI_Irecv(&word, 1, MPI_INT, place(guilty() ? zoo.partner : zoo.culprit), zoo.tag, zoo.comm, &request);
            while (!done)
                MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        }
        MPI_Barrier(zoo.comm);
    }
    if (is("file-polled")) { /* the culprit waits for a file that doesn't come */
        if (guilty())
            while (access("/nonexistent/zoo", F_OK) != 0)
                doze(0.01);
        MPI_Barrier(zoo.comm);
    }
    if (is("test-between")) /* healthy: it computes 100 us between two tests */
        FOREVER {
            MPI_Ibarrier(zoo.comm, &request);
            for (int i = 0; i < 500; i++) {
                compute(0.0001);
                MPI_Test(&request, &done, MPI_STATUS_IGNORE);
            }
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
    unknown_kind();
    return 1;
}
