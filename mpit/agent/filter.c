/* filter.c - whether the program has been denied system calls since MPI_Init. */
#define _GNU_SOURCE
#include "filter.h"

#include "descriptor.h"

#include <stddef.h>
#include <sys/prctl.h>
#include <unistd.h>

static int at_first; /* written in MPI_Init, before the agent's thread exists */

/*
 * How many the calling thread has: Linux tells it from 5.9 on, and before that there is one or none. Little is read
 * at a time, for exit may stand in a signal handler with a small stack of its own.
 */
static int filters(void)
{
	static const char field[] = "\nSeccomp_filters:\t";
	char bytes[128];
	size_t found = 0; /* characters of the field */
	bool told = false;
	ssize_t length;
	int fd, n = 0;

	if (prctl(PR_GET_SECCOMP, 0L, 0L, 0L, 0L) <= 0)
		return 0;
	fd = descriptor_open("/proc/thread-self/status", O_RDONLY);
	if (fd < 0)
		return 1;
	while (!told && (length = read(fd, bytes, sizeof bytes)) > 0)
		for (ssize_t i = 0; i < length && !told; i++) {
			char c = bytes[i];

			if (field[found] != '\0')
				found = c == field[found] ? found + 1 : c == field[0];
			else if (c >= '0' && c <= '9' && n < 100000)
				n = 10 * n + (c - '0');
			else
				told = true;
		}
	descriptor_close(fd);
	return n > 0 ? n : 1;
}

void filter_begin(void)
{
	at_first = filters();
}

bool filter_came(void)
{
	return at_first == 0 ? prctl(PR_GET_SECCOMP, 0L, 0L, 0L, 0L) > 0 : filters() > at_first;
}
