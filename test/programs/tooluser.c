/*
 * tooluser WHEN DIR: a program that uses MPI_T itself, and prints what it is answered. WHEN:
 *   early        before main, in a constructor, initialised and finalized again; then MPI without MPI_T
 *   early_kept   the same, and finalized only before MPI_Finalize
 *   balance      initialised and finalized three times at each thread level between MPI_Init and MPI_Finalize
 *   within       the same within another pair, so that there is something to list
 *   late         before MPI_Init and after MPI_Finalize
 *   at_once      initialised by another thread while MPI_Init is called
 *   ended        what MPI_T answers when it has been finalized as often as initialised
 *   handles      a session and handles of its own on every variable that needs no object: start, read, stop, reset, free
 *   monitoring   the same on Open MPI's count of all-to-all collectives, over a known number of them
 * Hold point: "up", after MPI_Init.
 */
#include "hold.h"
#include <mpi.h>
#include <pthread.h>

#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 6
#define OPEN_MPI_6 1
#else
#define OPEN_MPI_6 0
#endif

static const int levels[] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED, MPI_THREAD_MULTIPLE};
static const char *when = "", *directory = "-";

static int level_number(int level)
{
    for (int i = 0; i < 4; i++)
        if (levels[i] == level)
            return i;
    return -1;
}

/* A sum over the names of all control variables, and their number: what a tool would list. */
static void list(const char *at)
{
    unsigned long sum = 5381;
    int controls = 0, performance = 0, categories = 0;

    MPI_T_cvar_get_num(&controls);
    MPI_T_pvar_get_num(&performance);
    MPI_T_category_get_num(&categories);
    for (int i = 0; i < controls; i++) {
        char name[1024];
        int length = sizeof name, verbosity, bind, scope;
        MPI_Datatype type;
        MPI_T_enum enumeration;

        if (MPI_T_cvar_get_info(i, name, &length, &verbosity, &type, &enumeration, NULL, NULL, &bind, &scope) == MPI_SUCCESS)
            for (const char *c = name; *c != '\0'; c++)
                sum = sum * 33 + (unsigned char)*c;
    }
    printf("tooluser: %s: %d control variables, names %lx, %d performance variables, %d categories\n", at, controls, sum, performance,
           categories);
}

static void initialise(const char *at, int i)
{
    int provided = -1, code = MPI_T_init_thread(levels[i], &provided);

    printf("tooluser: %s: initialised at %d: code %d", at, i, code);
    /* Open MPI doesn't say the level to who comes second. Open MPI 6 gives less than MPI_THREAD_MULTIPLE to who comes
     * first, but after MPI_Init. */
    if (strcmp(when, "within") != 0 && !(OPEN_MPI_6 && strcmp(when, "balance") == 0 && levels[i] == MPI_THREAD_MULTIPLE))
        printf(", level %d", level_number(provided));
    puts("");
}

static void finalize(const char *at) { printf("tooluser: %s: finalized: code %d\n", at, MPI_T_finalize()); }

static __attribute__((constructor)) void before_main(int argc, char **argv)
{
    if (argc < 2 || strncmp(argv[1], "early", 5) != 0)
        return;
    initialise("before main", 0);
    list("before main");
    if (strcmp(argv[1], "early") == 0)
        finalize("before main");
}

static void balance(int listing)
{
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < 4; i++) {
            initialise("in between", i);
            if (listing)
                list("in between");
            finalize("in between");
        }
}

