/*
 * guest WHAT DIR: a program that does WHAT, one of the names in the list below, between two looks at MPI, and prints
 * what came of it. Hold points: "up" after MPI_Init, "done" after it was done. What has used up descriptors or closed
 * the library's own leaves by exit, not MPI_Finalize.
 */
#define _GNU_SOURCE
#include "hold.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

extern char **environ;

/* A communicator made, used and freed: wrong is counted. */
static int wrong;

static void use_mpi(void)
{
    MPI_Comm comm;
    int one = 1, sum = 0;

    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    MPI_Comm_set_name(comm, "guest");
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    MPI_Comm_free(&comm);
    wrong += sum != 1;
}

static int status_of(pid_t pid)
{
    int status = -1;

    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int by_system(void) { return WEXITSTATUS(system("echo guest: a shell; exit 21")); }

static int by_popen(void)
{
    char line[64] = "";
    FILE *pipe = popen("echo from the pipe; exit 22", "r");

    if (pipe == NULL || fgets(line, sizeof line, pipe) == NULL)
        return -1;
    printf("guest: %s", line);
    return WEXITSTATUS(pclose(pipe));
}

/* The shell lists its descriptors: ours must not be among them. */
static int by_spawn(void)
{
    char *const command[] = {"sh", "-c", "ls /proc/self/fd | wc -l; exit 23", NULL};
    pid_t pid;

    fflush(stdout);
    return posix_spawn(&pid, "/bin/sh", NULL, NULL, command, environ) == 0 ? status_of(pid) : -1;
}

static int by_vfork(void)
{
    const pid_t pid = vfork();

    if (pid == 0) {
        execl("/bin/sh", "sh", "-c", "exit 24", (char *)NULL);
        _exit(96);
    }
    return status_of(pid);
}

/* A child that lives on without its parent, with memory of its own to allocate, and leaves by exit. */
static int by_daemon(void)
{
    int fd[2];
    char byte = 0;
    pid_t pid;

    fflush(stdout);
    if (pipe(fd) != 0 || (pid = fork()) < 0)
        return -1;
    if (pid == 0) {
        if (fork() != 0)
            _exit(25);
        setsid();
        free(malloc(100000));
        if (write(fd[1], "d", 1) != 1)
            _exit(96);
        _exit(0);
    }
    if (read(fd[0], &byte, 1) != 1 || byte != 'd')
        return -1;
    return status_of(pid);
}

static void *fork_often(void *sum)
{
    for (int i = 0; i < 50; i++) {
        const pid_t pid = fork();

        if (pid == 0) {
            free(malloc(100000));
            _exit(1);
        }
        *(int *)sum += status_of(pid);
    }
    return NULL;
}

/* Threads fork while this one makes communicators and somebody may be reading. */
static int by_threads(void)
{
    pthread_t thread[2];
    int sum[2] = {0};

    for (int i = 0; i < 2; i++)
        pthread_create(&thread[i], NULL, fork_often, &sum[i]);
    for (int i = 0; i < 100; i++)
        use_mpi();
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    return sum[0] + sum[1];
}

enum { NUMBERS = 1024 };
static int ear = -1, mouths;
static int (*afterwards)(void); /* what came of it by the end */

/* Nobody has written to our files, nor closed one. */
static int untouched(void)
{
    int open_ones = 0, bytes = 0;
    char byte;

    while (recv(ear, &byte, 1, MSG_DONTWAIT) == 1)
        bytes++;
    for (int fd = 3; fd < NUMBERS; fd++)
        open_ones += fcntl(fd, F_GETFD) >= 0;
    printf("guest: %d stray bytes, %d files lost\n", bytes, mouths - open_ones);
    return 0;
}

/* Every number from first on is closed, then one of ours. */
static int close_all(int first)
{
    int pair[2];

    for (int fd = first; fd < 4096; fd++)
        close(fd);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) != 0)
        return -1;
    ear = pair[0];
    for (int fd = pair[1] + 1; fd < NUMBERS; fd++)
        if (dup2(pair[1], fd) != fd)
            return -1;
    for (int fd = 3; fd < NUMBERS; fd++)
        mouths += fcntl(fd, F_GETFD) >= 0;
    afterwards = untouched;
    return 0;
}

/* Above what the MPI library has opened: it has no high numbers. */
static int above_mpi(void)
{
    int first = 3;

    for (int fd = 3; fd < 200; fd++)
        if (fcntl(fd, F_GETFD) >= 0)
            first = fd + 1;
    return first;
}

static int by_close(void) { return close_all(above_mpi()); }

/* MPICH can live without its own, too. */
static int by_close_everything(void) { return close_all(3); }

static int by_closefrom(void)
{
#if __GLIBC_PREREQ(2, 34)
    closefrom(above_mpi());
    return 0;
#else
    return by_close();
#endif
}

static int spare = -1;

static void by_nothing_more(void)
{
    while (open("/dev/null", O_RDONLY) >= 0)
        ;
}

/* All descriptors are in use. */
static int by_exhaustion(void)
{
    const struct rlimit few = {64, 64};
    int taken = 0, highest = -1, fd;

    spare = open("/dev/null", O_RDONLY); /* a hold point needs one */
    setrlimit(RLIMIT_NOFILE, &few);
    while ((fd = open("/dev/null", O_RDONLY)) >= 0) {
        taken++;
        highest = fd;
    }
    printf("guest: %d taken, highest %d, %s\n", taken, highest, errno == EMFILE ? "no more" : "?");
    return 0;
}

