/* tools.c - MPI_T for whoever is connected. */
#include "tools.h"

#include "../deny.h"
#include "../frames.h"
#include "../gate.h"
#include "../handles.h"
#include "../objects.h"
#include "lists.h"
#include "refused.h"
#include "sessions.h"

#include <string.h>

#define NAME_BYTES 4096

enum operation {
	TOOL_SESSION_CREATE,
	TOOL_SESSION_FREE,
	TOOL_HANDLE_ALLOC,
	TOOL_HANDLE_FREE,
	TOOL_START,
	TOOL_STOP,
	TOOL_READ,
	TOOL_WRITE,
	TOOL_RESET,
	TOOL_READRESET,
	TOOL_CVAR_READ,
	TOOL_CVAR_WRITE,
	TOOL_PVAR_INDEX,
	TOOL_CVAR_INDEX,
	TOOL_CATEGORY_INDEX,
	TOOL_OPERATIONS,
};

/* How many words of arguments each has at least. */
static const size_t arguments[TOOL_OPERATIONS] = { 0, 1, 3, 2, 2, 2, 2, 3, 2, 2, 2, 4, 2, 1, 1 };

/* One request: what it says, what comes of it. */
struct call {
	struct session *s;
	struct wire *w;
	uint32_t sequence;
	enum operation operation;
	struct wire_reader arguments;
	const char *why; /* the agent's own refusal */
};

/* ---- the answer ---- */

/* Begins it; what the operation gives goes behind, then wire_end. */
static void begin_answer(struct call *c, int code)
{
	wire_begin(c->w, FRAME_TOOL, c->sequence);
	wire_word(c->w, c->operation);
	wire_word(c->w, (uint64_t)code);
	wire_string(c->w, c->why == NULL ? "" : c->why);
}

static void put_answer(struct call *c, int code, const uint64_t *words, size_t count)
{
	begin_answer(c, code);
	if (code == CODE_SUCCESS)
		wire_words(c->w, words, count);
	wire_end(c->w);
}

/* ---- handles ---- */

/* What a tool may have a handle on, and on which object. */
static int check_variable(struct call *c, uint64_t number, uint64_t object, struct variable **v, struct object **o)
{
	const struct catalogue *all = &c->s->catalogue;

	if (number >= all->count)
		return refused(&c->why, CODE_INVALID_INDEX, "there is no variable with this number");
	*v = all->variables[number];
	if ((*v)->state == VARIABLE_DENIED)
		return refused(&c->why, CODE_NOT_ACCESSIBLE, "the variable is on the deny list (MPIT_AGENT_DENY)");
	if ((*v)->is.datatype == TYPE_OTHER || (*v)->is.datatype_bytes <= 0 || (*v)->is.datatype_bytes > 8)
		return refused(&c->why, CODE_NOT_SUPPORTED, UNKNOWN_DATATYPE);
	if ((*v)->source != NULL || (*v)->event)
		return refused(&c->why, CODE_NOT_SUPPORTED,
			       "it is no performance variable of the MPI library: its values stand in samples alone");
	*o = NULL;
	if ((*v)->is.bind == BIND_NONE)
		return CODE_SUCCESS;
	*o = object_numbered(c->s, object);
	if (*o == NULL || (*o)->kind != (*v)->is.bind)
		return refused(&c->why, CODE_INVALID_HANDLE, NOT_BOUND_THERE);
	return CODE_SUCCESS;
}

