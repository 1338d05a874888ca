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
#include <unistd.h>

#define FINAL_PATIENCE_NS 20000000u
#define LINGER_MS_MAX 60000
#define LAST_WORDS_BYTES (2u << 20) /* of the last sample where nothing can be allocated: a rank with 1,100 variables needs 0.5 MiB */

void last_linger(void)
{
	const char *value = getenv("MPIT_AGENT_LINGER");
	long ms = value == NULL ? 0 : strtol(value, NULL, 10);
	uint64_t deadline = monotonic_ns() + (uint64_t)(ms > LINGER_MS_MAX ? LINGER_MS_MAX : ms < 0 ? 0 : ms) * 1000000u;

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

void last_send(const struct socket_paths *paths, const struct identity *id, const struct session *s, enum end_reason end)
{
	uint64_t deadline = monotonic_ns() + FINAL_PATIENCE_NS;
	struct agent_statistics statistics = statistics_of(s);
	static unsigned char last_words[LAST_WORDS_BYTES]; /* untouched, and so no memory, unless needed */
	struct wire w = { .bytes = last_words, .room = sizeof last_words, .fixed = true };
	size_t sent = 0;
	int fd;

	if (end == END_FINALIZE)
		w = (struct wire){ 0 }; /* a program that is not in a signal handler: it may be as large as it must */
	while ((fd = dial_any(paths)) < 0)
		if (errno != EAGAIN || !before_deadline(deadline, -1))
			return; /* no exporter, or a stopped one: the last sample is lost, docs say so */
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
	close(fd);
	agent_log("last sample: %zu of %zu bytes sent", sent, w.length);
	wire_free(&w);
}
