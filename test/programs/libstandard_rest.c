/*
 * The functions that libstandard.c doesn't need to have, but the agent looks for: they do nothing, and answer with
 * what was there.
 */
#include "abi/standard.h"

#include "abi/functions.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"
#define REST(name, parameters)                          \
    __attribute__((weak)) int P##name parameters        \
    {                                                   \
        return MPI_SUCCESS;                             \
    }
LIBRARY_FUNCTIONS(REST)
