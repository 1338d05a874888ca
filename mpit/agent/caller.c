/* caller.c - one frame up, by what the compiler says of it. */
#define _GNU_SOURCE
#include "caller.h"

#include <elf.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* DWARF's numbers of the stack pointer. */
#if defined __x86_64__
#define STACK_POINTER 7u
#else
#define STACK_POINTER 31u
#endif

/* How much of a description is read, and how large a frame of a binding may be. */
#define DESCRIPTION_BYTES 1024u
#define FRAME_BYTES (64u << 10)
#define MOST_SEGMENTS 32
#define MOST_REMEMBERED 4

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

/*
 * The library's table of descriptions. Its first segment is where the linker has put it if addresses in the file are
 * offsets in it up to the code; what stands there says whether it is so.
 */
static bool find_table(uintptr_t pc, uint64_t offset, uintptr_t *table)
{
	uintptr_t base = pc - offset;
	Elf64_Phdr segments[MOST_SEGMENTS];
	Elf64_Ehdr header;
	bool covers = false;

	*table = 0;
	if (!copy(base, &header, sizeof header) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
	    header.e_phentsize != sizeof *segments || header.e_phnum > MOST_SEGMENTS ||
	    !copy(base + header.e_phoff, segments, header.e_phnum * sizeof *segments))
		return false;
	for (unsigned i = 0; i < header.e_phnum; i++) {
		const Elf64_Phdr *s = &segments[i];

		if (s->p_type == PT_GNU_EH_FRAME)
			*table = base + s->p_vaddr;
		covers = covers || (s->p_type == PT_LOAD && (s->p_flags & PF_X) != 0 && s->p_vaddr == s->p_offset &&
				    offset >= s->p_offset && offset - s->p_offset < s->p_filesz);
	}
	return covers && *table != 0;
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
	/* The frame begins at a register + offset; the return address is saved at an offset from there; 0: it isn't. */
	uint64_t base;
	int64_t offset, saved;
};

/* The rules at an address, of which `ahead` is the distance from the function's first one. False: others are needed. */
static bool follow(struct bytes *b, uint64_t ahead, struct rules *r)
{
	struct rules remembered[MOST_REMEMBERED], first = *r;
	uint64_t at = 0, reg;
	unsigned depth = 0;

	while (!b->failed && b->at < b->end && at <= ahead) {
		unsigned byte = (unsigned)take(b, 1), low = byte & 0x3f;

		switch (byte >> 6) {
		case 1: at += low * r->code_unit; continue;
		case 2: /* offset */
			reg = take_uleb(b);
			if (low == r->address_register)
				r->saved = (int64_t)reg * r->data_unit;
			continue;
		case 3: /* restore */
			if (low == r->address_register)
				r->saved = first.saved;
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
	if (take(&common, 1) != 1 || take(&common, 3) != ('z' | 'R' << 8)) /* the version, and "zR" */
		return false;
	r->code_unit = take_uleb(&common);
	r->data_unit = take_sleb(&common);
	r->address_register = take(&common, 1);
	if (take_uleb(&common) != 1 || take(&common, 1) != 0x1b || !follow(&common, UINT64_MAX, r))
		return false;
	begin = description + 8 + (uintptr_t)(intptr_t)(int32_t)take(&b, 4);
	range = (uint32_t)take(&b, 4);
	if (pc < begin || pc - begin >= range || take_uleb(&b) != 0)
		return false;
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
	return description != 0 && rules_at(description, pc, r) && r->base == STACK_POINTER && r->offset > 0 &&
	       r->offset <= (int64_t)FRAME_BYTES && r->saved < 0 && r->saved >= -r->offset;
}

bool caller_of(const struct stack_frame *of, uint64_t offset, struct stack_frame *out)
{
	struct rules r;

	if (of->stack == 0 || !frame_rules(of->from, offset, &r))
		return false;
	out->stack = of->stack + (uintptr_t)r.offset;
	return copy(out->stack - (uintptr_t)-r.saved, &out->from, sizeof out->from);
}

uint32_t frame_of(uintptr_t from, uint64_t offset)
{
	struct rules r;

	return frame_rules(from, offset, &r) && r.saved == -(int64_t)sizeof from ? (uint32_t)r.offset : 0;
}
