/* asked_test.c - the words of MPIT_CALLS. */
#define _GNU_SOURCE
#include "asked.h"
#include "test.h"

#include <string.h>

void test_words_of_the_environment(void)
{
	static const struct {
		const char *value;
		bool sizes, peers;
		const char *unknown; /* NULL: nothing is */
	} cases[] = {
		{ "", false, false, NULL },
		{ "0", false, false, NULL },
		{ "1", false, false, NULL },
		{ "sizes", true, false, NULL },
		{ "peers", false, true, NULL },
		{ "sizes,peers", true, true, NULL },
		{ "light", false, false, NULL },
		{ "1,,peers,sizes,", true, true, NULL },
		{ "size,sizes", true, false, "\"size\"" },
		{ "peersonal", false, false, "\"peersonal\"" },
		{ "SIZES", false, false, "\"SIZES\"" },
		{ "peers, sizes", false, true, "\" sizes\"" },
	};
	const char *before = getenv("MPIT_CALLS");
	char *kept = before == NULL ? NULL : strdup(before);

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const char *unknown;

		CHECK(setenv("MPIT_CALLS", cases[i].value, 1) == 0);
		CHECK(calls_asked("sizes") == cases[i].sizes && calls_asked("peers") == cases[i].peers);
		unknown = calls_asked_unknown();
		CHECK((unknown == NULL) == (cases[i].unknown == NULL));
		CHECK(unknown == NULL || strstr(unknown, cases[i].unknown) != NULL);
	}
	unsetenv("MPIT_CALLS");
	CHECK(!calls_asked("sizes") && calls_asked_unknown() == NULL);
	if (kept != NULL)
		setenv("MPIT_CALLS", kept, 1);
	free(kept);
}
