/* events.c - MPI_T's events, counted. */
#define _GNU_SOURCE
#include "events.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Atomic uint64_t events_dropped;

/* The handle on the variable that counts them. */
static struct event_count dropped_handle;

/* The gate's. */
static struct text name_text, description_text;

int events_count(const struct abi *abi)
{
	int count = 0;

	if (abi->event_count(&count) != CODE_SUCCESS || count <= 0 || count >= EVENT_INDEX)
		return 0;
	return 1 + count;
}

int events_describe(const struct abi *abi, int i, struct pvar_description *out, struct text *name,
		    struct text *description)
{
	size_t prefix = strlen(EVENT_PREFIX);
	int code;

	*out = (struct pvar_description){ .verbosity = 1, .bind = BIND_NONE };
	if (i == 0) {
		strcpy(name->bytes, EVENTS_DROPPED);
		strcpy(description->bytes, "Events that the MPI library has dropped instead of reporting them");
	} else {
		code = abi->event_describe(i - 1, &out->verbosity, &out->bind, name, description);
		if (code != CODE_SUCCESS)
			return code;
		name->bytes[sizeof name->bytes - 1 - prefix] = '\0';
		memmove(name->bytes + prefix, name->bytes, strlen(name->bytes) + 1);
		memcpy(name->bytes, EVENT_PREFIX, prefix);
	}
	out->mpi_class = CLASS_COUNTER;
	out->datatype = TYPE_UINT64;
	out->datatype_bytes = sizeof(uint64_t);
	out->readonly = out->continuous = true;
	return CODE_SUCCESS;
}

void events_about(const struct abi *abi, char *to, size_t size)
{
	int count = 0;
	size_t used;

	snprintf(to, size, "MPI_T's events, counted (MPI-4.1 section 15.3.8)");
	if (abi->event_source_count(&count) != CODE_SUCCESS)
		return;
	for (int i = 0; i < count; i++) {
		struct event_source is;

		if (abi->event_source_describe(i, &is, &name_text, &description_text) != CODE_SUCCESS)
			continue;
		used = strlen(to);
		snprintf(to + used, size - used, "%s %s (%s; %s, %lld ticks a second)", i == 0 ? "; sources:" : ",",
			 name_text.bytes, description_text.bytes, is.ordered ? "ordered" : "unordered",
			 (long long)is.ticks_per_second);
	}
}

/* A count that no callback writes any more, or a new one. */
static struct event_count *unused(struct event_count **closed)
{
	for (struct event_count **at = closed; *at != NULL; at = &(*at)->next) {
		struct event_count *c = *at;

		if (!atomic_load(&c->freed))
			continue;
		*at = c->next;
		return c;
	}
	return malloc(sizeof(struct event_count));
}

int events_open(const struct abi *abi, struct event_count **closed, int i, union mpi_object *object, void **handle)
{
	struct event_count *c;
	int code;

	if (i == 0) {
		*handle = &dropped_handle;
		return CODE_SUCCESS;
	}
	c = unused(closed);
	if (c == NULL)
		return CODE_MEMORY;
	*c = (struct event_count){ 0 };
	code = abi->event_open(i - 1, object, c);
	if (code != CODE_SUCCESS) {
		/* The library may know it already: it is kept until the library says that it doesn't. */
		c->next = *closed;
		*closed = c;
		if (c->registration == NULL)
			atomic_store(&c->freed, true);
		return code;
	}
	*handle = c;
	return CODE_SUCCESS;
}

uint64_t events_read(const void *handle)
{
	const struct event_count *c = handle;

	return atomic_load_explicit(c == &dropped_handle ? &events_dropped : &c->raised, memory_order_relaxed);
}

void events_close(const struct abi *abi, struct event_count **closed, void *handle)
{
	struct event_count *c = handle;

	if (c == &dropped_handle)
		return;
	abi->event_close(c); /* its callback may be running in another thread until the library says otherwise */
	c->next = *closed;
	*closed = c;
}

void events_drop(struct event_count **closed)
{
	while (*closed != NULL) {
		struct event_count *next = (*closed)->next;

		free(*closed);
		*closed = next;
	}
}
