/* calls.c - what calls.h declares for every call, thread and file of the library. */
#include "calls.h"

__thread struct calls_thread calls_thread __attribute__((tls_model("initial-exec"))) HIDDEN;
struct calls_state calls_state = { .epoch = EPOCH_STEP, .epoch_at_end = EPOCH_STEP, .types = 1 };
const struct calls_abi *calls_abi;
intptr_t calls_datatype_null, calls_no_op, calls_comm_world, calls_comm_null;
