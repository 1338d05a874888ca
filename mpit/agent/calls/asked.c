/* asked.c - the words of MPIT_CALLS. */
#include "asked.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const char *const words[] = { "0", "1", "sizes", "peers", "sites", "stacks", "light" };

/* What is asked for begins at *rest, which moves behind it; the number of its bytes, 0 at the end. */
static size_t next_word(const char **rest, const char **word)
{
	size_t n;

	*rest += strspn(*rest, ",");
	*word = *rest;
	n = strcspn(*rest, ",");
	*rest += n;
	return n;
}

static bool is(const char *word, const char *there, size_t n)
{
	return strlen(word) == n && memcmp(word, there, n) == 0;
}

static const char *asked = "";

void calls_ask(const char *list)
{
	asked = list == NULL ? "" : list;
}

bool calls_asked(const char *word)
{
	const char *rest = asked, *there;

	for (size_t n; (n = next_word(&rest, &there)) > 0;)
		if (is(word, there, n))
			return true;
	return false;
}

const char *calls_asked_unknown(void)
{
	static char sentence[160];
	const char *rest = asked, *there;

	for (size_t n; (n = next_word(&rest, &there)) > 0;) {
		bool known = false;

		for (size_t i = 0; i < sizeof words / sizeof *words; i++)
			known = known || is(words[i], there, n);
		if (known)
			continue;
		snprintf(sentence, sizeof sentence, "MPIT_CALLS: nobody knows the word \"%.*s\"; there are sizes, peers, sites, stacks and light",
			 (int)(n < 64 ? n : 64), there);
		return sentence;
	}
	return NULL;
}
