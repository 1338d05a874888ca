/* link.c - the agent's thread and its connection to the exporter. */
#define _GNU_SOURCE
#include "link.h"

#include "agent.h"
#include "gate.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define BACKOFF_FIRST_MS 20
#define BACKOFF_LAST_MS 2000
#define SEND_PATIENCE_S 10
#define FINAL_PATIENCE_NS 20000000u
#define LINGER_MS_MAX 60000
#define GATE_TRIES 20
#define GATE_RETRY_US 500
#define HIGH_DESCRIPTOR 900
#define LAST_WORDS_BYTES (2u << 20) /* of the last sample where nothing can be allocated: a rank with 1,100 variables needs 0.5 MiB */

/* ---- the blob: the only thing that the agent's thread writes and a program's thread reads ---- */

/* Rule: held for a copy, by the agent's thread on BLOB and HELLO and by the program's in the last sample. */
static pthread_mutex_t blob_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned char blob[BLOB_BYTES];
static size_t blob_length;

static void blob_store(const unsigned char *bytes, size_t length)
{
	if (length > sizeof blob)
		return;
	pthread_mutex_lock(&blob_lock);
	memcpy(blob, bytes, length);
	blob_length = length;
	pthread_mutex_unlock(&blob_lock);
}

static void put_hello(struct wire *w, const struct link *l, enum connection_kind kind)
{
	pthread_mutex_lock(&blob_lock);
	frame_hello(w, l->identity, kind, blob, blob_length);
	pthread_mutex_unlock(&blob_lock);
}

/* ---- the descriptor ---- */

/* The agent's thread's, where it has no table of its own; read by link_forked and link_stop. -1: none. */
static _Atomic int shared_descriptor = -1;
static _Atomic uint64_t shared_inode;

/*
 * What wakes the agent's thread for its end: the writing end of a pipe in its own table, which the program's thread
 * opens through /proc when the time has come. -1: none.
 */
static _Atomic int wake_descriptor = -1;
static _Atomic long wake_task;

struct connection {
	int fd;
	bool private; /* in a descriptor table of the thread's own */
	ino_t inode;  /* of the socket: a shared number may be somebody else's by now */
};

static bool is_socket(int fd, ino_t inode)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode) && st.st_ino == inode;
}

static bool still_ours(const struct connection *c)
{
	return c->private || is_socket(c->fd, c->inode);
}

static void disconnect(struct connection *c)
{
	atomic_store(&shared_descriptor, -1);
	if (c->fd >= 0 && still_ours(c))
		close(c->fd);
	c->fd = -1;
}

/* Non-blocking: a full backlog answers EAGAIN at once, so that a stopped exporter holds up nobody. */
static int dial(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd;

	if (*path == '\0')
		return -1;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -1;
	copy_string(address.sun_path, sizeof address.sun_path, path);
	if (connect(fd, (const struct sockaddr *)&address, sizeof address) != 0) {
		int error = errno;

		close(fd);
		errno = error;
		return -1;
	}
	return fd;
}

static int dial_any(const struct link *l)
{
	int fd = dial(l->paths[0]), error = errno;

	if (fd >= 0)
		return fd;
	fd = dial(l->paths[1]);
	if (fd < 0 && error == EAGAIN)
		errno = EAGAIN; /* somebody listens at the first and has much to do */
	return fd;
}

/* Out of the way of programs that count on low numbers, or close what lies below some bound. */
static int move_high(int fd)
{
	struct rlimit limit;
	int target = HIGH_DESCRIPTOR, moved;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur <= HIGH_DESCRIPTOR + 100)
		target = (int)limit.rlim_cur - 20;
	if (target <= fd)
		return fd;
	moved = fcntl(fd, F_DUPFD_CLOEXEC, target);
	if (moved < 0)
		return fd;
	close(fd);
	return moved;
}

