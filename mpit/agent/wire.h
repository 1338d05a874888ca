/*
 * wire.h - words into frames and out of them (docs/internals/protocol.md).
 *
 * A buffer belongs to the thread that fills it. It grows by realloc up to WIRE_BYTES_MAX and
 * keeps its memory, so that a thread which sends the same things again allocates nothing. One
 * that is fixed never allocates.
 */
#ifndef MPIT_WIRE_H
#define MPIT_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WIRE_VERSION 1
#define WIRE_HEADER_BYTES 16
#define WIRE_PAYLOAD_WORDS_MAX 524288 /* 4 MiB, one frame of ours */
#define WIRE_PART_WORDS 32768         /* 256 KiB, one frame of a catalogue */
#define WIRE_REQUEST_WORDS_MAX 16384  /* 128 KiB, one frame of the exporter's */
#define WIRE_BYTES_MAX (64u << 20)    /* one answer of several frames */
#define WIRE_STRING_MAX 65535

enum frame_type {
	FRAME_HELLO = 1,
	FRAME_VARIABLES,
	FRAME_ENUMS,
	FRAME_LAYOUT,
	FRAME_REMAINS,
	FRAME_SAMPLE,
	FRAME_CVARS,
	FRAME_CATEGORIES,
	FRAME_ERROR,
	FRAME_TOOL = 11, /* 10 was KEPT: never used again */
	FRAME_SITES,
	REQUEST_SAMPLE = 64,
	REQUEST_SELECT,
	REQUEST_CVARS,
	REQUEST_CATEGORIES,
	REQUEST_TOOL = 69, /* 68 was BLOB: never used again */
	REQUEST_OPEN,
	REQUEST_FINAL = 71,
	REQUEST_SITES,
};

enum wire_error { ERROR_UNSUPPORTED = 1, ERROR_MALFORMED, ERROR_TOO_LARGE, ERROR_NOT_NOW };

struct wire {
	unsigned char *bytes;
	size_t length, room;
	size_t frame; /* where the open frame's header stands */
	bool fixed;   /* bytes are the caller's, of a size that doesn't change */
	bool failed;  /* out of memory or over a bound: nothing of it may be sent */
};

void wire_reset(struct wire *w);
void wire_free(struct wire *w);

void wire_begin(struct wire *w, enum frame_type type, uint32_t sequence);
void wire_end(struct wire *w);
size_t wire_frame_words(const struct wire *w); /* in the open frame so far */

void wire_word(struct wire *w, uint64_t word);
void wire_words(struct wire *w, const uint64_t *words, size_t count);
/* Forgets what was written from an offset on, in the open frame. */
void wire_cut(struct wire *w, size_t length);
/* Whole frames of another buffer, behind those that are there. */
void wire_append(struct wire *w, const struct wire *frames);

void wire_raw(struct wire *w, const void *bytes, size_t length); /* whole words that are little-endian already */
void wire_string(struct wire *w, const char *string);
void wire_bytes(struct wire *w, const void *bytes, size_t length);

/* A word that is known later: a record's length, a list's. */
size_t wire_hole(struct wire *w);
void wire_fill(struct wire *w, size_t hole, uint64_t word);
/* Fills a hole with the number of words that follow it. */
void wire_fill_length(struct wire *w, size_t hole);

/* A request's payload; reading past its end gives zeros. */
struct wire_reader {
	const uint64_t *words;
	size_t count, at;
};

uint64_t wire_take(struct wire_reader *r);
size_t wire_left(const struct wire_reader *r);

/* As it stands in a frame. */
struct wire_header {
	char magic[4];
	uint16_t type, version;
	uint32_t words, sequence;
};

/* False: not a header. */
bool wire_header(const unsigned char bytes[WIRE_HEADER_BYTES], struct wire_header *out);

#endif