static int alloc_handle(struct call *c, struct tool_session *session, uint64_t given[2])
{
	uint64_t number = wire_take(&c->arguments), object = wire_take(&c->arguments);
	struct tools *t = c->s->tools;
	struct tool_handle *h = tool_handle_place(t), made = { 0 };
	int code = check_variable(c, number, object, &made.variable, &made.object);

	if (code != CODE_SUCCESS)
		return code;
	if (h == NULL)
		return refused(&c->why, CODE_OUT_OF_HANDLES, "this connection has 4096 handles");
	made.session = session;
	/* MPICH keeps the object's address: it is that of the object in the list, which outlives the handle. */
	code = c->s->abi->handle_open(session->mpi, made.variable->index, made.object == NULL ? NULL
				      : &made.object->mpi, &made.mpi, &made.count);
	if (code != CODE_SUCCESS)
		return code;
	if (made.count < 0 || made.count > MAX_VALUES || !handle_raw(c->s, made.count, made.variable->is.datatype_bytes)) {
		c->s->abi->handle_close(session->mpi, &made.mpi);
		return refused(&c->why, CODE_MEMORY, "it has too many elements");
	}
	given[0] = tool_handle_put(t, h, &made);
	given[1] = (uint64_t)made.count;
	return CODE_SUCCESS;
}

/* What the variable's description forbids, and what would reach beyond the handle. */
static int check_startstop(struct call *c, const struct tool_handle *h)
{
	if (h->variable->is.continuous)
		return refused(&c->why, CODE_PVAR_NO_STARTSTOP, "the variable is continuous");
	if (c->operation == TOOL_STOP && deny_matches(c->s->abi->never_stop, h->variable->name))
		return refused(&c->why, CODE_PVAR_NO_STARTSTOP, "the library would stop it for the whole process");
	return CODE_SUCCESS;
}

static int check_write(struct call *c, const struct tool_handle *h)
{
	if (h->variable->is.readonly)
		return refused(&c->why, CODE_PVAR_NO_WRITE, "the variable is readonly");
	return CODE_SUCCESS;
}

static int start_or_stop(struct call *c, struct tool_handle *h)
{
	const struct abi *abi = c->s->abi;
	int code = check_startstop(c, h);

	if (code != CODE_SUCCESS)
		return code;
	code = c->operation == TOOL_START ? abi->handle_start(h->session->mpi, h->mpi)
		: abi->handle_stop(h->session->mpi, h->mpi);
	if (code == CODE_SUCCESS)
		h->started = c->operation == TOOL_START;
	return code;
}

static int reset(struct call *c, struct tool_handle *h)
{
	int code = check_write(c, h);

	return code != CODE_SUCCESS ? code : c->s->abi->handle_reset(h->session->mpi, h->mpi);
}

static int one(struct call *c, struct tool_handle *h)
{
	return c->operation == TOOL_RESET ? reset(c, h) : start_or_stop(c, h);
}

/* The standard ignores them where all handles are meant (MPI-4.1 section 15.3.7). */
static bool ignored(const struct call *c, const struct tool_handle *h)
{
	if (c->operation == TOOL_RESET)
		return h->variable->is.readonly;
	return h->variable->is.continuous || h->started == (c->operation == TOOL_START);
}

/* False: somebody waits. */
static bool all(struct call *c, const struct tool_session *session, struct tools_progress *progress, int *code)
{
	struct tools *t = c->s->tools;

	for (; progress->next < t->most; progress->next++) {
		struct tool_handle *h = &t->handles[progress->next];

		if (h->variable == NULL || h->session != session || ignored(c, h))
			continue;
		if (gate_wanted())
			return false;
		progress->failed |= one(c, h) != CODE_SUCCESS;
	}
	c->why = progress->failed ? "not all handles of the session could" : NULL;
	*code = !progress->failed ? CODE_SUCCESS : c->operation == TOOL_RESET ? CODE_PVAR_NO_WRITE : CODE_PVAR_NO_STARTSTOP;
	return true;
}

/* ---- values ---- */

static int readreset(struct call *c, struct tool_handle *h)
{
	int code = check_write(c, h);

	if (code != CODE_SUCCESS)
		return code;
	if (!h->variable->is.atomic)
		return refused(&c->why, CODE_PVAR_NO_ATOMIC, "the variable is not atomic");
	return c->s->abi->handle_readreset(h->session->mpi, h->mpi, c->s->raw);
}

