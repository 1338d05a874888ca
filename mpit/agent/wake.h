/*
 * wake.h - how the agent's threads sleep, and how the rank's end wakes them.
 *
 * By words in memory (futex): the program's thread, which can't reach the agent's descriptors and may by then be
 * denied whatever would make one (a seccomp filter), needs no other system call than every mutex does.
 */
#ifndef MPIT_WAKE_H
#define MPIT_WAKE_H

#include <stdint.h>

#define FOREVER UINT64_MAX

/* Sleeps while the word has that value, until the deadline (CLOCK_MONOTONIC, ns) at most. Any thread,
 * async-signal-safe, as is the next. */
void word_await(_Atomic uint32_t *word, uint32_t value, uint64_t deadline);
/* Gives the word a value, and wakes all who wait for it. */
void word_set(_Atomic uint32_t *word, uint32_t value);

/* Program's thread, before the agent's exist. */
void wake_prepare(void);
/* The agent's threads: sleeps until the rank ends, or the deadline. */
void wake_await(uint64_t deadline);
/* The rank has ended. Any thread; may be called again. */
void wake_threads(void);

#endif
