/* abi_mpich.c - the constants of MPICH, Intel MPI, MVAPICH and Cray MPICH. */
#define _GNU_SOURCE
#include "abi/mpich.h"
#include "calls.h"
#include <string.h>

#define ABI_IDENTIFIER calls_abi_mpich
#define ABI_NUMBER 2
#define ABI_ASKS_STATUS false
/* In a register, of which calls_abi->handle_mask leaves the lower half. */
#define ABI_HANDLE(constant, symbol, find) ((void)(find), (intptr_t)(uint32_t)(constant))

/* 63 bits of a count, and one that says cancelled. */
static uint64_t abi_status_bytes(const void *status)
{
	MPI_Status s;

	memcpy(&s, status, sizeof s);
	/* What reads files leaves the bit that says cancelled as it was. */
	return (uint64_t)(unsigned)s.count_hi_and_cancelled >> 1 << 32 | (unsigned)s.count_lo;
}

#include "abi_template.h"
