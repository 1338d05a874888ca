/* filter.c - whether the program has been denied system calls since MPI_Init. */
#define _GNU_SOURCE
#include "filter.h"

#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static int at_first; /* written in MPI_Init, before the agent's thread exists */

/* How many the calling thread has: Linux tells it from 5.9 on, and before that there is one or none. */
static int filters(void)
{
	static const char field[] = "\nSeccomp_filters:";
	char status[4096];
	const char *at;
	ssize_t length;
	int fd, n = 0;

	if (prctl(PR_GET_SECCOMP) <= 0)
		return 0;
	fd = open("/proc/thread-self/status", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 1;
	length = read(fd, status, sizeof status - 1);
	close(fd);
	status[length < 0 ? 0 : length] = '\0';
	at = strstr(status, field);
	if (at == NULL)
		return 1;
	/* Without strtol, which looks at the locale: exit may stand in a signal handler. */
	for (at += sizeof field - 1; *at == '\t' || *at == ' '; at++)
		;
	for (; *at >= '0' && *at <= '9' && n < 100000; at++)
		n = 10 * n + (*at - '0');
	return n;
}

void filter_begin(void)
{
	at_first = filters();
}

bool filter_came(void)
{
	return at_first == 0 ? prctl(PR_GET_SECCOMP) > 0 : filters() > at_first;
}
