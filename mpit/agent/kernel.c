/* kernel.c - what the kernel says of the process and of its threads. */
#define _GNU_SOURCE
#include "kernel.h"

#include "descriptor.h"
#include "filter.h"
#include "now.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* A reading takes some tens of microseconds, on a core that is the program's. */
#define READ_EVERY_NS 3000000000u
/* Of a young program two readings are wanted soon: the times before MPI_Init are in each. */
#define YOUNG_NS 10000000000u
#define READ_EVERY_YOUNG_NS 500000000u
/* Where so many threads sleep is asked: it is most of what a reading takes. */
#define THREADS_ASKED 4
/* A look at all descriptors. */
#define GPU_EVERY_NS 30000000000u
#define DIRECTORY_PARTS 8 /* of a hundred descriptors each */

/* What getdents64 fills in: opendir and closedir would do more (descriptor.h), and allocate. */
struct entry {
	uint64_t inode;
	int64_t next;
	unsigned short length;
	unsigned char type;
	char name[];
};

/* What threads sleep in, by name, and whether its first argument is a descriptor. Others are told by number. */
static const struct {
	long number;
	const char *name;
	bool descriptor;
} sleeps[] = {
	{ SYS_read, "read", true }, { SYS_pread64, "pread", true }, { SYS_readv, "readv", true },
	{ SYS_preadv, "preadv", true }, { SYS_write, "write", true }, { SYS_pwrite64, "pwrite", true },
	{ SYS_writev, "writev", true }, { SYS_pwritev, "pwritev", true }, { SYS_recvfrom, "recvfrom", true },
	{ SYS_recvmsg, "recvmsg", true }, { SYS_sendto, "sendto", true }, { SYS_sendmsg, "sendmsg", true },
	{ SYS_accept, "accept", true }, { SYS_accept4, "accept", true }, { SYS_connect, "connect", true },
	{ SYS_ioctl, "ioctl", true }, { SYS_fsync, "fsync", true }, { SYS_fdatasync, "fdatasync", true },
	{ SYS_flock, "flock", true }, { SYS_fcntl, "fcntl", true }, { SYS_epoll_pwait, "epoll_wait", true },
	{ SYS_openat, "open", false }, { SYS_ppoll, "poll", false }, { SYS_pselect6, "select", false },
	{ SYS_futex, "futex", false }, { SYS_nanosleep, "nanosleep", false },
	{ SYS_clock_nanosleep, "nanosleep", false }, { SYS_wait4, "wait", false }, { SYS_waitid, "wait", false },
	{ SYS_rt_sigtimedwait, "sigwait", false }, { SYS_rt_sigsuspend, "sigsuspend", false },
#ifdef SYS_poll
	{ SYS_poll, "poll", false }, { SYS_select, "select", false }, { SYS_epoll_wait, "epoll_wait", true },
	{ SYS_pause, "pause", false }, { SYS_open, "open", false },
#endif
};

/* The beginning of a file of /proc, ended; false: it can't be had. fd is of the caller's, or -1: then path says. */
static bool content(int fd, const char *path, char *to, size_t size)
{
	int own = fd < 0 ? descriptor_open(path, O_RDONLY) : fd;
	ssize_t length = own < 0 ? -1 : pread(own, to, size - 1, 0);

	if (fd < 0 && own >= 0)
		descriptor_close(own);
	to[length < 0 ? 0 : length] = '\0';
	return length > 0;
}

/* What a descriptor of the program's table leads to. */
static const char *leads_to(uint64_t tid, unsigned long fd)
{
	static const struct { const char *begins, *is; } kinds[] = {
		{ "pipe:", " (a pipe)" }, { "socket:", " (a socket)" }, { "/dev/pts/", " (a terminal)" },
		{ "/dev/tty", " (a terminal)" }, { "/dev/", " (a device)" }, { "/", " (a file)" },
	};
	char path[64], target[32];
	ssize_t length;

	snprintf(path, sizeof path, "/proc/self/task/%llu/fd/%lu", (unsigned long long)tid, fd);
	length = readlink(path, target, sizeof target - 1);
	target[length < 0 ? 0 : length] = '\0';
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (strncmp(target, kinds[i].begins, strlen(kinds[i].begins)) == 0)
			return kinds[i].is;
	return "";
}

