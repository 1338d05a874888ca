/* abi_standard.c - the constants of the standard's own ABI. */
#define _GNU_SOURCE
#include "abi/standard.h"
#include "calls.h"
#include "library.h"

#define ABI_IDENTIFIER calls_abi_standard
#define ABI_NUMBER 3
#define ABI_ASKS_STATUS true
#define ABI_HANDLE(constant, symbol, find) ((void)(find), (intptr_t)(constant))

/*
 * Where in a status the number stands is each library's own business. MPICH 5 and Open MPI 6 have it in different
 * places, and there will be others, so the library is asked, which takes 6 to 8 ns in these two.
 */
static uint64_t abi_status_bytes(const void *status)
{
	long long bytes = 0;

	return library.get_count_c((intptr_t)status, (intptr_t)MPI_BYTE, &bytes) == 0 && bytes > 0 ? (uint64_t)bytes : 0;
}

#include "abi_template.h"
