/* byhandle.c - objects that are known by their handle alone. */
#include "byhandle.h"

#include "../objects.h"

#include <stdlib.h>

#define LEAST_BUCKETS 64

bool byhandle_open(struct session *s)
{
	for (s->bucket_count = LEAST_BUCKETS; s->bucket_count < 4 * s->most_objects;)
		s->bucket_count *= 2;
	s->buckets = calloc(s->bucket_count, sizeof(struct object *));
	return s->buckets != NULL;
}

/* Where the object stands in its bucket, or the bucket's end. */
static struct object **place_of(const struct session *s, int kind, const union mpi_object *mpi)
{
	uint64_t hash = ((uint64_t)(uintptr_t)mpi->pointer + (uint64_t)kind) * 0x9e3779b97f4a7c15u;
	struct object **at = &s->buckets[(hash >> 32) & (s->bucket_count - 1)];

	while (*at != NULL && ((*at)->mpi.pointer != mpi->pointer || (*at)->kind != kind))
		at = &(*at)->next_alike;
	return at;
}

struct object *byhandle_find(const struct session *s, int kind, const union mpi_object *mpi)
{
	return *place_of(s, kind, mpi);
}

static void end(struct session *s, struct object **at)
{
	struct object *o = *at;

	*at = o->next_alike;
	object_freed(s, o);
}

bool byhandle_got_repeatedly(int kind)
{
	return kind == BIND_GROUP || kind == BIND_ERRHANDLER;
}

void byhandle_got(struct session *s, int kind, const union mpi_object *mpi)
{
	struct object *o = byhandle_got_repeatedly(kind) ? byhandle_find(s, kind, mpi) : NULL;

	if (o != NULL)
		o->references++;
}

void byhandle_made(struct session *s, int kind, const union mpi_object *mpi, const struct making *how, uint32_t on)
{
	struct object **at = place_of(s, kind, mpi), *o;

	if (*at != NULL && byhandle_got_repeatedly(kind)) {
		(*at)->references++;
		return;
	}
	/* Its end has escaped us: a handle that is used again belongs to somebody else now. */
	if (*at != NULL)
		end(s, at);
	o = object_made(s, kind, mpi, 0, how, on);
	if (o != NULL)
		*place_of(s, kind, mpi) = o;
}

bool byhandle_freed(struct session *s, int kind, const union mpi_object *mpi)
{
	struct object **at = place_of(s, kind, mpi);

	if (*at == NULL || --(*at)->references > 0)
		return false;
	end(s, at);
	return true;
}

/* ---- keys of info objects ---- */

void byhandle_key_changed(struct session *s, struct object *info, const char *key)
{
	static struct details details; /* the gate's: too large for a small stack */
	struct detail_list keys;

	details_first_list(info->details, info->detail_words, &keys);
	if (s->abi->info_has(&info->mpi, key) == list_has(&keys, key))
		return;
	if (list_has(&keys, key))
		list_drop(&keys, key);
	else if (!list_add(&keys, key))
		return;
	details_reset(&details);
	details_list(&details, "keys", &keys);
	object_changed(s, info, &details);
}
