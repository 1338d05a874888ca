/* requests.c - the table of requests. */
#define _GNU_SOURCE
#include "requests.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#define PLACE_BITS 13

static struct entry {
	_Alignas(32) _Atomic uint64_t check; /* of the handle and the two words below */
	_Atomic uint64_t key, names;
} *entries;
static _Atomic uint64_t forgotten = 1; /* how often */

intptr_t calls_request_null;

bool requests_open(void)
{
	void *at = mmap(NULL, sizeof *entries << PLACE_BITS, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	entries = at == MAP_FAILED ? NULL : at;
	return entries != NULL;
}

void requests_forget(void)
{
	atomic_fetch_add_explicit(&forgotten, 1, memory_order_relaxed);
}

/* Handles are addresses of structures or consecutive integers: multiples of one number spread evenly. */
static struct entry *entry_of(uint64_t handle)
{
	return &entries[handle * 0x9e3779b97f4a7c15u >> (64 - PLACE_BITS)];
}

static uint64_t check_of(uint64_t handle, uint64_t key, uint64_t names)
{
	uint64_t times = atomic_load_explicit(&forgotten, memory_order_relaxed);

	return handle ^ key * 0xd6e8feb86659fd93u ^ names * 0xff51afd7ed558ccdu ^ times << 48;
}

uint64_t requests_handle(const void *array, size_t i)
{
	const char *at = (const char *)array + i * calls_abi->handle_size;
	uint64_t wide;
	uint32_t narrow;

	if (calls_abi->handle_size == sizeof wide) {
		memcpy(&wide, at, sizeof wide);
		return wide;
	}
	memcpy(&narrow, at, sizeof narrow);
	return narrow;
}

void requests_note(uint64_t handle, uint64_t key, uint64_t names)
{
	struct entry *e = entry_of(handle);

	/* Two threads may write one entry at once: then its check fits neither. */
	atomic_store_explicit(&e->key, key, memory_order_relaxed);
	atomic_store_explicit(&e->names, names, memory_order_relaxed);
	atomic_store_explicit(&e->check, check_of(handle, key, names), memory_order_relaxed);
}

void call_requested(const struct call *c, intptr_t request, uint64_t names)
{
	requests_note(requests_handle((const void *)request, 0), block_cell_key(calls_thread.block, c->cell), names);
}

static bool look_up(uint64_t handle, struct requested *out)
{
	struct entry *e = entry_of(handle);

	out->key = atomic_load_explicit(&e->key, memory_order_relaxed);
	out->names = atomic_load_explicit(&e->names, memory_order_relaxed);
	return atomic_load_explicit(&e->check, memory_order_relaxed) == check_of(handle, out->key, out->names);
}

/* The program may free the array at any time after the call: the kernel reads it, which fails instead of faulting. */
static bool copy(uint64_t from, void *to, size_t bytes)
{
	struct iovec local = { to, bytes }, remote = { (void *)(uintptr_t)from, bytes }; // NOLINT(performance-no-int-to-ptr)

	return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)bytes;
}

int requests_of(const struct block *b, const struct moment_inside *m, struct requested *out)
{
	char array[REQUESTS_MOST * sizeof(uint64_t)];
	size_t size = calls_abi->handle_size, count = m->names >> 48;
	int found = 0;

	if (count == 0 || count > REQUESTS_MOST || !copy(m->names & UINT64_MAX >> 16, array, count * size))
		return -1;
	for (size_t i = 0; i < count; i++) {
		uint64_t handle = requests_handle(array, i);

		if (handle == ((uint64_t)calls_request_null & calls_abi->handle_mask))
			continue;
		if (!look_up(handle, &out[found++]))
			return -1;
	}
	return block_goes_on(b, m) ? found : -1;
}
