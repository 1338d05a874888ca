/*
 * spawned - trouble between worlds. The program spawns itself: KIND of the children is the parents' with "child:" in
 * front, and their roles are the parents'. With sessions, communicators come from MPI_Comm_create_from_group.
 */
#include "zoo.h"

static int word;

static MPI_Comm children(char **argv, int count)
{
    char kind[64], *args[7] = {kind, argv[2], argv[3], argv[4], argv[5], argv[6], NULL};
    MPI_Comm inter;

    snprintf(kind, sizeof kind, "child:%s", argv[1]);
    MPI_Comm_spawn(argv[0], args, count, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
    MPI_Comm_set_name(inter, argv[5]);
    return inter;
}

static void child(MPI_Comm parents)
{
    MPI_Comm_set_name(parents, zoo.name);
    good_steps(20);
    if (is("child:parent-waits")) { /* the children compute, and their parent waits for the result */
        FOREVER {
            compute(0.05);
            MPI_Barrier(zoo.comm);
        }
    }
    if (is("child:late-parent") || is("child:late-child"))
        FOREVER {
            compute(is("child:late-child") && zoo.rank == 0 ? 0.09 : 0.01);
            MPI_Barrier(parents);
        }
    if (is("child:both-receive"))
        MPI_Recv(&word, 1, MPI_INT, 0, zoo.tag, parents, MPI_STATUS_IGNORE);
    if (is("child:no-disconnect")) {
        if (zoo.rank == 0)
            FOREVER
                compute(1);
        MPI_Comm_disconnect(&parents);
        MPI_Barrier(zoo.comm);
    }
    unknown_kind();
}

int main(int argc, char **argv)
{
    char port[MPI_MAX_PORT_NAME];
    MPI_Comm inter, parents;

    begin(argc, argv, MPI_THREAD_SINGLE);
    MPI_Comm_get_parent(&parents);
    if (parents != MPI_COMM_NULL)
        child(parents);
    good_steps(20);
    if (is("nobody-connects")) {
        if (zoo.rank == 0)
            MPI_Open_port(MPI_INFO_NULL, port);
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, zoo.comm, &inter);
    }
#if MPI_VERSION >= 4
    if (is("session-late")) {
        MPI_Session session;
        MPI_Group group;
        MPI_Comm comm;

        MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
        MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
        MPI_Comm_create_from_group(group, zoo.name, MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
        MPI_Comm_set_name(comm, zoo.name);
        FOREVER {
            compute(guilty() ? 0.09 : 0.01);
            MPI_Barrier(comm);
        }
    }
#endif
    inter = children(argv, 2);
    if (is("parent-waits"))
        MPI_Recv(&word, 1, MPI_INT, MPI_ANY_SOURCE, zoo.tag, inter, MPI_STATUS_IGNORE);
    if (is("late-parent") || is("late-child"))
        FOREVER {
            compute(is("late-parent") && guilty() ? 0.09 : 0.01);
            MPI_Barrier(inter);
        }
    if (is("both-receive")) {
        if (zoo.rank == 0)
            MPI_Recv(&word, 1, MPI_INT, 0, zoo.tag, inter, MPI_STATUS_IGNORE);
        MPI_Barrier(zoo.comm);
    }
    if (is("no-disconnect")) {
        MPI_Comm_disconnect(&inter);
        MPI_Barrier(zoo.comm);
    }
    unknown_kind();
    return 1;
}
