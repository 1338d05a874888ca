/*
 * mapped.h - which file an address of this process is mapped from.
 */
#ifndef MPIT_MAPPED_H
#define MPIT_MAPPED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The file's path, as the kernel tells it in /proc/self/maps, and the address as an offset in the file. False: it is
 * mapped from none, its path is longer than size, or the list can't be read.
 *
 * The agent's thread, without the gate: it opens a file and reads for up to milliseconds. dladdr would take the dynamic
 * linker's lock, which the program may hold for as long as it hangs.
 */
bool mapped_from(uintptr_t address, char *path, size_t size, uint64_t *offset);

#endif
