/* answers.c - what the agent's thread does with a request. */
#define _GNU_SOURCE
#include "answers.h"

#include "agent.h"
#include "buildid.h"
#include "caller.h"
#include "filter.h"
#include "gate.h"
#include "last.h"
#include "now.h"
#include "tools/lists.h"
#include "tools/sessions.h"
#include "tools/tools.h"

#include <sched.h>
#include <string.h>
#include <unistd.h>

#define GATE_TRIES 20
#define LOOKS 4 /* at a page of sites, in a sample, which waits for some twenty system calls for each site */
#define GATE_RETRY_US 500
/* Calls that take longer are told of with their place in the program. */
#define LONG_CALL_NS 1000000000u
/* How many frames of bindings lie between a program and MPI. */
#define MOST_BINDINGS 8

/* Tries for ten milliseconds: a program's thread holds the gate for microseconds, but may come again. Not once the
 * rank has ended. */
static bool try_gate(void)
{
	for (int i = 0; i < GATE_TRIES && agent_state() == AGENT_RUNNING; i++) {
		if (gate_try())
			return true;
		usleep(GATE_RETRY_US);
	}
	return false;
}

/* Fresh values under the gate; false: busy, the gate is not held. */
static bool take_sample(struct answering *a, enum sample_status *status)
{
	for (int i = 0; i < GATE_TRIES; i++) {
		if (!try_gate())
			return false;
		if (agent_state() != AGENT_RUNNING) {
			gate_leave(); /* the last sample has been taken, or the agent is given up */
			return false;
		}
		if (a->passive) {
			*status = a->session->pcontrol.paused ? SAMPLE_PAUSED : SAMPLE_PASSIVE;
			if (a->session->sampled_layout == a->session->layout_generation)
				return true;
			gate_leave(); /* selected anew: until the program's next call there are no values for it */
			return false;
		}
		if (session_discover(a->session, gate_wanted) && session_sample(a->session, gate_wanted)) {
			*status = a->session->pcontrol.paused ? SAMPLE_PAUSED : SAMPLE_FRESH;
			return true;
		}
		gate_leave(); /* somebody waits: let them pass, begin again */
		sched_yield();
	}
	return false;
}

/* What an address is in. What the program has loaded since MPI_Init is in no list yet. */
static bool find_code(struct answering *a, uintptr_t from, bool private, const char **module, uint64_t *offset)
{
	if (mapped_find(&a->code, from, module, offset))
		return true;
	/* No file in the program's own table of descriptors, and none that a filter may forbid. */
	if (a->unplaced == from || !private || filter_came())
		return false;
	a->unplaced = from;
	mapped_read(&a->code);
	return mapped_find(&a->code, from, module, offset);
}

/* The thread has been in that call all the time. Another one with the same frame hasn't run for as long. */
static bool still_in(const struct answering *a, const struct source_calls *is)
{
	struct under_way now = { 0 };

	if (!try_gate())
		return false;
	if (agent_state() == AGENT_RUNNING)
		now = sources_under_way(a->session);
	gate_leave();
	return now.known && now.is.frame == is->frame && now.is.from == is->from && now.is.running_ns >= is->running_ns;
}

/* Where the program has made a long call: not in a binding of MPI's, but in what has called that. */
static void place_call(struct answering *a, bool private)
{
	const struct source_calls *is = &a->calls.is;
	struct stack_frame at = { is->from, is->frame };
	const char *module;
	uint64_t offset;
	int up = 0;

	if (is->running_ns < LONG_CALL_NS || !find_code(a, at.from, private, &module, &offset))
		return;
	for (; binding_of(module) != BINDING_NONE; up++)
		if (binding_of(module) == BINDING_PYTHON || up == MOST_BINDINGS || filter_came() ||
		    !caller_of(&at, offset, &at) || !find_code(a, at.from, private, &module, &offset))
			return;
	if (up > 0 && !still_in(a, is))
		return;
	a->calls.module = module;
	a->calls.offset = offset;
}

/* Some sites from a number on, into a->sites. False: the rank can't be asked now. */
static bool read_sites(struct answering *a, size_t first, size_t *count, size_t *next, size_t *made)
{
	bool running;

	if (!try_gate())
		return false;
	running = agent_state() == AGENT_RUNNING;
	*count = running ? sizeof a->sites / sizeof *a->sites : 0;
	*next = sources_sites(a->session, first, a->sites, count, made);
	gate_leave();
	return running;
}

/* It has called the program; what has called it says nothing. exporter/api leaves it out by the same names. */
static bool is_c_library(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL && (strncmp(slash, "/libc.so.", 9) == 0 || strncmp(slash, "/libc-2.", 8) == 0 ||
				 strncmp(slash, "/ld-musl-", 9) == 0);
}

/* Looks at the code of sites that have come up since the last time: what is called through bindings is counted where the
 * program calls it from then on, and where stacks are asked for, all calls at what has called that. */