static bool open_connection(const struct link *l, struct connection *c)
{
	struct timeval patience = { .tv_sec = SEND_PATIENCE_S };
	struct stat st;

	c->fd = dial_any(l);
	if (c->fd < 0)
		return false;
	if (!c->private)
		c->fd = move_high(c->fd);
	/* From here on the thread may sleep in it: recv without a bound, send with one. */
	if (fcntl(c->fd, F_SETFL, 0) != 0 || fstat(c->fd, &st) != 0 ||
	    setsockopt(c->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) != 0) {
		close(c->fd);
		c->fd = -1;
		return false;
	}
	c->inode = st.st_ino;
	if (!c->private) {
		atomic_store(&shared_inode, st.st_ino);
		atomic_store(&shared_descriptor, c->fd);
	}
	return true;
}

static bool send_all(const struct connection *c, const struct wire *w)
{
	size_t sent = 0;

	if (w->failed)
		return false;
	while (sent < w->length) {
		ssize_t n;

		if (!still_ours(c))
			return false;
		n = send(c->fd, w->bytes + sent, w->length - sent, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		sent += (size_t)n;
	}
	return true;
}

static bool receive_all(const struct connection *c, void *to, size_t length)
{
	unsigned char *at = to;

	while (length > 0) {
		ssize_t n;

		if (!still_ours(c))
			return false;
		n = recv(c->fd, at, length, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0 || !still_ours(c))
			return false;
		at += n;
		length -= (size_t)n;
	}
	return true;
}

/* ---- answering ---- */

/* The agent's thread's alone. */
struct answering {
	struct link *link;
	struct wire out;
	uint64_t *request; /* WIRE_REQUEST_WORDS_MAX words */
	struct agent_statistics statistics; /* as of the last sample */
};

/* Written by the agent's thread, read by the program's for the last sample. */
static _Atomic uint64_t busy_answers, cpu_ns;

/* The gate is held. */
static struct agent_statistics statistics_of(const struct session *s)
{
	return (struct agent_statistics){
		.samples = s->samples,
		.busy = atomic_load(&busy_answers),
		.read_errors = s->read_errors,
		.cpu_ns = atomic_load(&cpu_ns),
		.objects = s->objects,
	};
}

static uint64_t thread_cpu_ns(void)
{
	struct timespec t;

	if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) != 0)
		return 0;
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Tries for ten milliseconds: a program's thread holds the gate for microseconds, but may come again. */
static bool try_gate(void)
{
	for (int i = 0; i < GATE_TRIES; i++) {
		if (gate_try())
			return true;
		usleep(GATE_RETRY_US);
	}
	return false;
}

/* Fresh values under the gate; false: busy, the gate is not held. */
static bool take_sample(struct answering *a, enum sample_status *status)
{
	for (int i = 0; i < GATE_TRIES; i++) {
		if (!try_gate())
			return false;
		if (agent_state() == AGENT_FINAL) {
			*status = SAMPLE_FINAL;
			return true;
		}
		if (a->link->passive) {
			*status = SAMPLE_PASSIVE;
			if (a->link->session->sampled_layout == a->link->session->layout_generation)
				return true;
			gate_leave(); /* selected anew: until the program's next call there are no values for it */
			return false;
		}
		if (agent_state() != AGENT_RUNNING) {
			gate_leave();
			return false;
		}
		if (session_discover(a->link->session, gate_wanted) && session_sample(a->link->session, gate_wanted)) {
			*status = SAMPLE_FRESH;
			return true;
		}
		gate_leave(); /* somebody waits: let them pass, begin again */
		sched_yield();
	}
	return false;
}

static void answer_sample(struct answering *a, uint32_t sequence, struct wire_reader *r)
{
	struct generations seen;
	enum sample_status status;

	seen.catalogue = wire_take(r);
	seen.layout = wire_take(r);
	seen.remains = wire_take(r);
	atomic_store(&cpu_ns, thread_cpu_ns());
	if (!take_sample(a, &status)) {
		atomic_fetch_add(&busy_answers, 1);
		a->statistics.busy++;
		frame_busy(&a->out, sequence, &a->statistics);
		return;
	}
	a->statistics = statistics_of(a->link->session);
	frame_answer(&a->out, sequence, a->link->session, seen, status, a->link->end, &a->statistics);
	gate_leave();
}

