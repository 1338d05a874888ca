/* fake_source.c - another library that measures, which a test scripts. */
#include "fake_source.h"

#include "abi.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

const struct source *fake_offered;
const char *fake_refusal;
bool fake_measuring;
int fake_switched;
char fake_events[4096];
struct source_calls fake_calls;
struct source_comm fake_comm;

static uint64_t values[FAKE_MEASURED][FAKE_NUMBERS][DISTRIBUTION_ELEMENTS];
static bool come_up[FAKE_MEASURED][FAKE_NUMBERS], ended[FAKE_NUMBERS];
static struct {
	size_t variable;
	uint32_t object;
} pairs[FAKE_MEASURED * FAKE_NUMBERS];
static size_t variables, pair_count, pairs_told;
static bool comm_told;

void fake_source_reset(void)
{
	fake_offered = &fake_source;
	fake_refusal = NULL;
	fake_measuring = false;
	fake_switched = 0;
	fake_events[0] = '\0';
	fake_calls = (struct source_calls){ 0 };
	fake_comm = (struct source_comm){ 0 };
	comm_told = false;
	memset(values, 0, sizeof values);
	memset(come_up, 0, sizeof come_up);
	memset(ended, 0, sizeof ended);
	variables = pair_count = pairs_told = 0;
}

static bool is_distribution(size_t i)
{
	return i == SEND_TIME || i == PUT_TIME || i >= MORE_TIMES;
}

void fake_call_ends(enum fake_measured what, uint32_t object, uint64_t units)
{
	uint64_t *v = values[what][object];
	unsigned bucket = 0;

	if (variables <= what)
		variables = what + 1;
	if (!come_up[what][object]) {
		come_up[what][object] = true;
		pairs[pair_count].variable = what;
		pairs[pair_count++].object = object;
	}
	v[0] += units;
	while (bucket < DISTRIBUTION_BUCKETS - 1 && units > (uint64_t)1 << bucket)
		bucket++;
	if (is_distribution(what))
		v[1 + bucket]++;
}

void fake_call(enum fake_measured what, uint32_t object, uint64_t units)
{
	if (fake_measuring)
		fake_call_ends(what, object, units);
}

static bool begin(const struct source_mpi *mpi, const char **why)
{
	assert(mpi->abi == 9 && mpi->find("PMPI_Nothing") == NULL);
	if (fake_refusal != NULL)
		*why = fake_refusal;
	return fake_refusal == NULL;
}

static void measure(bool on)
{
	fake_measuring = on;
	fake_switched++;
}

static size_t count(void)
{
	return variables;
}

static void describe(size_t i, struct source_variable *out)
{
	static const char *const names[FAKE_MEASURED] = {
		"send_time", "send_bytes", "put_time", "late_count", "more_0", "more_1",
		"more_2",    "more_3",     "more_4",   "more_5",     "more_6", "more_7",
	};

	assert(i < variables);
	*out = (struct source_variable){
		.name = names[i],
		.description = "what a call was",
		.mpi_class = is_distribution(i) ? 8 : i == SEND_BYTES ? 7 : 6,
		.verbosity = 1,
		.bind = i == PUT_TIME ? BIND_WIN : i == LATE_COUNT ? BIND_NONE : BIND_COMM,
		.distribution = is_distribution(i),
	};
}

static void discover(void (*found)(void *context, size_t variable, uint32_t object), void *context)
{
	for (; pairs_told < pair_count; pairs_told++)
		found(context, pairs[pairs_told].variable, pairs[pairs_told].object);
}

static void read_pair(size_t variable, uint32_t object, uint64_t *elements)
{
	size_t count = is_distribution(variable) ? DISTRIBUTION_ELEMENTS : 1;

	assert(come_up[variable][object] && !ended[object]);
	memcpy(elements, values[variable][object], count * sizeof *elements);
}

static bool calls(struct source_calls *out)
{
	*out = fake_calls;
	return fake_calls.threads[0].observed_ns != 0;
}

static void comms(bool all, source_comm_function *tell, void *context)
{
	if (fake_comm.object != 0 && (all || !comm_told))
		tell(context, &fake_comm);
	comm_told = true;
}

static void note(const char *what, int kind, uint64_t handle, uint32_t number)
{
	size_t length = strlen(fake_events);

	snprintf(fake_events + length, sizeof fake_events - length, "%s kind %d handle %llu number %u", what, kind,
		 (unsigned long long)handle, number);
}

static void object_made(int kind, uint64_t handle, uint32_t number, int rank, int size)
{
	size_t length;

	note("made", kind, handle, number);
	length = strlen(fake_events);
	snprintf(fake_events + length, sizeof fake_events - length, " rank %d of %d; ", rank, size);
}

static void object_freed(int kind, uint64_t handle, uint32_t number)
{
	note("freed", kind, handle, number);
	strncat(fake_events, "; ", sizeof fake_events - strlen(fake_events) - 1);
	ended[number] = true;
}

const struct source fake_source = {
	.version = SOURCE_VERSION,
	.category = "fake_calls",
	.category_description = "calls of a program that there isn't",
	.begin = begin,
	.measure = measure,
	.count = count,
	.describe = describe,
	.discover = discover,
	.read = read_pair,
	.calls = calls,
	.comms = comms,
	.object_made = object_made,
	.object_freed = object_freed,
};

const struct source *fake_source_function(uint32_t version)
{
	assert(version == SOURCE_VERSION);
	return fake_offered;
}