static void look_behind(struct answering *a, bool private)
{
	size_t count, next, made;

	for (int i = 0; i < LOOKS && !filter_came() && read_sites(a, a->looked, &count, &next, &made) && count > 0; i++) {
		for (size_t k = 0; k < count; k++) {
			const struct source_site *s = &a->sites[k];
			const char *module;
			uint64_t offset;
			uint32_t frame = SITE_HERE;

			if (s->function == NULL)
				continue;
			if (find_code(a, s->from, private, &module, &offset)) {
				bool binding = binding_of(module) == BINDING_NATIVE;

				if (binding || (s->deeper && !is_c_library(module)))
					frame = frame_of(s->from, offset) | (binding ? SITE_BINDING : 0);
			}
			atomic_store_explicit(s->frame, frame, memory_order_relaxed);
		}
		a->looked = next;
	}
}

/* Files of an answer, by the path's place, with their build ids; those found last. */
struct builds {
	const char *path[8];
	char id[8][BUILD_ID_TEXT];
	size_t next;
};

static const char *build_of(struct builds *known, const char *path)
{
	size_t most = sizeof known->path / sizeof *known->path, at;

	for (at = 0; at < most; at++)
		if (known->path[at] == path)
			return known->id[at];
	at = known->next++ % most;
	known->path[at] = path;
	build_id(path, known->id[at]);
	return known->id[at];
}

/* Needs nothing of MPI's. What has been unloaded is in no file any more. */
static void answer_sites(struct answering *a, uint32_t sequence, struct wire_reader *r, bool private)
{
	size_t first = (size_t)wire_take(r), count, next, made;
	struct builds builds = { 0 };

	if (first == 0 && private && !filter_came())
		mapped_read(&a->code);
	if (!read_sites(a, first, &count, &next, &made)) {
		frame_error(&a->out, sequence, ERROR_NOT_NOW, "the rank can't be asked now");
		return;
	}
	wire_begin(&a->out, FRAME_SITES, sequence);
	wire_word(&a->out, made);
	wire_word(&a->out, next);
	wire_word(&a->out, count);
	for (size_t i = 0; i < count; i++) {
		const struct source_site *s = &a->sites[i];
		size_t record = wire_hole(&a->out);
		const char *module = "";
		uint64_t offset = 0;

		if (s->function != NULL)
			mapped_find(&a->code, s->from, &module, &offset);
		wire_word(&a->out, s->number);
		wire_string(&a->out, s->function == NULL ? "" : s->function);
		wire_word(&a->out, (uint64_t)s->bind);
		wire_word(&a->out, s->object);
		wire_string(&a->out, module);
		wire_word(&a->out, offset);
		wire_word(&a->out, s->calls);
		wire_word(&a->out, s->time_ns);
		wire_word(&a->out, s->bytes);
		wire_string(&a->out, *module != '\0' && private && !filter_came() ? build_of(&builds, module) : "");
		wire_word(&a->out, s->peer < 0 ? 0 : (uint64_t)s->peer + 1);
		wire_word(&a->out, s->of);
		wire_fill_length(&a->out, record);
	}
	wire_end(&a->out);
}

/*
 * Needs nothing of MPI's, so that a passive rank is read too, and is no part of the sample, so that nobody waits at the
 * gate while the place of a call is looked up. In a busy rank those of the last time stand.
 */
static void read_calls(struct answering *a, bool private)
{
	size_t none = 0, sites = 0;

	if (!try_gate())
		return;
	if (agent_state() == AGENT_RUNNING) {
		a->calls = sources_under_way(a->session);
		sources_sites(a->session, 0, NULL, &none, &sites);
	}
	gate_leave();
	place_call(a, private);
	if (sites > a->looked)
		look_behind(a, private);
	if (private && a->calls.known)
		kernel_read(&a->kernel, &a->calls.is, &a->calls.kernel);
}

static void answer_sample(struct answering *a, uint32_t sequence, struct wire_reader *r, bool private)
{
	struct generations seen;
	enum sample_status status;

	seen.catalogue = wire_take(r);
	seen.layout = wire_take(r);
	seen.remains = wire_take(r);
	seen.comms = a->comms_told;
	read_calls(a, private);
	a->session->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	if (!take_sample(a, &status)) {
		a->statistics.busy = ++a->session->busy_answers;
		frame_busy(&a->out, sequence, &a->statistics, &a->calls);
		return;
	}
	a->statistics = statistics_of(a->session);
	frame_answer(&a->out, sequence, a->session, seen, status, END_NONE, &a->calls);
	gate_leave();
	a->comms_told = true;
}

/* For what must not be lost: waits as long as the program keeps the gate, which is never long. False: the rank has
 * ended. */
