/*
 * agent.h - what all parts of the agent share: its state and its log.
 *
 * The agent lives in somebody else's process. Its rules, everywhere:
 *   - every failure ends in "the program runs on, unobserved";
 *   - all state belongs to the gate (gate.h) unless its declaration says otherwise;
 *   - a path that the program waits on takes no lock but the gate, makes no system
 *     call and allocates nothing, unless the comment there says why it may.
 */
#ifndef MPIT_AGENT_H
#define MPIT_AGENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the protocol is little-endian and so must the host be"
#endif

#ifndef MPIT_AGENT_VERSION
#define MPIT_AGENT_VERSION "dev"
#endif

enum agent_state {
	AGENT_IDLE,    /* before MPI_Init, or switched off */
	AGENT_RUNNING, /* between MPI_Init and MPI_Finalize */
	AGENT_FINAL,   /* the last sample is taken: MPI_T is never called again */
	AGENT_OFF,     /* a forked child, or given up: the agent touches nothing any more */
};

/*
 * Any thread. One load: it stands in front of every wrapper's work. Acquire, so that a thread that sees the agent
 * running sees all that was set before; on x86-64 that is the same instruction as a relaxed load.
 */
enum agent_state agent_state(void);

/* Moves from one state to another; false if the state was another one. Any thread. */
bool agent_move(enum agent_state from, enum agent_state to);

/* Gives the agent up for the rest of the process, with a reason for the log. Any thread. */
void agent_give_up(const char *reason);

/*
 * What another library measures (sources.h) is switched on and off with the agent: on means off where the agent isn't
 * running (any more). Any thread, the gate held or not, also in a child right after fork or in a signal handler:
 * measure sets a flag. It is given once, before the agent runs; NULL: there is none.
 */
void agent_measures_by(void (*measure)(bool on));
void agent_measure(bool on);

/*
 * One line on stderr if MPIT_AGENT_LOG is set and not 0, nothing otherwise. Any thread, also in a signal handler that
 * ends the program (last.h): only numbers and strings are formatted here, and for these vsnprintf of glibc and of musl
 * neither allocates nor locks. The environment is read once, in agent_log_init (program's thread, in MPI_Init).
 */
void agent_log_init(void);
bool agent_log_enabled(void);
void agent_log(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same for a line that the user sees without having asked: once a job, of rank 0 where the environment tells ranks
 * apart. Program's thread, in MPI_Init. */
void agent_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* An array with room for one more than `count` elements: the old one, or a larger one in its place. NULL: no memory,
 * and the old one stays. */
void *array_with_room(void *old, size_t count, size_t *room, size_t element_bytes);

/* strdup's bounded cousin: copies at most size-1 bytes and always ends them. */
void copy_string(char *to, size_t size, const char *from);

#endif
