/*
 * mapped.h - which files the code of this process is mapped from.
 *
 * The kernel's list is read when the agent's thread begins, and kept, so that a program that denies itself files
 * afterwards loses nothing. dladdr would take the dynamic linker's lock, which the program may hold for as long as it
 * hangs.
 */
#ifndef MPIT_MAPPED_H
#define MPIT_MAPPED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The agent's thread's; zeros: nothing has been read. */
struct mapped {
	char *lines; /* of /proc/self/maps, of code in files, each ended by a zero */
	size_t length;
};

/* Reads the list anew: opens a file, allocates, takes up to milliseconds. Where that fails the old one stays. */
void mapped_read(struct mapped *m);

/*
 * The file's path, valid until the list is read anew, and the address as an offset in the file. False: no code that is
 * in the list is there.
 */
bool mapped_find(const struct mapped *m, uintptr_t address, const char **path, uint64_t *offset);

void mapped_free(struct mapped *m);

#endif
