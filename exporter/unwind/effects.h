/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What instructions of x86-64 do to the frame of the function that they are of. They are decoded by
 * the library Zydis; any bytes can be told to be instructions.
 */
#ifndef WORKLOAD_UNWIND_EFFECTS_H
#define WORKLOAD_UNWIND_EFFECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What holds before an instruction. */
struct effects_state {
	int32_t sp; /* CFA = stack pointer + sp, if that is known */
	int32_t fp; /* CFA = frame pointer + fp; 0: it is not one */
	int32_t fp_at; /* the caller's frame pointer is at CFA + fp_at; 0: it is not in the frame */
	bool sp_known;
	bool fp_changed; /* the caller's frame pointer is not in its register */
	bool taken; /* the return address was: what is in its place may be another number */
	bool fp_cleared; /* by a function that has not saved it */
	/* What leads to a jump by a table, on the way to it without branches but one: */
	uint32_t compared; /* that what was compared is below; 0: it was not, or with much */
	uint32_t below; /* that it is below, as a branch was not taken */
	uint32_t table_len; /* `below` when the address of the table was taken; 0: of none */
	uint64_t table;
};

/* Where a function begins: the return address is on the stack. */
#define EFFECTS_BEGIN                     \
	{                                 \
		.sp = 8, .sp_known = true \
	}

enum effects_way {
	EFFECTS_ON, /* to the next instruction */
	EFFECTS_CALL, /* there as well, once what it calls returns */
	EFFECTS_BRANCH, /* there, or to the target */
	EFFECTS_JUMP, /* to the target */
	EFFECTS_RETURN, /* to the caller */
	EFFECTS_END, /* nowhere: it traps */
};

struct effects_step {
	enum effects_way way;
	uint32_t bytes; /* of the instruction */
	bool filler; /* it does nothing */
	uint64_t target; /* address; 0: it names none */
	uint64_t function; /* whose address it takes, maybe; 0: none */
	uint64_t table; /* of a jump that names no target: address of offsets of them from there */
	uint32_t table_len; /* of 4 bytes each; 0: it is not known */
};

struct effects;

/* 0 with *@effects, which effects_free() releases; -ENOMEM. */
int effects_new(struct effects **effects);

/*
 * The instruction that the bytes begin with, which are at @address: what comes of it, and @state is
 * that behind it. False: it is none.
 */
bool effects_step(struct effects *effects, const uint8_t *bytes, size_t len, uint64_t address,
		  struct effects_state *state, struct effects_step *step);

/* NULL is nothing. */
void effects_free(struct effects *effects);

#endif
