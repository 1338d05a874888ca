/* lifecycle.c - from MPI_Init to the last sample. */
#define _GNU_SOURCE
#include "lifecycle.h"

#include "agent.h"
#include "byhandle/tracking.h"
#include "deny.h"
#include "filter.h"
#include "gate.h"
#include "last.h"
#include "link.h"
#include "locate.h"
#include "now.h"
#include "pcontrol.h"
#include "rank.h"
#include "site.h"
#include "tracking.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* An abort must come through even if a sample never ends. */
#define ABORT_PATIENCE_NS 50000000u

/* MPI_THREAD_MULTIPLE and _SINGLE as abi.h counts levels. */
enum { THREAD_SINGLE, THREAD_MULTIPLE = 3 };

static _Atomic bool prepared; /* somebody has called MPI_Init or MPI_Session_init */
static _Atomic bool world;    /* somebody has called MPI_Init: the end is MPI_Finalize */
static _Atomic int sessions;  /* MPI-4's, alive */

static _Atomic int tool_level = -1; /* of MPI_T: 0 single … 3 multiple; -1: not known */

/* Written before the agent runs. */
static const struct abi *_Atomic abi;
static bool tools_after_init; /* MPI_T is to be initialised after the real MPI_Init */
static char library_version[512];
static char deny[DENY_BYTES], requested[DENY_BYTES];
static struct site_says site;
static struct link exporter;

static bool is_set(const char *variable)
{
	const char *value = getenv(variable);

	return value != NULL && *value != '\0' && strcmp(value, "0") != 0;
}

/*
 * Looks for MPI once. One thread may be in MPI_T_init_thread while another one is in MPI_Init: the second waits at the
 * gate. Not for ever, for it may hold the dynamic linker's lock, which the first needs: then it runs on unobserved.
 */
