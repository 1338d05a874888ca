/* wire_test.c - frames as they are built: padding, and the bound that none may exceed. */
#include "test.h"

#include <string.h>

void test_a_string_is_padded_with_zeros(void)
{
	struct wire w = { 0 };
	uint64_t word;

	wire_begin(&w, FRAME_ERROR, 7);
	wire_word(&w, ~(uint64_t)0);
	wire_word(&w, ~(uint64_t)0); /* what a longer message left in the buffer must not go out */
	wire_reset(&w);
	wire_begin(&w, FRAME_ERROR, 7);
	wire_string(&w, "abc");
	wire_end(&w);
	CHECK(w.length == WIRE_HEADER_BYTES + 16 && wire_frame_words(&w) == 2);
	memcpy(&word, w.bytes + WIRE_HEADER_BYTES + 8, sizeof word);
	CHECK(word == 0x636261);
	wire_free(&w);
}

void test_a_frame_over_the_bound_is_never_sent(void)
{
	static uint64_t words[WIRE_PAYLOAD_WORDS_MAX + 1];
	struct wire w = { 0 };

	wire_begin(&w, FRAME_SAMPLE, 1);
	wire_words(&w, words, WIRE_PAYLOAD_WORDS_MAX);
	wire_end(&w);
	CHECK(!w.failed);
	wire_reset(&w);
	wire_begin(&w, FRAME_SAMPLE, 1);
	wire_words(&w, words, WIRE_PAYLOAD_WORDS_MAX + 1);
	wire_end(&w);
	CHECK(w.failed);
	wire_free(&w);
}
