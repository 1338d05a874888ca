/* wake.c - how the agent's thread sleeps, and how the rank's end wakes it. */
#define _GNU_SOURCE
#include "wake.h"

#include "agent.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int reading_end = -1; /* the agent's thread's alone */

/* Written by the agent's thread, read by the program's. -1: none. */
static _Atomic int writing_end = -1;
static _Atomic long thread_id;
static _Atomic uint64_t pipe_inode;

void wake_prepare(void)
{
	struct stat st;
	int fd[2];

	if (pipe2(fd, O_CLOEXEC | O_NONBLOCK) != 0 || fstat(fd[1], &st) != 0)
		return;
	reading_end = fd[0];
	atomic_store(&thread_id, syscall(SYS_gettid));
	atomic_store(&pipe_inode, st.st_ino);
	atomic_store(&writing_end, fd[1]);
}

void wake_forget(void)
{
	atomic_store(&writing_end, -1);
}

void wake_sleep(int fd, int ms)
{
	struct pollfd p[2] = { { .fd = reading_end, .events = POLLIN }, { .fd = fd, .events = POLLIN } };

	while (poll(p, 2, ms) < 0 && errno == EINTR && ms < 0)
		;
}

/* "/proc/self/task/TID/fd/FD": without snprintf, for exit may stand in a signal handler. */
static void wake_path(char path[64], long task, int fd)
{
	const long numbers[2] = { task, fd };
	const char *const before[2] = { "/proc/self/task/", "/fd/" };
	size_t at = 0;

	for (int i = 0; i < 2; i++) {
		char digits[20];
		size_t n = 0;
		long v = numbers[i];

		for (const char *c = before[i]; *c != '\0'; c++)
			path[at++] = *c;
		do
			digits[n++] = (char)('0' + v % 10);
		while ((v /= 10) > 0);
		while (n > 0)
			path[at++] = digits[--n];
	}
	path[at] = '\0';
}

void wake_thread(void)
{
	int number = atomic_load(&writing_end), fd;
	char path[64];
	struct stat st;

	if (number < 0)
		return;
	wake_path(path, atomic_load(&thread_id), number);
	/* For reading too: with no reader left, for the thread may be leaving by itself, the byte would be a SIGPIPE for the program. */
	fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return; /* no /proc: the thread leaves when the exporter closes the connection */
	/* Certain that it is ours: the thread may have gone, and its number be another's. */
	if (fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode) && st.st_ino == (ino_t)atomic_load(&pipe_inode) && write(fd, "", 1) < 0)
		agent_log("the agent's thread can't be woken");
	close(fd);
}
