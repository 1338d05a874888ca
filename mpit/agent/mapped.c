/* mapped.c - the code of this process, by /proc/self/maps. */
#define _GNU_SOURCE
#include "mapped.h"

#include "descriptor.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_BYTES 8192 /* a path of PATH_MAX and what stands before it */
#define FIRST_BYTES 4096u

/* The number in hexadecimal digits that the text begins with; it is left at what follows them. */
static uint64_t take_hex(const char **text)
{
	uint64_t value = 0;

	for (;; ++*text) {
		char c = **text;

		if (c >= '0' && c <= '9')
			value = value << 4 | (uint64_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			value = value << 4 | (uint64_t)(c - 'a' + 10);
		else
			return value;
	}
}

static const char *skip_word(const char *text)
{
	text += strcspn(text, " ");
	return text + strspn(text, " ");
}

/* A line: begin-end permissions offset device inode path. True: the address is in it. */
static bool covers(const char *line, uintptr_t address, const char **path, uint64_t *offset)
{
	uint64_t begin = take_hex(&line), end, from;

	line += *line == '-';
	end = take_hex(&line);
	if (address < begin || address >= end)
		return false;
	line = skip_word(skip_word(line));
	from = take_hex(&line);
	*path = skip_word(skip_word(skip_word(line)));
	*offset = from + (address - begin);
	return true;
}

/* Whether a line is of code in a file. Others are memory without one, as just-in-time compilers make it, or [vdso]. */
static bool is_code(const char *line)
{
	const char *permissions = skip_word(line);

	return strcspn(permissions, " ") == 4 && permissions[2] == 'x' && strchr(permissions, '/') != NULL;
}

static bool keep(struct mapped *m, size_t *room, const char *line)
{
	size_t bytes = strlen(line) + 1, wanted = *room == 0 ? FIRST_BYTES : *room;
	char *more;

	while (wanted - m->length < bytes)
		wanted *= 2;
	if (wanted != *room) {
		more = realloc(m->lines, wanted);
		if (more == NULL)
			return false;
		m->lines = more;
		*room = wanted;
	}
	memcpy(m->lines + m->length, line, bytes);
	m->length += bytes;
	return true;
}

void mapped_read(struct mapped *m)
{
	struct mapped fresh = { 0 };
	char bytes[LINE_BYTES];
	size_t held = 0, room = 0;
	ssize_t length;
	bool whole = true;
	int fd = descriptor_open("/proc/self/maps", O_RDONLY);

	if (fd < 0)
		return;
	while (whole && (length = read(fd, bytes + held, sizeof bytes - held)) > 0) {
		char *line = bytes, *end;

		held += (size_t)length;
		while (whole && (end = memchr(line, '\n', held - (size_t)(line - bytes))) != NULL) {
			*end = '\0';
			whole = !is_code(line) || keep(&fresh, &room, line);
			line = end + 1;
		}
		held -= (size_t)(line - bytes);
		memmove(bytes, line, held);
	}
	descriptor_close(fd);
	if (!whole || fresh.length == 0) {
		free(fresh.lines);
		return;
	}
	free(m->lines);
	*m = fresh;
}

bool mapped_find(const struct mapped *m, uintptr_t address, const char **path, uint64_t *offset)
{
	for (const char *line = m->lines; line < m->lines + m->length; line += strlen(line) + 1)
		if (covers(line, address, path, offset))
			return true;
	return false;
}

void mapped_free(struct mapped *m)
{
	free(m->lines);
	*m = (struct mapped){ 0 };
}
