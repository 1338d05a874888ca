/*
 * details.h - properties of one object as LAYOUT carries them (docs/internals/protocol.md, Objects): pairs of strings,
 * packed as on the wire.
 *
 * Never fails: what finds no room is left out, lists are cut at a whole item.
 */
#ifndef MPIT_DETAILS_H
#define MPIT_DETAILS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DETAILS_MAX 16
#define DETAILS_BYTES 512 /* of all keys and values together */
/* Of each: the record's length, two strings' lengths, and what pads them to whole words. */
#define DETAILS_WORDS (DETAILS_MAX * 5 + DETAILS_BYTES / 8)
#define DETAIL_LIST_BYTES 200

struct details {
	size_t count, bytes;
	size_t words; /* of packed */
	uint64_t packed[DETAILS_WORDS];
};

/* Items with commas between them. */
struct detail_list {
	size_t length;
	bool full;
	char text[DETAIL_LIST_BYTES + 1];
};

void details_reset(struct details *d);
void details_add(struct details *d, const char *key, const char *value);
void details_number(struct details *d, const char *key, long long value);
/* Does nothing for an empty list. */
void details_list(struct details *d, const char *key, const struct detail_list *list);

/* The list that is the value of the first property, as it was packed; without one an empty list. */
void details_first_list(const uint64_t *packed, size_t words, struct detail_list *out);

/* False: it is full. */
bool list_add(struct detail_list *list, const char *item);
bool list_number(struct detail_list *list, long long item);
bool list_has(struct detail_list *list, const char *item);
void list_drop(struct detail_list *list, const char *item);

#endif
