/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How a function's caller is found from a point in its code: rules, which user space takes from the
 * call frame information of an ELF file (DWARF 5, 6.4; LSB 5.0, 10.6 "Exception Frames"), in a form
 * that a BPF program can follow.
 *
 * The CFA is the value of the stack pointer before the call. The two registers that rules are built
 * on are the stack pointer and the frame pointer: rbp, x29.
 */
#ifndef WORKLOAD_ABI_UNWIND_H
#define WORKLOAD_ABI_UNWIND_H

#include "abi/kernel_types.h"

enum unwind_kind {
	UNWIND_NONE, /* nothing is known here, or nothing that these rules can say */
	UNWIND_CFA, /* CFA = base + cfa_offset */
	UNWIND_CFA_AT, /* CFA = the word at base + cfa_offset, plus cfa_add */
	UNWIND_PLT, /* CFA = sp + cfa_offset, plus 8 from byte cfa_add of a 16-byte entry on */
	UNWIND_SIGNAL, /* x86-64: the kernel has left all registers on the stack */
	UNWIND_SWITCH, /* x86-64: the caller is on another stack, by frame pointer */
	UNWIND_EPILOGUE, /* as the instructions say that are executed next; else UNWIND_CFA */
	UNWIND_END, /* the first function of a thread: it has no caller */
	UNWIND_KINDS,
};

enum unwind_base { UNWIND_SP, UNWIND_FP, UNWIND_BASES };

/* Where the caller's value of a register is. */
enum unwind_place {
	UNWIND_KEPT, /* in the register: it has not been changed */
	UNWIND_AT_CFA, /* at CFA + offset */
	UNWIND_AT_FP, /* at the frame pointer + offset; of the frame pointer only */
	UNWIND_LOST, /* not known */
	UNWIND_PLACES,
};

/* Members that a kind does not speak of are 0, so that equal rules are equal bytes. */
struct unwind_rule {
	__u32 kind;
	__u32 base;
	__u32 fp_place;
	__u32 ra_place; /* of the return address: KEPT is the link register, AT_CFA the stack */
	__s32 cfa_offset;
	__s32 cfa_add;
	__s32 fp_offset;
	__s32 ra_offset;
};
_Static_assert(sizeof(struct unwind_rule) == 32, "struct unwind_rule has a hole");

/*
 * Tables of files, written by user space. A row is 32 bits: the low 16 of the address from which on
 * a rule holds, and the index of that rule; two rows are in an element of `unwind_rows`, as the
 * kernel gives each 8 bytes. The rows of 64 KiB of addresses are a page, whose first row may be
 * that of the page before: the one that holds at its beginning.
 */
#define UNWIND_ROWS_MAX_ALL (2U << 20)
#define UNWIND_RULES_MAX_ALL 16384U
#define UNWIND_PAGES_MAX 65536U
#define UNWIND_FILES_MAX 4096U /* 0 is none */
#define UNWIND_PAGE_BITS 16

static inline __u32 unwind_row(__u64 address, __u32 rule)
{
	return (__u32)(address & 0xffff) << 16 | rule;
}

static inline __u32 unwind_row_low(__u32 row)
{
	return row >> 16;
}

static inline __u32 unwind_row_rule(__u32 row)
{
	return row & 0xffff;
}

/* Array `unwind_pages`. */
struct unwind_page {
	__u32 first; /* row */
	__u32 rows;
};
_Static_assert(sizeof(struct unwind_page) == 8, "struct unwind_page has a hole");

/* Array `unwind_files`. */
struct unwind_file {
	__u64 begin; /* address, as linked, of its first page */
	__u32 page;
	__u32 pages; /* UNWIND_ONE_RULE: `page` is the index of the rule that holds everywhere */
};
#define UNWIND_ONE_RULE (~0U)
_Static_assert(sizeof(struct unwind_file) == 16, "struct unwind_file has a hole");

/* A part of a process that holds code. */
struct code_range {
	__u64 begin, end;
	__u64 bias; /* from an address as linked to one in the process */
	__u32 file; /* 0: of none */
	__u32 zero;
};
_Static_assert(sizeof(struct code_range) == 32, "struct code_range has a hole");

#define CODE_RANGES_MAX 256U /* a power of two */
#define CODE_PROCESSES_MAX 512U

/* Array `process_code`, written by user space: seq is odd meanwhile. */
struct process_code {
	__u64 seq;
	__u64 owner; /* a number that no other process has had; 0: none */
	__u64 missed; /* set by programs: a stack went where no range is */
	__u32 len;
	__u32 zero;
	struct code_range ranges[CODE_RANGES_MAX]; /* by address */
};
_Static_assert(sizeof(struct process_code) == 32 + 32 * CODE_RANGES_MAX,
	       "struct process_code has a hole");

#endif