static void put_values(struct call *c, struct tool_handle *h)
{
	int code = c->operation == TOOL_READ ? c->s->abi->handle_read(h->session->mpi, h->mpi, c->s->raw) : readreset(c, h);

	begin_answer(c, code);
	if (code == CODE_SUCCESS) {
		wire_word(c->w, (uint64_t)h->count);
		for (int i = 0; i < h->count; i++)
			wire_word(c->w, widen(h->variable, c->s->raw, (size_t)i));
	}
	wire_end(c->w);
}

static int write_values(struct call *c, struct tool_handle *h)
{
	const struct pvar_description *is = &h->variable->is;
	uint64_t n = wire_take(&c->arguments);
	int code = check_write(c, h);

	if (code != CODE_SUCCESS)
		return code;
	if (!c->s->may_write)
		return refused(&c->why, CODE_NOT_ACCESSIBLE, NOT_ALLOWED);
	if (!c->s->abi->pvar_writable(is))
		return refused(&c->why, CODE_NOT_ACCESSIBLE, "the library would crash");
	if (n != (uint64_t)h->count)
		return refused(&c->why, CODE_INVALID, "the handle has another number of elements");
	if (!narrow(is->datatype, is->datatype_bytes, c->arguments.words + c->arguments.at, (size_t)n, c->s->raw))
		return refused(&c->why, CODE_INVALID, "an element doesn't fit the variable's datatype");
	return c->s->abi->handle_write(h->session->mpi, h->mpi, c->s->raw);
}

/* ---- control variables ---- */

static void read_cvar(struct call *c)
{
	uint64_t index = wire_take(&c->arguments), object = wire_take(&c->arguments);
	struct cvar v;
	int count = 0, code = cvar_find(c->s, index, object, &v, &c->why);

	if (code == CODE_SUCCESS)
		code = cvar_get(c->s, &v, &count, &c->why);
	begin_answer(c, code);
	if (code == CODE_SUCCESS)
		cvar_put(c->w, &v, count);
	wire_end(c->w);
}

static int write_cvar(struct call *c)
{
	uint64_t index = wire_take(&c->arguments), object = wire_take(&c->arguments), kind = wire_take(&c->arguments),
		length = wire_take(&c->arguments);
	struct cvar v;
	int code = cvar_find(c->s, index, object, &v, &c->why);

	if (code != CODE_SUCCESS)
		return code;
	return cvar_set(c->s, &v, kind, c->arguments.words + c->arguments.at, (size_t)length, &c->why);
}

/* ---- indices ---- */

static uint64_t variable_with_index(const struct catalogue *all, int index)
{
	for (size_t i = 0; i < all->count; i++)
		if (all->variables[i]->index == index)
			return i + 1;
	return 0;
}

static int find_index(struct call *c, uint64_t given[2])
{
	const struct abi *abi = c->s->abi;
	uint64_t mpi_class = c->operation == TOOL_PVAR_INDEX ? wire_take(&c->arguments) : 0;
	uint64_t length = wire_take(&c->arguments);
	const void *bytes = c->arguments.words + c->arguments.at;
	static char name[NAME_BYTES]; /* the gate's */
	int index = -1, code;

	if (length >= sizeof name || mpi_class > CLASS_LAST || memchr(bytes, 0, (size_t)length) != NULL)
		return refused(&c->why, CODE_INVALID_NAME, "there can't be a variable or category of that name and class");
	memcpy(name, bytes, (size_t)length);
	name[length] = '\0';
	if (c->operation == TOOL_PVAR_INDEX)
		code = abi->pvar_index(name, (int)mpi_class, &index);
	else
		code = c->operation == TOOL_CVAR_INDEX ? abi->cvar_index(name, &index) : abi->category_index(name, &index);
	if (code != CODE_SUCCESS && c->operation != TOOL_CVAR_INDEX) { /* it may be the agent's own */
		index = c->operation == TOOL_PVAR_INDEX ? catalogue_index(&c->s->catalogue, name, (int)mpi_class)
							: lists_category_index(c->s, name);
		code = index < 0 ? code : CODE_SUCCESS;
	}
	given[0] = (uint64_t)(int64_t)index;
	given[1] = variable_with_index(&c->s->catalogue, index);
	return code;
}

