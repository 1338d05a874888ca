/*
 * source.h - performance variables that are not the MPI library's: another library in the process measures, and the
 * agent shows it the way it shows everything. The call profile (calls/) is the one there is.
 *
 * The agent finds the source by looking for the symbol mpit_agent_source in the global scope, once, when it begins.
 * Neither library links to the other, and each works without the other: without a source there is nothing more to
 * show, and without an agent `measure` is never called, so that nothing is measured.
 *
 * Who may call what: every function of struct source is called by whoever holds the gate (gate.h), which is one
 * thread at a time: the agent's, or one of the program's inside MPI_Init, a constructor, a destructor, MPI_Pcontrol
 * or the end. The exceptions say so. A source calls nothing of the agent's but the call-backs that it is given.
 */
#ifndef MPIT_SOURCE_H
#define MPIT_SOURCE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Both sides name it; one that doesn't know the other's number keeps its hands off. */
#define SOURCE_VERSION 9

#define SOURCE_SYMBOL "mpit_agent_source"

/*
 * Elements of a variable that is a distribution (docs/internals/protocol.md, Distributions): the sum in units, which
 * are 2^-30 s of a TIMER and bytes of an AGGREGATE, then how many durations or sizes fell into each bucket. Bucket 0
 * holds those of at most one unit, bucket k those above 2^(k-1) and up to 2^k units, the last one all that are more
 * than 2^(DISTRIBUTION_BUCKETS-2) units (4096 s, 4 TiB).
 */
#define DISTRIBUTION_BUCKETS 44
#define DISTRIBUTION_ELEMENTS (1 + DISTRIBUTION_BUCKETS)

/* A variable. Strings live as long as the process. Its datatype is UINT64_T; it is readonly and continuous, and
 * counts from zero. */
struct source_variable {
	const char *name, *description;
	int mpi_class, verbosity, bind; /* numbers of docs/internals/protocol.md, VARIABLES */
	bool distribution;              /* DISTRIBUTION_ELEMENTS elements; otherwise one */
};

/* What the source needs of MPI, found by the agent, valid until the process ends. */
struct source_mpi {
	uint64_t abi;                                        /* docs/internals/protocol.md, HELLO: ABI */
	/* Of the MPI library: a function by its PMPI_ name, or data; NULL: it has none. */
	void *(*find)(const char *symbol);
	const char *calls; /* words of MPIT_CALLS (calls/asked.h); NULL: nothing is asked for */
	/* Whether the calling thread has been denied system calls since MPI_Init (filter.h). */
	bool (*filtered)(void);
};

/* What a call does, as far as it says who waits for whom. Numbers of docs/internals/protocol.md, SAMPLE. */
enum activity {
	SENDING,       /* hands data over, or begins something that ends later */
	WAITING,       /* for messages, requests, windows */
	IN_COLLECTIVE, /* all of a communicator take part, and it returns when they have */
	IN_FILE,       /* works on a file */
	POLLING,       /* tests or probes; with it counts the first microsecond until the thread's next call */
	ACTIVITIES
};

#define SOURCE_PEERS 32  /* of a thread's call that are told of at most */
#define SOURCE_THREADS 8 /* that are told of at most */

/* A thread that calls MPI, at one moment. */
struct source_thread {
	uint64_t id;  /* never another thread's */
	uint64_t tid; /* the kernel's */
	/*
	 * In nanoseconds: time inside MPI to the moment, a call that it is in and what counts as polling between calls
	 * included, and time for which measuring was on. Of one thread neither ever falls, and inside never gains more
	 * than observed. A thread may begin with what another one, which has ended, has counted.
	 */
	uint64_t inside_ns, observed_ns;
	/* inside_ns by what the calls do. None falls, and together they are no more; less, where nobody knows. */
	uint64_t activity_ns[ACTIVITIES];
	/* Nanoseconds by a clock that only compares with itself: the moment; when the call that it is in began, 0: it is in
	 * none, and the fields below are zero; and when its last one ended, 0: none has. */
	uint64_t now_ns, begun_ns, ended_ns;
	const char *function; /* with MPI_; static storage */
	int bind;             /* kind of object that it names: BIND_NONE, BIND_COMM, BIND_WIN or BIND_FILE */
	uint32_t object;      /* its number; 0: none, or one that the agent doesn't track */
	uint64_t number;      /* of a collective: its number on its communicator, from 1; 0: not known */
	int peer; /* in MPI_COMM_WORLD, whom the call sends to or waits for; NO_PEER: none, or it isn't known; ANY_PEER */
	/* Of a call that waits for requests of several peers, these (then peer is NO_PEER): it waits for some of them. */
	int peers[SOURCE_PEERS];
	size_t peer_count; /* 0, or at least 2 */
	/* Of a call that waits for one request, which is a collective's: that function, its communicator and its number there.
	 * NULL: it doesn't, or it isn't known. */
	const char *collective;
	uint32_t collective_on;
	uint64_t collective_number;
	int tag;  /* -1: any, or it has none */
	int root; /* of a rooted collective, in its communicator; -1: none */
};
enum { NO_PEER = -1, ANY_PEER = -2 };

/* What happens now. */
struct source_calls {
	/* The one that initialised MPI stands first, and is always there. */
	struct source_thread threads[SOURCE_THREADS];
	size_t thread_count;
	/* The longest call under way of any thread, of those not told of, too; of 0 ns: there is none, and the rest is
	 * zeros. */
	uint64_t running_ns;
	const char *function; /* with MPI_; static storage */
	int bind;             /* kind of object that it names: BIND_NONE, BIND_COMM, BIND_WIN or BIND_FILE */
	uint32_t object;      /* its number; 0: none, or one that the agent doesn't track */
	uintptr_t from;       /* address that it returns to, in whatever has called MPI */
	uintptr_t frame;      /* what the stack pointer is then */
};

