/*
 * The runtime as the tests of bytes.c and of the generated wrappers play it. Included before everything else
 * (-include), with calls.h's own guard, so that calls.h is nowhere read.
 */
#ifndef MPIT_CALLS_H
#define MPIT_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UNLIKELY(condition) (condition)

enum { BIND_NONE, BIND_COMM, BIND_FILE = 4, BIND_WIN = 8 };
enum ordering { UNORDERED, ORDERED, MAKES, NOTED };
enum makes {
	MAKES_ONE,
	MAKES_COLOURS,
	MAKES_PARTS,
	MAKES_OF_GROUP,
	MAKES_OF_GROUPS,
	MAKES_FROM_GROUP,
	MAKES_FROM_GROUPS
};
enum activity { SENDING, WAITING, IN_COLLECTIVE, IN_FILE, POLLING };

struct call {
	int unused;
};

struct place {
	int rank, size, remote_size, indegree, outdegree;
	bool inter;
};

struct calls_abi {
	uint64_t number;
	const void *in_place, *status_ignore, *statuses_ignore;
	int proc_null, root;
	size_t status_size;
	uint64_t (*status_bytes)(const void *status);
	size_t handle_size;
	uint64_t handle_mask;
};

#if !defined __x86_64__
struct calls_thread {
	uintptr_t from;
};
extern __thread struct calls_thread calls_thread;
#endif

extern const struct calls_abi *calls_abi;
extern intptr_t calls_no_op;

enum names { NAMES_NOBODY, NAMES_PEER, NAMES_ROOT, NAMES_REQUESTS };
#define NO_TAG (-1)
uint64_t call_names(intptr_t rank, intptr_t tag);
uint64_t call_requests(intptr_t array, intptr_t count);
bool call_begins(struct call *call, unsigned function, int kind, intptr_t handle, enum ordering ordering,
		 uint64_t names, const void *frame);
void order_failed(const struct call *call, enum ordering ordering);
uint64_t order_turn(void);
void order_made(const struct call *call, enum makes makes, intptr_t argument, intptr_t newcomm, uint64_t turn);
void call_returns(struct call *call, enum activity activity);
void call_counts(struct call *call, uint64_t out, uint64_t in);
bool counts_sizes(void);
void call_size(const struct call *call, uint64_t bytes);
bool counts_peers(void);
void call_sends(const struct call *call, int kind, int rank, uint64_t bytes);
void call_requested(const struct call *call, intptr_t request, uint64_t names);
uint64_t call_number(const struct call *call);
#define NO_MESSAGE UINT64_MAX
void call_persists(const struct call *call, unsigned function, intptr_t request, uint64_t names, uint64_t bytes);
void call_starts(intptr_t requests, intptr_t count);
void call_started(const struct call *call, intptr_t requests, intptr_t count);
uint64_t type_bytes(intptr_t datatype);
const struct place *call_place(const struct call *call);

#endif
