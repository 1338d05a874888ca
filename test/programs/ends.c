/*
 * ends HOW DIR: rank 0 ends by HOW, one of those below, after the hold point "up". The others end regularly with
 * "finalize", "pthread_exit" and "recover"; otherwise they wait for their launcher to end them.
 *
 * pthread_exit leaves main's thread alone after MPI_Finalize: the process ends when its last thread does. handler
 * calls exit in a signal handler that has, as good as surely, interrupted malloc in a second thread; other libraries'
 * exit handlers may free what the first one had allocated. segv_thread crashes in another
 * thread; segv_handler in front of a handler of its own, which ends the process; recover in front of one that
 * doesn't; overflow uses up the stack, and the handler has one of its own. core allows a core file, in DIR.
 */
#include "hold.h"
#include <mpi.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

static void leave(int signal)
{
    (void)signal;
    exit(3);
}

static void *allocate_for_ever(void *nothing)
{
    void *kept[64] = {NULL};

    for (unsigned i = 0;; i++) {
        free(kept[i % 64]);
        kept[i % 64] = malloc(20000 + i * 7919 % 90000);
    }
    return nothing;
}

static void leave_while_allocating(void)
{
    pthread_t thread;

    signal(SIGALRM, leave);
    if (pthread_create(&thread, NULL, allocate_for_ever, NULL) != 0)
        _exit(96);
    usleep(150000);
    pthread_kill(thread, SIGALRM);
    pthread_join(thread, NULL);
}

static void crash(void)
{
    volatile int *volatile nowhere = NULL;

    *nowhere = 1;
}

static void *crash_in_thread(void *nothing)
{
    crash();
    return nothing;
}

static sigjmp_buf before_the_crash;

static void say_and_leave(int signal)
{
    static const char text[] = "ends: the program's own handler\n";

    (void)signal;
    if (write(STDOUT_FILENO, text, sizeof text - 1) < 0)
        _exit(95);
    _exit(6);
}

static void go_back(int signal) { siglongjmp(before_the_crash, signal); }

static void handle_crashes(void (*handler)(int))
{
    static char room[65536];
    const stack_t stack = {.ss_sp = room, .ss_size = sizeof room};
    const struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};

    sigaltstack(&stack, NULL);
    sigaction(SIGSEGV, &action, NULL);
}

static int descend(int depth)
{
    volatile char room[4096];

    room[0] = (char)depth;
    return depth < 0 ? 0 : descend(depth + 1) + room[0];
}

int main(int argc, char **argv)
{
    const struct rlimit none = {0, 0};
    const char *how = argc > 1 ? argv[1] : "finalize", *dir = argc > 2 ? argv[2] : "-";
    pthread_t thread;
    struct rlimit all;
    int rank;

    if (strcmp(how, "core") != 0)
        setrlimit(RLIMIT_CORE, &none);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        printf("ends: by %s\n", how);
        fflush(stdout);
    }
    hold(dir, "up", rank);

    if (strcmp(how, "finalize") == 0) {
        MPI_Finalize();
        return 0;
    }
    if (strcmp(how, "pthread_exit") == 0) {
        MPI_Finalize();
        pthread_exit(NULL);
    }
    if (strcmp(how, "recover") == 0) {
        handle_crashes(go_back);
        if (sigsetjmp(before_the_crash, 1) == 0)
            crash();
        printf("ends: rank %d recovered\n", rank);
        return MPI_Finalize();
    }
    if (rank != 0) {
        sleep(HOLD_LIMIT_SECONDS);
        _exit(99);
    }
    if (strcmp(how, "exit") == 0)
        exit(3);
    if (strcmp(how, "handler") == 0)
        leave_while_allocating();
    if (strcmp(how, "abort") == 0)
        MPI_Abort(MPI_COMM_WORLD, 4);
    if (strcmp(how, "_exit") == 0)
        _exit(5);
    if (strcmp(how, "kill") == 0)
        kill(getpid(), SIGKILL);
    if (strcmp(how, "term") == 0)
        kill(getpid(), SIGTERM);
    if (strcmp(how, "alarm") == 0) {
        const struct itimerval soon = {.it_value = {.tv_usec = 1000}};
        setitimer(ITIMER_REAL, &soon, NULL);
        pause();
    }
    if (strcmp(how, "quick_exit") == 0)
        quick_exit(7);
    if (strcmp(how, "sigabrt") == 0)
        abort();
    if (strcmp(how, "segv") == 0)
        crash();
    if (strcmp(how, "segv_thread") == 0) {
        pthread_create(&thread, NULL, crash_in_thread, NULL);
        pthread_join(thread, NULL);
    }
    if (strcmp(how, "segv_handler") == 0) {
        handle_crashes(say_and_leave);
        crash();
    }
    if (strcmp(how, "overflow") == 0) {
        handle_crashes(say_and_leave);
        return descend(0);
    }
    if (strcmp(how, "exec") == 0)
        execl("/bin/sh", "sh", "-c", "echo ends: another program; exit 8", (char *)NULL);
    if (strcmp(how, "core") == 0) {
        getrlimit(RLIMIT_CORE, &all);
        all.rlim_cur = all.rlim_max;
        setrlimit(RLIMIT_CORE, &all);
        signal(SIGSEGV, SIG_DFL); /* Open MPI has a handler, which prints */
        if (chdir(dir) == 0)
            crash();
    }
    return 97;
}
