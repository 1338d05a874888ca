/*
 * sessions DIR WHAT: a program of MPI-4 sessions. WHAT is
 *   one       a session, a communicator made of mpi://WORLD, both given back
 *   several   three at once, given back in another order
 *   threads   four threads make and give back sessions while one stays
 *   exit      rank 1 leaves by exit while a session lives; the others wait for their launcher to end them
 *   before    a session, then MPI_Init and MPI_Finalize inside its life
 *   within    MPI_Init, a session, MPI_Finalize
 *   outlives  MPI_Init, a session, MPI_Finalize, and only then the session's end
 * Debian's MPICH can't make a session when all are gone, so none does.
 */
#include "hold.h"
#include <mpi.h>

#if MPI_VERSION < 4
int main(void)
{
    fprintf(stderr, "sessions: no MPI-4\n");
    return 77;
}
#else
#include <pthread.h>

static MPI_Session begin(void)
{
    MPI_Session session;

    if (MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session) != MPI_SUCCESS)
        exit(3);
    return session;
}

static MPI_Comm world_of(MPI_Session session, const char *tag)
{
    MPI_Group group;
    MPI_Comm comm;

    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Group_free(&group);
    MPI_Comm_set_name(comm, tag);
    return comm;
}

static void *make_sessions(void *unused)
{
    for (int i = 0; i < 50; i++) {
        MPI_Session session = begin();

        MPI_Session_finalize(&session);
    }
    return unused;
}

int main(int argc, char **argv)
{
    const char *dir = argc > 1 ? argv[1] : "-", *what = argc > 2 ? argv[2] : "one";
    MPI_Session session[3];
    MPI_Comm comm;
    int rank, size, one = 1, sum = 0;

    if (strcmp(what, "within") == 0 || strcmp(what, "outlives") == 0)
        MPI_Init(&argc, &argv);
    session[0] = begin();
    comm = world_of(session[0], "crew");
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    if (strcmp(what, "several") == 0) {
        session[1] = begin();
        session[2] = begin();
    }
    if (strcmp(what, "threads") == 0) {
        pthread_t thread[4];

        for (int i = 0; i < 4; i++)
            pthread_create(&thread[i], NULL, make_sessions, NULL);
        for (int i = 0; i < 4; i++)
            pthread_join(thread[i], NULL);
    }
    hold(dir, "made", rank);

    if (rank == 0)
        printf("sessions: sum %d\n", sum);
    if (strcmp(what, "exit") == 0) {
        if (rank == 1)
            exit(3);
        sleep(HOLD_LIMIT_SECONDS);
        _exit(99);
    }
    if (strcmp(what, "before") == 0) {
        MPI_Init(&argc, &argv);
        hold(dir, "joined", rank);
        MPI_Comm_free(&comm);
        MPI_Session_finalize(&session[0]);
        hold(dir, "left", rank);
        MPI_Finalize();
        return 0;
    }
    MPI_Comm_free(&comm);
    if (strcmp(what, "outlives") == 0)
        MPI_Finalize();
    MPI_Session_finalize(&session[0]);
    if (strcmp(what, "several") == 0) {
        MPI_Session_finalize(&session[2]);
        hold(dir, "left", rank);
        MPI_Session_finalize(&session[1]);
    }
    if (strcmp(what, "within") == 0)
        MPI_Finalize();
    return 0;
}
#endif
