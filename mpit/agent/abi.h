/*
 * abi.h - MPI as the agent sees it, whatever the library's binary interface.
 *
 * One file per ABI (abi_openmpi.c, abi_mpich.c, abi_standard.c) translates its constants and
 * handles, which abi/ describes; every function it calls is looked up with dlsym, so the agent
 * is built without MPI and links to none. All functions return normalised return codes (enum mpit_code).
 *
 * Who may call: only who holds the gate (gate.h), except resolve and tool_init, which run in the
 * program's first MPI_Init or MPI_Session_init, before anything else exists.
 */
#ifndef MPIT_ABI_H
#define MPIT_ABI_H

#include "details.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* docs/internals/protocol.md, return codes. */
enum mpit_code {
	CODE_SUCCESS = 0,
	CODE_MEMORY,
	CODE_NOT_INITIALIZED,
	CODE_CANNOT_INIT,
	CODE_INVALID_INDEX,
	CODE_INVALID_ITEM,
	CODE_INVALID_HANDLE,
	CODE_OUT_OF_HANDLES,
	CODE_OUT_OF_SESSIONS,
	CODE_INVALID_SESSION,
	CODE_CVAR_SET_NOT_NOW,
	CODE_CVAR_SET_NEVER,
	CODE_PVAR_NO_STARTSTOP,
	CODE_PVAR_NO_WRITE,
	CODE_PVAR_NO_ATOMIC,
	CODE_INVALID_NAME,
	CODE_INVALID,
	CODE_NOT_SUPPORTED,
	CODE_NOT_ACCESSIBLE,
	CODE_OTHER = 255,
};

/* docs/internals/protocol.md, VARIABLES. Between them are LOWWATERMARK, COUNTER and AGGREGATE. */
enum mpit_class { CLASS_HIGHWATERMARK = 4, CLASS_COUNTER = 6, CLASS_TIMER = 8, CLASS_LAST = 9, CLASS_UNKNOWN = 255 };
enum mpit_bind {
	BIND_NONE,
	BIND_COMM,
	BIND_DATATYPE,
	BIND_ERRHANDLER,
	BIND_FILE,
	BIND_GROUP,
	BIND_OP,
	BIND_REQUEST,
	BIND_WIN,
	BIND_MESSAGE,
	BIND_INFO,
	BIND_SESSION,
	BIND_KINDS,
	BIND_UNKNOWN = 255,
};
/* docs/internals/protocol.md, CVARS: those that can never be set. */
enum mpit_scope { SCOPE_CONSTANT = 0, SCOPE_READONLY = 1 };
enum mpit_datatype {
	TYPE_OTHER,
	TYPE_INT,
	TYPE_UNSIGNED,
	TYPE_UNSIGNED_LONG,
	TYPE_UNSIGNED_LONG_LONG,
	TYPE_COUNT,
	TYPE_CHAR,
	TYPE_DOUBLE,
	TYPE_INT32,
	TYPE_INT64,
	TYPE_UINT32,
	TYPE_UINT64,
	TYPE_LONG,
	TYPE_LONG_LONG,
	TYPE_FLOAT,
	TYPE_BOOL,
};

#define TEXT_BYTES 65536 /* longest string the protocol carries, with its zero */

/* A string that a library fills in: shared scratch, valid until the next call that uses it. */
struct text {
	char bytes[TEXT_BYTES];
};

struct pvar_description {
	int mpi_class, verbosity, datatype, datatype_bytes, bind;
	bool readonly, continuous, atomic;
	void *enumeration; /* NULL: none; lives as long as the library */
};

struct cvar_description {
	int scope, verbosity, datatype, datatype_bytes, bind;
	void *enumeration;
};

/* An object's handle as the library knows it; only an abi file looks inside. Unused bytes are zero: handles of a kind
 * compare as pointers. */
union mpi_object {
	void *pointer;
	int integer;
};

/* What a function that makes an object knows of it beside its handle. The arguments are the program's, valid during
 * its call. */
struct making {
	const char *by;               /* the function's name without MPI_ */
	const char *name;             /* that a file is opened by; NULL: the kind has none */
	int mode;                     /* of a file, in the library's own bits */
	const intptr_t *communicator; /* the argument's register; NULL: not made on one */
};

/* What the library tells of an object. */
struct object_description {
	int rank, size; /* -1: the kind has none */
	bool inter;
	struct details details;
};

/* Where a library's events come from (events/events.h). */
struct event_source {
	bool ordered;
	int64_t ticks_per_second;
};
struct event_count;

/* What happens to marked objects; called in the program's thread, from inside the library. */
struct abi_events {
	void (*freed)(void *mark);  /* right before an object is gone */
	void (*finalizing)(void);   /* in MPI_Finalize, before anything is torn down */
};

struct abi {
	uint64_t number; /* docs/internals/protocol.md, HELLO: ABI */

	/* True if this ABI is the native one of the library whose version string this is. The standard's is no library's:
	 * NULL. */
	bool (*speaks)(const char *library_version);
	/* Looks everything up in an open library (dlopen handle, kept); false if something is missing. */
	bool (*resolve)(void *library);

	/*
	 * True: MPI_T is to be initialised after the real MPI_Init, asked for no other level than the program's, and may
	 * then be called by any thread whatever it answers (docs/agent.md).
	 */
	bool (*tools_after_init)(const char *library_version);
	/* MPI_T_init_thread. Levels: 0 single … 3 multiple; *provided: -1 if the library leaves it unset. */
	int (*tool_init)(int required, int *provided);
	/* Normalises the thread level of this ABI's MPI_T_init_thread. */
	int (*thread_level)(int mpi_level);
	int (*thread_multiple)(void); /* this ABI's MPI_THREAD_MULTIPLE */
	/* What MPI_Query_thread answers after MPI_Init: 0 single … 3 multiple, -1 if it is none of them. */
	int (*program_level)(void);

