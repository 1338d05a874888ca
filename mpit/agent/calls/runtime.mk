# libmpit-calls.so, and the tests and the benchmark of its runtime. Included by the Makefile of the directory above, whose variables it uses;
# paths are from there.
#
# Its wrappers are generated: generated.mk, which comes before, makes $(BUILD)/calls/functions.h and CALLS_GENERATED_OBJECTS with Go, and has the
# rule for $(BUILD)/calls/%.o.

CALLS_OUT ?= $(BUILD)/libmpit-calls.so

CALLS_CORE := abi_list.c asked.c block.c calls.c clock.c library.c order.c peers.c persistent.c place.c registry.c requests.c sites.c source.c types.c world.c
# A table of a few functions in the generated one's place.
CALLS_DOUBLE := -Icalls -Icalls/test/double -I.
CALLS_LDFLAGS := -shared -Wl,-soname,libmpit-calls.so -Wl,--version-script=calls/exports.map -Wl,-z,nodelete -Wl,-z,relro -Wl,-z,now \
                 -Wl,--no-undefined -Wl,--as-needed

CALLS_ABIS := abi_mpich.c abi_openmpi.c abi_standard.c
CALLS_OBJECTS := $(CALLS_CORE:%.c=$(BUILD)/calls/%.o) $(CALLS_ABIS:%.c=$(BUILD)/calls/%.o) $(BUILD)/next.o

all: $(CALLS_OUT)

$(CALLS_OUT): $(CALLS_OBJECTS) $(CALLS_GENERATED_OBJECTS) calls/exports.map
	@mkdir -p $(@D)
	$(CC) $(CALLS_LDFLAGS) $(LDFLAGS) $(UNPACKED) -o $@ $(CALLS_OBJECTS) $(CALLS_GENERATED_OBJECTS) $(LIBRARIES)

$(BUILD)/calls/%.o: AGENT_CFLAGS += -I.

# ---- tests: the runtime with an MPI library and a table of functions that the tests play ----

CALLS_RUN_TESTED := $(addprefix calls/,$(filter-out abi_list.c,$(CALLS_CORE)))
CALLS_RUN_TESTS := $(addprefix calls/test/,asked_test.c calls_test.c cells_test.c clock_test.c fake_mpi.c marks_test.c objects_test.c order_test.c peers_test.c sites_test.c sizes_test.c threads_test.c under_way_test.c)
CALLS_RUN_NEEDS := $(CALLS_RUN_TESTED) $(wildcard calls/*.h calls/test/*.h calls/test/double/*.h) source.h abi.h $(BUILD)/flags
# Few cells, sites and places of peers, so that they run out; mmap fails when a test wants it.
CALLS_RUN_CFLAGS := -std=gnu11 -O1 -fno-omit-frame-pointer -g -pthread $(WARNINGS) $(CALLS_DOUBLE) -DCELLS=256u -DSITES=64u -DPEERS_AT_FIRST=4 -Wl,--wrap=mmap

$(BUILD)/calls-run-plain: $(CALLS_RUN_TESTS) $(CALLS_RUN_NEEDS)
	$(CC) $(CALLS_RUN_CFLAGS) -o $@ $(CALLS_RUN_TESTS) $(CALLS_RUN_TESTED) -ldl

$(BUILD)/calls-run-sanitized: $(CALLS_RUN_TESTS) $(CALLS_RUN_NEEDS)
	$(CC) $(CALLS_RUN_CFLAGS) -fsanitize=address,undefined -fno-sanitize-recover=all -o $@ $(CALLS_RUN_TESTS) $(CALLS_RUN_TESTED) -ldl

$(BUILD)/calls-run-threads: $(CALLS_RUN_TESTS) $(CALLS_RUN_NEEDS)
	$(CC) $(CALLS_RUN_CFLAGS) -fsanitize=thread -o $@ $(CALLS_RUN_TESTS) $(CALLS_RUN_TESTED) -ldl

.PHONY: test-calls-circles
test-calls-circles: $(CALLS_OBJECTS) $(filter-out $(CALLS_MADE)/wrappers_%,$(CALLS_GENERATED_OBJECTS))
	test/circles $^

.PHONY: test-calls-plain test-calls-sanitized test-calls-threads test-calls-memory bench-calls
test-calls-plain: $(BUILD)/calls-run-plain
	$<

test-calls-sanitized: $(BUILD)/calls-run-sanitized
	@# Newer compilers' sanitizers put locals of what they compile on a heap; the tests are about frames on the stack.
	ASAN_OPTIONS=detect_stack_use_after_return=0 $<

test-calls-threads: $(BUILD)/calls-run-threads
	FEW_TURNS=1 $<

test-calls-memory: $(BUILD)/calls-run-plain
	FEW_TURNS=1 $(MEMCHECK) $<

test: test-calls-circles test-calls-plain
test-instrumented: test-calls-sanitized test-calls-threads test-calls-memory

# What a call costs. Optimised as the library is, with as many cells.
$(BUILD)/bench-calls: calls/test/bench_calls.c calls/test/fake_mpi.c $(CALLS_RUN_NEEDS)
	$(CC) -std=gnu11 -O2 -g -fPIC -fvisibility=hidden -fno-omit-frame-pointer -pthread $(WARNINGS) $(CALLS_DOUBLE) -o $@ calls/test/bench_calls.c calls/test/fake_mpi.c \
	  $(CALLS_RUN_TESTED) caller.c mapped.c -ldl

bench-calls: $(BUILD)/bench-calls
	@$(BUILD)/bench-calls

bench: bench-calls
