/*
 * wake.h - how the agent's thread sleeps, and how the rank's end wakes it.
 *
 * A pipe in the thread's own descriptor table, of which the program never sees anything: its thread opens the writing
 * end through /proc when the time has come. Without a table of the thread's own, or without /proc, nothing wakes it
 * but its connection.
 */
#ifndef MPIT_WAKE_H
#define MPIT_WAKE_H

#include <stdbool.h>

/* The agent's thread, once, in its own descriptor table; and when it leaves. */
void wake_prepare(void);
void wake_forget(void);

/* The agent's thread: sleeps until fd can be read (any other than -1), ms have passed (any below 0: no limit), or it is woken. */
void wake_sleep(int fd, int ms);

/* Program's thread; allocates nothing, waits for nothing. Async-signal-safe but for the log. */
void wake_thread(void);

#endif
