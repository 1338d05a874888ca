/*
 * site.h - what the site's administrator says of jobs that MPI programs are preloaded into: SITE_FILE.
 *
 * A line is a word and its value; from # on it is a comment:
 *
 *	not-program gmx*          file name of the executable; with a / its path (fnmatch, * matches / too)
 *	not-user 1005             number: names would load the system's directory services into the program
 *	share 10%                 of jobs; all ranks of a job decide alike
 *	calls light               MPIT_CALLS where it isn't set; 0: no call profile
 *
 * No file: every rank is observed. A wrong one: none is. share and calls are for those who haven't asked: who sets
 * MPIT_CALLS, as mpit-exporter exec --calls does, has. The path is compiled in, so that users can't have another.
 */
#ifndef MPIT_SITE_H
#define MPIT_SITE_H

#include <stdbool.h>
#include <stddef.h>

#define SITE_FILE "/etc/mpit-exporter/jobs.conf"

#define SITE_BYTES 8192 /* of the file, at most */
#define SITE_CALLS 32

/* The rank, as far as the file asks. */
struct site_rank {
	const char *program; /* path; NULL: not known, so that any not-program leaves the rank out */
	unsigned long user;
	const char *job; /* NULL: it has no name, and is in no share but 100% */
	bool asked;      /* MPIT_CALLS is set */
};

struct site_says {
	bool observe;
	char calls[SITE_CALLS]; /* words of MPIT_CALLS; empty: the file says nothing */
};

/* Reads a text, which it cuts up. False: it is wrong, *why (of size bytes) says how, and nothing is to be observed. */
bool site_parse(char *text, const struct site_rank *rank, struct site_says *says, char *why, size_t size);

/*
 * Reads a file, which must be root's. System calls, which may wait for a disk: in MPI_Init or MPI_Session_init only,
 * once, in one thread (static storage). True and observe: there is none.
 */
bool site_read(const char *path, const struct site_rank *rank, struct site_says *says, char *why, size_t size);

/* This process, with static storage. */
struct site_rank site_rank(void);

#endif
