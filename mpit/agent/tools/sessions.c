/* sessions.c - MPI_T sessions and handles of the tools that are connected. */
#include "sessions.h"

#include "../gate.h"
#include "refused.h"

#include <stdlib.h>

static uint32_t session_number(const struct tools *t, const struct tool_session *session)
{
	return (uint32_t)(session - t->sessions) + 1 + session->uses * TOOL_SESSIONS;
}

static uint32_t handle_number(const struct tools *t, const struct tool_handle *h)
{
	return (uint32_t)(h - t->handles) + 1 + h->uses * TOOL_HANDLES;
}

struct tool_session *tool_session_find(struct tools *t, uint64_t number)
{
	struct tool_session *session;

	if (t == NULL || number == 0)
		return NULL;
	session = &t->sessions[(number - 1) % TOOL_SESSIONS];
	return session->open && session_number(t, session) == number ? session : NULL;
}

struct tool_handle *tool_handle_find(struct tools *t, const struct tool_session *session, uint64_t number)
{
	struct tool_handle *h;

	if (t == NULL || number == 0)
		return NULL;
	h = &t->handles[(number - 1) % TOOL_HANDLES];
	return h->variable != NULL && h->session == session && handle_number(t, h) == number ? h : NULL;
}

struct tool_handle *tool_handle_place(struct tools *t)
{
	for (size_t i = 0; i < TOOL_HANDLES; i++)
		if (t->handles[i].variable == NULL && t->handles[i].uses < UINT32_MAX / TOOL_HANDLES)
			return &t->handles[i];
	return NULL;
}

uint32_t tool_handle_put(struct tools *t, struct tool_handle *place, const struct tool_handle *made)
{
	uint32_t uses = place->uses;

	*place = *made;
	place->uses = uses;
	if (place->object != NULL)
		place->object->tool_handles++;
	if ((size_t)(place - t->handles) >= t->most)
		t->most = (size_t)(place - t->handles) + 1;
	return handle_number(t, place);
}

int tool_handle_close(struct session *s, struct tool_handle *h)
{
	int code = s->abi->handle_close(h->session->mpi, &h->mpi);

	if (h->object != NULL)
		h->object->tool_handles--;
	*h = (struct tool_handle){ .uses = h->uses + 1 };
	return code;
}

void tools_object_ends(struct session *s, struct object *o)
{
	for (size_t i = 0; o->tool_handles > 0 && i < s->tools->most; i++)
		if (s->tools->handles[i].object == o)
			tool_handle_close(s, &s->tools->handles[i]);
}

int tool_session_create(struct session *s, uint64_t *number, const char **why)
{
	struct tools *t = s->tools;
	struct tool_session *session = NULL;
	int code;

	if (t == NULL)
		t = s->tools = calloc(1, sizeof *t);
	if (t == NULL)
		return refused(why, CODE_MEMORY, "the rank has no memory left");
	for (size_t i = 0; i < TOOL_SESSIONS && session == NULL; i++)
		if (!t->sessions[i].open && t->sessions[i].uses < UINT32_MAX / TOOL_SESSIONS)
			session = &t->sessions[i];
	if (session == NULL)
		return refused(why, CODE_OUT_OF_SESSIONS, "this connection has 16 sessions");
	code = s->abi->session_open(&session->mpi);
	if (code != CODE_SUCCESS)
		return code;
	session->open = true;
	*number = session_number(t, session);
	return CODE_SUCCESS;
}

int tool_session_close(struct session *s, struct tool_session *session)
{
	int code = s->abi->session_close(&session->mpi);

	*session = (struct tool_session){ .uses = session->uses + 1 };
	return code;
}

bool tools_close_handles(struct session *s, const struct tool_session *session)
{
	for (size_t i = 0; i < s->tools->most; i++) {
		struct tool_handle *h = &s->tools->handles[i];

		if (h->variable == NULL || (session != NULL && h->session != session))
			continue;
		tool_handle_close(s, h);
		if (gate_wanted())
			return false;
	}
	return true;
}

bool tools_close(struct session *s)
{
	if (s->tools == NULL)
		return true;
	if (!tools_close_handles(s, NULL))
		return false;
	for (size_t i = 0; i < TOOL_SESSIONS; i++)
		if (s->tools->sessions[i].open)
			tool_session_close(s, &s->tools->sessions[i]);
	tools_forget(s);
	return true;
}

void tools_forget(struct session *s)
{
	for (struct object *o = &s->unbound; o != NULL; o = o->after)
		o->tool_handles = 0;
	free(s->tools);
	s->tools = NULL;
}
