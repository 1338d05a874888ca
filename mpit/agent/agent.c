/* agent.c - the agent's state and log. */
#include "agent.h"

#include "wake.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Atomic int state = AGENT_IDLE;
static _Atomic(void (*)(bool)) measures;
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
	agent_measure(false);
	wake_threads();
}

void agent_measures_by(void (*measure)(bool on))
{
	atomic_store(&measures, measure);
}

void agent_measure(bool on)
{
	void (*measure)(bool) = atomic_load(&measures);

	if (measure == NULL)
		return;
	measure(on);
	/* Who gives the agent up changes its state first and switches off then: one of the two sees the other. */
	if (on && agent_state() != AGENT_RUNNING)
		measure(false);
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

static void write_line(const char *format, va_list args)
{
	char line[512];
	int n, m;

	n = snprintf(line, sizeof line, "mpit-agent[%ld]: ", (long)getpid());
	m = vsnprintf(line + n, sizeof line - (size_t)n - 1, format, args);
	n = m < 0 ? n : n + m;
	if (n > (int)sizeof line - 2)
		n = (int)sizeof line - 2;
	line[n++] = '\n';
	/* One write, so that the lines of many ranks don't mix; that it fails concerns nobody. */
	if (write(STDERR_FILENO, line, (size_t)n) < 0)
		return;
}

void agent_log(const char *format, ...)
{
	va_list args;

	if (!log_enabled)
		return;
	va_start(args, format);
	write_line(format, args);
	va_end(args);
}

/* As mpit-exporter exec does for its own lines. */
static bool first_rank(void)
{
	static const char *const ranks[] = { "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID" };
	const char *rank = NULL;

	for (size_t i = 0; i < sizeof ranks / sizeof *ranks && rank == NULL; i++)
		rank = getenv(ranks[i]);
	return rank == NULL || strcmp(rank, "0") == 0;
}

void agent_warn(const char *format, ...)
{
	va_list args;

	if (!log_enabled && !first_rank())
		return;
	va_start(args, format);
	write_line(format, args);
	va_end(args);
}

void *array_with_room(void *old, size_t count, size_t *room, size_t element_bytes)
{
	size_t more = *room == 0 ? 8 : 2 * *room;
	void *grown;

	if (count < *room)
		return old;
	grown = realloc(old, more * element_bytes);
	if (grown != NULL)
		*room = more;
	return grown;
}

void copy_string(char *to, size_t size, const char *from)
{
	size_t n = strnlen(from, size - 1);

	memcpy(to, from, n);
	to[n] = '\0';
}
