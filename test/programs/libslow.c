/*
 * libslow.so - preloaded, it makes one rank's system slow: each call that writes to a TCP socket, or to a regular
 * file, takes longer by a given time.
 *
 *     LD_PRELOAD=libslow.so SLOW_RANK=1 SLOW_WRITES=sockets SLOW_MILLISECONDS=5 mpirun ...
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static enum { NOTHING, SOCKETS, FILES } slow;
static struct timespec pause_of;
static dev_t memory; /* where MPI libraries have files that are no files */

static __attribute__((constructor)) void prepare(void)
{
    const char *which = getenv("SLOW_RANK"), *what = getenv("SLOW_WRITES"), *ms = getenv("SLOW_MILLISECONDS");
    const char *rank = getenv("OMPI_COMM_WORLD_RANK") ? getenv("OMPI_COMM_WORLD_RANK") : getenv("PMI_RANK");
    struct stat status;

    if (which == NULL || what == NULL || ms == NULL || rank == NULL || strcmp(which, rank) != 0)
        return; /* another rank, or the launcher */
    if (stat("/dev/shm", &status) == 0)
        memory = status.st_dev;
    pause_of = (struct timespec){atol(ms) / 1000, atol(ms) % 1000 * 1000000};
    slow = strcmp(what, "sockets") == 0 ? SOCKETS : FILES;
}

/* Not Unix sockets: what the agent sends isn't the network. */
static int concerns(int fd)
{
    struct sockaddr_storage address;
    socklen_t length = sizeof address;
    struct stat status;

    switch (slow) {
    case SOCKETS:
        return getsockname(fd, (struct sockaddr *)&address, &length) == 0
            && (address.ss_family == AF_INET || address.ss_family == AF_INET6);
    case FILES:
        return fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_dev != memory;
    default:
        return 0;
    }
}

/* Defines a function of libc that calls libc's, and pauses if it has written something. */
#define SLOW(name, parameters, ...)                                                     \
    ssize_t name parameters                                                             \
    {                                                                                   \
        static ssize_t(*real) parameters;                                               \
        ssize_t written;                                                                \
                                                                                        \
        if (real == NULL)                                                               \
            real = (ssize_t(*) parameters)dlsym(RTLD_NEXT, #name);                      \
        written = real(__VA_ARGS__);                                                    \
        if (written > 0 && concerns(fd))                                                \
            nanosleep(&pause_of, NULL);                                                 \
        return written;                                                                 \
    }

SLOW(write, (int fd, const void *data, size_t size), fd, data, size)
SLOW(writev, (int fd, const struct iovec *parts, int count), fd, parts, count)
SLOW(send, (int fd, const void *data, size_t size, int flags), fd, data, size, flags)
SLOW(sendmsg, (int fd, const struct msghdr *message, int flags), fd, message, flags)
SLOW(pwrite, (int fd, const void *data, size_t size, off_t at), fd, data, size, at)
SLOW(pwrite64, (int fd, const void *data, size_t size, off64_t at), fd, data, size, at)
SLOW(pwritev, (int fd, const struct iovec *parts, int count, off_t at), fd, parts, count, at)
SLOW(pwritev64, (int fd, const struct iovec *parts, int count, off64_t at), fd, parts, count, at)