/* ---- a request ---- */

/* False: there are fewer words than it says. */
static bool complete(enum operation operation, const struct wire_reader *r)
{
	const uint64_t *a = r->words + r->at;
	size_t head = arguments[operation], left = wire_left(r);
	/* Where words or a string follow, the last word before them. */
	uint64_t length = left < head ? 0 : head > 0 ? a[head - 1] : 0;
	bool words = operation == TOOL_WRITE, string = operation >= TOOL_PVAR_INDEX;

	if (operation == TOOL_CVAR_WRITE && left >= head) {
		string = a[2] == VALUE_STRING;
		words = !string;
	}
	if (left < head)
		return false;
	left -= head;
	return words ? length <= left : !string || length <= 8 * left;
}

/* What needs a session, and mostly a handle of it. False: somebody waits. */
static bool on_session(struct call *c, struct tools_progress *progress)
{
	struct tools *t = c->s->tools;
	struct tool_session *session = tool_session_find(t, wire_take(&c->arguments));
	struct tool_handle *h;
	uint64_t number, given[2] = { 0 };
	int code;

	if (session == NULL) {
		put_answer(c, refused(&c->why, CODE_INVALID_SESSION, "this connection has no such session"), NULL, 0);
		return true;
	}
	if (c->operation == TOOL_HANDLE_ALLOC) {
		code = alloc_handle(c, session, given);
		put_answer(c, code, given, 2);
		return true;
	}
	if (c->operation == TOOL_SESSION_FREE) {
		if (!tools_close_handles(c->s, session))
			return false;
		put_answer(c, tool_session_close(c->s, session), NULL, 0);
		return true;
	}
	number = wire_take(&c->arguments);
	if (number == 0 && (c->operation == TOOL_START || c->operation == TOOL_STOP || c->operation == TOOL_RESET)) {
		if (!all(c, session, progress, &code))
			return false;
		put_answer(c, code, NULL, 0);
		return true;
	}
	h = tool_handle_find(t, session, number);
	if (h != NULL && (c->operation == TOOL_READ || c->operation == TOOL_READRESET)) {
		put_values(c, h);
		return true;
	}
	if (h == NULL)
		code = refused(&c->why, CODE_INVALID_HANDLE, "the session has no such handle, or its object has ended");
	else if (c->operation == TOOL_HANDLE_FREE)
		code = tool_handle_close(c->s, h);
	else
		code = c->operation == TOOL_WRITE ? write_values(c, h) : one(c, h);
	put_answer(c, code, NULL, 0);
	return true;
}

bool tools_answer(struct wire *w, uint32_t sequence, struct session *s, struct wire_reader request,
		  struct tools_progress *progress)
{
	uint64_t operation = wire_take(&request), given[2] = { 0 };
	struct call c = { s, w, sequence, (enum operation)operation, request, NULL };
	int code;

	if (operation >= TOOL_OPERATIONS) {
		frame_error(w, sequence, ERROR_UNSUPPORTED, "this agent doesn't know that operation");
		return true;
	}
	if (!complete(c.operation, &request)) {
		frame_error(w, sequence, ERROR_MALFORMED, "the operation's arguments are not complete");
		return true;
	}
	switch (c.operation) {
	case TOOL_SESSION_CREATE:
		code = tool_session_create(s, given, &c.why);
		put_answer(&c, code, given, 1);
		return true;
	case TOOL_CVAR_READ:
		read_cvar(&c);
		return true;
	case TOOL_CVAR_WRITE:
		code = write_cvar(&c);
		put_answer(&c, code, NULL, 0);
		return true;
	case TOOL_PVAR_INDEX:
	case TOOL_CVAR_INDEX:
	case TOOL_CATEGORY_INDEX:
		code = find_index(&c, given);
		put_answer(&c, code, given, c.operation == TOOL_PVAR_INDEX ? 2 : 1);
		return true;
	default:
		return on_session(&c, progress);
	}
}