static bool await_gate(void)
{
	while (!gate_try()) {
		if (agent_state() != AGENT_RUNNING)
			return false;
		usleep(GATE_RETRY_US);
	}
	return true;
}

/* SELECT and OPEN. */
static void answer_map(struct answering *a, uint16_t type, struct wire_reader *r)
{
	bool beyond = type == REQUEST_SELECT && wire_take(r) != 0;
	uint64_t words = wire_take(r);

	if (words > wire_left(r))
		words = wire_left(r);
	if (!await_gate())
		return; /* the rank has ended */
	if (agent_state() == AGENT_RUNNING && type == REQUEST_SELECT)
		session_select(a->session, beyond, r->words + r->at, (size_t)words);
	else if (agent_state() == AGENT_RUNNING)
		session_request(a->session, r->words + r->at, (size_t)words);
	gate_leave();
}

static void answer_list(struct answering *a, uint32_t sequence, uint16_t type, struct wire_reader *r)
{
	uint64_t first = wire_take(r);

	/* Both call MPI_T, which is over after the last sample and not ours when passive. */
	if (a->passive || agent_state() != AGENT_RUNNING || !try_gate()) {
		frame_error(&a->out, sequence, ERROR_NOT_NOW, "the rank can't be asked now");
		return;
	}
	if (agent_state() != AGENT_RUNNING)
		frame_error(&a->out, sequence, ERROR_NOT_NOW, "the rank has ended");
	else if (type == REQUEST_CVARS)
		frame_cvars(&a->out, sequence, a->session, first);
	else
		frame_categories(&a->out, sequence, a->session, first);
	gate_leave();
}

static void answer_tool(struct answering *a, uint32_t sequence, const struct wire_reader *r)
{
	struct tools_progress progress = { 0 };
	bool done;

	/* As above; what a tool has begun with all handles of a session it also ends. */
	for (bool entered = !a->passive && try_gate();; entered = await_gate()) {
		if (!entered || agent_state() != AGENT_RUNNING) {
			if (entered)
				gate_leave();
			frame_error(&a->out, sequence, ERROR_NOT_NOW, "the rank can't be asked now");
			return;
		}
		done = tools_answer(&a->out, sequence, a->session, *r, &progress);
		gate_leave();
		if (done)
			return;
	}
}

void answers_end(struct answering *a)
{
	bool done = a->session->tools == NULL; /* only this thread makes them */

	a->comms_told = false;
	while (!done) {
		bool entered = await_gate();

		/* Where the rank has ended, the last sample's thread is just about to leave it. */
		for (int i = 0; i < GATE_TRIES && !entered; i++) {
			usleep(GATE_RETRY_US);
			entered = gate_try();
		}
		if (!entered)
			return; /* somebody is stuck in the gate: what is left is never touched again */
		if (agent_state() == AGENT_RUNNING)
			done = tools_close(a->session);
		else {
			tools_forget(a->session); /* MPI_T is over */
			done = true;
		}
		gate_leave();
	}
}

static bool answer_request(struct answering *a, const struct connection *c, const struct wire_header *header)
{
	struct wire_reader r = { .words = a->request, .count = header->words };

	wire_reset(&a->out);
	switch (header->type) {
	case REQUEST_SAMPLE:
		answer_sample(a, header->sequence, &r, c->private);
		break;
	case REQUEST_SELECT:
	case REQUEST_OPEN:
		answer_map(a, header->type, &r);
		break;
	case REQUEST_CVARS:
	case REQUEST_CATEGORIES:
		answer_list(a, header->sequence, header->type, &r);
		break;
	case REQUEST_SITES:
		answer_sites(a, header->sequence, &r, c->private);
		break;
	case REQUEST_TOOL:
		answer_tool(a, header->sequence, &r);
		break;
	case REQUEST_FINAL:
		last_asked();
		break;
	default:
		frame_error(&a->out, header->sequence, ERROR_UNSUPPORTED, "this agent doesn't know that request");
	}
	if (a->out.failed) {
		a->comms_told = false;
		wire_reset(&a->out);
		frame_error(&a->out, header->sequence, ERROR_TOO_LARGE, "the answer is too large, or memory is used up");
	}
	return connection_send(c, &a->out);
}

bool answer(struct answering *a, const struct connection *c)
{
	unsigned char bytes[WIRE_HEADER_BYTES];
	struct wire_header header;
	bool answered;

	/* Sleeps until a request comes, or the connection is shut because the rank has ended: nothing else wakes the
	 * thread. */
	if (!connection_receive(c, bytes, sizeof bytes) || !wire_header(bytes, &header) ||
	    header.words > WIRE_REQUEST_WORDS_MAX)
		return false;
	if (!connection_receive(c, a->request, (size_t)header.words * sizeof *a->request))
		return false;
	connection_enter();
	answered = agent_state() == AGENT_RUNNING && answer_request(a, c, &header);
	connection_leave();
	return answered;
}
