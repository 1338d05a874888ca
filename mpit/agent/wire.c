/* wire.c - words into frames and out of them. */
#include "wire.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(struct wire_header) == WIRE_HEADER_BYTES, "as it stands in a frame");

void wire_reset(struct wire *w)
{
	w->length = 0;
	w->failed = false;
}

void wire_free(struct wire *w)
{
	if (!w->fixed)
		free(w->bytes);
	*w = (struct wire){ 0 };
}

static void *extend(struct wire *w, size_t bytes)
{
	void *at;

	if (w->failed)
		return NULL;
	if (w->length + bytes > w->room) {
		size_t room = w->room == 0 ? 4096 : w->room;
		unsigned char *grown;

		while (room < w->length + bytes)
			room *= 2;
		grown = w->fixed || room > WIRE_BYTES_MAX ? NULL : realloc(w->bytes, room);
		if (grown == NULL) {
			w->failed = true;
			return NULL;
		}
		w->bytes = grown;
		w->room = room;
	}
	at = w->bytes + w->length;
	w->length += bytes;
	return at;
}

void wire_begin(struct wire *w, enum frame_type type, uint32_t sequence)
{
	struct wire_header header = {
		.magic = { 'M', 'P', 'I', 'T' },
		.type = (uint16_t)type,
		.version = WIRE_VERSION,
		.sequence = sequence,
	};

	w->frame = w->length;
	wire_raw(w, &header, sizeof header);
}

size_t wire_frame_words(const struct wire *w)
{
	return w->failed ? 0 : (w->length - w->frame - WIRE_HEADER_BYTES) / 8;
}

void wire_end(struct wire *w)
{
	uint32_t words = (uint32_t)wire_frame_words(w);

	if (words > WIRE_PAYLOAD_WORDS_MAX)
		w->failed = true;
	if (!w->failed)
		memcpy(w->bytes + w->frame + offsetof(struct wire_header, words), &words, sizeof words);
}

void wire_word(struct wire *w, uint64_t word)
{
	wire_words(w, &word, 1);
}

void wire_words(struct wire *w, const uint64_t *words, size_t count)
{
	wire_raw(w, words, count * sizeof *words);
}

void wire_cut(struct wire *w, size_t length)
{
	if (!w->failed)
		w->length = length;
}

void wire_append(struct wire *w, const struct wire *frames)
{
	if (frames->failed)
		w->failed = true;
	else
		wire_raw(w, frames->bytes, frames->length);
}

void wire_raw(struct wire *w, const void *bytes, size_t length)
{
	void *at = length == 0 ? NULL : extend(w, length);

	if (at != NULL)
		memcpy(at, bytes, length);
}

void wire_bytes(struct wire *w, const void *bytes, size_t length)
{
	size_t padded;
	unsigned char *at;

	if (length > WIRE_STRING_MAX + 1u)
		length = WIRE_STRING_MAX + 1u;
	padded = (length + 7) / 8 * 8;
	wire_word(w, length);
	at = padded == 0 ? NULL : extend(w, padded);
	if (at != NULL) {
		memset(at + padded - 8, 0, 8);
		memcpy(at, bytes, length);
	}
}

void wire_string(struct wire *w, const char *string)
{
	wire_bytes(w, string, strnlen(string, WIRE_STRING_MAX));
}

size_t wire_hole(struct wire *w)
{
	size_t hole = w->length;

	wire_word(w, 0);
	return hole;
}

void wire_fill(struct wire *w, size_t hole, uint64_t word)
{
	if (!w->failed)
		memcpy(w->bytes + hole, &word, sizeof word);
}

void wire_fill_length(struct wire *w, size_t hole)
{
	wire_fill(w, hole, (w->length - hole) / 8 - 1);
}

uint64_t wire_take(struct wire_reader *r)
{
	return r->at < r->count ? r->words[r->at++] : 0;
}

size_t wire_left(const struct wire_reader *r)
{
	return r->count - r->at;
}

bool wire_header(const unsigned char bytes[WIRE_HEADER_BYTES], struct wire_header *out)
{
	memcpy(out, bytes, sizeof *out);
	return memcmp(out->magic, "MPIT", sizeof out->magic) == 0;
}
