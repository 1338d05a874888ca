/* starved - ranks that get less than they need from their node: a core, or what they read. */
#include "zoo.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

static void barrier(void) { MPI_Barrier(zoo.comm); }

/* A child that uses this process's core until it ends. */
static void share_core(int nice_value)
{
    const pid_t child = fork();

    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        setpriority(PRIO_PROCESS, 0, nice_value);
        alarm(LIFE);
        FOREVER
            compute(1);
    }
}

/* A pipe out of which comes a byte each so many seconds. */
static int slow_pipe(double seconds)
{
    int ends[2];

    if (pipe(ends) != 0)
        MPI_Abort(MPI_COMM_WORLD, 3);
    if (fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(ends[0]);
        alarm(LIFE);
        FOREVER {
            doze(seconds);
            if (write(ends[1], "", 1) != 1)
                _exit(1);
        }
    }
    return ends[0];
}

/* So much computing, however long it takes: the work of 1 millisecond on a free core of the machine it was tried on. */
static void work(int milliseconds)
{
    struct rusage use;
    double end;

    getrusage(RUSAGE_THREAD, &use);
    end = (double)use.ru_utime.tv_sec + (double)use.ru_utime.tv_usec / 1e6 + milliseconds / 1e3;
    do {
        compute(0.0005);
        getrusage(RUSAGE_THREAD, &use);
    } while ((double)use.ru_utime.tv_sec + (double)use.ru_utime.tv_usec / 1e6 < end);
}

int main(int argc, char **argv)
{
    char byte;
    int fd;

    begin(argc, argv, MPI_THREAD_SINGLE);
    good_steps(20);
    if (is("no-core")) /* more ranks than cores: the caller gives one core for all */
        FOREVER {
            work(20);
            barrier();
        }
    if (is("shared-core")) { /* the culprit's core has another process on it */
        if (guilty())
            share_core(0);
        FOREVER {
            work(40);
            barrier();
        }
    }
    if (is("niced")) { /* the same, and the other one comes first */
        if (guilty()) {
            share_core(0);
            setpriority(PRIO_PROCESS, 0, 5);
        }
        FOREVER {
            work(40);
            barrier();
        }
    }
    if (is("asleep"))
        FOREVER {
            if (guilty())
                doze(0.08);
            compute(0.02);
            barrier();
        }
    if (is("asleep-for-ever")) {
        if (guilty())
            FOREVER
                doze(1);
        barrier();
    }
    if (is("slow-pipe")) {
        fd = guilty() ? slow_pipe(0.08) : -1;
        FOREVER {
            if (guilty() && read(fd, &byte, 1) != 1)
                MPI_Abort(MPI_COMM_WORLD, 3);
            compute(0.02);
            barrier();
        }
    }
    if (is("silent-pipe")) {
        fd = guilty() ? slow_pipe(LIFE) : -1;
        if (guilty() && read(fd, &byte, 1) != 1)
            MPI_Abort(MPI_COMM_WORLD, 3);
        barrier();
    }
    if (is("stopped")) {
        if (guilty())
            raise(SIGSTOP);
        barrier();
    }
    if (is("throttled")) { /* as a quota does it: a child stops the culprit for most of each tenth of a second */
        if (guilty()) {
            const pid_t rank = getpid();

            if (fork() == 0) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                alarm(LIFE);
                FOREVER {
                    kill(rank, SIGSTOP);
                    doze(0.07);
                    kill(rank, SIGCONT);
                    doze(0.03);
                }
            }
        }
        FOREVER {
            work(20);
            barrier();
        }
    }
    unknown_kind();
    return 1;
}
