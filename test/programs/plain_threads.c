/* plain_threads: no MPI. Starts threads and children, and prints a line. */
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static void *work(void *number)
{
    ++*(int *)number;
    return number;
}

int main(void)
{
    int sum = 0, status;

    for (int i = 0; i < 10; i++) {
        pthread_t thread;
        void *result;
        const pid_t child = fork();

        if (child == 0)
            _exit(i);
        if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != i)
            return 1;
        if (pthread_create(&thread, NULL, work, &sum) != 0 || pthread_join(thread, &result) != 0 || result != &sum)
            return 2;
    }
    printf("plain_threads: %d threads\n", sum);
    return 7;
}
