# What calls/generate makes of calls/functions.txt, with Go and nothing else, and what is written by hand around it. Included by the
# Makefile of the directory above, whose variables it uses; paths are from there.

GO ?= go

CALLS_MADE := $(BUILD)/calls
CALLS_WRAPPERS := $(patsubst %,wrappers_%.c,$(shell sed -n 's/^\[\(.*\)\]$$/\1/p' calls/functions.txt | tr ' -' '__'))
# Sources: those that are made, and those that they need beside the runtime.
CALLS_MADE_SOURCES := functions.c $(CALLS_WRAPPERS)
CALLS_GENERATED_OBJECTS := $(CALLS_MADE_SOURCES:%.c=$(CALLS_MADE)/%.o) $(BUILD)/calls/bytes.o
CALLS_CFLAGS := -Icalls -I$(CALLS_MADE)

# One run makes all of it; a file that is right already keeps its time. It runs here, whatever is built for.
$(CALLS_MADE)/made: calls/functions.txt $(filter-out %_test.go,$(wildcard calls/generate/*.go))
	@mkdir -p $(@D)
	GOARCH= $(GO) run ./calls/generate -table calls/functions.txt -out $(@D)
	@touch $@

$(addprefix $(CALLS_MADE)/,$(CALLS_MADE_SOURCES) functions.h prototypes.inc passed.inc): $(CALLS_MADE)/made ;

$(CALLS_MADE)/%.o: $(CALLS_MADE)/%.c $(BUILD)/flags
	$(CC) $(CFLAGS) $(AGENT_CFLAGS) $(CALLS_CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/calls/%.o: calls/%.c $(CALLS_MADE)/made $(BUILD)/flags
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(AGENT_CFLAGS) $(CALLS_CFLAGS) -MMD -MP -c -o $@ $<

# ---- tests ----

.PHONY: test-calls-generated test-calls-prototypes

# What is stood in front of against each library's own mpi.h. A compiler for C++ is needed for this and nothing else.
test-calls-prototypes: $(CALLS_MADE)/made
	@if command -v $(CXX) >/dev/null; then \
	  for directory in $(OPENMPI_INC) $(MPICH_INC) $(STANDARD_INC); do \
	    echo $(CXX) -fsyntax-only -isystem $$directory calls/test/prototypes.cpp; \
	    $(CXX) -std=c++17 $(WARNINGS) -I$(CALLS_MADE) -isystem $$directory -fsyntax-only calls/test/prototypes.cpp || exit 1; done; \
	else echo "$(CXX) is not installed: the call profile's functions were not compared with mpi.h"; fi

# bytes.c and the wrappers, with a runtime (test/fake) and an MPI library that the tests play.
CALLS_TESTED := calls/bytes.c $(addprefix $(CALLS_MADE)/,$(CALLS_MADE_SOURCES))
CALLS_TESTS := calls/test/bytes_test.c calls/test/wrappers_test.c calls/test/fake/runtime.c
CALLS_TEST_CFLAGS := -std=gnu11 -O0 -g $(WARNINGS) -include calls/test/fake/calls.h -Icalls/test/fake $(CALLS_CFLAGS)

$(BUILD)/calls-test-sanitized: $(CALLS_TESTS) $(CALLS_MADE)/made $(wildcard calls/*.[ch] calls/test/*.h calls/test/fake/*.h) $(BUILD)/flags
	$(CC) $(CALLS_TEST_CFLAGS) -fsanitize=address,undefined -fno-sanitize-recover=all -o $@ $(CALLS_TESTS) $(CALLS_TESTED)

test-calls-generated: test-calls-prototypes $(BUILD)/calls-test-sanitized
	$(BUILD)/calls-test-sanitized

test: test-calls-generated

-include $(wildcard $(BUILD)/calls/*.d)
