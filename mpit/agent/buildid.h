/*
 * buildid.h - which build of a program or library a file is: the id that its linker has left there.
 */
#ifndef MPIT_BUILDID_H
#define MPIT_BUILDID_H

#define BUILD_ID_TEXT 129 /* 64 bytes in hexadecimal digits */

/*
 * Empty text: the file has no id, a longer one, or can't be read. It is opened and read at a few places, not mapped. The
 * agent's thread's, in a descriptor table of its own.
 */
void build_id(const char *path, char text[BUILD_ID_TEXT]);

#endif
