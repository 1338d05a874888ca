/* fake_abi.c - an MPI library that a test scripts. */
#include "fake_abi.h"

#include "catalogue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fake_variable fake_variables[FAKE_VARIABLES];
int fake_count, fake_open_handles, fake_started, fake_reads;
void (*fake_on_read)(void);

struct fake_handle {
	struct fake_variable *variable;
	int object;
};

void fake_reset(void)
{
	memset(fake_variables, 0, sizeof fake_variables);
	fake_count = fake_open_handles = fake_started = fake_reads = 0;
	fake_on_read = NULL;
	fake_refuses = false;
	fake_detail = NULL;
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
		.readonly = true,
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
	return CODE_SUCCESS;
}

static int handle_open(void *session, int index, union mpi_object *object, void **handle, int *count)
{
	struct fake_variable *v = &fake_variables[index];
	struct fake_handle *h;

	(void)session;
	if (v->alloc_code != CODE_SUCCESS)
		return v->alloc_code;
	h = malloc(sizeof *h);
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
	return h->variable->start_code;
}

static int handle_read(void *session, void *handle, void *values)
{
	struct fake_handle *h = handle;
	unsigned char *at = values;

	(void)session;
	fake_reads++;
	if (fake_on_read != NULL)
		fake_on_read();
	if (h->variable->read_code != CODE_SUCCESS)
		return h->variable->read_code;
	for (int i = 0; i < h->variable->count; i++, at += h->variable->bytes)
		memcpy(at, &h->variable->value[h->object % 8][i % FAKE_ELEMENTS], (size_t)h->variable->bytes);
	return CODE_SUCCESS;
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
	*count = 3000;
	return CODE_SUCCESS;
}

static int cvar_describe(int index, struct cvar_description *out, struct text *name, struct text *description)
{
	*out = (struct cvar_description){ .scope = 2, .verbosity = 1, .bind = BIND_NONE };
	out->datatype = index == 0 ? TYPE_CHAR : TYPE_INT;
	out->datatype_bytes = index == 0 ? 1 : 4;
	snprintf(name->bytes, sizeof name->bytes, "cvar_%d", index);
	memset(description->bytes, 'd', 200);
	description->bytes[200] = '\0';
	return CODE_SUCCESS;
}

static int cvar_read(int index, int datatype, int datatype_bytes, void *bytes, size_t capacity, int *count)
{
	int value = -index;

	(void)datatype, (void)capacity;
	*count = index == 0 ? 5 : 1;
	memcpy(bytes, index == 0 ? (const void *)"hello" : &value, index == 0 ? 5u : (size_t)datatype_bytes);
	return CODE_SUCCESS;
}

static int category_count(int *count)
{
	*count = 1;
	return CODE_SUCCESS;
}

static int category_describe(int index, int *pvars, int *cvars, int *categories, struct text *name, struct text *description)
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
const char *fake_detail;

static bool object_describe(int kind, const union mpi_object *object, const struct making *how, struct object_description *out)
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
	.name = "fake",
	.number = 9,
	.pvar_count = pvar_count,
	.pvar_describe = pvar_describe,
	.session_open = session_open,
	.handle_open = handle_open,
	.handle_close = handle_close,
	.handle_start = handle_start,
	.handle_read = handle_read,
	.enum_describe = enum_describe,
	.enum_item = enum_item,
	.cvar_count = cvar_count,
	.cvar_describe = cvar_describe,
	.cvar_read = cvar_read,
	.category_count = category_count,
	.category_describe = category_describe,
	.category_members = category_members,
	.object_describe = object_describe,
};
