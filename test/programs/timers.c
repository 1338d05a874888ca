/*
 * timers DIR: uses what MPICH registers TIMERs for at first use, then prints all TIMERs and their COUNTERs as MPI_T has
 * them: name, seconds, events. MPICH's begin at minus the time of day, in whole hours, which is left out here.
 */
#include "hold.h"
#include <mpi.h>

static MPI_T_pvar_session session;

/* The value of a variable without an object, of one element of eight bytes. */
static int value(int index, void *to)
{
    MPI_T_pvar_handle handle;
    int count, failed;

    if (MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count) != MPI_SUCCESS)
        return 0;
    MPI_T_pvar_start(session, handle); /* refused for what always runs; the others can be read only then */
    failed = count != 1 || MPI_T_pvar_read(session, handle, to) != MPI_SUCCESS;
    MPI_T_pvar_handle_free(session, &handle);
    return !failed;
}

static void print_timer(const char *name, double seconds, unsigned long long events)
{
    while (seconds < 0)
        seconds += 3600;
    printf("timer %s %.9f %llu\n", name, seconds, events);
}

static void print_timers(void)
{
    int number;

    MPI_T_pvar_get_num(&number);
    for (int i = 0; i < number; i++) {
        char name[256];
        int length = sizeof name, verbosity, class, bind, readonly, continuous, atomic, counter;
        unsigned long long events;
        double seconds;
        MPI_Datatype datatype;
        MPI_T_enum items;

        if (MPI_T_pvar_get_info(i, name, &length, &verbosity, &class, &datatype, &items, NULL, NULL, &bind, &readonly,
                                &continuous, &atomic) != MPI_SUCCESS)
            continue;
        if (class != MPI_T_PVAR_CLASS_TIMER || datatype != MPI_DOUBLE || bind != MPI_T_BIND_NO_OBJECT)
            continue;
        if (MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &counter) != MPI_SUCCESS)
            continue;
        if (value(i, &seconds) && value(counter, &events))
            print_timer(name, seconds, events);
    }
}

int main(int argc, char **argv)
{
    const char *dir = argc > 1 ? argv[1] : "-";
    double box[8] = {0};
    int rank, level, dims[3] = {0};
    MPI_Win win;

    MPI_Init(&argc, &argv);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &level);
    MPI_T_pvar_session_create(&session);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    hold(dir, "begun", rank);
    if (rank > 0)
        usleep(50 * 1000); /* the others wait for it in MPI_Win_create */
    for (int i = 0; i < 2; i++) {
        MPI_Win_create(box, sizeof box, sizeof box[0], MPI_INFO_NULL, MPI_COMM_WORLD, &win);
        MPI_Win_fence(0, win);
        MPI_Win_free(&win);
        dims[0] = dims[1] = dims[2] = 0;
        MPI_Dims_create(720720, 3, dims);
        hold(dir, i == 0 ? "used" : "twice", rank);
    }
    if (rank == 0)
        print_timers();
    MPI_T_pvar_session_free(&session);
    MPI_Finalize();
    return 0;
}
