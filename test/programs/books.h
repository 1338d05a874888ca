/*
 * Books: what a program has called so far, kept by the program itself, in the words of /metrics. See README.md,
 * "Books".
 *
 *   DO("comm:ring", SENT(40), NONE, MPI_Send, buffer, 10, MPI_INT, next, 0, ring);
 *
 * calls MPI_Send and writes down: one call of MPI_Send on communicator "ring", 40 bytes sent. The numbers come from
 * the program's own knowledge of what it does, never from MPI. A call that is written without DO is one that must not
 * be counted. Thread-safe.
 */
#ifndef BOOKS_H
#define BOOKS_H

#include "hold.h"
#include <mpi.h>
#include <pthread.h>

/* To the compiler MPI_STATUSES_IGNORE and MPI_UNWEIGHTED, addresses that are none, are arrays that are too small. */
#pragma GCC diagnostic ignored "-Wstringop-overflow"
#pragma GCC diagnostic ignored "-Wstringop-overread"

/* What a call moved: NONE, or a direction of mpit_call_bytes_total and a number of bytes. */
struct moved {
    const char *direction;
    long long bytes;
};

#define NONE        ((struct moved){NULL, 0})
#define SENT(n)     ((struct moved){"sent", n})
#define RECEIVED(n) ((struct moved){"received", n})
#define POSTED(n)   ((struct moved){"posted", n})
#define WRITTEN(n)  ((struct moved){"written", n})
#define READ(n)     ((struct moved){"read", n})

/* OBJECT: "comm:NAME", "win:NAME", "file:NAME", or "-" for a function without an object. OUT and IN are evaluated
 * after the call. */
