/* connection.c - the socket to the exporter. */
#define _GNU_SOURCE
#include "connection.h"

#include "agent.h"
#include "descriptor.h"
#include "now.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define SEND_PATIENCE_NS 10000000000u
#define SEND_GLANCE_US 100000 /* how often a thread that can't send looks whether it is to go on */
#define HIGH_DESCRIPTOR 900
#define TURN_RETRY_US 200

/* The agent's thread's, where it has no table of its own; read by a forked child below. -1: none. */
static _Atomic int shared_descriptor = -1;
static _Atomic uint64_t shared_inode;

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool over; /* nobody wants what is being sent any more */

void connection_prepare(void)
{
	atomic_store(&over, false);
}

void connection_enter(void)
{
	pthread_mutex_lock(&turn);
}

/* By trying: a timed lock goes by a clock that may be set, or is newer than the C library. */
bool connection_enter_before(uint64_t deadline)
{
	while (pthread_mutex_trylock(&turn) != 0) {
		if (monotonic_ns() >= deadline)
			return false;
		usleep(TURN_RETRY_US);
	}
	return true;
}

void connection_enter_over(void)
{
	atomic_store(&over, true);
	connection_enter();
}

void connection_leave(void)
{
	pthread_mutex_unlock(&turn);
}

static bool is_socket(int fd, ino_t inode)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode) && st.st_ino == inode;
}

static bool still_ours(const struct connection *c)
{
	return c->private || is_socket(c->fd, c->inode);
}

void connection_let_go(const struct connection *c)
{
	if (c->fd >= 0 && still_ours(c))
		descriptor_close(c->fd);
}

void connection_close(struct connection *c)
{
	atomic_store(&shared_descriptor, -1);
	connection_let_go(c);
	c->fd = -1;
}

/* Non-blocking: a full backlog answers EAGAIN at once, so that a stopped exporter holds up nobody. */
static int dial(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd;

	if (*path == '\0')
		return -1;
	fd = descriptor_socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK);
	if (fd < 0)
		return -1;
	copy_string(address.sun_path, sizeof address.sun_path, path);
	if (descriptor_connect(fd, &address, sizeof address) != 0) {
		int error = errno;

		descriptor_close(fd);
		errno = error;
		return -1;
	}
	return fd;
}

int dial_any(const struct socket_paths *paths)
{
	int fd = dial(paths->path[0]), error = errno;

	if (fd >= 0)
		return fd;
	fd = dial(paths->path[1]);
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
	descriptor_close(fd);
	return moved;
}

bool connection_open(struct connection *c, const struct socket_paths *paths)
{
	struct timeval glance = { .tv_usec = SEND_GLANCE_US };
	struct stat st;

	c->fd = dial_any(paths);
	if (c->fd < 0)
		return false;
	if (!c->private)
		c->fd = move_high(c->fd);
	/* From here on the thread may sleep in it: recv without a bound, send with one. */
	if (fcntl(c->fd, F_SETFL, 0) != 0 || fstat(c->fd, &st) != 0 ||
	    setsockopt(c->fd, SOL_SOCKET, SO_SNDTIMEO, &glance, sizeof glance) != 0) {
		descriptor_close(c->fd);
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

/*
 * Patient: the agent's thread, which sleeps in send and whose deadline moves on with whatever the exporter reads,
 * until the rank has ended. The others poll, for they may stand in a signal handler, or have little time.
 */
static bool send_all(const struct connection *c, const unsigned char *bytes, size_t length, uint64_t deadline,
		     bool patient)
{
	while (length > 0) {
		struct pollfd p = { .fd = c->fd, .events = POLLOUT };
		ssize_t n;

		if (!still_ours(c))
			return false;
		n = send(c->fd, bytes, length, MSG_NOSIGNAL | (patient ? 0 : MSG_DONTWAIT));
		if (n > 0) {
			bytes += n;
			length -= (size_t)n;
			if (patient)
				deadline = monotonic_ns() + SEND_PATIENCE_NS;
			continue;
		}
		if ((errno != EAGAIN && errno != EINTR) || monotonic_ns() >= deadline || !still_ours(c))
			return false;
		if (patient ? atomic_load(&over) : poll(&p, 1, 1) < 0 && errno != EINTR)
			return false;
	}
	return true;
}

bool connection_send(const struct connection *c, const struct wire *w)
{
	return !w->failed && send_all(c, w->bytes, w->length, monotonic_ns() + SEND_PATIENCE_NS, true);
}

bool connection_send_before(const struct connection *c, const void *bytes, size_t length, uint64_t deadline)
{
	return send_all(c, bytes, length, deadline, false);
}

void connection_await_end(const struct connection *c, uint64_t deadline)
{
	/* POLLHUP comes unasked; what the exporter might say is not looked at. */
	struct pollfd p = { .fd = c->fd, .events = POLLRDHUP };
	uint64_t now;

	while (still_ours(c) && (now = monotonic_ns()) < deadline) {
		int ready = poll(&p, 1, (int)((deadline - now) / 1000000u) + 1);

		if (ready > 0 || (ready < 0 && errno != EINTR))
			return;
	}
}

void connection_shut(const struct connection *c)
{
	if (c->fd >= 0 && still_ours(c))
		shutdown(c->fd, SHUT_RDWR);
}

bool connection_receive(const struct connection *c, void *to, size_t length)
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

void connection_forked(void)
{
	int fd = atomic_exchange(&shared_descriptor, -1);

	if (fd >= 0 && is_socket(fd, (ino_t)atomic_load(&shared_inode)))
		descriptor_close(fd);
}
