/*
 * storm SECONDS THREADS LEVEL DIR: objects of every kind are made, used and freed as fast as they can be, at thread
 * level single, funneled, serialized (the threads take turns) or multiple. What comes out of them is summed up; each
 * period of rounds must give the same sum as the first. So what is printed depends on neither the time nor the
 * machine. Rank 0 looks at the clock for all. DIR is a directory for files.
 *
 * With several threads at once windows are made only where the environment variable STORM_WINDOWS is set, for not
 * every one-sided component allows it.
 */
#include "hold.h"
#include <mpi.h>
#include <pthread.h>
#include <stdint.h>

enum { PERIOD = 48, MAX_THREADS = 16, ITEMS = 24 };

struct worker {
    pthread_t thread;
    MPI_Comm home; /* each thread's collectives have a communicator of their own */
    int number, windows;
    uint64_t sum, first; /* of this period, and of the first */
    long rounds, different;
};

static const char *directory;
static double until;
static int threads, turns; /* turns: only who has the turn may call MPI */

/* The turn, and whether thread 0 has decided to stop: the others then go one round more, as it does. */
static pthread_mutex_t turn_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn_changed = PTHREAD_COND_INITIALIZER;
static int turn, over;

static void take_turn(int number)
{
    if (!turns)
        return;
    pthread_mutex_lock(&turn_lock);
    while (turn != number)
        pthread_cond_wait(&turn_changed, &turn_lock);
    pthread_mutex_unlock(&turn_lock);
}

static void pass_turn(void)
{
    if (!turns)
        return;
    pthread_mutex_lock(&turn_lock);
    turn = (turn + 1) % threads;
    pthread_cond_broadcast(&turn_changed);
    pthread_mutex_unlock(&turn_lock);
}

static void add(struct worker *me, const void *bytes, size_t length)
{
    const unsigned char *at = bytes;

    while (length-- > 0)
        me->sum = (me->sum ^ *at++) * UINT64_C(0x100000001b3);
}

static void add_int(struct worker *me, int value) { add(me, &value, sizeof value); }

static void communicator(struct worker *me, int kind)
{
    const int periods[1] = {1};
    int rank, size, length, sum = 0, neighbour, weight = 1, shape[1] = {0};
    char name[MPI_MAX_OBJECT_NAME];
    MPI_Comm comm, part;
    MPI_Group group;

    MPI_Comm_rank(me->home, &rank);
    MPI_Comm_size(me->home, &size);
    switch (kind) {
    case 0: MPI_Comm_dup(me->home, &comm); break;
    case 1: MPI_Comm_split(me->home, 0, -rank, &comm); break;
    case 2:
        MPI_Comm_group(me->home, &group);
        MPI_Comm_create(me->home, group, &comm);
        MPI_Group_free(&group);
        break;
    case 3:
        MPI_Dims_create(size, 1, shape);
        MPI_Cart_create(me->home, 1, shape, periods, 0, &comm);
        break;
    case 4:
        neighbour = (rank + 1) % size;
        MPI_Dist_graph_create_adjacent(me->home, 1, &neighbour, &weight, 1, &neighbour, &weight, MPI_INFO_NULL, 0, &comm);
        break;
    default:
        MPI_Comm_split_type(me->home, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &comm);
        MPI_Comm_size(comm, &size); /* MPICH 5 on UCX takes each process for a node of its own */
        break;
    }
    snprintf(name, sizeof name, "storm-%d", kind);
    MPI_Comm_set_name(comm, name);
    MPI_Comm_get_name(comm, name, &length);
    add(me, name, (size_t)length);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    add_int(me, sum);
    MPI_Comm_dup(comm, &part);
    MPI_Comm_set_name(part, "storm-part");
    MPI_Bcast(&sum, 1, MPI_INT, size - 1, part);
    add_int(me, sum);
    MPI_Comm_free(&comm); /* before its copy */
    MPI_Comm_free(&part);
}

