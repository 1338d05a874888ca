/*
 * crews DIR WHAT ...: communicators that come to be beside others of the same ranks. WHAT is
 *   threads         three threads make them at once, of one that is theirs and of MPI_COMM_WORLD
 *   many N          N are made, and most of them freed
 *   spawn COMMAND   the world starts another one, which runs COMMAND, this program with "child" for WHAT
 *   sessions        of a session, without MPI_Init
 *   within          of a session, beside MPI_Init
 * At hold point "made" each is called which it is and how many collectives the rank has begun on it, as in "dup0.3 #17".
 * No member but those of the same world can know which one "mixed…" is, and nobody which "maybe…" is.
 */
#include <mpi.h>
#include <pthread.h>
#include <stdarg.h>

#include "hold.h"

enum { THREADS = 3, ROUNDS = 6, ALIVE = 24 };

static const char *dir;
static int rank, size;

/* The communicator is called that; begun: how many collectives have been begun on it. */
__attribute__((format(printf, 3, 4))) static void call_it(MPI_Comm comm, int begun, const char *which, ...)
{
    char name[MPI_MAX_OBJECT_NAME];
    va_list arguments;
    size_t length;

    va_start(arguments, which);
    length = (size_t)vsnprintf(name, sizeof name - 16, which, arguments);
    va_end(arguments);
    snprintf(name + length, sizeof name - length, " #%d", begun);
    MPI_Comm_set_name(comm, name);
}

/* Of every step'th rank of a communicator, which the caller is one of. */
static MPI_Comm group_of(MPI_Comm comm, int members, int step, int tag)
{
    int range[3] = {0, members - 1, step};
    MPI_Group all, group;
    MPI_Comm made;

    MPI_Comm_group(comm, &all);
    MPI_Group_range_incl(all, 1, &range, &group);
    MPI_Comm_create_group(comm, group, tag, &made);
    MPI_Group_free(&group);
    MPI_Group_free(&all);
    return made;
}

/* ---- threads ---- */

static MPI_Comm own[THREADS];
static pthread_barrier_t together;

