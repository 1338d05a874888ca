/* mapped.c - reads /proc/self/maps. */
#define _GNU_SOURCE
#include "mapped.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define LINE_BYTES 8192 /* a path of PATH_MAX and what stands before it */

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

bool mapped_from(uintptr_t address, char *path, size_t size, uint64_t *offset)
{
	char bytes[LINE_BYTES];
	size_t held = 0;
	ssize_t length;
	bool found = false;
	const char *name = "";
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	while (!found && (length = read(fd, bytes + held, sizeof bytes - held)) > 0) {
		char *line = bytes, *end;

		held += (size_t)length;
		while (!found && (end = memchr(line, '\n', held - (size_t)(line - bytes))) != NULL) {
			*end = '\0';
			found = covers(line, address, &name, offset);
			line = end + 1;
		}
		held -= (size_t)(line - bytes);
		if (!found)
			memmove(bytes, line, held);
	}
	close(fd);
	/* Others are memory without a file, as just-in-time compilers make it, [vdso] and their like. */
	if (!found || name[0] != '/' || strlen(name) >= size)
		return false;
	strcpy(path, name);
	return true;
}
