/* abi_list.c - the ABIs of this build. */
#include "calls.h"

#ifdef MPIT_ABI_OPENMPI
extern const struct calls_abi calls_abi_openmpi HIDDEN;
#endif
#ifdef MPIT_ABI_MPICH
extern const struct calls_abi calls_abi_mpich HIDDEN;
#endif

const struct calls_abi *const calls_abi_list[] = {
#ifdef MPIT_ABI_OPENMPI
	&calls_abi_openmpi,
#endif
#ifdef MPIT_ABI_MPICH
	&calls_abi_mpich,
#endif
	NULL,
};
