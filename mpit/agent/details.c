/* details.c - properties of one object, packed as on the wire. */
#include "details.h"

#include <stdio.h>
#include <string.h>

void details_reset(struct details *d)
{
	d->count = d->bytes = d->words = 0;
}

static void pack_string(struct details *d, const char *string, size_t length)
{
	size_t words = (length + 7) / 8;

	d->packed[d->words++] = length;
	if (words > 0)
		d->packed[d->words + words - 1] = 0;
	memcpy(&d->packed[d->words], string, length);
	d->words += words;
}

void details_add(struct details *d, const char *key, const char *value)
{
	size_t key_length = strlen(key), value_length = strlen(value), record = d->words;

	if (d->count == DETAILS_MAX || d->bytes + key_length + value_length > DETAILS_BYTES)
		return;
	d->words++;
	pack_string(d, key, key_length);
	pack_string(d, value, value_length);
	d->packed[record] = d->words - record - 1;
	d->bytes += key_length + value_length;
	d->count++;
}

void details_number(struct details *d, const char *key, long long value)
{
	char text[24];

	snprintf(text, sizeof text, "%lld", value);
	details_add(d, key, text);
}

void details_list(struct details *d, const char *key, const struct detail_list *list)
{
	if (list->length > 0)
		details_add(d, key, list->text);
}

void details_first_list(const uint64_t *packed, size_t words, struct detail_list *out)
{
	size_t value, length;

	out->length = 0;
	out->full = false;
	if (words > 0) {
		value = 2 + (packed[1] + 7) / 8; /* behind the record's length, the key's, and the key */
		length = packed[value] < DETAIL_LIST_BYTES ? packed[value] : DETAIL_LIST_BYTES;
		memcpy(out->text, &packed[value + 1], length);
		out->length = length;
	}
	out->text[out->length] = '\0';
}

bool list_add(struct detail_list *list, const char *item)
{
	size_t length = strlen(item), comma = list->length > 0 ? 1 : 0;

	if (list->full || list->length + comma + length > DETAIL_LIST_BYTES) {
		list->full = true;
		return false;
	}
	if (comma)
		list->text[list->length++] = ',';
	memcpy(list->text + list->length, item, length + 1);
	list->length += length;
	return true;
}

bool list_number(struct detail_list *list, long long item)
{
	char text[24];

	snprintf(text, sizeof text, "%lld", item);
	return list_add(list, text);
}

static char *find_item(struct detail_list *list, const char *item)
{
	size_t length = strlen(item);

	for (char *at = list->text; length > 0 && (at = strstr(at, item)) != NULL; at++)
		if ((at == list->text || at[-1] == ',') && (at[length] == ',' || at[length] == '\0'))
			return at;
	return NULL;
}

bool list_has(struct detail_list *list, const char *item)
{
	return find_item(list, item) != NULL;
}

void list_drop(struct detail_list *list, const char *item)
{
	char *at = find_item(list, item), *rest;

	if (at == NULL)
		return;
	rest = at + strlen(item);
	if (*rest == ',')
		rest++;
	else if (at > list->text)
		at--; /* the last one goes with the comma before it */
	memmove(at, rest, strlen(rest) + 1);
	list->length = strlen(list->text);
}
