/*
 * Another library that measures and offers variables through the agent (mpit/agent/source.h), without measuring
 * anything: what it shows is known beforehand. What it is told it appends to the file LIBSOURCE_FILE.
 * LIBSOURCE_REFUSES: it can't measure; LIBSOURCE_STRANGE: it is of a version that doesn't know the agent's.
 */
#define _GNU_SOURCE
#include "source.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COMM 1    /* of docs/internals/protocol.md */
#define OBJECTS 4096

static pid_t rank_pid;
static uint32_t told, made, comms[OBJECTS], sizes[OBJECTS], freed[OBJECTS];

static void say(const char *what)
{
    const char *path = getenv("LIBSOURCE_FILE");
    int fd = path == NULL ? -1 : open(path, O_WRONLY | O_CREAT | O_APPEND, 0644);

    if (fd < 0 || write(fd, what, strlen(what)) < 0)
        _exit(97);
    close(fd);
}

static bool begin(const struct source_mpi *mpi, const char **why)
{
    /* The library's own, not what stands in front of it: the agent does. */
    const void *init = mpi->find("PMPI_Init");

    say(init != NULL && init != dlsym(RTLD_DEFAULT, "PMPI_Init") && mpi->find("PMPI_Nonsense") == NULL && mpi->abi != 0 ? "begin\n" : "begin in vain\n");
    *why = "it was told so";
    rank_pid = getpid();
    return getenv("LIBSOURCE_REFUSES") == NULL;
}

static void measure(bool on)
{
    if (getpid() == rank_pid)
        say(on ? "on\n" : "off\n");
    else
        say(on ? "on in a child\n" : "off in a child\n");
}

static size_t count(void)
{
    return made == 0 ? 1 : 3;
}

static void describe(size_t i, struct source_variable *out)
{
    static const struct source_variable variables[] = {
        {.name = "measured_nothing", .description = "always there", .mpi_class = 6, .verbosity = 1},
        {.name = "measured_size", .description = "of a communicator", .mpi_class = 7, .verbosity = 1, .bind = COMM},
        {.name = "measured_time", .description = "of a communicator", .mpi_class = 8, .verbosity = 1, .bind = COMM, .distribution = true},
    };

    *out = variables[i];
}

static void discover(void (*found)(void *context, size_t variable, uint32_t object), void *context)
{
    static bool begun;

    if (!begun)
        found(context, 0, 0);
    begun = true;
    for (; told < made; told++) {
        found(context, 1, comms[told]);
        found(context, 2, comms[told]);
    }
}

static void read_pair(size_t variable, uint32_t object, uint64_t *elements)
{
    if (freed[object])
        say("read after the end\n");
    memset(elements, 0, (variable == 2 ? DISTRIBUTION_ELEMENTS : 1) * sizeof *elements);
    elements[0] = variable == 1 ? sizes[object] : 5;
    if (variable == 2)
        elements[4] = 1; /* above 4 units, up to 8 */
}

static bool calls(struct source_calls *out)
{
    (void)out;
    return false;
}

static void object(const char *what, int kind)
{
    char line[64];

    snprintf(line, sizeof line, "%s %d\n", what, kind);
    say(line);
}

static void object_made(int kind, uint64_t handle, uint32_t number, int rank, int size)
{
    (void)handle, (void)rank;
    object("made", kind);
    if (kind == COMM && number < OBJECTS) {
        sizes[number] = (uint32_t)size;
        comms[made++] = number;
    }
}

static void object_freed(int kind, uint64_t handle, uint32_t number)
{
    (void)handle;
    object("freed", kind);
    freed[number] = 1;
}

static void tell_comms(bool all, source_comm_function *tell, void *context)
{
    (void)all;
    (void)tell;
    (void)context;
}

static const struct source source = {
    .version = SOURCE_VERSION,
    .category = "measured",
    .category_description = "what another library measures",
    .begin = begin,
    .measure = measure,
    .count = count,
    .describe = describe,
    .discover = discover,
    .read = read_pair,
    .calls = calls,
    .comms = tell_comms,
    .object_made = object_made,
    .object_freed = object_freed,
};

source_function mpit_agent_source;
const struct source *mpit_agent_source(uint32_t version)
{
    return version == SOURCE_VERSION && getenv("LIBSOURCE_STRANGE") == NULL ? &source : NULL;
}