#define DO(object, out, in, function, ...)                                              \
    do {                                                                                \
        const long long began_ = books_clock();                                         \
        const int code_ = function(__VA_ARGS__);                                        \
        const long long took_ = books_clock() - began_;                                 \
        books_expect(#function, code_, 1);                                              \
        books_enter(#function, object, out, in, took_);                                 \
        books_size(#function, object, out, in);                                         \
    } while (0)

/* A call that fails: it counts, has moved nothing, and has no size. */
#define DO_IN_VAIN(object, function, ...)                                               \
    do {                                                                                \
        const long long began_ = books_clock();                                         \
        const int code_ = function(__VA_ARGS__);                                        \
        const long long took_ = books_clock() - began_;                                 \
        books_expect(#function, code_, 0);                                              \
        books_enter(#function, object, NONE, NONE, took_);                              \
    } while (0)

/* A result that must be right. */
#define EXPECT(condition)                                                               \
    do {                                                                                \
        if (!(condition)) {                                                             \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);     \
            MPI_Abort(MPI_COMM_WORLD, 96);                                              \
        }                                                                               \
    } while (0)

enum { BOOKS_ENTRIES = 1024, BOOKS_DIRECTIONS = 5, BOOKS_POWERS = 63 };

static const char *const books_directions[BOOKS_DIRECTIONS] = {"sent", "received", "posted", "written", "read"};

static struct books {
    pthread_mutex_t mutex;
    int count;
    struct books_entry {
        char function[40], object[200];
        long long calls, bytes[BOOKS_DIRECTIONS], nanoseconds, longest, size, powers[BOOKS_POWERS];
    } entries[BOOKS_ENTRIES];
} books = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static inline long long books_clock(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static inline void books_expect(const char *function, int code, int success)
{
    if ((code == MPI_SUCCESS) != success) {
        fprintf(stderr, "%s has returned %d\n", function, code);
        MPI_Abort(MPI_COMM_WORLD, 97);
    }
}

/*
 * The entry of a function and an object, found or made. The name is the one of MPI-3: MPIX_Bcast_init is
 * MPI_Bcast_init, MPI_Send_c is MPI_Send.
 */
static inline struct books_entry *books_entry(const char *function, const char *object)
{
    char name[sizeof books.entries[0].function];
    size_t length;
    int i;

    snprintf(name, sizeof name, "MPI_%s", strchr(function, '_') + 1);
    length = strlen(name);
    if (strcmp(name + length - 2, "_c") == 0)
        name[length - 2] = '\0';
    for (i = 0; i < books.count; i++)
        if (strcmp(books.entries[i].function, name) == 0 && strcmp(books.entries[i].object, object) == 0)
            return &books.entries[i];
    if (i == BOOKS_ENTRIES) {
        fputs("the books are full\n", stderr);
        _exit(95);
    }
    books.count++;
    strcpy(books.entries[i].function, name);
    snprintf(books.entries[i].object, sizeof books.entries[i].object, "%s", object);
    return &books.entries[i];
}

static inline void books_enter(const char *function, const char *object, struct moved out, struct moved in, long long took)
{
    const struct moved both[2] = {out, in};
    struct books_entry *entry;

    pthread_mutex_lock(&books.mutex);
    entry = books_entry(function, object);
    entry->calls++;
    entry->nanoseconds += took;
    if (took > entry->longest)
        entry->longest = took;
    for (int i = 0; i < 2; i++)
        for (int direction = 0; direction < BOOKS_DIRECTIONS; direction++)
            if (both[i].direction != NULL && strcmp(both[i].direction, books_directions[direction]) == 0)
                entry->bytes[direction] += both[i].bytes;
    pthread_mutex_unlock(&books.mutex);
}

/* The size of a call, the larger of the two: in the sum, and by the least power of two that isn't below. */
static inline void books_size(const char *function, const char *object, struct moved out, struct moved in)
{
    long long size = out.bytes > in.bytes ? out.bytes : in.bytes;
    struct books_entry *entry;
    int power = 0;

    while (1LL << power < size)
        power++;
    pthread_mutex_lock(&books.mutex);
    entry = books_entry(function, object);
    entry->size += size;
    entry->powers[power]++;
    pthread_mutex_unlock(&books.mutex);
}

/* Leaves the books in the file DIR/POINT.books.RANK: lines of function, what is counted, value, object. With "-" as
 * DIR, nothing. Who is killed meanwhile leaves no half of them. */
static inline void books_leave(const char *dir, const char *point, int rank)
{
    char path[4096], finished[4096];
    FILE *out;

    if (strcmp(dir, "-") == 0)
        return;
    snprintf(path, sizeof path, "%s/.%s.books.%d", dir, point, rank);
    snprintf(finished, sizeof finished, "%s/%s.books.%d", dir, point, rank);
    out = fopen(path, "w");
    if (out == NULL) {
        perror(path);
        _exit(98);
    }
    pthread_mutex_lock(&books.mutex);
    for (int i = 0; i < books.count; i++) {
        const struct books_entry *entry = &books.entries[i];

        fprintf(out, "%s calls %lld %s\n", entry->function, entry->calls, entry->object);
        fprintf(out, "%s nanoseconds %lld %s\n", entry->function, entry->nanoseconds, entry->object);
        fprintf(out, "%s longest %lld %s\n", entry->function, entry->longest, entry->object);
        fprintf(out, "%s size %lld %s\n", entry->function, entry->size, entry->object);
        for (int power = 0; power < BOOKS_POWERS; power++)
            if (entry->powers[power] != 0)
                fprintf(out, "%s size:%d %lld %s\n", entry->function, power, entry->powers[power], entry->object);
        for (int direction = 0; direction < BOOKS_DIRECTIONS; direction++)
            if (entry->bytes[direction] != 0)
                fprintf(out, "%s %s %lld %s\n", entry->function, books_directions[direction], entry->bytes[direction], entry->object);
    }
    pthread_mutex_unlock(&books.mutex);
    if (fclose(out) != 0 || rename(path, finished) != 0) {
        perror(finished);
        _exit(98);
    }
}

/* Leaves the books, then stops at the hold point. */
static inline void books_hold(const char *dir, const char *point, int rank)
{
    books_leave(dir, point, rank);
    hold(dir, point, rank);
}

/* Whether the program shall do a family: it is named among the arguments from the third one on, or none is. */
static inline int books_wanted(const char *family, int argc, char **argv)
{
    for (int i = 2; i < argc; i++)
        if (strcmp(argv[i], family) == 0)
            return 1;
    return argc <= 2;
}

#endif
