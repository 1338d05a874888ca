/* lifecycle.c - from MPI_Init to the last sample. */
#define _GNU_SOURCE
#include "lifecycle.h"

#include "agent.h"
#include "deny.h"
#include "gate.h"
#include "identity.h"
#include "last.h"
#include "link.h"
#include "locate.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* An abort must come through even if a sample never ends. */
#define ABORT_PATIENCE_NS 50000000u

static _Atomic bool prepared; /* somebody has called MPI_Init */

/* Written in lifecycle_prepare and lifecycle_begin, before the agent runs; the session then is the gate's. */
static const struct abi *abi;
static int tool_level = -1; /* 0 … 3; -1: not known */
static char library_version[512];
static char deny[DENY_BYTES];
static struct identity identity;
static struct session session;
static struct link exporter;

static bool switched_off(void)
{
	const char *value = getenv("MPIT_AGENT_DISABLE");

	return value != NULL && *value != '\0' && strcmp(value, "0") != 0;
}

/* Looks for MPI once; before the first MPI call nobody else is there. */
static void find_mpi(const void *caller)
{
	static bool looked;

	if (looked)
		return;
	looked = true;
	agent_log_init();
	if (!switched_off())
		abi = locate_mpi(caller, library_version, sizeof library_version);
}

static size_t most_objects(void)
{
	const char *value = getenv("MPIT_AGENT_MAX_OBJECTS");
	char *end;
	long number;

	if (value == NULL || *value == '\0')
		return MAX_OBJECTS_DEFAULT;
	number = strtol(value, &end, 10);
	if (*end != '\0' || number < 0 || number > MAX_OBJECTS_LIMIT) {
		agent_log("MPIT_AGENT_MAX_OBJECTS=%s is not a number from 0 to %d; it is %d", value, MAX_OBJECTS_LIMIT,
			  MAX_OBJECTS_DEFAULT);
		return MAX_OBJECTS_DEFAULT;
	}
	return (size_t)number;
}

/* ---- what happens to objects ---- */

/* A child made by _Fork or clone hasn't run the handlers of pthread_atfork: it is not the rank, whatever the state says. */
static bool in_the_rank(void)
{
	return getpid() == identity.pid;
}

/* A passive agent's thread can't read, so the program's does, whenever it is here anyway. */
static void leave_gate(void)
{
	if (exporter.passive && session_discover(&session, NULL))
		session_sample(&session, NULL);
	gate_leave();
}

/* From inside the library, in MPI_*_free: the object is still whole. */
static void object_freed(void *mark)
{
	if (agent_state() != AGENT_RUNNING || !in_the_rank())
		return;
	if (!gate_enter()) {
		/* Its handles must never be read again, and without the gate they can't be closed. */
		agent_give_up("an object was freed while the agent could not look");
		return;
	}
	if (agent_state() == AGENT_RUNNING)
		session_object_freed(&session, mark);
	leave_gate();
}

static void finalizing(void)
{
	lifecycle_end(END_FINALIZE);
}

static const struct abi_events events = { .freed = object_freed, .finalizing = finalizing };

/* The gate is held. */
static void track(int kind, const union mpi_object *mpi, unsigned flags)
{
	struct object *o;
	bool marked;

	/* A constructor may call another interposed one inside. */
	if ((kind == BIND_COMM ? abi->comm_marked(mpi) : abi->win_marked(mpi)) != NULL)
		return;
	o = session_object_made(&session, kind, mpi, flags);
	if (o == NULL)
		return;
	marked = kind == BIND_COMM ? abi->comm_mark(mpi, o) : abi->win_mark(mpi, o);
	if (!marked) {
		/* We would not hear of its end, and a handle on a freed object crashes. */
		session_object_freed(&session, o);
		session.objects_over++;
		return;
	}
	if (flags & OBJECT_PREDEFINED) {
		static struct text name; /* the gate's */

		if (abi->comm_name(mpi, &name))
			copy_string(o->name, sizeof o->name, name.bytes);
	}
}

static void made(int kind, const void *address)
{
	union mpi_object mpi = { 0 };

	if (agent_state() != AGENT_RUNNING || address == NULL || !gate_enter())
		return;
	if (agent_state() == AGENT_RUNNING && (kind == BIND_COMM ? abi->comm_at(address, &mpi) : abi->win_at(address, &mpi)))
		track(kind, &mpi, 0);
	leave_gate();
}

void lifecycle_comm_made(const void *comm)
{
	made(BIND_COMM, comm);
}

void lifecycle_win_made(const void *win)
{
	made(BIND_WIN, win);
}