/* The same, and none comes free before the end. */
static int by_exhaustion_to_the_end(void)
{
    by_exhaustion();
    return atexit(by_nothing_more);
}

static volatile sig_atomic_t heard;

static void hear(int signal) { heard += signal == SIGUSR1; }

/* Signals of the process come to the program's threads: to a handler, and to sigwait where all of them block it. */
static int by_signals(void)
{
    const struct sigaction action = {.sa_handler = hear};
    sigset_t set;
    int got = 0, waited = 0;

    sigaction(SIGUSR1, &action, NULL);
    for (int i = 0; i < 100; i++)
        kill(getpid(), SIGUSR1);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    for (int i = 0; i < 100; i++) {
        kill(getpid(), SIGUSR2);
        waited += sigwait(&set, &got) == 0 && got == SIGUSR2;
    }
    printf("guest: %d handled, %d waited for\n", (int)heard, waited);
    return 0;
}

/* Memory of the agent's must not be in the way of who locks all of it, or takes all away from children. */
static int by_locking(void)
{
    const int locked = mlockall(MCL_CURRENT) == 0;

    munlockall();
    return locked;
}

static int by_setuid(void)
{
    /* glibc tells every thread of the process, ours too. */
    if (setgid(getgid()) != 0 || setuid(getuid()) != 0)
        return -1;
    return 0;
}

/* Nothing is at /proc any more, for this thread and its children; needs root. */
static int by_hiding_proc(void)
{
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("none", "/proc", "tmpfs", MS_RDONLY, NULL) != 0)
        return 26;
    return access("/proc/self", F_OK) == 0;
}

/* From now on a call of the list ends the process, in whatever thread. */
static int deny(const int *calls, int count)
{
    struct sock_filter code[64];
    struct sock_fprog program = {.filter = code};
    int n = 0;

    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < count; i++) {
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i], 0, 1);
        code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    }
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    program.len = (unsigned short)n;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return 26;
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0 ? 0 : 26;
}

/* No connection may be made any more. */
static int by_denying_connections(void)
{
    static const int calls[] = {SYS_socket, SYS_connect};

    return deny(calls, 2);
}

/* Nor anything else that would be a descriptor, nor a look at one. */
static int no_more_descriptors(void)
{
    static const int calls[] = {
        SYS_socket, SYS_connect, SYS_socketpair, SYS_openat, SYS_pipe2, SYS_eventfd2, SYS_dup, SYS_dup3, SYS_fcntl, SYS_prctl,
        SYS_tgkill, SYS_kill, SYS_clone, SYS_unshare, SYS_execve,
#ifdef SYS_open
        SYS_open, SYS_pipe, SYS_dup2, SYS_fork, SYS_vfork,
#endif
    };

    return deny(calls, sizeof calls / sizeof calls[0]);
}

static int by_denying_descriptors(void)
{
    afterwards = no_more_descriptors; /* hold points are files */
    return 0;
}

/* How many libraries with static TLS of their own still find room for it: GUEST_TLS names a file with %d in it. */
static int by_tls(void)
{
    const char *pattern = getenv("GUEST_TLS");
    char path[4096];
    int loaded = 0, sum = 0;

    for (; pattern != NULL; loaded++) {
        const char *percent = strstr(pattern, "%d");
        int (*touch)(void);
        void *library;

        snprintf(path, sizeof path, "%.*s%d%s", (int)(percent - pattern), pattern, loaded, percent + 2);
        library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (library == NULL)
            break;
        *(void **)&touch = dlsym(library, "touch");
        sum += touch();
    }
    printf("guest: %d libraries, sum %d\n", loaded, sum);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*act)(void);
        int by_exit;
    } list[] = {
        {"system", by_system, 0},     {"popen", by_popen, 0},         {"spawn", by_spawn, 0},
        {"vfork", by_vfork, 0},       {"daemon", by_daemon, 0},       {"threads", by_threads, 0},
        {"close", by_close, 0},       {"closefrom", by_closefrom, 0}, {"close_everything", by_close_everything, 1},
        {"exhaustion", by_exhaustion, 1}, {"exhaustion_to_the_end", by_exhaustion_to_the_end, 1},
        {"hiding_proc", by_hiding_proc, 0},
        {"denying_connections", by_denying_connections, 0}, {"denying_descriptors", by_denying_descriptors, 0},
        {"denying_descriptors_to_exit", by_denying_descriptors, 1},
        {"signals", by_signals, 0},   {"locking", by_locking, 0},     {"setuid", by_setuid, 0},
        {"tls", by_tls, 0},           {"nothing", NULL, 0},
    };
    const char *what = argc > 1 ? argv[1] : "nothing", *dir = argc > 2 ? argv[2] : "-";
    int provided, rank, by_exit = 0, result = 0;
    sigset_t blocked;

    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR2);
    sigprocmask(SIG_BLOCK, &blocked, NULL); /* the MPI library's threads inherit it */
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    hold(dir, "up", rank);
    use_mpi();
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++)
        if (strcmp(what, list[i].name) == 0 && list[i].act != NULL) {
            result = list[i].act();
            by_exit = list[i].by_exit;
        }
    use_mpi();
    if (spare >= 0)
        close(spare);
    hold(dir, "done", rank);
    use_mpi();
    if (afterwards != NULL)
        result += afterwards();
    printf("guest: %s %d, wrong %d\n", what, result, wrong);
    if (by_exit)
        exit(9);
    MPI_Finalize();
    return 0;
}