static void answer_select(struct answering *a, struct wire_reader *r)
{
	bool beyond = wire_take(r) != 0;
	uint64_t words = wire_take(r);

	if (words > wire_left(r))
		words = wire_left(r);
	/* Not to be lost: waits as long as the program keeps the gate, which is never long. */
	while (!gate_try()) {
		if (agent_state() != AGENT_RUNNING)
			return;
		usleep(GATE_RETRY_US);
	}
	if (agent_state() == AGENT_RUNNING)
		session_select(a->link->session, beyond, r->words + r->at, (size_t)words);
	gate_leave();
}

/* Set by the agent's thread when all of a kind have been told, read by the program's in link_linger. */
static _Atomic bool cvars_told, categories_told;

static void answer_list(struct answering *a, uint32_t sequence, uint16_t type, struct wire_reader *r)
{
	uint64_t first = wire_take(r);

	/* Both call MPI_T, which is over after the last sample and not ours when passive. */
	if (a->link->passive || agent_state() != AGENT_RUNNING || !try_gate()) {
		frame_error(&a->out, sequence, ERROR_NOT_NOW, "the rank can't be asked now");
		return;
	}
	if (agent_state() != AGENT_RUNNING)
		frame_error(&a->out, sequence, ERROR_NOT_NOW, "the rank has ended");
	else if (type == REQUEST_CVARS && frame_cvars(&a->out, sequence, a->link->session, first))
		atomic_store(&cvars_told, true);
	else if (type == REQUEST_CATEGORIES && frame_categories(&a->out, sequence, a->link->session, first))
		atomic_store(&categories_told, true);
	gate_leave();
}

static void answer_blob(struct wire_reader *r)
{
	uint64_t length = wire_take(r);

	if (length <= 8 * (uint64_t)wire_left(r))
		blob_store((const unsigned char *)(r->words + r->at), (size_t)length);
}

static bool alive(void)
{
	return agent_state() == AGENT_RUNNING;
}

/* Reading end of the pipe that link_stop writes to; -1: none. */
static int wake_pipe = -1; /* the agent's thread's alone */

/* Sleeps until a request comes; nothing else wakes the thread but the rank's end. False: that is it. */
static bool await_request(const struct connection *c)
{
	struct pollfd p[2] = { { .fd = c->fd, .events = POLLIN }, { .fd = wake_pipe, .events = POLLIN } };

	while (poll(p, 2, -1) < 0 && errno == EINTR)
		;
	return alive();
}

/* One request; false ends the connection. */
static bool answer(struct answering *a, const struct connection *c)
{
	unsigned char bytes[WIRE_HEADER_BYTES];
	struct wire_header header;
	struct wire_reader r;

	if (!await_request(c) || !receive_all(c, bytes, sizeof bytes) || !wire_header(bytes, &header) || header.words > WIRE_REQUEST_WORDS_MAX)
		return false;
	if (!receive_all(c, a->request, (size_t)header.words * sizeof *a->request))
		return false;
	r = (struct wire_reader){ .words = a->request, .count = header.words };
	wire_reset(&a->out);
	switch (header.type) {
	case REQUEST_SAMPLE:
		answer_sample(a, header.sequence, &r);
		break;
	case REQUEST_SELECT:
		answer_select(a, &r);
		break;
	case REQUEST_CVARS:
	case REQUEST_CATEGORIES:
		answer_list(a, header.sequence, header.type, &r);
		break;
	case REQUEST_BLOB:
		answer_blob(&r);
		break;
	default:
		frame_error(&a->out, header.sequence, ERROR_UNSUPPORTED, "this agent doesn't know that request");
	}
	if (a->out.failed) {
		wire_reset(&a->out);
		frame_error(&a->out, header.sequence, ERROR_TOO_LARGE, "the answer is too large, or memory is used up");
	}
	return send_all(c, &a->out);
}