static void named(int kind, intptr_t value)
{
	static struct text name; /* the gate's */
	union mpi_object mpi = { 0 };
	struct object *o;
	bool known;

	if (agent_state() != AGENT_RUNNING || !gate_enter())
		return;
	if (agent_state() == AGENT_RUNNING) {
		if (kind == BIND_COMM)
			abi->comm_in(value, &mpi);
		else
			abi->win_in(value, &mpi);
		o = kind == BIND_COMM ? abi->comm_marked(&mpi) : abi->win_marked(&mpi);
		/* Asked back, because Fortran's names come with blanks and libraries cut long ones. */
		known = o != NULL && (kind == BIND_COMM ? abi->comm_name(&mpi, &name) : abi->win_name(&mpi, &name));
		if (known)
			session_object_named(&session, o, name.bytes);
	}
	leave_gate();
}

void lifecycle_comm_named(intptr_t comm)
{
	named(BIND_COMM, comm);
}

void lifecycle_win_named(intptr_t win)
{
	named(BIND_WIN, win);
}

/* ---- the beginning ---- */

bool lifecycle_prepare(const void *caller)
{
	int level = -1, code;

	if (atomic_exchange(&prepared, true))
		return false;
	find_mpi(caller);
	if (abi == NULL)
		return false;
	/* Before MPI_Init: afterwards Open MPI would raise what MPI_Query_thread answers. */
	code = abi->tool_init(&level);
	if (code != CODE_SUCCESS) {
		agent_log("MPI_T_init_thread: code %d; the program runs on unobserved", code);
		return false;
	}
	if (level >= 0)
		tool_level = level;
	return true;
}

static void forked(void)
{
	agent_move(AGENT_RUNNING, AGENT_OFF);
	agent_move(AGENT_FINAL, AGENT_OFF);
	link_forked();
}

/* exit() without MPI_Finalize; a forked child's state is AGENT_OFF by now. */
static void exiting(void)
{
	lifecycle_end(END_EXIT);
}

static void track_predefined(void)
{
	union mpi_object mpi = { 0 };

	if (abi->comm_world(&mpi))
		track(BIND_COMM, &mpi, OBJECT_PREDEFINED);
	if (abi->comm_self(&mpi))
		track(BIND_COMM, &mpi, OBJECT_PREDEFINED);
	if (abi->comm_parent(&mpi))
		track(BIND_COMM, &mpi, OBJECT_PREDEFINED);
}

void lifecycle_begin(void)
{
	identity_fill(&identity, library_version);
	identity.abi = abi->number;
	identity.thread_level = tool_level < 0 ? 0 : tool_level;
	identity.passive = exporter.passive = identity.thread_level < 3;
	deny_list(getenv("MPIT_AGENT_DENY"), deny);
	if (!session_open(&session, abi, deny, most_objects()) || !abi->observe(&events, &identity.rank, &identity.size)) {
		agent_log("no MPI_T session; the program runs on unobserved");
		return;
	}
	track_predefined();
	if (!abi->watch_finalize()) {
		agent_log("no attribute can be set; the program runs on unobserved");
		return;
	}
	session_sample(&session, NULL);
	exporter.identity = &identity;
	exporter.session = &session;
	link_paths(&exporter);
	if (pthread_atfork(NULL, NULL, forked) != 0 || atexit(exiting) != 0) {
		agent_log("out of memory; the program runs on unobserved");
		return;
	}
	agent_log("rank %d of %d, %zu variables, %zu values%s", identity.rank, identity.size, session.catalogue.count,
		  session.values_in_all, exporter.passive ? ", passive" : "");
	agent_move(AGENT_IDLE, AGENT_RUNNING);
	if (!link_start(&exporter))
		agent_log("no thread can be made: only the last sample will be sent");
}

bool lifecycle_uses_tools(const void *caller)
{
	find_mpi(caller);
	return abi != NULL;
}

int lifecycle_tool_required(void)
{
	return abi->thread_multiple();
}

int lifecycle_tool_provided(int required, int provided)
{
	int level = abi->thread_level(provided);

	if (level >= 0)
		tool_level = level;
	/* What the program asked for, unless the library can't: as it would be without the agent. */
	return tool_level >= 0 && tool_level < abi->thread_level(required) ? provided : required;
}

/* ---- the end ---- */

void lifecycle_end(enum end_reason reason)
{
	if (agent_state() != AGENT_RUNNING || !in_the_rank())
		return;
	if (reason == END_FINALIZE && !exporter.passive)
		last_linger();
	if (!(reason == END_ABORT ? gate_enter_within(ABORT_PATIENCE_NS) : gate_enter()))
		return;
	if (agent_move(AGENT_RUNNING, AGENT_FINAL)) {
		/* exit and MPI_Abort may stand in a signal handler that has interrupted malloc: nothing is allocated there. */
		if (reason == END_FINALIZE)
			session_discover(&session, NULL);
		session_sample(&session, NULL);
		last_send(&exporter.paths, &identity, &session, reason);
		link_stop();
	}
	gate_leave();
}
