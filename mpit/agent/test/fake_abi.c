/* fake_abi.c - an MPI library that a test scripts. */
#include "fake_abi.h"

#include "catalogue.h"
#include "events/events.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fake_variable fake_variables[FAKE_VARIABLES];
int fake_count, fake_open_handles, fake_started, fake_reads;
int fake_open_sessions, fake_stopped, fake_stamp, fake_event_types;
bool fake_raises;
void (*fake_on_read)(void);
char fake_string[16];
int fake_bound[8];
int fake_bound_count;
uint8_t fake_bool, fake_bytes[3];
double fake_double;

static int moods; /* its address is the enumeration of control variables */

struct fake_handle {
	struct fake_variable *variable;
	int object;
	bool started;
	int64_t base[FAKE_ELEMENTS]; /* of the last reset */
};

void fake_reset(void)
{
	memset(fake_variables, 0, sizeof fake_variables);
	fake_count = fake_open_handles = fake_started = fake_reads = 0;
	fake_open_sessions = fake_stopped = fake_stamp = fake_event_types = 0;
	fake_let_go();
	atomic_store(&events_dropped, 0);
	fake_on_read = NULL;
	fake_refuses = fake_has = false;
	fake_dead_object = 0;
	fake_detail = NULL;
	memcpy(fake_string, "hello", 6);
	memset(fake_bound, 0, sizeof fake_bound);
	fake_bound_count = 0;
	memcpy(fake_bytes, "\1\2\3", 3);
	fake_bool = 1;
	fake_double = -0.5;
}

static int pvar_count(int *count)
{
	*count = fake_count;
	return CODE_SUCCESS;
}

static int pvar_describe(int index, struct pvar_description *out, struct text *name, struct text *description)
{
	const struct fake_variable *v = &fake_variables[index];

	if (v->dead)
		return CODE_INVALID;
	*out = (struct pvar_description){
		.mpi_class = v->mpi_class,
		.verbosity = 1,
		.datatype = v->datatype,
		.datatype_bytes = v->bytes,
		.bind = v->bind,
		.readonly = !v->writable,
		.atomic = v->atomic,
		.continuous = v->continuous,
		.enumeration = v->mpi_class == 0 ? &fake_variables[0] : NULL,
	};
	snprintf(name->bytes, sizeof name->bytes, "%s", v->name);
	snprintf(description->bytes, sizeof description->bytes, "what %s is", v->name);
	return CODE_SUCCESS;
}

static int session_open(void **session)
{
	*session = &fake_count;
	fake_open_sessions++;
	return CODE_SUCCESS;
}

static int session_close(void **session)
{
	*session = NULL;
	fake_open_sessions--;
	return CODE_SUCCESS;
}

static int handle_open(void *session, int index, union mpi_object *object, void **handle, int *count)
{
	struct fake_variable *v = &fake_variables[index];
	struct fake_handle *h;

	(void)session;
	if (v->alloc_code != CODE_SUCCESS)
		return v->alloc_code;
	h = calloc(1, sizeof *h);
	h->variable = v;
	h->object = object == NULL ? 0 : object->integer;
	*handle = h;
	*count = v->count;
	fake_open_handles++;
	return CODE_SUCCESS;
}

static int handle_close(void *session, void **handle)
{
	(void)session;
	free(*handle);
	*handle = NULL;
	fake_open_handles--;
	return CODE_SUCCESS;
}

static int handle_start(void *session, void *handle)
{
	struct fake_handle *h = handle;

	(void)session;
	fake_started++;
	h->started = h->variable->start_code == CODE_SUCCESS;
	return h->variable->start_code;
}

static int handle_stop(void *session, void *handle)
{
	struct fake_handle *h = handle;

	(void)session;
	if (!h->started)
		return CODE_PVAR_NO_STARTSTOP;
	h->started = false;
	fake_stopped++;
	return CODE_SUCCESS;
}

static int handle_reset(void *session, void *handle)
{
	struct fake_handle *h = handle;

	(void)session;
	for (int i = 0; i < FAKE_ELEMENTS; i++)
		h->base[i] = h->variable->value[h->object % 8][i].i;
	return CODE_SUCCESS;
}