/* ---- the thread ---- */

static void close_range_of(unsigned first, unsigned last)
{
	struct rlimit limit;

	if (syscall(SYS_close_range, first, last, 0) == 0)
		return;
	/* Linux before 5.9. What stayed open here would keep the program's pipes from ending. */
	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > 65536)
		limit.rlim_cur = 65536;
	for (unsigned fd = first; fd <= last && fd < limit.rlim_cur; fd++)
		close((int)fd);
}

/* Leaves the program's descriptors: from here on its table is none of ours, and ours none of its. */
static bool own_table(void)
{
	int fd;

	if (unshare(CLONE_FILES) != 0)
		return false;
	close_range_of(0, agent_log_enabled() ? 1 : 2);
	close_range_of(3, ~0u);
	/* So that the socket can't become 0, 1 or 2. */
	do
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	while (fd >= 0 && fd < 2);
	if (fd > 2)
		close(fd);
	return true;
}

/* The agent's thread's sleep, which the rank's end ends. */
static void doze(unsigned ms)
{
	struct pollfd p = { .fd = wake_pipe, .events = POLLIN };

	poll(&p, 1, (int)ms);
}

/* In a table of its own: the program never sees it. */
static void make_wake_pipe(void)
{
	int fd[2];

	if (pipe2(fd, O_CLOEXEC | O_NONBLOCK) != 0)
		return;
	wake_pipe = fd[0];
	atomic_store(&wake_task, syscall(SYS_gettid));
	atomic_store(&wake_descriptor, fd[1]);
}

/* A thousand ranks must not come back in the same millisecond. */
static unsigned jitter(uint64_t *seed, unsigned ms)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return ms / 2 + (unsigned)(*seed >> 33) % (ms / 2 + 1);
}

static void *run(void *argument)
{
	struct answering a = { .link = argument };
	struct connection c = { .fd = -1 };
	uint64_t seed = a.link->identity->id[0];
	unsigned backoff = BACKOFF_FIRST_MS;

	pthread_setname_np(pthread_self(), "mpit-agent");
	c.private = own_table();
	if (c.private)
		make_wake_pipe();
	a.request = malloc(WIRE_REQUEST_WORDS_MAX * sizeof *a.request);
	while (a.request != NULL && alive()) {
		bool served = false;

		if (open_connection(a.link, &c)) {
			agent_log("connected, %s descriptor", c.private ? "private" : "shared");
			wire_reset(&a.out);
			put_hello(&a.out, a.link, CONNECTION_STAYS);
			if (send_all(&c, &a.out))
				while (answer(&a, &c))
					served = true;
			disconnect(&c);
		}
		/* Who takes connections and asks nothing is refusing us: no reason to come back soon. */
		if (served)
			backoff = BACKOFF_FIRST_MS;
		if (alive())
			doze(jitter(&seed, backoff));
		backoff = 2 * backoff < BACKOFF_LAST_MS ? 2 * backoff : BACKOFF_LAST_MS;
	}
	atomic_store(&wake_descriptor, -1);
	free(a.request);
	wire_free(&a.out);
	return NULL;
}

bool link_start(struct link *l)
{
	sigset_t all, before;
	pthread_attr_t attributes;
	pthread_t thread;
	int failed;

	/* The default stack size: static TLS of the program's libraries counts against it. */
	if (pthread_attr_init(&attributes) != 0)
		return false;
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	failed = pthread_create(&thread, &attributes, run, l);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return failed == 0;
}

