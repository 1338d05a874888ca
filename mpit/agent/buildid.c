/* buildid.c - the build id in an ELF file of 64 bits. */
#define _GNU_SOURCE
#include "buildid.h"

#include "descriptor.h"

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define MOST_SEGMENTS 64
#define MOST_NOTES 1024 /* bytes */

/* Names and contents of notes take whole words. */
static size_t in_words(Elf64_Word bytes)
{
	return ((size_t)bytes + 3) / 4 * 4;
}

static bool find_id(const unsigned char *notes, size_t length, char text[BUILD_ID_TEXT])
{
	Elf64_Nhdr note;
	size_t all;

	for (; length >= sizeof note; notes += all, length -= all) {
		memcpy(&note, notes, sizeof note);
		all = sizeof note + in_words(note.n_namesz) + in_words(note.n_descsz);
		if (all > length)
			return false;
		if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != sizeof ELF_NOTE_GNU ||
		    memcmp(notes + sizeof note, ELF_NOTE_GNU, sizeof ELF_NOTE_GNU) != 0)
			continue;
		for (size_t i = 0; i < note.n_descsz && 2 * i + 2 < BUILD_ID_TEXT; i++)
			snprintf(text + 2 * i, 3, "%02x", notes[sizeof note + in_words(note.n_namesz) + i]);
		if (2 * (size_t)note.n_descsz >= BUILD_ID_TEXT)
			*text = '\0';
		return true;
	}
	return false;
}

static void read_id(int fd, char text[BUILD_ID_TEXT])
{
	Elf64_Ehdr header;
	Elf64_Phdr segments[MOST_SEGMENTS];
	unsigned char notes[MOST_NOTES];
	ssize_t length;

	if (pread(fd, &header, sizeof header, 0) != sizeof header || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
	    header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof *segments)
		return;
	length = pread(fd, segments, sizeof segments, (off_t)header.e_phoff);
	for (size_t i = 0; i < header.e_phnum && length >= (ssize_t)((i + 1) * sizeof *segments); i++) {
		size_t size = segments[i].p_filesz < sizeof notes ? segments[i].p_filesz : sizeof notes;
		ssize_t got;

		if (segments[i].p_type != PT_NOTE)
			continue;
		got = pread(fd, notes, size, (off_t)segments[i].p_offset);
		if (got > 0 && find_id(notes, (size_t)got, text))
			return;
	}
}

void build_id(const char *path, char text[BUILD_ID_TEXT])
{
	int fd = descriptor_open(path, O_RDONLY | O_NONBLOCK);

	*text = '\0';
	if (fd < 0)
		return;
	read_id(fd, text);
	descriptor_close(fd);
}