static int handle_write(void *session, void *handle, const void *values)
{
	struct fake_handle *h = handle;
	const unsigned char *at = values;

	(void)session;
	for (int i = 0; i < h->variable->count; i++, at += h->variable->bytes) {
		h->variable->value[h->object % 8][i % FAKE_ELEMENTS].i = 0;
		memcpy(&h->variable->value[h->object % 8][i % FAKE_ELEMENTS], at, (size_t)h->variable->bytes);
	}
	return CODE_SUCCESS;
}

static int handle_read(void *session, void *handle, void *values)
{
	struct fake_handle *h = handle;
	unsigned char *at = values;

	(void)session;
	assert(fake_dead_object == 0 || h->object != fake_dead_object);
	fake_reads++;
	if (fake_on_read != NULL)
		fake_on_read();
	if (h->variable->read_code != CODE_SUCCESS)
		return h->variable->read_code;
	for (int i = 0; i < h->variable->count; i++, at += h->variable->bytes) {
		int64_t value = h->variable->value[h->object % 8][i % FAKE_ELEMENTS].i - h->base[i % FAKE_ELEMENTS];

		memcpy(at, &value, (size_t)h->variable->bytes);
	}
	return CODE_SUCCESS;
}

static int handle_readreset(void *session, void *handle, void *values)
{
	int code = handle_read(session, handle, values);

	return code != CODE_SUCCESS ? code : handle_reset(session, handle);
}

static bool pvar_writable(const struct pvar_description *is)
{
	return is->mpi_class != 9;
}

static int pvar_index(const char *name, int mpi_class, int *index)
{
	for (int i = 0; i < fake_count; i++)
		if (strcmp(fake_variables[i].name, name) == 0 && fake_variables[i].mpi_class == mpi_class) {
			*index = i;
			return CODE_SUCCESS;
		}
	return CODE_INVALID_NAME;
}

static int cvar_index(const char *name, int *index)
{
	return sscanf(name, "cvar_%d", index) == 1 ? CODE_SUCCESS : CODE_INVALID_NAME;
}

static int category_index(const char *name, int *index)
{
	*index = 0;
	return strcmp(name, "all") == 0 ? CODE_SUCCESS : CODE_INVALID_NAME;
}

static int category_stamp(int *stamp)
{
	*stamp = fake_stamp;
	return fake_stamp < 0 ? CODE_NOT_SUPPORTED : CODE_SUCCESS;
}

static int enum_describe(void *enumeration, int *items, struct text *name)
{
	(void)enumeration;
	*items = 2;
	snprintf(name->bytes, sizeof name->bytes, "mood");
	return CODE_SUCCESS;
}

static int enum_item(void *enumeration, int item, int *value, struct text *name)
{
	(void)enumeration;
	*value = item == 0 ? -1 : 7;
	snprintf(name->bytes, sizeof name->bytes, item == 0 ? "idle" : "busy");
	return CODE_SUCCESS;
}

static int cvar_count(int *count)
{
	*count = FAKE_CVARS;
	return CODE_SUCCESS;
}

static int cvar_describe(int index, struct cvar_description *out, struct text *name, struct text *description)
{
	static const struct cvar_description kinds[] = {
		{ .scope = 2, .datatype = TYPE_CHAR, .datatype_bytes = 1 },
		{ .scope = 0, .datatype = TYPE_INT, .datatype_bytes = 4 },
		{ .scope = 1, .datatype = TYPE_INT, .datatype_bytes = 4 },
		{ .scope = 2, .datatype = TYPE_INT, .datatype_bytes = 4, .bind = BIND_COMM, .enumeration = &moods },
		{ .scope = 2, .datatype = TYPE_BOOL, .datatype_bytes = 1, .enumeration = &moods },
		{ .scope = 2, .datatype = TYPE_UINT32, .datatype_bytes = 1 },
		{ .scope = 2, .datatype = TYPE_DOUBLE, .datatype_bytes = 8 },
		{ .scope = 2, .datatype = TYPE_INT, .datatype_bytes = 4, .enumeration = &fake_count },
		{ .scope = 2, .datatype = TYPE_OTHER },
	};

	*out = kinds[index < 9 ? index : 2];
	out->scope = index < 9 ? out->scope : 2;
	out->verbosity = 1;
	snprintf(name->bytes, sizeof name->bytes, "cvar_%d", index);
	memset(description->bytes, 'd', 200);
	description->bytes[200] = '\0';
	return CODE_SUCCESS;
}