/* Puts go to memory of the program's own only: Debian's MPICH loses some of those into a window that it has
 * allocated. */
static void window(struct worker *me, int kind)
{
    int rank, size, *here = NULL;
    MPI_Win win;

    MPI_Comm_rank(me->home, &rank);
    MPI_Comm_size(me->home, &size);
    if (kind == 0)
        MPI_Win_allocate(sizeof *here, sizeof *here, MPI_INFO_NULL, me->home, &here, &win);
    else {
        here = malloc(sizeof *here);
        MPI_Win_create(here, sizeof *here, sizeof *here, MPI_INFO_NULL, me->home, &win);
    }
    *here = -1;
    MPI_Win_set_name(win, "storm-box");
    MPI_Win_fence(0, win);
    if (kind != 0)
        MPI_Put(&rank, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, win);
    MPI_Win_fence(0, win);
    add_int(me, *here);
    MPI_Win_free(&win);
    if (kind != 0)
        free(here);
}

static void file(struct worker *me)
{
    char path[4096];
    int rank, number, back = -1;
    MPI_File file;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    snprintf(path, sizeof path, "%s/storm.%d.%d", directory, rank, me->number);
    number = (int)(me->rounds % PERIOD);
    if (MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file) != MPI_SUCCESS) {
        add_int(me, -2);
        return;
    }
    MPI_File_write_at(file, 0, &number, 1, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_read_at(file, 0, &back, 1, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    add_int(me, back);
}

/* A message of every second item, by persistent requests. */
static void datatype(struct worker *me)
{
    int rank, size, out[ITEMS], in[ITEMS] = {0}, bytes;
    MPI_Request request[2];
    MPI_Status status[2];
    MPI_Datatype type;

    MPI_Comm_rank(me->home, &rank);
    MPI_Comm_size(me->home, &size);
    for (int i = 0; i < ITEMS; i++)
        out[i] = rank * ITEMS + i;
    MPI_Type_vector(ITEMS / 2, 1, 2, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_Type_set_name(type, "storm-type");
    MPI_Type_size(type, &bytes);
    MPI_Send_init(out, 1, type, (rank + 1) % size, 7, me->home, &request[0]);
    MPI_Recv_init(in, 1, type, (rank + size - 1) % size, 7, me->home, &request[1]);
    for (int i = 0; i < 2; i++) {
        MPI_Startall(2, request);
        MPI_Waitall(2, request, status);
    }
    MPI_Request_free(&request[0]);
    MPI_Request_free(&request[1]);
    MPI_Type_free(&type);
    add_int(me, bytes);
    add(me, in, sizeof in);
}

static void most(void *in, void *inout, int *length, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *length; i++)
        if (((int *)in)[i] > ((int *)inout)[i])
            ((int *)inout)[i] = ((int *)in)[i];
}

static void ignore(MPI_Comm *comm, int *code, ...)
{
    (void)comm, (void)code;
}

static void small_things(struct worker *me)
{
    int rank, largest = -1, keys = -1, members = -1, ranks[1] = {0};
    MPI_Group all, one;
    MPI_Errhandler handler;
    MPI_Info info, copy;
    MPI_Op op;

    MPI_Comm_rank(me->home, &rank);
    MPI_Op_create(most, 1, &op);
    MPI_Allreduce(&rank, &largest, 1, MPI_INT, op, me->home);
    MPI_Op_free(&op);
    add_int(me, largest);

    MPI_Info_create(&info);
    MPI_Info_set(info, "storm", "wind");
    MPI_Info_dup(info, &copy);
    MPI_Info_free(&info);
    MPI_Info_get_nkeys(copy, &keys);
    MPI_Info_free(&copy);
    add_int(me, keys);

    MPI_Comm_group(me->home, &all);
    MPI_Group_incl(all, 1, ranks, &one);
    MPI_Group_size(one, &members);
    MPI_Group_free(&one);
    MPI_Group_free(&all);
    add_int(me, members);

    MPI_Comm_create_errhandler(ignore, &handler);
    MPI_Comm_set_errhandler(me->home, handler);
    MPI_Errhandler_free(&handler);
    MPI_Comm_set_errhandler(me->home, MPI_ERRORS_ARE_FATAL);
}

static void one_round(struct worker *me)
{
    const int phase = (int)(me->rounds % PERIOD);

    communicator(me, phase % 6);
    datatype(me);
    small_things(me);
    if (me->windows && phase % 8 == 0)
        window(me, phase / 8 % 2);
    if (phase % 4 == 0)
        file(me);
    me->rounds++;
    if (me->rounds % PERIOD != 0)
        return;
    if (me->rounds == PERIOD)
        me->first = me->sum;
    me->different += me->sum != me->first;
    me->sum = 0;
}

/*
 * Open MPI 4.1 opens its topologies and its files when the first of them is made, and crashes at times if two threads
 * do that at once, with nobody watching. So one thread makes the first ones.
 */
static void first_ones(struct worker *me)
{
    for (int kind = 0; kind < 6; kind++)
        communicator(me, kind);
    file(me);
    small_things(me);
    me->sum = 0;
}

static void *work(void *argument)
{
    struct worker *me = argument;
    int stop = 0;

    while (!stop || me->rounds % PERIOD != 0) {
        take_turn(me->number);
        one_round(me);
        if (turns && me->number != 0)
            stop = over; /* belongs to who has the turn */
        else {
            stop = stop || MPI_Wtime() > until;
            MPI_Bcast(&stop, 1, MPI_INT, 0, me->home);
            if (turns)
                over = stop && me->rounds % PERIOD == 0;
        }
        pass_turn();
    }
    return NULL;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int level;
    } levels[] = {
        {"single", MPI_THREAD_SINGLE},
        {"funneled", MPI_THREAD_FUNNELED},
        {"serialized", MPI_THREAD_SERIALIZED},
        {"multiple", MPI_THREAD_MULTIPLE},
    };
    static struct worker workers[MAX_THREADS];
    const double seconds = argc > 1 ? atof(argv[1]) : 1;
    const char *asked = argc > 3 ? argv[3] : "single";
    int level = MPI_THREAD_SINGLE, provided, rank;
    uint64_t sums[2] = {0}, all[2];

    threads = argc > 2 ? atoi(argv[2]) : 1;
    directory = argc > 4 ? argv[4] : ".";
    for (int i = 0; i < 4; i++)
        if (strcmp(asked, levels[i].name) == 0)
            level = levels[i].level;
    MPI_Init_thread(&argc, &argv, level, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (threads < 1 || threads > MAX_THREADS || provided < level || (threads > 1 && level < MPI_THREAD_SERIALIZED))
        MPI_Abort(MPI_COMM_WORLD, 91);
    turns = level == MPI_THREAD_SERIALIZED;
    until = MPI_Wtime() + seconds;
    for (int i = 0; i < threads; i++) {
        workers[i].number = i;
        workers[i].windows = threads == 1 || turns || getenv("STORM_WINDOWS") != NULL;
        MPI_Comm_dup(MPI_COMM_WORLD, &workers[i].home);
    }
    first_ones(&workers[0]);
    if (threads == 1)
        work(&workers[0]);
    else {
        for (int i = 0; i < threads; i++)
            pthread_create(&workers[i].thread, NULL, work, &workers[i]);
        for (int i = 0; i < threads; i++)
            pthread_join(workers[i].thread, NULL);
    }
    for (int i = 0; i < threads; i++) {
        sums[0] += workers[i].first;
        sums[1] += (uint64_t)workers[i].different;
        MPI_Comm_free(&workers[i].home);
    }
    MPI_Reduce(sums, all, 2, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Finalize();
    if (rank == 0)
        printf("storm: %d threads, %s: sum %016llx, %llu periods with another\n", threads, asked, (unsigned long long)all[0],
               (unsigned long long)all[1]);
    return rank == 0 && all[1] != 0;
}
