/* objects.c - the list of objects that exist. */
#include "objects.h"

#include "agent.h"
#include "handles.h"
#include "now.h"
#include "tools/sessions.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Of an object's record in LAYOUT. */
static size_t object_words(const char *name, size_t detail_words)
{
	return 10 + (strlen(name) + 7) / 8 + detail_words;
}

static void add_small(struct details *d, const char *key, const char *value, size_t length)
{
	char small[64];
	size_t i;

	for (i = 0; i < length && i < sizeof small - 1 && value[i] != '\0'; i++)
		small[i] = (char)tolower((unsigned char)value[i]);
	small[i] = '\0';
	details_add(d, key, small);
}

/* What the constructor's name tells. */
static void describe_making(int kind, const struct making *how, struct details *d)
{
	if (how == NULL || how->by == NULL)
		return;
	if (kind == BIND_REQUEST)
		add_small(d, "operation", how->by, strlen(how->by));
	else if (kind == BIND_ERRHANDLER && strncmp(how->by, "Errhandler", 10) == 0)
		details_add(d, "on", "comm"); /* MPI-1 knew no other */
	else if (kind == BIND_ERRHANDLER)
		add_small(d, "on", how->by, strcspn(how->by, "_"));
}

/* What the library tells, right after an object was made. The gate's, as everything here. */
static struct object_description description;

static bool keep_details(struct object *o, const struct details *d)
{
	uint64_t *kept = NULL;

	if (d->words > 0) {
		kept = realloc(o->details, d->words * sizeof *kept);
		if (kept == NULL)
			return false;
		memcpy(kept, d->packed, d->words * sizeof *kept);
	} else {
		free(o->details);
	}
	o->details = kept;
	o->detail_words = d->words;
	o->detail_count = d->count;
	return true;
}

/* The memory for an object of which all is known; NULL: there is none. */
static struct object *allocate_object(int kind, const union mpi_object *mpi, unsigned flags, const char *name)
{
	struct object *o = calloc(1, sizeof *o);

	if (o == NULL)
		return NULL;
	o->kind = kind;
	o->mpi = *mpi;
	o->flags = flags | (description.inter ? OBJECT_INTER : 0);
	o->rank = description.rank;
	o->size = description.size;
	o->references = 1;
	copy_string(o->name, sizeof o->name, name);
	if (!keep_details(o, &description.details)) {
		free(o);
		return NULL;
	}
	return o;
}

static void link_object(struct session *s, struct object *o)
{
	o->number = ++s->next_object;
	o->before = s->last;
	s->last->after = o;
	s->last = o;
	s->objects++;
	s->alive[o->kind]++;
	s->layout_words += object_words(o->name, o->detail_words);
}

struct object *object_made(struct session *s, int kind, const union mpi_object *mpi, unsigned flags,
			   const struct making *how, uint32_t on)
{
	char name[OBJECT_NAME_BYTES] = "";
	struct object *o = NULL;
	bool full = s->alive[kind] >= s->most_objects;

	/* A datatype that is committed may be a predefined one: only the library knows. */
	if (full && kind != BIND_DATATYPE) {
		s->layout_generation++;
		s->objects_over++;
		return NULL;
	}
	if (!s->abi->object_describe(kind, mpi, how, &description))
		return NULL;
	s->layout_generation++;
	describe_making(kind, how, &description.details);
	if (how != NULL && how->name != NULL)
		copy_string(name, sizeof name, how->name);
	/* The program has just let MPI allocate an object: a calloc is nothing. */
	if (!full && s->layout_words + object_words(name, description.details.words) <= MAX_FRAME_WORDS)
		o = allocate_object(kind, mpi, flags, name);
	if (o == NULL) {
		s->objects_over++;
		return NULL;
	}
	o->on = on;
	/* MPICH's and Open MPI's one-sided components come to life with the first window, those for files with the first
	 * file. */
	if (kind == BIND_WIN || kind == BIND_FILE)
		s->again = true;
	o->created = realtime_ns();
	link_object(s, o);
	handles_open(s, o, 0, s->opened);
	sources_object_made(s, o);
	return o;
}

static void unlink_object(struct session *s, struct object *o)
{
	tools_object_ends(s, o);
	o->before->after = o->after;
	if (o->after != NULL)
		o->after->before = o->before;
	else
		s->last = o->before;
	s->objects--;
	s->alive[o->kind]--;
	s->layout_words -= object_words(o->name, o->detail_words);
	free(o->handles);
	free(o->details);
	free(o);
}

void object_freed(struct session *s, struct object *o)
{
	s->layout_generation++;
	sources_discover(s, NULL);
	handles_end(s, o);
	sources_object_freed(s, o);
	unlink_object(s, o);
}

void object_named(struct session *s, struct object *o, const char *name)
{
	if (strncmp(o->name, name, sizeof o->name - 1) == 0)
		return;
	s->layout_generation++;
	sources_discover(s, NULL);
	handles_split(s, o);
	s->layout_words -= object_words(o->name, o->detail_words);
	copy_string(o->name, sizeof o->name, name);
	/* A longer name than LAYOUT has room for is cut, at worst to nothing: that much was there when the object was
	 * made. */
	while (o->name[0] != '\0' && s->layout_words + object_words(o->name, o->detail_words) > MAX_FRAME_WORDS)
		o->name[strlen(o->name) - 1] = '\0';
	s->layout_words += object_words(o->name, o->detail_words);
}

void object_changed(struct session *s, struct object *o, const struct details *details)
{
	size_t words = object_words(o->name, o->detail_words);

	if (s->layout_words - words + object_words(o->name, details->words) > MAX_FRAME_WORDS || !keep_details(o, details))
		return;
	s->layout_generation++;
	s->layout_words += object_words(o->name, o->detail_words) - words;
}

struct object *object_numbered(const struct session *s, uint64_t number)
{
	struct object *o = s->unbound.after;

	while (o != NULL && o->number != number)
		o = o->after;
	return o;
}

