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
#include "pcontrol.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* An abort must come through even if a sample never ends. */
#define ABORT_PATIENCE_NS 50000000u

static _Atomic bool prepared; /* somebody has called MPI_Init or MPI_Session_init */
static _Atomic bool world;    /* somebody has called MPI_Init: the end is MPI_Finalize */
static _Atomic int sessions;  /* MPI-4's, alive */

/* Written in lifecycle_prepare and lifecycle_begin, before the agent runs; the session then is the gate's. */
static const struct abi *abi;
static int tool_level = -1; /* 0 … 3; -1: not known */
static char library_version[512];
static char deny[DENY_BYTES], requested[DENY_BYTES];
static struct identity identity;
static struct session session;
static struct link exporter;

static bool is_set(const char *variable)
{
	const char *value = getenv(variable);

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
	gate_prepare();
	if (!is_set("MPIT_AGENT_DISABLE"))
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

/* A child made by _Fork or clone hasn't run the handlers of pthread_atfork: it is not the rank, whatever the state
 * says. */
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

/* The name that an object got before it was tracked. The gate is held. */
static void take_name(int kind, const union mpi_object *mpi, struct object *o)
{
	static struct text name; /* the gate's */

	/* Asked back, because Fortran's names come with blanks and libraries cut long ones. */
	if (abi->object_name(kind, mpi, &name))
		session_object_named(&session, o, name.bytes);
}

/* An object whose end its attribute tells. The gate is held. */
static void track(int kind, const union mpi_object *mpi, unsigned flags, const struct making *how, uint32_t on)
{
	struct object *o;

	/* A datatype may be committed twice. */
	if (abi->marked(kind, mpi) != NULL)
		return;
	o = session_object_made(&session, kind, mpi, flags, how, on);
	if (o == NULL)
		return;
	if (!abi->mark(kind, mpi, o)) {
		/* We would not hear of its end, and a handle on a freed object crashes. */
		session_object_freed(&session, o);
		session.objects_over++;
		return;
	}
	/* Libraries name new communicators themselves; datatypes may be named before they are committed. */
	if (flags & OBJECT_PREDEFINED || kind == BIND_DATATYPE)
		take_name(kind, mpi, o);
}

/* Number of the communicator that an object is made on, 0: none that is tracked. The gate is held. */
static uint32_t number_of(const struct making *how)
{
	union mpi_object comm = { 0 };
	const struct object *o;

	if (how->communicator == NULL)
		return 0;
	abi->object_in(BIND_COMM, *how->communicator, &comm);
	o = abi->marked(BIND_COMM, &comm);
	return o == NULL ? 0 : o->number;
}

/* A program's thread that may look: false: the agent isn't running, or it is the agent itself that calls. */
static bool enter(void)
{
	if (agent_state() != AGENT_RUNNING || !gate_enter())
		return false;
	if (agent_state() == AGENT_RUNNING)
		return true;
	gate_leave();
	return false;
}

void lifecycle_made(int kind, const void *address, const struct making *how)
{
	union mpi_object mpi = { 0 };

	if (address == NULL || !enter())
		return;
	if (abi->object_at(kind, address, &mpi)) {
		uint32_t on = number_of(how);

		if (session_found_by_handle(kind))
			session_handle_made(&session, kind, &mpi, how, on);
		else
			track(kind, &mpi, 0, how, on);
	}
	leave_gate();
}

void lifecycle_got(int kind, const void *address)
{
	union mpi_object mpi = { 0 };

	if (!session_found_by_handle(kind) || address == NULL || !enter())
		return;
	if (abi->object_at(kind, address, &mpi))
		session_handle_got(&session, kind, &mpi);
	gate_leave();
}

void lifecycle_freeing(int kind, const void *address, bool nested)
{
	union mpi_object mpi = { 0 };
	bool ended = false;

	/* An object that has gone already isn't known; of one with several references the same call would take two. */
	if (nested && session_got_repeatedly(kind))
		return;
	/* in_the_rank is a system call: the program is about to free something, and what it frees in a child is not ours. */
	if (agent_state() != AGENT_RUNNING || address == NULL || gate_mine() || !in_the_rank() || !enter())
		return;
	if (abi->object_at(kind, address, &mpi))
		ended = session_handle_freed(&session, kind, &mpi);
	/* Most requests that are freed are none of ours: the program doesn't pay for a sample then. */
	if (ended)
		leave_gate();
	else
		gate_leave();
}

/* The object that a handle names, NULL: not tracked. The gate is held. */
static struct object *known(int kind, intptr_t handle, union mpi_object *mpi)
{
	abi->object_in(kind, handle, mpi);
	return session_found_by_handle(kind) ? session_find(&session, kind, mpi) : abi->marked(kind, mpi);
}

void lifecycle_named(int kind, intptr_t handle)
{
	union mpi_object mpi = { 0 };
	struct object *o;

	if (!enter())
		return;
	o = known(kind, handle, &mpi);
	if (o != NULL)
		take_name(kind, &mpi, o);
	leave_gate();
}

void lifecycle_key_changed(intptr_t info, const char *key)
{
	union mpi_object mpi = { 0 };
	struct object *o;

	if (!enter())
		return;
	o = known(BIND_INFO, info, &mpi);
	if (o != NULL)
		session_key_changed(&session, o, key);
	leave_gate();
}

void lifecycle_pcontrol(int level)
{
	if (agent_state() != AGENT_RUNNING || !in_the_rank() || !gate_enter())
		return;
	if (agent_state() == AGENT_RUNNING)
		pcontrol_called(&session, level);
	leave_gate();
}

/* ---- the beginning ---- */

bool lifecycle_prepare(const void *caller)
{
	int level = -1, code;

	if (atomic_exchange(&prepared, true))
		return false;
	find_mpi(caller);
	if (abi == NULL || agent_state() != AGENT_IDLE)
		return false;
	/* Before MPI_Init and MPI_Session_init: afterwards Open MPI would raise what MPI_Query_thread answers. */
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
	agent_measure(false);
	link_forked();
}

/* exit() without MPI_Finalize; a forked child's state is AGENT_OFF by now. */
static void exiting(void)
{
	lifecycle_end(END_EXIT);
}

static void track_predefined(void)
{
	static const struct making nothing;
	union mpi_object mpi = { 0 };

	if (abi->comm_world(&mpi))
		track(BIND_COMM, &mpi, OBJECT_PREDEFINED, &nothing, 0);
	if (abi->comm_self(&mpi))
		track(BIND_COMM, &mpi, OBJECT_PREDEFINED, &nothing, 0);
	if (abi->comm_parent(&mpi))
		track(BIND_COMM, &mpi, OBJECT_PREDEFINED, &nothing, 0);
}

/* What another library measures, if there is one. */
static void begin_source(void)
{
	static struct source_mpi mpi; /* the source's from then on */

	mpi = (struct source_mpi){ .abi = abi->number, .find = locate_function };
	sources_begin(&session, locate_source(), &mpi);
}

/* This process's place in the world, and what the world brings with it. mpi_session: NULL where MPI_Init was called. */
static bool enter_world(const union mpi_object *mpi_session)
{
	if (!abi->observe(&events))
		return false;
	if (mpi_session != NULL)
		return abi->session_world(mpi_session, &identity.rank, &identity.size);
	if (!abi->world(&identity.rank, &identity.size))
		return false;
	track_predefined();
	return abi->watch_finalize();
}

/* Once, after the real MPI_Init or MPI_Session_init. The gate is held: with sessions other threads may be in MPI
 * already. */
static void begin(const union mpi_object *mpi_session)
{
	identity_fill(&identity, library_version);
	identity.abi = abi->number;
	identity.thread_level = tool_level < 0 ? 0 : tool_level;
	identity.passive = exporter.passive = identity.thread_level < 3;
	identity.sessions_only = mpi_session != NULL;
	deny_list(getenv("MPIT_AGENT_DENY"), deny);
	open_list(getenv("MPIT_AGENT_OPEN"), getenv("OMPI_MCA_pml_monitoring_enable"), getenv("OMPI_MCA_mpi_spc_attach"), requested);
	if (!session_open(&session, abi, deny, requested, most_objects())) {
		agent_log("no MPI_T session; the program runs on unobserved");
		return;
	}
	session.may_write = identity.may_write = is_set("MPIT_AGENT_ALLOW_WRITE");
	begin_source();
	if (!enter_world(mpi_session)) {
		agent_log("no attribute can be set, or no place in the world be found; the program runs on unobserved");
		return;
	}
	sources_discover(&session, NULL);
	session_sample(&session, NULL);
	exporter.identity = &identity;
	exporter.session = &session;
	link_paths(&exporter);
	last_prepare();
	if (call_in_forked_child(forked) != 0 || atexit(exiting) != 0) {
		agent_log("out of memory; the program runs on unobserved");
		return;
	}
	agent_log("rank %d of %d, %zu variables, %zu values%s", identity.rank, identity.size, session.catalogue.count,
		  session.values_in_all, exporter.passive ? ", passive" : "");
	agent_move(AGENT_IDLE, AGENT_RUNNING);
	agent_measure(true);
	if (!link_start(&exporter))
		agent_log("no thread can be made: only the last sample will be sent");
}

/* MPI_Init in a program that has sessions already: from here on MPI_Finalize is the end, and there are communicators
 * that nobody made. */
static void join_world(void)
{
	if (!identity.sessions_only || !enter())
		return;
	identity.sessions_only = false;
	track_predefined();
	if (!abi->watch_finalize())
		agent_give_up("no attribute can be set");
	leave_gate();
}

void lifecycle_world_begun(bool first, bool succeeded)
{
	if (!succeeded) {
		if (first)
			atomic_store(&prepared, false); /* the next attempt is the first again */
		return;
	}
	atomic_store(&world, true);
	if (!first) {
		join_world();
		return;
	}
	if (!gate_enter())
		return;
	begin(NULL);
	gate_leave();
}

void lifecycle_session_begun(bool first, const void *address)
{
	union mpi_object mpi = { 0 };

	if (address == NULL) {
		if (first)
			atomic_store(&prepared, false);
		return;
	}
	atomic_fetch_add(&sessions, 1);
	if (first && gate_enter()) {
		if (abi->object_at(BIND_SESSION, address, &mpi))
			begin(&mpi);
		gate_leave();
	}
	lifecycle_made(BIND_SESSION, address, &(struct making){ .by = "Session_init" });
}

void lifecycle_session_ending(const void *address)
{
	int before = atomic_load(&sessions);

	while (before > 0 && !atomic_compare_exchange_weak(&sessions, &before, before - 1))
		;
	/* First, for the last sample is followed by nothing: what it has counted is among the remains. */
	lifecycle_freeing(BIND_SESSION, address, false);
	/* With the last session the library goes, unless MPI_Init holds it. */
	if (before == 1 && !atomic_load(&world))
		lifecycle_end(END_FINALIZE);
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
	struct farewell farewell = { .c.fd = -1 };

	if (agent_state() != AGENT_RUNNING || !in_the_rank())
		return;
	if (reason == END_FINALIZE && !exporter.passive)
		last_linger();
	if (!(reason == END_ABORT ? gate_enter_within(ABORT_PATIENCE_NS) : gate_enter()))
		return;
	if (agent_move(AGENT_RUNNING, AGENT_FINAL)) {
		agent_measure(false);
		/*
		 * exit and MPI_Abort may stand in a signal handler that has interrupted malloc: nothing is allocated there,
		 * and what has come up since the last sample stays unknown.
		 */
		if (reason == END_FINALIZE)
			session_discover(&session, NULL);
		session_sample(&session, NULL);
		farewell = last_send(&exporter.paths, &identity, &session, reason);
		link_stop();
	}
	gate_leave();
	last_await(&farewell);
}
