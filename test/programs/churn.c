/*
 * churn SECONDS THREADS DIR: each thread makes and frees communicators, windows and small objects (files too, where there
 * is one thread) as fast as it can, checks what goes through them, and keeps up to KEEP communicators alive. Rank 0
 * looks at the clock for all, and goes on after that time until DIR/stop.go is there.
 */
#include "hold.h"
#include <mpi.h>
#include <pthread.h>

enum { KEEP = 8, MAX_THREADS = 16 };

struct worker {
    pthread_t thread;
    MPI_Comm home; /* each thread's collectives have a communicator of their own */
    double until;
    const char *stop; /* a file, or NULL */
    int windows;
    long rounds, wrong;
};

static void window(MPI_Comm comm, struct worker *me)
{
    MPI_Win win;
    int rank, size, *here = malloc(sizeof *here);

    *here = -1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Win_create(here, sizeof *here, sizeof *here, MPI_INFO_NULL, comm, &win);
    if (me->rounds / 8 % 2)
        MPI_Win_set_name(win, "churned");
    MPI_Win_fence(0, win);
    MPI_Put(&rank, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, win);
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
    me->wrong += *here != (rank + size - 1) % size;
    free(here);
}

static void file(struct worker *me)
{
    char name[32];
    int wrote = (int)me->rounds, read = -1;
    MPI_File file;

    snprintf(name, sizeof name, "churn.%ld", (long)getpid());
    if (MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file) != MPI_SUCCESS) {
        me->wrong++;
        return;
    }
    MPI_File_write_at(file, 0, &wrote, 1, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_read_at(file, 0, &read, 1, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    me->wrong += read != wrote;
}

static void add(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *count; i++)
        ((int *)inout)[i] += ((int *)in)[i];
}

/* What costs nothing to make. */
static void small_objects(MPI_Comm comm, struct worker *me)
{
    MPI_Group group, again;
    MPI_Datatype pair;
    MPI_Request request[2];
    MPI_Status status[2];
    MPI_Info info;
    MPI_Op op;
    int rank, here[2] = {3, 4}, there[2] = {0, 0}, known;

    MPI_Comm_rank(comm, &rank);
    MPI_Comm_group(comm, &group);
    MPI_Comm_group(comm, &again);
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    MPI_Info_create(&info);
    MPI_Info_set(info, "key", "value");
    MPI_Op_create(add, 1, &op);
    MPI_Send_init(here, 1, pair, rank, 1, comm, &request[0]);
    MPI_Recv_init(there, 1, pair, rank, 1, comm, &request[1]);
    MPI_Group_free(&group);
    MPI_Startall(2, request);
    MPI_Waitall(2, request, status);
    MPI_Reduce_local(here, there, 2, MPI_INT, op);
    MPI_Info_get_nkeys(info, &known);
    MPI_Request_free(&request[1]);
    MPI_Type_free(&pair);
    MPI_Op_free(&op);
    MPI_Group_free(&again);
    MPI_Request_free(&request[0]);
    MPI_Info_free(&info);
    me->wrong += there[0] != 6 || there[1] != 8 || known != 1;
}

static void *work(void *argument)
{
    struct worker *me = argument;
    MPI_Comm alive[KEEP];
    int count = 0, stop = 0, rank, size;

    MPI_Comm_rank(me->home, &rank);
    MPI_Comm_size(me->home, &size);
    while (!stop) {
        char name[16];
        int sum = 0, one = 1;

        if (me->rounds % 3)
            MPI_Comm_dup(me->home, &alive[count]);
        else
            MPI_Comm_split(me->home, 0, -rank, &alive[count]);
        snprintf(name, sizeof name, "churn-%ld", me->rounds % 5);
        MPI_Comm_set_name(alive[count], name);
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, alive[count]);
        me->wrong += sum != size;
        if (me->windows && me->rounds % 8 == 0)
            window(alive[count], me);
        if (me->windows && me->rounds % 16 == 0)
            file(me);
        small_objects(alive[count], me);
        if (++count == KEEP)
            while (count > 0)
                MPI_Comm_free(&alive[--count]);
        me->rounds++;
        stop = MPI_Wtime() > me->until && (me->stop == NULL || access(me->stop, F_OK) == 0);
        MPI_Bcast(&stop, 1, MPI_INT, 0, me->home);
    }
    while (count > 0)
        MPI_Comm_free(&alive[--count]);
    return NULL;
}

int main(int argc, char **argv)
{
    const double seconds = argc > 1 ? atof(argv[1]) : 2;
    const int threads = argc > 2 ? atoi(argv[2]) : 1;
    const char *dir = argc > 3 ? argv[3] : "-";
    char stop[4096];
    struct worker workers[MAX_THREADS] = {0};
    long wrong = 0, all = 0;
    int provided, rank;

    MPI_Init_thread(&argc, &argv, threads > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (threads > MAX_THREADS || (threads > 1 && provided < MPI_THREAD_MULTIPLE))
        MPI_Abort(MPI_COMM_WORLD, 91);
    snprintf(stop, sizeof stop, "%s/stop.go", dir);
    for (int i = 0; i < threads; i++) {
        workers[i].stop = strcmp(dir, "-") == 0 ? NULL : stop;
        MPI_Comm_dup(MPI_COMM_WORLD, &workers[i].home);
        workers[i].until = MPI_Wtime() + seconds;
        workers[i].windows = threads == 1; /* not every one-sided component allows threads */
    }
    if (threads == 1)
        work(&workers[0]);
    else {
        for (int i = 0; i < threads; i++)
            pthread_create(&workers[i].thread, NULL, work, &workers[i]);
        for (int i = 0; i < threads; i++)
            pthread_join(workers[i].thread, NULL);
    }
    for (int i = 0; i < threads; i++) {
        wrong += workers[i].wrong;
        MPI_Comm_free(&workers[i].home);
    }
    MPI_Reduce(&wrong, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Finalize();
    if (rank == 0)
        printf("churn: wrong results %ld\n", all);
    return all != 0;
}
