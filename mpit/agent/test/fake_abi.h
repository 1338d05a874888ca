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
	bool writable, atomic;
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
extern int fake_open_sessions;
extern int fake_stopped;           /* successful stops */
extern int fake_stamp;             /* of categories; -1: the library has no MPI_T_category_changed */
extern void (*fake_on_read)(void); /* called in the middle of every read */
extern bool fake_refuses;             /* an object that is not to be tracked */
extern int fake_dead_object;          /* one that has been freed: reading its variables would crash; 0: none */
extern bool fake_has;                 /* an info object has whatever key is asked for */
extern const char *fake_detail;       /* "keys" of every object; NULL: no details */

/* Event types: 0 without an object, 1 on communicators, 2 can't be described. */
extern int fake_event_types; /* how many the library admits to */
extern bool fake_raises; /* a callback of every registration is running */
/* Calls the callbacks of all registrations for a type on an object; object: its integer handle, 0: none. */
void fake_raise(int type, int object);
void fake_let_go(void); /* no callback runs any more */

/*
 * Control variables 0 to 8 are one of each kind, the rest plain ints of their negative index: 0 a string of 16 bytes,
 * 1 CONSTANT, 2 READONLY, 3 bound to a communicator and with an enumeration, 4 a bool with it, 5 three unsigned of 8
 * bits, 6 a double, 7 in no memory, 8 a datatype that nobody knows.
 */
#define FAKE_CVARS 3000
extern char fake_string[16];
extern int fake_bound[8]; /* of 3, by object */
extern int fake_bound_count; /* elements it has instead, all bytes 1; 0: the one above */
extern uint8_t fake_bool, fake_bytes[3];
extern double fake_double;

extern const struct abi fake_abi;

void fake_reset(void);

#endif
