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

#endif