	/* Asks the library to call events (which must live on). */
	bool (*observe)(const struct abi_events *events);
	/* This process's place in MPI_COMM_WORLD, and in a session's mpi://WORLD. */
	bool (*world)(int *rank, int *size);
	bool (*session_world)(const union mpi_object *session, int *rank, int *size);
	/* After MPI_COMM_SELF has been marked: what is set last is deleted first, and its end is to come before the
	 * mark's. */
	bool (*watch_finalize)(void);

	int (*pvar_count)(int *count);
	int (*pvar_describe)(int index, struct pvar_description *out, struct text *name, struct text *description);
	int (*session_open)(void **session);
	/* object: NULL for variables without one. Its storage must outlive the handle: MPICH keeps the address. */
	int (*handle_open)(void *session, int index, union mpi_object *object, void **handle, int *count);
	int (*handle_close)(void *session, void **handle);
	int (*handle_start)(void *session, void *handle);
	int (*handle_read)(void *session, void *handle, void *values);

	/* For the sessions of tools (tools/sessions.h): the agent's own is never closed, its handles never stopped. */
	int (*session_close)(void **session);
	int (*handle_stop)(void *session, void *handle);
	int (*handle_write)(void *session, void *handle, const void *values);
	int (*handle_reset)(void *session, void *handle);
	int (*handle_readreset)(void *session, void *handle, void *values);
	/* False: writing it would crash in the library. */
	bool (*pvar_writable)(const struct pvar_description *is);
	int (*pvar_index)(const char *name, int mpi_class, int *index);
	const char *never_stop; /* globs of variables that stop for the whole process when one handle stops (deny.h) */
	/* Globs of variables that the program pays for once a handle is started; never opened if continuous (deny.h). */
	const char *on_request;

	int (*enum_describe)(void *enumeration, int *items, struct text *name);
	int (*enum_item)(void *enumeration, int item, int *value, struct text *name);

	int (*cvar_count)(int *count);
	int (*cvar_describe)(int index, struct cvar_description *out, struct text *name, struct text *description);
	int (*cvar_index)(const char *name, int *index);
	/*
	 * Value of a control variable into bytes; object: NULL for variables without one; count: elements. CODE_MEMORY:
	 * it doesn't fit; CODE_NOT_ACCESSIBLE: reading would crash.
	 */
	int (*cvar_read)(int index, union mpi_object *object, int datatype, int datatype_bytes, void *bytes,
			 size_t capacity, int *count);
	/*
	 * Sets it to `count` elements (of a string: bytes before the zero), with 64 zero bytes behind them. *room: how
	 * many elements the library has; CODE_MEMORY: they are not that many, or the string and its zero don't fit.
	 * CODE_NOT_ACCESSIBLE: it would crash.
	 */
	int (*cvar_write)(int index, union mpi_object *object, int datatype, const void *bytes, int count, int *room);

	/* MPI_T's events (events/events.h), and the sources that they come from. */
	int (*event_count)(int *count);
	int (*event_describe)(int index, int *verbosity, int *bind, struct text *name, struct text *description);
	int (*event_source_count)(int *count);
	int (*event_source_describe)(int index, struct event_source *out, struct text *name, struct text *description);
	/* Registers for a type on an object, whose storage must outlive the registration; fills in count->registration. */
	int (*event_open)(int index, union mpi_object *object, struct event_count *count);
	/* Sets count->freed as soon as no callback runs any more, maybe later and in another thread. */
	int (*event_close)(struct event_count *count);

	int (*category_count)(int *count);
	int (*category_describe)(int index, int *pvars, int *cvars, int *categories, struct text *name,
				 struct text *description);
	int (*category_index)(const char *name, int *index);
	/* MPI_T_category_changed: another number when a category has changed. */
	int (*category_stamp)(int *stamp);
	/* The first `length` indices of each kind into the arrays, which have room for them. */
	int (*category_members)(int index, int pvars, int *pvar, int cvars, int *cvar, int categories, int *category);

	/* The communicators that nobody makes: i is 0 MPI_COMM_WORLD, 1 MPI_COMM_SELF, 2 the parent. False: there is none. */
	bool (*comm_predefined)(int i, union mpi_object *out);
	/* Object from the address that a constructor filled in. False: a null handle, or a predefined one (of datatypes
	 * object_describe tells). */
	bool (*object_at)(int kind, const void *address, union mpi_object *out);
	/* Object from a handle passed by value in a register, in a call that has succeeded: predefined ones too. */
	void (*object_in)(int kind, intptr_t value, union mpi_object *out);

	/* Local MPI calls only, valid ones: an error is fatal by default. False: an object that is not to be tracked. how
	 * may be NULL. */
	bool (*object_describe)(int kind, const union mpi_object *object, const struct making *how,
				struct object_description *out);
	/* Whether an info object has a key, which the program has just used. */
	bool (*info_has)(const union mpi_object *info, const char *key);
	/* The name that the program gave. False: the kind has none, or the library made it up. */
	bool (*object_name)(int kind, const union mpi_object *object, struct text *name);

	/*
	 * Communicators, windows and datatypes: the mark is an attribute that no copy inherits and whose deletion is
	 * events->freed. NULL: unmarked. Objects of the other kinds have no attributes.
	 */
	bool (*mark)(int kind, const union mpi_object *object, void *mark);
	void *(*marked)(int kind, const union mpi_object *object);
};

extern const struct abi abi_openmpi, abi_mpich, abi_standard;

#endif
