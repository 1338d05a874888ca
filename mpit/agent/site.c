/* site.c - what the site's administrator says of jobs. */
#define _GNU_SOURCE
#include "site.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A number up to most, without sign; end: what stands behind it. */
static bool number(const char *text, const char *end, unsigned long most, unsigned long *out)
{
	char *rest;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*out = strtoul(text, &rest, 10);
	return errno == 0 && *out <= most && (*rest == '\0' || strcmp(rest, end) == 0);
}

/* FNV-1a, then mixed, for its lower bits differ little between numbers that follow one another. */
static bool in_share(const char *job, unsigned long percent)
{
	uint64_t hash = 0xcbf29ce484222325u;

	if (percent == 100 || job == NULL)
		return percent == 100;
	for (; *job != '\0'; job++)
		hash = (hash ^ (unsigned char)*job) * 0x100000001b3u;
	hash = (hash ^ hash >> 33) * 0xff51afd7ed558ccdu;
	return (hash ^ hash >> 33) % 100 < percent;
}

static bool is_program(const char *pattern, const char *path)
{
	const char *name = path == NULL ? NULL : strrchr(path, '/');

	return path == NULL || fnmatch(pattern, name == NULL || strchr(pattern, '/') != NULL ? path : name + 1, 0) == 0;
}

static bool calls_are(const char *words)
{
	return strcmp(words, "0") == 0 || strcmp(words, "1") == 0 || strcmp(words, "light") == 0 ||
	       strcmp(words, "sizes") == 0 || strcmp(words, "peers") == 0 || strcmp(words, "sizes,peers") == 0;
}

/* NULL: the line is right. */
static const char *line_is_wrong(const char *word, const char *value, const struct site_rank *rank,
				 struct site_says *says)
{
	unsigned long n;

	if (*value == '\0' || value[strcspn(value, " \t")] != '\0')
		return "has not one value";
	if (strcmp(word, "not-program") == 0) {
		says->observe = says->observe && !is_program(value, rank->program);
	} else if (strcmp(word, "not-user") == 0) {
		if (!number(value, "", UINT32_MAX, &n))
			return "is followed by no user's number";
		says->observe = says->observe && n != rank->user;
	} else if (strcmp(word, "share") == 0) {
		if (!number(value, "%", 100, &n))
			return "is followed by no whole number of per cent";
		says->observe = says->observe && (rank->asked || in_share(rank->job, n));
	} else if (strcmp(word, "calls") == 0) {
		if (!calls_are(value))
			return "is none of 0, 1, light, sizes, peers and sizes,peers";
		snprintf(says->calls, sizeof says->calls, "%s", value);
	} else {
		return "is not one of not-program, not-user, share and calls";
	}
	return NULL;
}

bool site_parse(char *text, const struct site_rank *rank, struct site_says *says, char *why, size_t size)
{
	const char *wrong = NULL;
	char *next = text;

	*says = (struct site_says){ .observe = true };
	for (unsigned line = 1; wrong == NULL && next != NULL; line++) {
		char *word = strsep(&next, "\n"), *value, *end;

		word[strcspn(word, "#\r")] = '\0';
		word += strspn(word, " \t");
		for (end = word + strlen(word); end > word && (end[-1] == ' ' || end[-1] == '\t'); end--)
			end[-1] = '\0';
		if (*word == '\0')
			continue;
		value = word + strcspn(word, " \t");
		if (*value != '\0')
			*value++ = '\0';
		wrong = line_is_wrong(word, value + strspn(value, " \t"), rank, says);
		if (wrong != NULL)
			snprintf(why, size, "line %u: %.40s %s", line, word, wrong);
	}
	if (wrong != NULL)
		*says = (struct site_says){ .observe = false };
	return wrong == NULL;
}

bool site_read(const char *path, const struct site_rank *rank, struct site_says *says, char *why, size_t size)
{
	static char text[SITE_BYTES + 1];
	const char *wrong = NULL;
	struct stat status;
	ssize_t length = 0;
	size_t used = 0;
	int fd;

	*says = (struct site_says){ .observe = true };
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return true;
	if (fd < 0) {
		wrong = strerror(errno);
	} else if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || status.st_uid != 0 ||
		   (status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
		wrong = "is not a file that root alone can write";
	} else {
		while (used < sizeof text && (length = read(fd, text + used, sizeof text - used)) > 0)
			used += (size_t)length;
		if (length < 0)
			wrong = strerror(errno);
		else if (used > SITE_BYTES || memchr(text, '\0', used) != NULL)
			wrong = "is too long, or no text";
	}
	if (fd >= 0)
		close(fd);
	if (wrong == NULL) {
		text[used] = '\0';
		return site_parse(text, rank, says, why, size);
	}
	says->observe = false;
	snprintf(why, size, "%s", wrong);
	return false;
}

struct site_rank site_rank(void)
{
	/* As the exporter chooses a job's id (exporter/identity); components of one job come first. */
	static const char *const jobs[] = { "SLURM_HET_JOB_ID", "SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID",
					    "JOB_ID", "CONDOR_ID", "MPIT_JOB_ID", "PMIX_NAMESPACE" };
	static char path[4096];
	struct site_rank rank = { .user = geteuid(), .asked = getenv("MPIT_CALLS") != NULL };
	ssize_t length = readlink("/proc/self/exe", path, sizeof path);

	if (length > 0 && length < (ssize_t)sizeof path) {
		path[length] = '\0';
		rank.program = path;
	}
	for (size_t i = 0; i < sizeof jobs / sizeof *jobs && (rank.job == NULL || *rank.job == '\0'); i++)
		rank.job = getenv(jobs[i]);
	if (rank.job != NULL && *rank.job == '\0')
		rank.job = NULL;
	return rank;
}
