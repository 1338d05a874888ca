/* caller.c - one frame up, by what the compiler says of it. */
#define _GNU_SOURCE
#include "caller.h"

#include "source.h"

#include <elf.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* DWARF's numbers of the stack pointer and the frame pointer. */
#if defined __x86_64__
#define STACK_POINTER 7u
#define FRAME_POINTER 6u
#else
#define STACK_POINTER 31u
#define FRAME_POINTER 29u
#endif

/* How much of a description is read, and how large a frame of a binding may be. */
#define DESCRIPTION_BYTES 1024u
#define FRAME_BYTES (64u << 10)
#define MOST_SEGMENTS 32
#define MOST_REMEMBERED 4
#define MOST_SAVED 512 /* how far from the begin of a frame the frame pointer is saved, in bytes */

enum binding binding_of(const char *path)
{
	static const char *const native[] = { "libmpi_mpifh", "libmpi_usempi", "libmpifort", "libmpichfort", "libmpi_cxx",
					      "libmpicxx", "libmpichcxx" };
	const char *slash = strrchr(path, '/'), *base = slash == NULL ? path : slash + 1;

	for (size_t i = 0; i < sizeof native / sizeof *native; i++)
		if (strncmp(base, native[i], strlen(native[i])) == 0)
			return BINDING_NATIVE;
	return strstr(path, "/mpi4py/") != NULL ? BINDING_PYTHON : BINDING_NONE;
}

static bool copy(uintptr_t address, void *to, size_t length)
{
	struct iovec local = { to, length }, remote = { (void *)address, length };

	return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)length;
}

/* ---- where the description is ---- */

/* The file's table of descriptions. The file begins as far before the code in memory as it does on the disk, or what stands
 * there is none. */
static bool find_table(uintptr_t pc, uint64_t offset, uintptr_t *table)
{
	uintptr_t base = pc - offset;
	Elf64_Phdr segments[MOST_SEGMENTS];
	Elf64_Ehdr header;
	uintptr_t moved = 0, relative = 0; /* from addresses in the file to those in memory; of the table in the file */
	bool covers = false;

	if (!copy(base, &header, sizeof header) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
	    header.e_phentsize != sizeof *segments || header.e_phnum > MOST_SEGMENTS ||
	    !copy(base + header.e_phoff, segments, header.e_phnum * sizeof *segments))
		return false;
	for (unsigned i = 0; i < header.e_phnum; i++) {
		const Elf64_Phdr *s = &segments[i];

		if (s->p_type == PT_GNU_EH_FRAME)
			relative = s->p_vaddr;
		if (s->p_type == PT_LOAD && (s->p_flags & PF_X) != 0 && offset >= s->p_offset &&
		    offset - s->p_offset < s->p_filesz) {
			moved = base + s->p_offset - s->p_vaddr;
			covers = true;
		}
	}
	*table = moved + relative;
	return covers && relative != 0;
}

