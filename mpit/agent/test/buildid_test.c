/* buildid_test.c - the build ids of files that the test makes. */
#include "test.h"

#include "buildid.h"

#include <elf.h>
#include <string.h>
#include <unistd.h>

/* A file of two segments of notes; the second has one of another kind before the id, of size bytes. */
static struct {
	Elf64_Ehdr header;
	Elf64_Phdr segments[3];
	Elf64_Nhdr first;
	char first_name[8];
	Elf64_Nhdr other;
	char other_name[4], other_text[8];
	Elf64_Nhdr id;
	char id_name[4];
	unsigned char bytes[80];
} file;

static const char *id_of(size_t length)
{
	static char text[BUILD_ID_TEXT];
	char path[] = "/tmp/mpit-build-XXXXXX";
	int fd = mkstemp(path);

	CHECK(fd >= 0 && write(fd, &file, length) == (ssize_t)length);
	close(fd);
	memset(text, 'x', sizeof text);
	build_id(path, text);
	unlink(path);
	return text;
}

static void make_file(Elf64_Word size)
{
	memset(&file, 0, sizeof file);
	memcpy(file.header.e_ident, ELFMAG, SELFMAG);
	file.header.e_ident[EI_CLASS] = ELFCLASS64;
	file.header.e_phoff = offsetof(__typeof__(file), segments);
	file.header.e_phentsize = sizeof *file.segments;
	file.header.e_phnum = 3;
	file.segments[0] = (Elf64_Phdr){ .p_type = PT_LOAD, .p_filesz = sizeof file };
	file.segments[1] = (Elf64_Phdr){ .p_type = PT_NOTE, .p_offset = offsetof(__typeof__(file), first),
					 .p_filesz = sizeof file.first + sizeof file.first_name };
	file.segments[2] = (Elf64_Phdr){ .p_type = PT_NOTE, .p_offset = offsetof(__typeof__(file), other),
					 .p_filesz = sizeof file - offsetof(__typeof__(file), other) };
	file.first = (Elf64_Nhdr){ .n_namesz = 6, .n_type = NT_GNU_BUILD_ID };
	strcpy(file.first_name, "Other");
	file.other = (Elf64_Nhdr){ .n_namesz = 4, .n_descsz = 5, .n_type = NT_GNU_ABI_TAG };
	memcpy(file.other_name, "GNU", 4);
	file.id = (Elf64_Nhdr){ .n_namesz = 4, .n_descsz = size, .n_type = NT_GNU_BUILD_ID };
	memcpy(file.id_name, "GNU", 4);
	for (size_t i = 0; i < sizeof file.bytes; i++)
		file.bytes[i] = (unsigned char)(i + 10);
}

void test_build_ids(void)
{
	char text[BUILD_ID_TEXT];

	make_file(4);
	CHECK(strcmp(id_of(sizeof file), "0a0b0c0d") == 0);
	CHECK(strcmp(id_of(offsetof(__typeof__(file), bytes) + 3), "") == 0); /* ends before it does */
	file.header.e_phnum = 1000;
	CHECK(strcmp(id_of(sizeof file), "0a0b0c0d") == 0);
	file.header.e_phentsize = 8;
	CHECK(strcmp(id_of(sizeof file), "") == 0);
	make_file(64);
	CHECK(strlen(id_of(sizeof file)) == 128);
	make_file(65);
	CHECK(strcmp(id_of(sizeof file), "") == 0);
	make_file(~(Elf64_Word)0);
	CHECK(strcmp(id_of(sizeof file), "") == 0);
	make_file(4);
	file.other.n_descsz = ~(Elf64_Word)0;
	CHECK(strcmp(id_of(sizeof file), "") == 0);
	CHECK(strcmp(id_of(3), "") == 0 && strcmp(id_of(0), "") == 0);
	build_id("/tmp", text);
	CHECK(*text == '\0');
	build_id("/no/such/file", text);
	CHECK(*text == '\0');
}
