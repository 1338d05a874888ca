/* abi_list.c - the ABIs of this build: those whose mpi.h was found. */
#include "abi.h"

#ifdef MPIT_ABI_OPENMPI
extern const struct abi abi_openmpi;
#endif
#ifdef MPIT_ABI_MPICH
extern const struct abi abi_mpich;
#endif

const struct abi *const abi_list[] = {
#ifdef MPIT_ABI_OPENMPI
	&abi_openmpi,
#endif
#ifdef MPIT_ABI_MPICH
	&abi_mpich,
#endif
	NULL,
};
