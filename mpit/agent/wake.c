/* wake.c - how the agent's threads sleep, and how the rank's end wakes them. */
#define _GNU_SOURCE
#include "wake.h"

#include "now.h"

#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static _Atomic uint32_t ended;

void word_await(_Atomic uint32_t *word, uint32_t value, uint64_t deadline)
{
	uint64_t now;

	while (atomic_load(word) == value && (now = monotonic_ns()) < deadline) {
		uint64_t left = deadline - now;
		struct timespec timeout = { .tv_sec = (time_t)(left / 1000000000u), .tv_nsec = (long)(left % 1000000000u) };

		syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, deadline == FOREVER ? NULL : &timeout, NULL, 0);
	}
}

void word_set(_Atomic uint32_t *word, uint32_t value)
{
	atomic_store(word, value);
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

void wake_prepare(void)
{
	atomic_store(&ended, 0);
}

void wake_await(uint64_t deadline)
{
	word_await(&ended, 0, deadline);
}

void wake_threads(void)
{
	word_set(&ended, 1);
}
