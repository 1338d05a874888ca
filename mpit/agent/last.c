/* last.c - the last sample: what the program's own thread does with it, and what the agent's. */
#define _GNU_SOURCE
#include "last.h"

#include "agent.h"
#include "descriptor.h"
#include "filter.h"
#include "now.h"
#include "tools/lists.h"
#include "wake.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define FINAL_PATIENCE_NS 20000000u
#define WAIT_MS_MAX 60000
/* Of the last sample where nothing can be allocated: a rank with 1,100 variables needs 0.5 MiB. */
#define LAST_WORDS_BYTES (2u << 20)

/* Of the last sample over the connection that stands. */
enum stage {
	STAGE_UNASKED,
	STAGE_ASKED,     /* an exporter wants the last sample that way */
	STAGE_OFFERED,   /* by the program's thread, which may take it back */
	STAGE_TAKEN,     /* by the thread of the end */
	STAGE_SENT,      /* to the exporter, which may keep the connection for as long as the program is to wait */
	STAGE_HANDED_ON, /* it has closed it */
	STAGE_FAILED,
};

static _Atomic uint32_t stage;

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
	atomic_store(&stage, STAGE_UNASKED);
}

void last_linger(void)
{
	uint64_t deadline = monotonic_ns() + nanoseconds("MPIT_AGENT_LINGER");

	while (monotonic_ns() < deadline && !lists_told())
		usleep(1000);
}

/* ---- over the connection that stands: the agent's threads have it ---- */

/* The program's thread's, and from STAGE_OFFERED to STAGE_SENT the other one's. */
static struct {
	const unsigned char *bytes;
	size_t length;
	uint64_t deadline;
	bool awaited;
} offer;

static bool move(enum stage from, enum stage to)
{
	uint32_t expected = from;

	return atomic_compare_exchange_strong(&stage, &expected, to);
}

void last_asked(void)
{
	move(STAGE_UNASKED, STAGE_ASKED);
}

void last_unasked(void)
{
	if (!move(STAGE_ASKED, STAGE_UNASKED) && move(STAGE_OFFERED, STAGE_FAILED))
		word_set(&stage, STAGE_FAILED);
}

void last_deliver(const struct connection *c)
{
	uint64_t deadline;
	bool awaited, sent;

	if (!connection_enter_before(atomic_load(&stage) == STAGE_OFFERED ? offer.deadline : 0))
		return; /* it is busy with an answer that nobody reads */
	if (move(STAGE_OFFERED, STAGE_TAKEN)) {
		deadline = offer.deadline;
		awaited = offer.awaited;
		sent = c->fd >= 0 && connection_send_before(c, offer.bytes, offer.length, deadline);
		word_set(&stage, sent ? STAGE_SENT : STAGE_FAILED);
		if (sent && awaited) {
			connection_await_end(c, deadline);
			word_set(&stage, STAGE_HANDED_ON);
		}
	}
	connection_leave();
}

/* Program's thread. True: it is sent or being sent that way; false: it has to go another way. */
static bool hand_over(const unsigned char *bytes, size_t length, uint64_t deadline, bool awaited)
{
	uint64_t now = monotonic_ns();

	if (atomic_load(&stage) != STAGE_ASKED)
		return false;
	offer.bytes = bytes;
	offer.length = length;
	offer.deadline = deadline;
	offer.awaited = awaited;
	if (!move(STAGE_ASKED, STAGE_OFFERED))
		return false; /* the connection has just ended */
	wake_threads();
	word_await(&stage, STAGE_OFFERED, now + (deadline > now ? deadline - now : 0) / 2);
	/* Under a filter there is no other way. */
	if (atomic_load(&stage) == STAGE_OFFERED && filter_came())
		word_await(&stage, STAGE_OFFERED, deadline);
	if (move(STAGE_OFFERED, STAGE_UNASKED))
		return false;
	word_await(&stage, STAGE_TAKEN, deadline);
	return atomic_load(&stage) != STAGE_FAILED;
}

