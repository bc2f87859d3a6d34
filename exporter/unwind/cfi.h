/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call frame information: a program for each function, which says for each of its instructions
 * where the caller's registers are (DWARF 5, 6.4). Only two of these matter here, see abi/unwind.h.
 * The bytes are hostile: every step is bounded by them, and what is not understood is an error.
 */
#ifndef WORKLOAD_UNWIND_CFI_H
#define WORKLOAD_UNWIND_CFI_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/unwind.h"
#include "unwind/reader.h"

#define CFI_REMEMBERED_MAX 8 /* compilers remember one or two states */

/* The numbers that DWARF gives to the registers of a machine. */
struct cfi_machine {
	uint64_t sp, fp, ra;
};

enum cfi_place { CFI_KEPT, CFI_AT_CFA, CFI_AT_FP, CFI_UNDEFINED, CFI_ELSEWHERE };

struct cfi_register {
	enum cfi_place place;
	int64_t offset;
};

/* What holds at one instruction of the function. */
struct cfi_state {
	enum unwind_kind cfa; /* one of those that speak of the CFA, or UNWIND_NONE */
	uint64_t cfa_register;
	int64_t cfa_offset, cfa_add;
	int64_t offset; /* the last that was not part of an expression: it outlives one */
	struct cfi_register fp, ra;
};

/* What functions have in common (a CIE). */
struct cfi_common {
	const struct cfi_machine *machine;
	uint64_t code_factor;
	int64_t data_factor;
	uint8_t encoding; /* of pointers */
	bool augmented, signal; /* the latter: a frame that the kernel made for a signal */
	struct cfi_state state; /* with which each function begins */
};

struct cfi_program {
	const struct cfi_common *common; /* borrowed */
	struct reader code;
	uint64_t address; /* of the instruction that is described next */
	struct cfi_state state;
	struct cfi_state remembered[CFI_REMEMBERED_MAX];
	unsigned int remembered_len;
	bool over;
};

/* Runs @code, the program of a CIE, into common->state. 0 or -EINVAL. */
int cfi_common_run(struct cfi_common *common, struct reader code);

/* The program of a function that begins at @address. */
void cfi_begin(struct cfi_program *program, const struct cfi_common *common, struct reader code,
	       uint64_t address);

/*
 * Runs to where the state changes: program->state holds from *begin up to program->address, and at
 * the end of the program up to the end of the function. 1, 0 if there is no more, -EINVAL.
 */
int cfi_next(struct cfi_program *program, uint64_t *begin);

/* What @state says as a rule. False: rules cannot say it, and *rule is none. */
bool cfi_rule(const struct cfi_common *common, const struct cfi_state *state,
	      struct unwind_rule *rule);

#endif