/* Where its value lies, and of how many bytes it is; NULL: nowhere. */
static void *storage(int index, const union mpi_object *object, size_t *bytes)
{
	static int plain;

	*bytes = 4;
	plain = -index;
	switch (index) {
	case 0:
		*bytes = sizeof fake_string;
		return fake_string;
	case 3:
		return object == NULL ? NULL : &fake_bound[object->integer % 8];
	case 4:
		*bytes = 1;
		return &fake_bool;
	case 5:
		*bytes = sizeof fake_bytes;
		return fake_bytes;
	case 6:
		*bytes = 8;
		return &fake_double;
	case 7:
	case 8:
		return NULL;
	default:
		return &plain;
	}
}

static int cvar_read(int index, union mpi_object *object, int datatype, int datatype_bytes, void *bytes,
		     size_t capacity, int *count)
{
	size_t size;
	const void *from = storage(index, object, &size);

	(void)datatype;
	if (from == NULL)
		return CODE_NOT_ACCESSIBLE;
	if (index == 3 && fake_bound_count > 0) {
		*count = fake_bound_count;
		size = (size_t)fake_bound_count * (size_t)datatype_bytes;
		memset(bytes, 1, size < capacity ? size : capacity);
		return size > capacity ? CODE_MEMORY : CODE_SUCCESS;
	}
	if (size > capacity)
		return CODE_MEMORY;
	*count = (int)size / datatype_bytes;
	memcpy(bytes, from, size);
	return CODE_SUCCESS;
}

static int cvar_write(int index, union mpi_object *object, int datatype, const void *bytes, int count, int *room)
{
	size_t size;
	void *to = storage(index, object, &size);

	if (to == NULL)
		return CODE_NOT_ACCESSIBLE;
	*room = index == 5 ? 3 : datatype == TYPE_CHAR ? (int)size : 1;
	if (datatype == TYPE_CHAR ? count >= *room : count != *room)
		return CODE_MEMORY;
	memcpy(to, bytes, size);
	return CODE_SUCCESS;
}

/* ---- events ---- */

static struct fake_registration {
	int type, object;
	struct event_count *count; /* NULL: unused */
	bool closed;
} registrations[16];

static int event_count(int *count)
{
	*count = fake_event_types;
	return CODE_SUCCESS;
}

static int event_describe(int index, int *verbosity, int *bind, struct text *name, struct text *description)
{
	static const char *const names[] = { "begin", "made" };

	if (index > 1)
		return CODE_INVALID_INDEX;
	*verbosity = 2;
	*bind = index == 0 ? BIND_NONE : BIND_COMM;
	snprintf(name->bytes, sizeof name->bytes, "%s", names[index]);
	snprintf(description->bytes, sizeof description->bytes, "what %s is", names[index]);
	return CODE_SUCCESS;
}

static int event_source_count(int *count)
{
	*count = 2;
	return CODE_SUCCESS;
}

static int event_source_describe(int index, struct event_source *out, struct text *name, struct text *description)
{
	*out = (struct event_source){ .ordered = index == 0, .ticks_per_second = 1000 };
	snprintf(name->bytes, sizeof name->bytes, "source %d", index);
	snprintf(description->bytes, sizeof description->bytes, "where it comes from");
	return CODE_SUCCESS;
}

