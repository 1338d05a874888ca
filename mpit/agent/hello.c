/* hello.c - what the agent says first on every connection. */
#include "hello.h"

#include <pthread.h>
#include <string.h>

/* Rule: held for a copy, by the agent's thread on BLOB and HELLO and by the program's in the last sample. */
static pthread_mutex_t blob_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned char blob[BLOB_BYTES];
static size_t blob_length;

void blob_store(const void *bytes, size_t length)
{
	if (length > sizeof blob)
		return;
	pthread_mutex_lock(&blob_lock);
	memcpy(blob, bytes, length);
	blob_length = length;
	pthread_mutex_unlock(&blob_lock);
}

void put_hello(struct wire *w, const struct identity *id, enum connection_kind kind)
{
	pthread_mutex_lock(&blob_lock);
	frame_hello(w, id, kind, blob, blob_length);
	pthread_mutex_unlock(&blob_lock);
}