/* "running", which one that waits for a core is, too; "-1 …", which is in none; or the number and its arguments. */
static void sleeps_in(uint64_t tid, char *to, size_t size)
{
	char path[64], text[160], *after;
	unsigned long fd;
	long number;

	snprintf(path, sizeof path, "/proc/self/task/%llu/syscall", (unsigned long long)tid);
	if (!content(-1, path, text, sizeof text) || text[0] < '0' || text[0] > '9')
		return;
	number = strtol(text, &after, 10);
	fd = strtoul(after, NULL, 16);
	for (size_t i = 0; i < sizeof sleeps / sizeof *sleeps; i++) {
		if (sleeps[i].number != number)
			continue;
		if (sleeps[i].descriptor)
			snprintf(to, size, "%s of fd %lu%s", sleeps[i].name, fd & 0xffffffff, leads_to(tid, fd & 0xffffffff));
		else
			snprintf(to, size, "%s", sleeps[i].name);
		return;
	}
	snprintf(to, size, "system call %ld", number);
}

static bool has_word(const char *list, const char *end, const char *word)
{
	size_t length = strlen(word);

	for (; list < end; list += strcspn(list, ",:") + 1)
		if (strncmp(list, word, length) == 0 && (list[length] == ',' || list[length] == ':'))
			return true;
	return false;
}

/* cpu.stat of the nearest control group that this one is in, or is, with a limit; -1: none has. */
static int limited_group(const char *root, const char *group, size_t length, const char *file, const char *unlimited)
{
	char path[4500], limit[32];

	for (;; length = (size_t)((const char *)memrchr(group, '/', length) - group)) {
		snprintf(path, sizeof path, "%s%.*s/%s", root, (int)length, group, file);
		if (content(-1, path, limit, sizeof limit) && strncmp(limit, unlimited, strlen(unlimited)) != 0) {
			snprintf(path, sizeof path, "%s%.*s/cpu.stat", root, (int)length, group);
			return descriptor_open(path, O_RDONLY);
		}
		if (length == 0)
			return -1;
	}
}

/* A line is number:controllers:path, of version 2 without controllers. */
static int find_limit(void)
{
	char text[4096];
	int found = -1;

	if (!content(-1, "/proc/self/cgroup", text, sizeof text))
		return -1;
	for (char *line = text, *end; found < 0 && (end = strchr(line, '\n')) != NULL; line = end + 1) {
		const char *controllers = line + strcspn(line, ":\n") + 1, *group = controllers + strcspn(controllers, ":\n") + 1;

		if (group >= end || *group != '/')
			continue;
		if (*controllers == ':')
			found = limited_group("/sys/fs/cgroup", group, (size_t)(end - group), "cpu.max", "max");
		else if (has_word(controllers, group, "cpu"))
			found = limited_group("/sys/fs/cgroup/cpu", group, (size_t)(end - group), "cpu.cfs_quota_us", "-1");
	}
	return found;
}

static uint64_t throttled_ns(int limit)
{
	static const struct { const char *name; uint64_t ns; } units[] = { { "throttled_usec ", 1000 }, { "throttled_time ", 1 } };
	char text[1024];
	const char *at;

	if (limit < 0 || !content(limit, NULL, text, sizeof text))
		return UINT64_MAX;
	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		if ((at = strstr(text, units[i].name)) != NULL)
			return strtoull(at + strlen(units[i].name), NULL, 10) * units[i].ns;
	return UINT64_MAX;
}

static bool is_gpu(const char *target)
{
	return strncmp(target, "/dev/nvidia", 11) == 0 || strcmp(target, "/dev/kfd") == 0 ||
	       strncmp(target, "/dev/dri/", 9) == 0;
}

/* Whether the program's table of descriptors has one of a GPU. */
static uint64_t holds_gpu(uint64_t tid)
{
	char path[64], target[32];
	_Alignas(8) char entries[4096];
	int directory;
	long length = 0;
	uint64_t found = 0;

	snprintf(path, sizeof path, "/proc/self/task/%llu/fd", (unsigned long long)tid);
	directory = descriptor_open(path, O_RDONLY | O_DIRECTORY);
	if (directory < 0)
		return UINT64_MAX;
	for (int i = 0; i < DIRECTORY_PARTS && found == 0; i++) {
		length = syscall(SYS_getdents64, directory, entries, sizeof entries);
		for (long at = 0; at < length;) {
			const struct entry *e = (const void *)(entries + at);
			ssize_t bytes = readlinkat(directory, e->name, target, sizeof target - 1);

			target[bytes < 0 ? 0 : bytes] = '\0';
			if (is_gpu(target))
				found = 1;
			at += e->length;
		}
	}
	descriptor_close(directory);
	return found;
}

