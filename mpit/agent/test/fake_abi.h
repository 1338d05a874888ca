/* fake_abi.h - an MPI library that a test scripts: struct abi without MPI. */
#ifndef MPIT_FAKE_ABI_H
#define MPIT_FAKE_ABI_H

#include "abi.h"

#define FAKE_VARIABLES 64
#define FAKE_ELEMENTS 4

struct fake_variable {
	const char *name;
	int mpi_class, datatype, bytes, bind, count;
	bool continuous, dead; /* dead: get_info fails */
	int alloc_code, start_code, read_code;
	/* Values of object k (0: unbound; a test's object n has integer handle n). */
	union {
		int64_t i;
		double d;
	} value[8][FAKE_ELEMENTS];
};

extern struct fake_variable fake_variables[FAKE_VARIABLES];
extern int fake_count;        /* variables that the library admits to */
extern int fake_open_handles; /* allocated and not freed */
extern int fake_started;
extern int fake_reads;
extern void (*fake_on_read)(void); /* called in the middle of every read */
extern bool fake_refuses;             /* an object that is not to be tracked */
extern const char *fake_detail;       /* "keys" of every object; NULL: no details */

extern const struct abi fake_abi;

void fake_reset(void);

#endif
