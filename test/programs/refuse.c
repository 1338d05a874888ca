/*
 * refuse CALLS COMMAND ARGS...: runs COMMAND with system calls refused (EPERM) as containers' filters refuse them.
 * CALLS is a list of names with commas between, out of unshare, close_range, getrandom, process_vm_readv.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

static int refuse(int call)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {.len = sizeof code / sizeof code[0], .filter = code};

    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int number;
    } calls[] = {{"unshare", SYS_unshare}, {"close_range", SYS_close_range}, {"getrandom", SYS_getrandom},
               {"process_vm_readv", SYS_process_vm_readv}};

    if (argc < 3 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return 125;
    for (char *name = strtok(argv[1], ","); name != NULL; name = strtok(NULL, ","))
        for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
            if (strcmp(name, calls[i].name) == 0 && refuse(calls[i].number) != 0) {
                perror("refuse");
                return 125;
            }
    execv(argv[2], &argv[2]);
    perror(argv[2]);
    return 125;
}