/* The description of the last function that begins at or before an address; 0: none. */
static uintptr_t find_description(uintptr_t table, uintptr_t pc)
{
	/* Version 1; the encodings that linkers use: what follows, a count, pairs of 4 bytes relative to the table. */
	static const unsigned char usual[] = { 1, 0x1b, 0x03, 0x3b };
	struct {
		unsigned char encodings[4];
		int32_t frames;
		uint32_t count;
	} head;
	struct {
		int32_t begin, description;
	} entry, best = { 0, 0 };

	if (!copy(table, &head, sizeof head) || memcmp(head.encodings, usual, sizeof usual) != 0)
		return 0;
	for (uint32_t low = 0, high = head.count; low < high;) {
		uint32_t middle = low + (high - low) / 2;

		if (!copy(table + sizeof head + middle * sizeof entry, &entry, sizeof entry))
			return 0;
		if (table + (uintptr_t)(intptr_t)entry.begin <= pc) {
			best = entry;
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return best.description == 0 ? 0 : table + (uintptr_t)(intptr_t)best.description;
}

/* ---- what it says ---- */

/* Bytes of a description. Reading beyond the end fails it. */
struct bytes {
	unsigned char bytes[DESCRIPTION_BYTES];
	size_t at, end;
	bool failed;
};

/* A record of .eh_frame, without its length. */
static bool read_record(uintptr_t address, struct bytes *b)
{
	uint32_t length;

	*b = (struct bytes){ 0 };
	if (!copy(address, &length, sizeof length) || length < 4 || length > sizeof b->bytes)
		return false;
	b->end = length;
	return copy(address + sizeof length, b->bytes, length);
}

static uint64_t take(struct bytes *b, size_t length)
{
	uint64_t value = 0;

	if (length > b->end - b->at) {
		b->failed = true;
		b->at = b->end;
		return 0;
	}
	for (size_t i = 0; i < length; i++)
		value |= (uint64_t)b->bytes[b->at + i] << 8 * i;
	b->at += length;
	return value;
}

static uint64_t take_uleb(struct bytes *b)
{
	uint64_t value = 0, byte;

	for (unsigned shift = 0; shift < 63; shift += 7) {
		byte = take(b, 1);
		value |= (byte & 0x7f) << shift;
		if (byte < 0x80)
			return value;
	}
	b->failed = true;
	return 0;
}

static int64_t take_sleb(struct bytes *b)
{
	uint64_t value = 0, byte;

	for (unsigned shift = 0; shift < 56; shift += 7) {
		byte = take(b, 1);
		value |= (byte & 0x7f) << shift;
		if (byte < 0x80)
			return (byte & 0x40) != 0 ? (int64_t)(value | ~(uint64_t)0 << (shift + 7)) : (int64_t)value;
	}
	b->failed = true;
	return 0;
}

/* What all descriptions of a library have in common, and what is known of one frame at an address. */
struct rules {
	uint64_t code_unit, address_register;
	int64_t data_unit;
	/* The frame begins at a register + offset; the return address and the frame pointer are saved at offsets from there;
	 * 0: they aren't. */
	uint64_t base;
	int64_t offset, saved, pointer;
};

/* Where a register is saved, if it is one of these. */
static int64_t *saved_at(struct rules *r, uint64_t reg)
{
	return reg == r->address_register ? &r->saved : reg == FRAME_POINTER ? &r->pointer : NULL;
}

/* The rules at an address, of which `ahead` is the distance from the function's first one. False: others are needed. */
static bool follow(struct bytes *b, uint64_t ahead, struct rules *r)
{
	struct rules remembered[MOST_REMEMBERED], first = *r;
	int64_t ignored, *to;
	unsigned depth = 0;
	uint64_t at = 0;

	while (!b->failed && b->at < b->end && at <= ahead) {
		unsigned byte = (unsigned)take(b, 1), low = byte & 0x3f;

		switch (byte >> 6) {
		case 1: at += low * r->code_unit; continue;
		case 2: /* offset */
			to = saved_at(r, low);
			*(to == NULL ? &ignored : to) = (int64_t)take_uleb(b) * r->data_unit;
			continue;
		case 3: /* restore */
			to = saved_at(r, low);
			if (to != NULL)
				*to = *saved_at(&first, low);
			continue;
		}
		switch (byte) {
		case 0x00: break;                                     /* nop */
		case 0x02: at += take(b, 1) * r->code_unit; break;    /* advance_loc1 */
		case 0x03: at += take(b, 2) * r->code_unit; break;    /* advance_loc2 */
		case 0x04: at += take(b, 4) * r->code_unit; break;    /* advance_loc4 */
		case 0x0a:                                            /* remember_state */
			if (depth == MOST_REMEMBERED)
				return false;
			remembered[depth++] = *r;
			break;
		case 0x0b: /* restore_state */
			if (depth == 0)
				return false;
			*r = remembered[--depth];
			break;
		case 0x0c: /* def_cfa */
			r->base = take_uleb(b);
			r->offset = (int64_t)take_uleb(b);
			break;
		case 0x0d: r->base = take_uleb(b); break;            /* def_cfa_register */
		case 0x0e: r->offset = (int64_t)take_uleb(b); break; /* def_cfa_offset */
		case 0x2e: take_uleb(b); break;                      /* GNU_args_size */
		default: return false;
		}
	}
	return !b->failed;
}

static void take_bytes(struct bytes *b, uint64_t count)
{
	if (count > b->end - b->at)
		b->failed = true;
	else
		b->at += count;
}

/* What stands before the rules that functions have in common: "zR", of C++ "zPLR". */
static bool read_common(struct bytes *b, struct rules *r)
{
	char letters[5] = { 0 };
	uint64_t end;

	for (size_t i = 0; i < sizeof letters && (letters[i] = (char)take(b, 1)) != '\0'; i++)
		;
	r->code_unit = take_uleb(b);
	r->data_unit = take_sleb(b);
	r->address_register = take(b, 1);
	end = take_uleb(b);
	if (b->failed || letters[0] != 'z' || end > b->end - b->at)
		return false;
	end += b->at;
	for (size_t i = 1; i < sizeof letters && letters[i] != '\0'; i++)
		switch (letters[i]) {
		case 'R': /* how a function's begin is written */
			if (take(b, 1) != 0x1b)
				return false;
			break;
		case 'P': /* what handles exceptions: 4 bytes, or 8 */
			take_bytes(b, (take(b, 1) & 7) == 3 ? 4 : 8);
			break;
		case 'L': take(b, 1); break;
		default: return false;
		}
	return !b->failed && b->at == end;
}

static bool rules_at(uintptr_t description, uintptr_t pc, struct rules *r)
{
	struct bytes b, common;
	uintptr_t begin;
	uint32_t range;

	if (!read_record(description, &b))
		return false;
	/* Relative to where it stands, as is the function's begin. */
	if (!read_record(description + 4 - (uintptr_t)take(&b, 4), &common) || take(&common, 4) != 0)
		return false;
	if (take(&common, 1) != 1 || !read_common(&common, r) || !follow(&common, UINT64_MAX, r))
		return false;
	begin = description + 8 + (uintptr_t)(intptr_t)(int32_t)take(&b, 4);
	range = (uint32_t)take(&b, 4);
	if (pc < begin || pc - begin >= range)
		return false;
	take_bytes(&b, take_uleb(&b)); /* where a function's handlers of exceptions are */
	return follow(&b, pc - begin, r);
}

/* What is known of a frame whose code has called something: of the call itself, as behind it another function may
 * begin. */
static bool frame_rules(uintptr_t from, uint64_t offset, struct rules *r)
{
	uintptr_t pc = from - 1, table, description;

	*r = (struct rules){ 0 };
	if (!find_table(pc, offset - 1, &table))
		return false;
	description = find_description(table, pc);
	return description != 0 && rules_at(description, pc, r) && r->offset > 0 && r->offset <= (int64_t)FRAME_BYTES &&
	       r->saved < 0 && r->saved >= -r->offset;
}

bool caller_of(const struct stack_frame *of, uint64_t offset, struct stack_frame *out)
{
	struct rules r;

	if (of->stack == 0 || !frame_rules(of->from, offset, &r) || r.base != STACK_POINTER)
		return false;
	out->stack = of->stack + (uintptr_t)r.offset;
	return copy(out->stack - (uintptr_t)-r.saved, &out->from, sizeof out->from);
}

uint32_t frame_of(uintptr_t from, uint64_t offset)
{
	struct rules r;

	if (!frame_rules(from, offset, &r) || r.saved != -(int64_t)sizeof from || r.pointer > 0 || r.pointer < -MOST_SAVED ||
	    r.offset % 8 != 0 || r.pointer % 8 != 0 || (r.base != STACK_POINTER && r.base != FRAME_POINTER))
		return SITE_HERE;
	return SITE_HERE | SITE_FRAME(r.offset, -r.pointer) | (r.base == FRAME_POINTER ? SITE_BY_POINTER : 0);
}
