/* last.c - the last sample, taken to the exporter by the program's own thread. */
#define _GNU_SOURCE
#include "last.h"

#include "agent.h"
#include "answers.h"
#include "hello.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define FINAL_PATIENCE_NS 20000000u
#define WAIT_MS_MAX 60000
#define LAST_WORDS_BYTES (2u << 20) /* of the last sample where nothing can be allocated: a rank with 1,100 variables needs 0.5 MiB */

static uint64_t final_wait_ns; /* written in MPI_Init, before the agent's thread exists */

/* What a variable says in milliseconds, bounded. */
static uint64_t nanoseconds(const char *variable)
{
	const char *value = getenv(variable);
	long ms = value == NULL ? 0 : strtol(value, NULL, 10);

	return (uint64_t)(ms > WAIT_MS_MAX ? WAIT_MS_MAX : ms < 0 ? 0 : ms) * 1000000u;
}

void last_prepare(void)
{
	final_wait_ns = nanoseconds("MPIT_AGENT_FINAL_WAIT");
}

void last_linger(void)
{
	uint64_t deadline = monotonic_ns() + nanoseconds("MPIT_AGENT_LINGER");

	while (monotonic_ns() < deadline && !lists_told())
		usleep(1000);
}

static bool before_deadline(uint64_t deadline, int fd)
{
	uint64_t now = monotonic_ns();
	struct pollfd p = { .fd = fd, .events = POLLOUT };

	if (now >= deadline)
		return false;
	return poll(&p, fd < 0 ? 0 : 1, 1) >= 0 || errno == EINTR;
}

struct farewell last_send(const struct socket_paths *paths, const struct identity *id, const struct session *s, enum end_reason end)
{
	/* An abort is not to be held up: other ranks wait to be ended by it. */
	uint64_t wait = end == END_ABORT ? 0 : final_wait_ns;
	uint64_t deadline = monotonic_ns() + (wait > FINAL_PATIENCE_NS ? wait : FINAL_PATIENCE_NS);
	struct farewell none = { .fd = -1 }, f;
	struct stat st;
	struct agent_statistics statistics = statistics_of(s);
	static unsigned char last_words[LAST_WORDS_BYTES]; /* untouched, and so no memory, unless needed */
	struct wire w = { .bytes = last_words, .room = sizeof last_words, .fixed = true };
	size_t sent = 0;
	int fd;

	if (end == END_FINALIZE)
		w = (struct wire){ 0 }; /* a program that is not in a signal handler: it may be as large as it must */
	while ((fd = dial_any(paths)) < 0)
		if (errno != EAGAIN || !before_deadline(deadline, -1))
			return none; /* no exporter, or a stopped one: the last sample is lost, docs say so */
	put_hello(&w, id, CONNECTION_FINAL);
	frame_answer(&w, 0, s, (struct generations){ 0 }, SAMPLE_FINAL, end, &statistics);
	while (!w.failed && sent < w.length) {
		ssize_t n = send(fd, w.bytes + sent, w.length - sent, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n > 0)
			sent += (size_t)n;
		else if (errno != EAGAIN && errno != EINTR)
			break;
		else if (!before_deadline(deadline, fd))
			break;
	}
	agent_log("last sample: %zu of %zu bytes sent", sent, w.length);
	f = (struct farewell){ .fd = fd, .deadline = deadline };
	if (wait == 0 || w.failed || sent < w.length || fstat(fd, &st) != 0) {
		close(fd);
		f = none;
	} else {
		f.inode = st.st_ino;
	}
	wire_free(&w);
	return f;
}

void last_await(const struct farewell *f)
{
	/* POLLHUP comes unasked; what the exporter might say is not looked at. */
	struct pollfd p = { .fd = f->fd, .events = POLLRDHUP };
	uint64_t now = monotonic_ns(), began = now;
	struct stat st;

	if (f->fd < 0)
		return;
	/*
	 * The program's own thread has to stand here: once the last rank of a job has returned from MPI_Finalize and ended, batch systems
	 * kill whatever is left on the node, the exporter too, and what it had not handed on by then is lost. A signal's handler may have
	 * run in between; that makes the wait no longer.
	 */
	while (now < f->deadline) {
		int ready = poll(&p, 1, (int)((f->deadline - now) / 1000000u) + 1);

		if (ready > 0 || (ready < 0 && errno != EINTR))
			break;
		now = monotonic_ns();
	}
	/* Another thread of the program may have closed it, and the number be somebody else's by now. */
	if (fstat(f->fd, &st) == 0 && S_ISSOCK(st.st_mode) && st.st_ino == f->inode)
		close(f->fd);
	agent_log("waited %llu us for the last sample to be handed on", (unsigned long long)(monotonic_ns() - began) / 1000u);
}