/* A communicator. What isn't known is 0. */
struct source_comm {
	uint32_t object;
	uint64_t identity; /* the same in all members; of the world's communicators no other has it */
	uint64_t begun;    /* how many collectives the process has begun on it, + 1 */
};
typedef void source_comm_function(void *context, const struct source_comm *comm);

/* Calls of one function on one object from one place in the program, by one thread or several one after the other. */
struct source_site {
	size_t number;
	const char *function; /* with MPI_; static storage. NULL: calls without a place, or none yet; but for them all is zero */
	int bind;             /* kind of object that it names: BIND_NONE, BIND_COMM, BIND_WIN or BIND_FILE */
	uint32_t object;      /* its number, which may have gone; 0: none, or one that the agent doesn't track */
	int peer;             /* in MPI_COMM_WORLD, whom messages name; NO_PEER: nobody, not known, or not counted; ANY_PEER */
	uintptr_t from;       /* address that the calls return to, in whatever has called MPI */
	/* The number of the site that code here has called, of which these calls are no part; 0: it has called MPI itself. */
	size_t of;
	/*
	 * For the agent's thread to say, at any time, what the code there is: bits of SITE_. 0: it has not looked. Where the
	 * frame is known, calls are counted at what has called the code: a binding's, or with `deeper` any.
	 */
	_Atomic uint32_t *frame;
	bool deeper; /* what has called the program's own code is wanted, too */
	uint64_t calls, time_ns, bytes; /* none falls; bytes: of the larger buffer of each call that has succeeded */
};
#define SITE_HERE 1u       /* it has looked */
#define SITE_BINDING 2u    /* the code is a binding of MPI's, not the program's own */
#define SITE_BY_POINTER 4u /* the frame begins above where the frame pointer points, not the stack pointer */
/*
 * How far above, in bytes; 0: the frame isn't known. Its last word is the address that it returns to. `saved` is how far
 * below its begin the frame pointer of what has called it is, 0: it is unchanged. Both are multiples of a word.
 */
#define SITE_FRAME(bytes, saved) ((uint32_t)(bytes) / 8 << 3 | (uint32_t)(saved) / 8 << 17)
#define SITE_FRAME_BYTES(frame) (((frame) >> 3 & 0x3fff) * 8)
#define SITE_FRAME_SAVED(frame) (((frame) >> 17) * 8)

struct source {
	uint32_t version; /* SOURCE_VERSION; stands first for ever */

	/* The category that all its variables stand in. */
	const char *category, *category_description;

	/*
	 * Once, after the real MPI_Init or MPI_Session_init, before anything else of the source is called. False: it
	 * can't measure here, with the reason in *why (static storage), and the agent forgets it. True: it can, and what
	 * the log should say of it besides may be in *why.
	 */
	bool (*begin)(const struct source_mpi *mpi, const char **why);

	/*
	 * Measuring is switched on and off: on after begin, off while MPI_Pcontrol(0) is in force, and for good before
	 * the last sample. Any thread, the gate held or not; also in a child right after fork, and where a signal handler
	 * has called exit. It sets a flag and notes the time.
	 */
	void (*measure)(bool on);

	/* How many variables there are: only grows. A variable appears with the first call that it is about. */
	size_t (*count)(void);
	/* Variable i of count(). */
	void (*describe)(size_t i, struct source_variable *out);

	/*
	 * Tells of each pair of a variable and an object (its number; 0: none, or one that the agent doesn't track) that
	 * has come up since the last call, once. The variable is below count(). found may read. Cheap where there is
	 * nothing new.
	 */
	void (*discover)(void (*found)(void *context, size_t variable, uint32_t object), void *context);

	/* The values of a pair that has been told of: all elements. Never fails, allocates nothing, takes no lock. */
	void (*read)(size_t variable, uint32_t object, uint64_t *elements);

	/* What happens now; calls nothing of MPI's, takes microseconds. False: there was no memory to know it. */
	bool (*calls)(struct source_calls *out);

	/* Tells of each communicator, of which anything has changed since the last time, or of all. tell calls nothing of
	 * the source's. */
	void (*comms)(bool all, source_comm_function *tell, void *context);

	/*
	 * Places that the program calls MPI from, with numbers from 0 on: those from `first` on, of *count at most, which
	 * becomes how many there were. *made: how many there are in all, 0: they aren't counted. Returns the number to go on
	 * from. Calls nothing of MPI's. NULL: it never counts them.
	 */
	size_t (*sites)(size_t first, struct source_site *out, size_t *count, size_t *made);

	/*
	 * Objects that calls name: communicators, windows and files (kind is BIND_COMM, BIND_WIN, BIND_FILE of abi.h).
	 * The handle is what an argument's register holds, an int zero-extended. A number is never used again; a handle
	 * is, after object_freed. object_made is called by the thread that has made the object, before the program has
	 * it; object_freed by the one that frees it, before it is gone, and after the last read of its pairs. Local MPI
	 * calls are allowed in object_made.
	 */
	void (*object_made)(int kind, uint64_t handle, uint32_t number, int rank, int size);
	void (*object_freed)(int kind, uint64_t handle, uint32_t number);
};

/* What the symbol is: NULL where it doesn't know that version. */
typedef const struct source *source_function(uint32_t version);

#endif
