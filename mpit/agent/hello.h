/*
 * hello.h - what the agent says first on every connection, with the blob that it keeps for the exporter.
 */
#ifndef MPIT_HELLO_H
#define MPIT_HELLO_H

#include "frames.h"

#define BLOB_BYTES 65536

/* Keeps a copy for the next HELLO; longer ones are left. The agent's thread. */
void blob_store(const void *bytes, size_t length);

/* Appends HELLO. The agent's thread, or the program's with the last sample. */
void put_hello(struct wire *w, const struct identity *id, enum connection_kind kind);

#endif
