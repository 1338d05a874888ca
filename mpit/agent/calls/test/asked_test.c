/* asked_test.c - the words of MPIT_CALLS. */
#define _GNU_SOURCE
#include "asked.h"
#include "test.h"

#include <string.h>

void test_words_that_are_asked_for(void)
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
		{ "sites,peers", false, true, NULL },
		{ "1,,peers,sizes,", true, true, NULL },
		{ "size,sizes", true, false, "\"size\"" },
		{ "peersonal", false, false, "\"peersonal\"" },
		{ "SIZES", false, false, "\"SIZES\"" },
		{ "peers, sizes", false, true, "\" sizes\"" },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const char *unknown;

		calls_ask(cases[i].value);
		CHECK(calls_asked("sizes") == cases[i].sizes && calls_asked("peers") == cases[i].peers);
		unknown = calls_asked_unknown();
		CHECK((unknown == NULL) == (cases[i].unknown == NULL));
		CHECK(unknown == NULL || strstr(unknown, cases[i].unknown) != NULL);
	}
	calls_ask(NULL);
	CHECK(!calls_asked("sizes") && calls_asked_unknown() == NULL);
}
