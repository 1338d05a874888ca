/* fake_source.h - another library that measures, which a test scripts: struct source without one. */
#ifndef MPIT_FAKE_SOURCE_H
#define MPIT_FAKE_SOURCE_H

#include "source.h"

/* Its variables, of the category "fake_calls". They appear with the first call that they are about, in this order. */
enum fake_measured { SEND_TIME, SEND_BYTES, PUT_TIME, LATE_COUNT, MORE_TIMES, FAKE_MEASURED = MORE_TIMES + 8 };

#define FAKE_NUMBERS 1024 /* of objects */

extern const struct source *fake_offered; /* what it offers; NULL: it doesn't know the version */
extern const char *fake_refusal;          /* why it can't measure; NULL: it can */
extern bool fake_measuring;
extern int fake_switched;      /* calls of measure */
extern struct source_calls fake_calls; /* what happens now; observed_ns 0: it doesn't know */
extern struct source_comm fake_comm; /* that has changed, until it has been told; object 0: none has */
extern char fake_events[4096]; /* objects that it was told of, in words */

extern const struct source fake_source;
source_function fake_source_function;

/* A call that lasts `units` of 2^-30 s or moves that many bytes; nothing where nothing is measured, unless it began
 * before. */
void fake_call(enum fake_measured what, uint32_t object, uint64_t units);
void fake_call_ends(enum fake_measured what, uint32_t object, uint64_t units);

void fake_source_reset(void);

#endif