static void find_mpi(const void *caller)
{
	static _Atomic bool looked;

	if (atomic_load(&looked) || !gate_enter_within(GATE_PATIENCE_NS))
		return;
	if (!atomic_load(&looked)) {
		const struct abi *found = NULL;

		agent_log_init();
		gate_prepare();
		if (!is_set("MPIT_AGENT_DISABLE"))
			found = locate_mpi(caller, library_version, sizeof library_version);
		tools_after_init = found != NULL && found->tools_after_init != NULL && found->tools_after_init(library_version);
		abi = found;
		atomic_store(&looked, true);
	}
	gate_leave();
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

/* ---- the beginning ---- */

static bool initialise_tools(int required)
{
	int level = -1, code;

	/* The program's, which can't be had: any other one would become MPI_Query_thread's answer. */
	if (required < THREAD_SINGLE)
		return false;
	code = abi->tool_init(required, &level);
	if (code != CODE_SUCCESS) {
		agent_log("MPI_T_init_thread: code %d; the program runs on unobserved", code);
		return false;
	}
	if (tools_after_init)
		tool_level = THREAD_MULTIPLE;
	else if (level >= 0)
		tool_level = level;
	return true;
}

/* Whether the site lets this rank be observed. */
static bool site_allows(void)
{
	const struct site_rank here = site_rank();
	char why[160];

	if (!site_read(SITE_FILE, &here, &site, why, sizeof why))
		agent_warn(SITE_FILE ": %s; no MPI program is observed on this node", why);
	else if (!site.observe)
		agent_log(SITE_FILE " leaves this program out; it runs on unobserved");
	return site.observe;
}

bool lifecycle_prepare(const void *caller, bool for_world)
{
	if (atomic_exchange(&prepared, true))
		return false;
	find_mpi(caller);
	if (abi == NULL || agent_state() != AGENT_IDLE || !site_allows())
		return false;
	return (tools_after_init && for_world) || initialise_tools(THREAD_MULTIPLE);
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

/* Words of MPIT_CALLS: the program's, else the site's, else NULL. */
static const char *calls_wanted(void)
{
	const char *value = getenv("MPIT_CALLS");

	return value != NULL ? value : *site.calls != '\0' ? site.calls : NULL;
}

/* What another library measures, if there is one. */
static void begin_source(void)
{
	static struct source_mpi mpi; /* the source's from then on */

	if (calls_wanted() != NULL && strcmp(calls_wanted(), "0") == 0)
		return;
	mpi = (struct source_mpi){ .abi = abi->number, .find = locate_function, .calls = calls_wanted(),
				  .filtered = filter_came };
	sources_begin(&rank.session, locate_source(), &mpi);
}

static void finalizing(void)
{
	lifecycle_end(END_FINALIZE);
}

static const struct abi_events events = { .freed = tracking_freed, .finalizing = finalizing };

/* This process's place in the world, and what comes with it. mpi_session: NULL where MPI_Init was called. */
static bool enter_world(const union mpi_object *mpi_session)
{
	if (!abi->observe(&events))
		return false;
	if (mpi_session != NULL)
		return abi->session_world(mpi_session, &rank.identity.rank, &rank.identity.size);
	if (!abi->world(&rank.identity.rank, &rank.identity.size))
		return false;
	tracking_predefined();
	return abi->watch_finalize();
}

/* Once, after the real MPI_Init or MPI_Session_init. The gate is held: with sessions other threads may be in MPI
 * already. */
static void begin(const union mpi_object *mpi_session)
{
	identity_fill(&rank.identity, library_version, calls_wanted());
	rank.identity.abi = abi->number;
	rank.identity.thread_level = mpi_session == NULL ? abi->program_level() : -1;
	rank.identity.passive = tool_level < 3;
	rank.identity.sessions_only = mpi_session != NULL;
	deny_list(getenv("MPIT_AGENT_DENY"), deny);
	open_list(getenv("MPIT_AGENT_OPEN"), getenv("OMPI_MCA_pml_monitoring_enable"),
		  getenv("OMPI_MCA_mpi_spc_attach"), requested);
	if (!session_open(&rank.session, abi, deny, requested, most_objects())) {
		agent_log("no MPI_T session; the program runs on unobserved");
		return;
	}
	rank.session.may_write = rank.identity.may_write = is_set("MPIT_AGENT_ALLOW_WRITE");
	begin_source();
	if (!enter_world(mpi_session)) {
		agent_log("no attribute can be set, or no place in the world be found; the program runs on unobserved");
		return;
	}
	sources_discover(&rank.session, NULL);
	session_sample(&rank.session, NULL);
	exporter.identity = &rank.identity;
	exporter.session = &rank.session;
	link_paths(&exporter);
	last_prepare();
	if (call_in_forked_child(forked) != 0 || atexit(exiting) != 0) {
		agent_log("out of memory; the program runs on unobserved");
		return;
	}
	agent_log("rank %d of %d, %zu variables, %zu values%s", rank.identity.rank, rank.identity.size,
		  rank.session.catalogue.count, rank.session.values_in_all, rank.identity.passive ? ", passive" : "");
	agent_move(AGENT_IDLE, AGENT_RUNNING);
	agent_measure(true);
	if (!link_start(&exporter))
		agent_log("no thread can be made: only the last sample will be sent");
}

/* MPI_Init in a program that has sessions already: from here on MPI_Finalize is the end, and there are communicators
 * that nobody made. */
static void join_world(void)
{
	if (!rank.identity.sessions_only || !rank_enter())
		return;
	rank.identity.sessions_only = false;
	rank.identity.thread_level = abi->program_level();
	tracking_predefined();
	if (!abi->watch_finalize())
		agent_give_up("no attribute can be set");
	rank_leave();
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
	/* Not in the gate: this may take longer than other threads wait there. */
	if (tools_after_init && !initialise_tools(abi->program_level()))
		return;
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
	tracking_handle_made(BIND_SESSION, address, &(struct making){ .by = "Session_init" }, false);
}

void lifecycle_session_ending(const void *address)
{
	int before = atomic_load(&sessions);

	while (before > 0 && !atomic_compare_exchange_weak(&sessions, &before, before - 1))
		;
	/* First, for the last sample is followed by nothing: what it has counted is among the remains. */
	tracking_handle_freeing(BIND_SESSION, address, false);
	/* With the last session the library goes, unless MPI_Init holds it. */
	if (before == 1 && !atomic_load(&world))
		lifecycle_end(END_FINALIZE);
}

int lifecycle_tool_init(tool_init *next, const void *caller, int required, int *provided)
{
	int given = -1, level, rc;

	find_mpi(caller);
	if (abi == NULL)
		return next(required, provided);
	/* Where the level asked for becomes MPI_Query_thread's answer, the program's own is the one to ask for. */
	rc = next(tools_after_init ? required : abi->thread_multiple(), &given);
	if (rc != 0)
		return rc;
	level = abi->thread_level(given);
	if (level >= 0)
		tool_level = level;
	else
		level = tool_level;
	/* What the program asked for, unless the library can't: as it would be without the agent. */
	if (provided != NULL)
		*provided = level >= 0 && level < abi->thread_level(required) ? given : required;
	return rc;
}

/* ---- MPI_Pcontrol ---- */

void lifecycle_pcontrol(int level)
{
	if (agent_state() != AGENT_RUNNING || !rank_is_here() || !rank_enter())
		return;
	pcontrol_called(&rank.session, level);
	rank_leave();
}

/* ---- the end ---- */

void lifecycle_finalizing(void)
{
	if (agent_state() != AGENT_RUNNING || !rank_is_here())
		return;
	agent_measure(false);
	atomic_store(&rank.session.finalizing, monotonic_ns());
}

/* The rank goes on where MPI_Finalize has failed, or done nothing: MPICH's does nothing while a session lives. */
void lifecycle_finalized(void)
{
	if (agent_state() != AGENT_RUNNING || !rank_is_here() || !rank_enter())
		return;
	atomic_store(&rank.session.finalizing, 0);
	if (!rank.session.pcontrol.paused)
		agent_measure(true);
	rank_leave();
}

void lifecycle_end(enum end_reason reason)
{
	struct farewell farewell = { .c.fd = -1 };

	if (agent_state() != AGENT_RUNNING || !rank_is_here())
		return;
	if (reason == END_FINALIZE && !rank.identity.passive)
		last_linger();
	if (!(reason == END_ABORT ? gate_enter_within(ABORT_PATIENCE_NS) : gate_enter()))
		return;
	if (agent_move(AGENT_RUNNING, AGENT_FINAL)) {
		agent_measure(false);
		/* Where nobody has said so: of the last MPI_Session_finalize. */
		if (reason == END_FINALIZE && atomic_load(&rank.session.finalizing) == 0)
			atomic_store(&rank.session.finalizing, monotonic_ns());
		/*
		 * exit and MPI_Abort may stand in a signal handler that has interrupted malloc: nothing is allocated there,
		 * and what has come up since the last sample stays unknown.
		 */
		if (reason == END_FINALIZE)
			session_discover(&rank.session, NULL);
		session_sample(&rank.session, NULL);
		farewell = last_send(&exporter.paths, &rank.identity, &rank.session, reason);
		link_stop();
	}
	gate_leave();
	last_await(&farewell);
}
