/* wire.c - words into frames and out of them. */
#include "wire.h"

#include <stdlib.h>
#include <string.h>

static const unsigned char magic[4] = { 'M', 'P', 'I', 'T' };

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

static void put16(unsigned char *at, uint16_t v)
{
	memcpy(at, &v, sizeof v);
}

static void put32(unsigned char *at, uint32_t v)
{
	memcpy(at, &v, sizeof v);
}

void wire_begin(struct wire *w, enum frame_type type, uint32_t sequence)
{
	unsigned char *header;

	w->frame = w->length;
	header = extend(w, WIRE_HEADER_BYTES);
	if (header == NULL)
		return;
	memcpy(header, magic, sizeof magic);
	put16(header + 4, (uint16_t)type);
	put16(header + 6, WIRE_VERSION);
	put32(header + 8, 0);
	put32(header + 12, sequence);
}

size_t wire_frame_words(const struct wire *w)
{
	return w->failed ? 0 : (w->length - w->frame - WIRE_HEADER_BYTES) / 8;
}

void wire_end(struct wire *w)
{
	size_t words = wire_frame_words(w);

	if (words > WIRE_PAYLOAD_WORDS_MAX)
		w->failed = true;
	if (!w->failed)
		put32(w->bytes + w->frame + 8, (uint32_t)words);
}

void wire_word(struct wire *w, uint64_t word)
{
	wire_words(w, &word, 1);
}

void wire_words(struct wire *w, const uint64_t *words, size_t count)
{
	void *at = count == 0 ? NULL : extend(w, count * sizeof *words);

	if (at != NULL)
		memcpy(at, words, count * sizeof *words);
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
	if (memcmp(bytes, magic, sizeof magic) != 0)
		return false;
	memcpy(&out->type, bytes + 4, sizeof out->type);
	memcpy(&out->version, bytes + 6, sizeof out->version);
	memcpy(&out->words, bytes + 8, sizeof out->words);
	memcpy(&out->sequence, bytes + 12, sizeof out->sequence);
	return true;
}