static void handles(int rank)
{
    MPI_T_pvar_session session;
    int provided, count = 0, sum[6] = {0};

    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_pvar_get_num(&count);
    printf("tooluser: session: code %d\n", MPI_T_pvar_session_create(&session));
    hold(directory, "up", rank);
    for (int i = 0; i < count; i++) {
        char name[1024];
        union { char room[1 << 16]; double d; } value;
        int length = sizeof name, verbosity, class, bind, readonly, continuous, atomic, elements = 0;
        MPI_Datatype type;
        MPI_T_enum enumeration;
        MPI_T_pvar_handle handle;

        if (MPI_T_pvar_get_info(i, name, &length, &verbosity, &class, &type, &enumeration, NULL, NULL, &bind, &readonly, &continuous,
                                &atomic) != MPI_SUCCESS || bind != MPI_T_BIND_NO_OBJECT || strstr(name, "psm2") != NULL ||
            strstr(name, "flush") != NULL || MPI_T_pvar_handle_alloc(session, i, NULL, &handle, &elements) != MPI_SUCCESS)
            continue;
        sum[0]++;
        if (!continuous) {
            sum[1] += MPI_T_pvar_start(session, handle) == MPI_SUCCESS;
            sum[2] += MPI_T_pvar_read(session, handle, &value) == MPI_SUCCESS;
            sum[3] += MPI_T_pvar_stop(session, handle) == MPI_SUCCESS;
        } else
            sum[2] += MPI_T_pvar_read(session, handle, &value) == MPI_SUCCESS;
        sum[4] += MPI_T_pvar_reset(session, handle) == MPI_SUCCESS;
        sum[5] += MPI_T_pvar_handle_free(session, &handle) == MPI_SUCCESS;
    }
    printf("tooluser: handles: %d, started %d, read %d, stopped %d, reset %d, freed %d\n", sum[0], sum[1], sum[2], sum[3], sum[4], sum[5]);
    printf("tooluser: session freed: code %d\n", MPI_T_pvar_session_free(&session));
    finalize("handles");
}

static pthread_barrier_t ready;

static void *initialise_at_once(void *code)
{
    int provided;

    pthread_barrier_wait(&ready);
    *(int *)code = MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    return NULL;
}

static void init_at_once(int *argc, char ***argv)
{
    pthread_t other;
    int code = -1;

    pthread_barrier_init(&ready, NULL, 2);
    if (pthread_create(&other, NULL, initialise_at_once, &code) != 0)
        _exit(97);
    pthread_barrier_wait(&ready);
    MPI_Init(argc, argv);
    pthread_join(other, NULL);
    printf("tooluser: at once: code %d\n", code);
}

/* Open MPI with pml_monitoring_enable: what its own handle counts is what it has done since its start. */
static void monitoring(void)
{
    MPI_Comm world = MPI_COMM_WORLD;
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handle;
    int provided, index, elements = 0, one = 1, sum;
    unsigned long count[64] = {0};

    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_pvar_session_create(&session);
    if (MPI_T_pvar_get_index("coll_monitoring_a2a_count", MPI_T_PVAR_CLASS_COUNTER, &index) != MPI_SUCCESS ||
        MPI_T_pvar_handle_alloc(session, index, &world, &handle, &elements) != MPI_SUCCESS) {
        puts("tooluser: no such variable");
        return;
    }
    MPI_T_pvar_start(session, handle);
    for (int i = 0; i < 7; i++)
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, world);
    MPI_T_pvar_read(session, handle, count);
    printf("tooluser: %d elements, %lu collectives\n", elements, count[0]);
    MPI_T_pvar_handle_free(session, &handle);
    MPI_T_pvar_session_free(&session);
    finalize("monitoring");
}

int main(int argc, char **argv)
{
    int rank, sum = 0, one = 1, code, number;

    when = argc > 1 ? argv[1] : "balance";
    directory = argc > 2 ? argv[2] : "-";
    if (strcmp(when, "late") == 0)
        initialise("before MPI_Init", 1);
    if (strcmp(when, "within") == 0)
        initialise("before MPI_Init", 0);
    if (strcmp(when, "at_once") == 0)
        init_at_once(&argc, &argv);
    else
        MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (strcmp(when, "handles") == 0)
        handles(rank);
    else
        hold(directory, "up", rank);
    if (strcmp(when, "balance") == 0)
        balance(0);
    if (strcmp(when, "within") == 0) {
        balance(1);
        finalize("after MPI_Init");
    }
    if (strcmp(when, "monitoring") == 0)
        monitoring();
    if (strcmp(when, "early_kept") == 0) {
        list("after MPI_Init");
        finalize("after MPI_Init");
    }
    if (strcmp(when, "ended") == 0) {
        initialise("after MPI_Init", 0);
        finalize("after MPI_Init");
        code = MPI_T_cvar_get_num(&number);
        printf("tooluser: then it is %s\n", code == MPI_SUCCESS ? "alive" : code == MPI_T_ERR_NOT_INITIALIZED ? "not initialised" : "?");
    }
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    if (strcmp(when, "late") == 0) {
        initialise("after MPI_Finalize", 2);
        finalize("after MPI_Finalize");
        finalize("after MPI_Finalize");
    }
    printf("tooluser: sum %d\n", sum);
    return 0;
}
