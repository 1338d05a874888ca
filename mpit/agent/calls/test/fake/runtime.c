/* runtime.c - the runtime as the tests play it. */
#include "../generated_test.h"

#include <string.h>

struct place fake_place;
struct recorded recorded;
bool fake_measuring, fake_sizes, fake_peers;
intptr_t calls_no_op;
const struct calls_abi *calls_abi;
#if !defined __x86_64__
__thread struct calls_thread calls_thread;
#endif

/* In its first word how much has come. */
static uint64_t status_bytes(const void *status)
{
	uint64_t bytes;

	memcpy(&bytes, status, sizeof bytes);
	return bytes;
}

static struct calls_abi abi = {
	.in_place = (const void *)IN_PLACE,
	.status_ignore = (const void *)STATUS_IGNORE,
	.proc_null = PROC_NULL,
	.root = AT_ROOT,
	.status_size = 24,
	.status_bytes = status_bytes,
};

void fake_abi(bool int_handles)
{
	abi.handle_size = int_handles ? sizeof(int) : sizeof(void *);
	abi.handle_mask = int_handles ? 0xffffffff : UINT64_MAX;
	calls_no_op = NO_OP;
	calls_abi = &abi;
}

uint64_t type_bytes(intptr_t datatype)
{
	uint64_t handle = (uint64_t)datatype & abi.handle_mask;

	CHECK(handle == INT || handle == DOUBLE || handle == PAIR);
	return handle;
}

const struct place *call_place(const struct call *call)
{
	static const struct place nowhere = { .rank = -1 };

	CHECK(call != NULL);
	return fake_place.size == 0 ? &nowhere : &fake_place;
}

uint64_t call_names(intptr_t rank, intptr_t tag)
{
	return (uint64_t)tag << 32 | (uint32_t)rank;
}

bool call_begins(struct call *call, unsigned function, int kind, intptr_t handle, enum ordering ordering,
		 uint64_t names, const void *frame)
{
	CHECK(call != NULL);
	recorded.ordering = ordering;
	recorded.begun++;
	recorded.function = function;
	recorded.kind = kind;
	recorded.handle = handle;
	recorded.names = names;
	recorded.frame = frame;
	return fake_measuring;
}

void call_returns(struct call *call, enum activity activity)
{
	CHECK(activity <= POLLING);
	CHECK(call != NULL && recorded.counted == 0);
	recorded.returned++;
}

void call_counts(struct call *call, uint64_t out, uint64_t in)
{
	CHECK(call != NULL && recorded.returned == 1);
	recorded.counted++;
	recorded.out = out;
	recorded.in = in;
}

void order_failed(const struct call *call, enum ordering ordering)
{
	CHECK(call != NULL && recorded.returned == 1 && ordering == recorded.ordering && ordering != UNORDERED);
	recorded.failed++;
}

uint64_t order_turn(void)
{
	CHECK(recorded.begun == 1 && recorded.returned == 0);
	return 77;
}

void order_made(const struct call *call, enum makes makes, intptr_t argument, intptr_t newcomm, uint64_t turn)
{
	CHECK(call != NULL && recorded.returned == 1 && recorded.ordering != UNORDERED);
	CHECK(turn == (makes == MAKES_OF_GROUPS ? 77 : 0));
	recorded.made++;
	recorded.makes = makes;
	recorded.argument = argument;
	recorded.newcomm = newcomm;
}

bool counts_sizes(void)
{
	return fake_sizes;
}

void call_size(const struct call *call, uint64_t bytes)
{
	CHECK(call != NULL && recorded.counted == 1 && fake_sizes);
	recorded.sized++;
	recorded.size = bytes;
}

bool counts_peers(void)
{
	return fake_peers;
}

void call_sends(const struct call *call, int kind, int rank, uint64_t bytes)
{
	CHECK(call != NULL && recorded.counted == 1 && kind == recorded.kind && bytes == recorded.out);
	recorded.sent++;
	recorded.to = rank;
}

uint64_t call_requests(intptr_t array, intptr_t count)
{
	return (uint64_t)array + (uint64_t)count;
}

void call_requested(const struct call *call, intptr_t request, uint64_t names)
{
	(void)request;
	(void)names;
	CHECK(call != NULL && recorded.counted == 1);
}

uint64_t call_number(const struct call *call)
{
	CHECK(call != NULL && recorded.counted == 1);
	return 1;
}

void call_persists(const struct call *call, unsigned function, intptr_t request, uint64_t names, uint64_t bytes)
{
	(void)request;
	(void)names;
	CHECK(call != NULL && recorded.counted == 1 && function == recorded.function);
	recorded.persists = bytes;
}

void call_starts(intptr_t requests, intptr_t count)
{
	(void)requests;
	CHECK(recorded.begun == 1 && recorded.returned == 0);
	recorded.starts = (int)count;
}

void call_started(const struct call *call, intptr_t requests, intptr_t count)
{
	(void)requests;
	CHECK(call != NULL && recorded.counted == 1);
	recorded.started = (int)count;
}

int main(void)
{
	test_bytes();
	test_wrappers();
	return 0;
}