static struct kernel_watched *watched(struct kernel *k, const struct source_calls *calls, const struct source_thread *t)
{
	struct kernel_watched *free_one = NULL;
	char path[64];

	for (size_t i = 0; i < SOURCE_THREADS; i++) {
		struct kernel_watched *w = &k->watched[i];
		bool there = false;

		if (w->id == t->id)
			return w;
		for (size_t n = 0; n < calls->thread_count; n++)
			there = there || calls->threads[n].id == w->id;
		if (w->id != 0 && !there) {
			descriptor_close(w->schedule);
			*w = (struct kernel_watched){ 0 };
		}
		if (w->id == 0)
			free_one = w;
	}
	snprintf(path, sizeof path, "/proc/self/task/%llu/schedstat", (unsigned long long)t->tid);
	*free_one = (struct kernel_watched){ .id = t->id, .schedule = descriptor_open(path, O_RDONLY) };
	return free_one;
}

/* A thread that has been on a core for less than half of the time since it was read last is asked where it sleeps. */
static void read_thread(struct kernel_watched *w, const struct source_thread *t, bool asks, struct kernel_thread *out)
{
	char text[80], *after;
	uint64_t now, core, passed, before = w->at;

	if (w->schedule < 0 || !content(w->schedule, NULL, text, sizeof text))
		return;
	now = monotonic_ns();
	core = strtoull(text, &after, 10);
	out->queue_ns = strtoull(after, NULL, 10);
	if (core == 0 && out->queue_ns == 0) { /* a kernel that doesn't count */
		out->queue_ns = UINT64_MAX;
		return;
	}
	out->core_ns = core;
	passed = now - before;
	if (asks && before != 0 && t->begun_ns == 0 && (core - w->core_ns) < passed / 2)
		sleeps_in(t->tid, out->in, sizeof out->in);
	w->core_ns = core;
	w->at = now;
}

static void read_process(struct kernel *k, uint64_t tid, struct kernel_says *out)
{
	cpu_set_t cores;
	struct rusage used;
	char text[80], *after;

	if (sched_getaffinity((pid_t)tid, sizeof cores, &cores) == 0)
		out->cores = (uint64_t)CPU_COUNT(&cores);
	out->nice = getpriority(PRIO_PROCESS, (id_t)tid);
	if (getrusage(RUSAGE_SELF, &used) == 0)
		out->major_faults = (uint64_t)used.ru_majflt;
	if (!k->open) {
		k->memory = descriptor_open("/proc/self/statm", O_RDONLY);
		k->limit = find_limit();
		k->open = true;
	}
	out->throttled_ns = throttled_ns(k->limit);
	if (k->memory >= 0 && content(k->memory, NULL, text, sizeof text)) {
		strtoull(text, &after, 10);
		out->resident = strtoull(after, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
	}
}

void kernel_read(struct kernel *k, const struct source_calls *calls, struct kernel_says *out)
{
	uint64_t now = monotonic_ns();
	bool asleep = false;

	*out = (struct kernel_says){ .cores = UINT64_MAX, .major_faults = UINT64_MAX, .resident = UINT64_MAX };
	for (size_t i = 0; i < SOURCE_THREADS; i++)
		out->threads[i].core_ns = out->threads[i].queue_ns = UINT64_MAX;
	if (now < k->next || filter_came())
		return;
	k->next = now + (calls->threads[0].observed_ns < YOUNG_NS ? READ_EVERY_YOUNG_NS : READ_EVERY_NS);
	out->read = true;
	for (size_t i = 0; i < calls->thread_count; i++) {
		const struct source_thread *t = &calls->threads[i];

		read_thread(watched(k, calls, t), t, i < THREADS_ASKED, &out->threads[i]);
		asleep = asleep || out->threads[i].in[0] != '\0';
	}
	read_process(k, calls->threads[0].tid, out);
	if (k->next_gpu == 0)
		k->gpu = UINT64_MAX;
	if (asleep && now >= k->next_gpu) {
		k->gpu = holds_gpu(calls->threads[0].tid);
		k->next_gpu = now + GPU_EVERY_NS;
	}
	out->gpu = k->gpu;
}