/* Each round makes one in every way, of which the third one's lives on. */
static void *makes(void *argument)
{
    const int thread = *(int *)argument;
    int begun = 0;

    for (int round = 0; round < ROUNDS; round++) {
        MPI_Comm made[5];
        MPI_Request request;
        int count = 0;

        MPI_Comm_dup(own[thread], &made[count++]);
        MPI_Comm_split(own[thread], rank % 2, -rank, &made[count++]);
#if MPI_VERSION >= 4
        if (round % 2 == 0)
            MPI_Comm_idup_with_info(own[thread], MPI_INFO_NULL, &made[count], &request);
        else
#endif
            MPI_Comm_idup(own[thread], &made[count], &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Comm_free(&made[count]);
        begun += 3;
        made[count++] = group_of(MPI_COMM_WORLD, size, 1, thread);
        if (rank % 2 == 0)
            made[count++] = group_of(MPI_COMM_WORLD, size, 2, thread);
        MPI_Barrier(made[0]);
        call_it(made[0], 1, "dup%d.%d", thread, round);
        call_it(made[1], 0, "split%d.%d.%d", thread, round, rank % 2);
        call_it(made[2], 0, "group%d.%d", thread, round);
        if (rank % 2 == 0)
            call_it(made[3], 0, "even%d.%d", thread, round);
        for (int i = 0; i < count && round % 3 != 2; i++)
            MPI_Comm_free(&made[i]);
    }
    call_it(own[thread], begun, "own%d", thread);
    return NULL;
}

/* All with the same groups and the same tag: which is whose only the leaders know. */
static void *makes_between(void *argument)
{
    const int thread = *(int *)argument;
    MPI_Comm half, inter;

    MPI_Comm_split(own[thread], rank % 2, rank, &half);
    call_it(half, 1, "half%d.%d", thread, rank % 2);
    pthread_barrier_wait(&together);
    MPI_Intercomm_create(half, 0, own[thread], 1 - rank % 2, 5, &inter);
    call_it(inter, 0, "maybe%d", thread);
    return NULL;
}

static void in_threads(void *(*run)(void *))
{
    static int numbers[THREADS];
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        pthread_create(&threads[i], NULL, run, &numbers[i]);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

static void threads(void)
{
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &own[i]);
    in_threads(makes);
    pthread_barrier_init(&together, NULL, THREADS);
    call_it(MPI_COMM_WORLD, THREADS, "world");
    hold(dir, "apart", rank);
    for (int i = 0; i < THREADS; i++) /* one more each */
        call_it(own[i], 3 * ROUNDS + 1, "own%d", i);
    in_threads(makes_between);
    call_it(group_of(MPI_COMM_WORLD, size, 1, 0), 0, "maybe");
    hold(dir, "made", rank);
}

/* ---- many ---- */

/* Of those made of a group of the last one there may be more than are told apart. */
static void many(int count)
{
    MPI_Comm alive[ALIVE], last = MPI_COMM_WORLD, made;
    unsigned chance = 1;
    int begun = 0;

    for (int i = 0; i < ALIVE; i++)
        alive[i] = MPI_COMM_NULL;
    for (int i = 0; i < count; i++) {
        int place;

        chance = chance * 1103515245u + 12345u;
        place = (int)(chance >> 16 & 0x7fff) % ALIVE;
        switch (i % 8) {
        case 0:
            made = group_of(last, size, 1, 0);
            call_it(made, 0, "maybe%d", i);
            break;
        case 1:
        case 2:
            made = group_of(MPI_COMM_WORLD, size, 1, i % 8);
            call_it(made, 0, "group%d", i);
            break;
        case 3:
            MPI_Comm_split(MPI_COMM_WORLD, i, 0, &made);
            begun++;
            call_it(made, 0, "split%d", i);
            break;
        case 6:
            MPI_Comm_dup(last, &made);
            call_it(last, 1, "dup%d", i - 1);
            call_it(made, 0, "child%d", i);
            break;
        default:
            MPI_Comm_dup(MPI_COMM_WORLD, &made);
            begun++;
            call_it(made, 0, "dup%d", i);
            break;
        }
        if (alive[place] != MPI_COMM_NULL)
            MPI_Comm_free(&alive[place]);
        alive[place] = last = made;
    }
    call_it(MPI_COMM_WORLD, begun, "world");
    hold(dir, "made", rank);
}

/* ---- two worlds ---- */

static void of_two_worlds(MPI_Comm bridge, int is_child)
{
    MPI_Comm mixed, half, pair, inter, copy;
    MPI_Group all, both;
    int ranks[2] = {0, 0}, all_ranks;

    MPI_Intercomm_merge(bridge, is_child, &mixed);
    MPI_Comm_size(mixed, &all_ranks);
    ranks[1] = all_ranks - 1; /* the last child */
    MPI_Barrier(mixed);
    call_it(bridge, 1, "mixed bridge");
    call_it(mixed, 3, "mixed");
    MPI_Comm_split(mixed, is_child, 0, &half); /* all of one world, but made of what nobody knows */
    call_it(half, 0, "mixed half");
    MPI_Comm_group(mixed, &all);
    MPI_Group_incl(all, 2, ranks, &both);
    MPI_Comm_create(mixed, both, &pair); /* no more than the world has */
    if (pair != MPI_COMM_NULL)
        call_it(pair, 0, "mixed pair");
    MPI_Group_free(&both);
    MPI_Group_free(&all);
    MPI_Intercomm_create(MPI_COMM_WORLD, 0, mixed, is_child ? 0 : size, 3, &inter);
    call_it(inter, 0, "mixed inter");
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    call_it(copy, 0, "dup");
    hold(dir, is_child ? "child" : "made", rank);
    MPI_Comm_free(&inter);
    if (pair != MPI_COMM_NULL)
        MPI_Comm_free(&pair);
    MPI_Comm_free(&half);
    MPI_Comm_free(&mixed);
    MPI_Comm_disconnect(&bridge);
}

static void spawn(int count, char **command)
{
    MPI_Comm parent, bridge;

    MPI_Comm_get_parent(&parent);
    bridge = parent;
    if (parent == MPI_COMM_NULL) {
        int errors[2];

        MPI_Comm_spawn(command[0], count > 1 ? &command[1] : MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &bridge, errors);
    }
    call_it(MPI_COMM_WORLD, parent == MPI_COMM_NULL ? 3 : 2, "world"); /* with MPI_Intercomm_create and MPI_Comm_dup */
    of_two_worlds(bridge, parent != MPI_COMM_NULL);
}

/* ---- sessions ---- */

#if MPI_VERSION >= 4
static void of_session(void)
{
    int evens[3] = {0, 0, 2}, count = 0;
    MPI_Session session;
    MPI_Group all, some;
    MPI_Comm comms[6];

    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &all);
    MPI_Group_size(all, &size);
    MPI_Group_rank(all, &rank);
    for (; count < 4; count++) { /* twice with each string */
        MPI_Comm_create_from_group(all, count % 2 == 0 ? "here" : "there", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comms[count]);
        MPI_Barrier(comms[count]);
        call_it(comms[count], 1, "crew%d", count);
    }
    evens[1] = size - 1;
    MPI_Group_range_incl(all, 1, &evens, &some);
    if (rank % 2 == 0) {
        MPI_Comm_create_from_group(some, "here", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comms[count]);
        MPI_Comm_dup(comms[count], &comms[count + 1]);
        call_it(comms[count++], 1, "even");
        call_it(comms[count++], 0, "copy");
    }
    hold(dir, "made", rank);
    while (count > 0)
        MPI_Comm_free(&comms[--count]);
    MPI_Group_free(&some);
    MPI_Group_free(&all);
    MPI_Session_finalize(&session);
}
#endif

int main(int argc, char **argv)
{
    const char *what = argc > 2 ? argv[2] : "threads";
    int level;

    dir = argc > 1 ? argv[1] : "-";
#if MPI_VERSION >= 4
    if (strcmp(what, "sessions") == 0) {
        of_session();
        return 0;
    }
#endif
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (strcmp(what, "threads") == 0)
        threads();
    if (strcmp(what, "many") == 0)
        many(argc > 3 ? atoi(argv[3]) : 10000);
    if (strcmp(what, "spawn") == 0 || strcmp(what, "child") == 0)
        spawn(argc - 3, argv + 3);
#if MPI_VERSION >= 4
    if (strcmp(what, "within") == 0) {
        call_it(MPI_COMM_WORLD, 0, "world");
        of_session();
    }
#endif
    MPI_Finalize();
    return 0;
}