static int event_open(int index, union mpi_object *object, struct event_count *count)
{
	for (size_t i = 0; i < sizeof registrations / sizeof *registrations; i++) {
		struct fake_registration *r = &registrations[i];

		if (r->count != NULL)
			continue;
		*r = (struct fake_registration){ index, object == NULL ? 0 : object->integer, count, false };
		count->registration = r;
		fake_open_handles++;
		return CODE_SUCCESS;
	}
	return CODE_OUT_OF_HANDLES;
}

void fake_let_go(void)
{
	fake_raises = false;
	for (size_t i = 0; i < sizeof registrations / sizeof *registrations; i++) {
		struct fake_registration *r = &registrations[i];

		if (r->count == NULL || !r->closed)
			continue;
		atomic_store(&r->count->freed, true);
		r->count = NULL;
	}
}

static int event_close(struct event_count *count)
{
	struct fake_registration *r = count->registration;

	assert(!r->closed && r->count == count);
	fake_open_handles--;
	r->closed = true;
	if (!fake_raises)
		fake_let_go();
	return CODE_SUCCESS;
}

void fake_raise(int type, int object)
{
	for (size_t i = 0; i < sizeof registrations / sizeof *registrations; i++) {
		struct fake_registration *r = &registrations[i];

		if (r->count != NULL && r->type == type && r->object == object)
			atomic_fetch_add(&r->count->raised, 1);
	}
}

static int category_count(int *count)
{
	*count = 1;
	return CODE_SUCCESS;
}

static int category_describe(int index, int *pvars, int *cvars, int *categories, struct text *name,
			     struct text *description)
{
	(void)index;
	*pvars = 1;
	*cvars = 2;
	*categories = 0;
	snprintf(name->bytes, sizeof name->bytes, "all");
	description->bytes[0] = '\0';
	return CODE_SUCCESS;
}

static int category_members(int index, int pvars, int *pvar, int cvars, int *cvar, int categories, int *category)
{
	(void)index, (void)pvars, (void)cvars, (void)categories, (void)category;
	pvar[0] = 0;
	cvar[0] = 1;
	cvar[1] = 2;
	return CODE_SUCCESS;
}

bool fake_refuses;
int fake_dead_object;
const char *fake_detail;
bool fake_has;

static bool info_has(const union mpi_object *info, const char *key)
{
	(void)info, (void)key;
	return fake_has;
}

static bool object_describe(int kind, const union mpi_object *object, const struct making *how,
			    struct object_description *out)
{
	bool shaped = kind == BIND_COMM || kind == BIND_WIN || kind == BIND_GROUP;

	(void)how;
	details_reset(&out->details);
	out->rank = shaped ? 1 : -1;
	out->size = shaped ? 2 : -1;
	out->inter = kind == BIND_COMM && object->integer == 7;
	if (fake_detail != NULL)
		details_add(&out->details, "keys", fake_detail);
	return !fake_refuses;
}

const struct abi fake_abi = {
	.number = 9,
	.pvar_count = pvar_count,
	.pvar_describe = pvar_describe,
	.session_open = session_open,
	.handle_open = handle_open,
	.handle_close = handle_close,
	.handle_start = handle_start,
	.handle_read = handle_read,
	.session_close = session_close,
	.handle_stop = handle_stop,
	.handle_write = handle_write,
	.handle_reset = handle_reset,
	.handle_readreset = handle_readreset,
	.pvar_writable = pvar_writable,
	.pvar_index = pvar_index,
	.never_stop = "shared_*",
	.on_request = "costly_*",
	.enum_describe = enum_describe,
	.enum_item = enum_item,
	.cvar_count = cvar_count,
	.cvar_describe = cvar_describe,
	.cvar_index = cvar_index,
	.cvar_read = cvar_read,
	.cvar_write = cvar_write,
	.event_count = event_count,
	.event_describe = event_describe,
	.event_source_count = event_source_count,
	.event_source_describe = event_source_describe,
	.event_open = event_open,
	.event_close = event_close,
	.category_count = category_count,
	.category_describe = category_describe,
	.category_index = category_index,
	.category_stamp = category_stamp,
	.category_members = category_members,
	.object_describe = object_describe,
	.info_has = info_has,
};