void link_paths(struct link *l)
{
	const char *given = getenv("MPIT_SOCKET"), *runtime = getenv("XDG_RUNTIME_DIR");

	l->paths[0][0] = l->paths[1][0] = '\0';
	if (given != NULL && *given != '\0') {
		if (strlen(given) < sizeof l->paths[0])
			copy_string(l->paths[0], sizeof l->paths[0], given);
		else
			agent_log("MPIT_SOCKET is longer than a socket's path may be (%zu bytes)", sizeof l->paths[0] - 1);
		return;
	}
	copy_string(l->paths[0], sizeof l->paths[0], SOCKET_DEFAULT);
	if (runtime != NULL && *runtime != '\0' && strlen(runtime) + sizeof "/" SOCKET_RUNTIME <= sizeof l->paths[1]) {
		size_t n = strlen(runtime);

		memcpy(l->paths[1], runtime, n);
		memcpy(l->paths[1] + n, "/" SOCKET_RUNTIME, sizeof "/" SOCKET_RUNTIME);
	}
}

/* ---- the last sample ---- */

void link_linger(void)
{
	const char *value = getenv("MPIT_AGENT_LINGER");
	long ms = value == NULL ? 0 : strtol(value, NULL, 10);
	uint64_t deadline = monotonic_ns() + (uint64_t)(ms > LINGER_MS_MAX ? LINGER_MS_MAX : ms < 0 ? 0 : ms) * 1000000u;

	while (monotonic_ns() < deadline && !(atomic_load(&cvars_told) && atomic_load(&categories_told)))
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

void link_send_final(struct link *l)
{
	uint64_t deadline = monotonic_ns() + FINAL_PATIENCE_NS;
	struct agent_statistics statistics = statistics_of(l->session);
	static unsigned char last_words[LAST_WORDS_BYTES]; /* untouched, and so no memory, unless needed */
	struct wire w = { .bytes = last_words, .room = sizeof last_words, .fixed = true };
	size_t sent = 0;
	int fd;

	if (l->end == END_FINALIZE)
		w = (struct wire){ 0 }; /* a program that is not in a signal handler: it may be as large as it must */
	while ((fd = dial_any(l)) < 0)
		if (errno != EAGAIN || !before_deadline(deadline, -1))
			return; /* no exporter, or a stopped one: the last sample is lost, docs say so */
	put_hello(&w, l, CONNECTION_FINAL);
	frame_answer(&w, 0, l->session, (struct generations){ 0 }, SAMPLE_FINAL, l->end, &statistics);
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

/* "/proc/self/task/TID/fd/FD": without snprintf, for exit may stand in a signal handler. */
static void wake_path(char path[64], long task, int fd)
{
	const long numbers[2] = { task, fd };
	const char *const before[2] = { "/proc/self/task/", "/fd/" };
	size_t at = 0;

	for (int i = 0; i < 2; i++) {
		char digits[20];
		size_t n = 0;
		long v = numbers[i];

		for (const char *c = before[i]; *c != '\0'; c++)
			path[at++] = *c;
		do
			digits[n++] = (char)('0' + v % 10);
		while ((v /= 10) > 0);
		while (n > 0)
			path[at++] = digits[--n];
	}
	path[at] = '\0';
}

void link_stop(void)
{
	int shared = atomic_load(&shared_descriptor), wake = atomic_load(&wake_descriptor), fd;
	char path[64];

	if (shared >= 0 && is_socket(shared, (ino_t)atomic_load(&shared_inode)))
		shutdown(shared, SHUT_RDWR);
	if (wake < 0)
		return;
	wake_path(path, atomic_load(&wake_task), wake);
	fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return; /* no /proc: the thread leaves when the exporter closes the connection */
	if (write(fd, "", 1) < 0)
		agent_log("the agent's thread can't be woken");
	close(fd);
}

void link_forked(void)
{
	int fd = atomic_exchange(&shared_descriptor, -1);

	atomic_store(&wake_descriptor, -1);
	if (fd >= 0 && is_socket(fd, (ino_t)atomic_load(&shared_inode)))
		close(fd);
}