/* ---- over a connection of its own ---- */

static int dial_before(const struct socket_paths *paths, uint64_t deadline)
{
	int fd;

	/* A filter's answer to socket or connect may be the process's end. */
	if (filter_came())
		return -1;
	while ((fd = dial_any(paths)) < 0)
		if (errno != EAGAIN || monotonic_ns() >= deadline || (poll(NULL, 0, 1) < 0 && errno != EINTR))
			return -1; /* no exporter, or a stopped one: the last sample is lost, docs say so */
	return fd;
}

static struct farewell send_alone(int fd, const struct wire *w, uint64_t deadline, bool awaited)
{
	struct farewell f = { .c = { .fd = fd, .private = true }, .deadline = deadline };
	struct stat st;
	bool sent;

	if (fd < 0)
		return f;
	sent = !w->failed && connection_send_before(&f.c, w->bytes, w->length, deadline);
	agent_log("last sample: %zu bytes %s", w->length, sent ? "sent" : "not all sent");
	if (!sent || !awaited || fstat(f.c.fd, &st) != 0) {
		descriptor_close(f.c.fd);
		f.c.fd = -1;
		return f;
	}
	/* Another thread of the program may close it, and the number be somebody else's then. */
	f.c.private = false;
	f.c.inode = st.st_ino;
	return f;
}

struct farewell last_send(const struct socket_paths *paths, const struct identity *id, const struct session *s,
			  enum end_reason end)
{
	/* An abort is not to be held up: other ranks wait to be ended by it. */
	uint64_t wait = end == END_ABORT ? 0 : final_wait_ns;
	uint64_t deadline = monotonic_ns() + (wait > FINAL_PATIENCE_NS ? wait : FINAL_PATIENCE_NS);
	struct farewell f = { .c.fd = -1, .deadline = deadline };
	static unsigned char last_words[LAST_WORDS_BYTES]; /* untouched, and so no memory, unless needed */
	static struct wire w; /* not freed where it is still being sent at the deadline */
	struct under_way calls = sources_under_way(s);
	size_t hello;
	int fd = -1;

	if (atomic_load(&stage) != STAGE_ASKED && (fd = dial_before(paths, deadline)) < 0)
		return f;
	w = (struct wire){ 0 }; /* a program that is not in a signal handler: it may be as large as it must */
	if (end != END_FINALIZE)
		w = (struct wire){ .bytes = last_words, .room = sizeof last_words, .fixed = true };
	frame_hello(&w, id, CONNECTION_FINAL);
	hello = w.length;
	frame_answer(&w, 0, s, (struct generations){ 0 }, SAMPLE_FINAL, end, &calls);
	if (fd < 0 && !w.failed && hand_over(w.bytes + hello, w.length - hello, deadline, wait > 0)) {
		f.handed_over = wait > 0;
		agent_log("last sample: %zu bytes sent over the connection that stood", w.length - hello);
		if (atomic_load(&stage) == STAGE_TAKEN)
			return f;
	} else {
		f = send_alone(fd < 0 ? dial_before(paths, deadline) : fd, &w, deadline, wait > 0);
	}
	wire_free(&w);
	return f;
}

void last_await(const struct farewell *f)
{
	uint64_t began = monotonic_ns();

	if (!f->handed_over && f->c.fd < 0)
		return;
	/*
	 * The program's own thread has to stand here: once the last rank of a job has returned from MPI_Finalize and
	 * ended, batch systems kill whatever is left on the node, the exporter too, and what it had not handed on by then
	 * is lost. A signal's handler may have run in between; that makes the wait no longer.
	 */
	if (f->handed_over) {
		word_await(&stage, STAGE_SENT, f->deadline);
	} else {
		connection_await_end(&f->c, f->deadline);
		connection_let_go(&f->c);
	}
	agent_log("waited %llu us for the last sample to be handed on", (unsigned long long)(monotonic_ns() - began) / 1000u);
}
