/* abi_list.c - the ABIs that there are. */
#include "calls.h"

extern const struct calls_abi calls_abi_openmpi HIDDEN, calls_abi_mpich HIDDEN, calls_abi_standard HIDDEN;

const struct calls_abi *const calls_abi_list[] = { &calls_abi_openmpi, &calls_abi_mpich, &calls_abi_standard, NULL };
