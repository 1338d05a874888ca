/* agent.c - the agent's state, clock and log. */
#include "agent.h"

#include "sources.h"
#include "wake.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static _Atomic int state = AGENT_IDLE;
static bool log_enabled; /* written once in MPI_Init, before the agent's thread exists */

enum agent_state agent_state(void)
{
	return (enum agent_state)atomic_load_explicit(&state, memory_order_acquire);
}

bool agent_move(enum agent_state from, enum agent_state to)
{
	int expected = from;

	return atomic_compare_exchange_strong(&state, &expected, to);
}

void agent_give_up(const char *reason)
{
	agent_log("gives up: %s; the program runs on unobserved", reason);
	atomic_store(&state, AGENT_OFF);
	sources_measure(false);
	wake_threads();
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	if (clock_gettime(clock, &t) != 0)
		return 0;
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t realtime_ns(void)
{
	return clock_ns(CLOCK_REALTIME);
}

uint64_t monotonic_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

void agent_log_init(void)
{
	const char *value = getenv("MPIT_AGENT_LOG");

	log_enabled = value != NULL && *value != '\0' && strcmp(value, "0") != 0;
}

bool agent_log_enabled(void)
{
	return log_enabled;
}

void agent_log(const char *format, ...)
{
	char line[512];
	va_list args;
	int n, m;

	if (!log_enabled)
		return;
	n = snprintf(line, sizeof line, "mpit-agent[%ld]: ", (long)getpid());
	va_start(args, format);
	m = vsnprintf(line + n, sizeof line - (size_t)n - 1, format, args);
	va_end(args);
	n = m < 0 ? n : n + m;
	if (n > (int)sizeof line - 2)
		n = (int)sizeof line - 2;
	line[n++] = '\n';
	/* One write, so that the lines of many ranks don't mix; that it fails concerns nobody. */
	if (write(STDERR_FILENO, line, (size_t)n) < 0)
		return;
}

void copy_string(char *to, size_t size, const char *from)
{
	size_t n = strnlen(from, size - 1);

	memcpy(to, from, n);
	to[n] = '\0';
}
