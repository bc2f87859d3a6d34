/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/effects.h"

#include <Zydis/Zydis.h>
#include <errno.h>
#include <stdlib.h>

#define WORD 8
#define FRAME_MAX (1 << 28) /* bytes of a frame: sums of them do not overflow */
#define RED_ZONE 128 /* below the stack pointer, which nothing else writes to (ABI, 3.2.2) */
#define TABLE_MAX 4096 /* targets of a jump */

struct effects {
	ZydisDecoder decoder;
	uint64_t address; /* of the instruction that is looked at */
	ZydisDecodedInstruction instruction;
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
};

/* --- operands -------------------------------------------------------------------------------- */

static bool is_register(const ZydisDecodedOperand *operand, ZydisRegister reg)
{
	return operand->type == ZYDIS_OPERAND_TYPE_REGISTER && operand->reg.value == reg;
}

static bool is_immediate(const ZydisDecodedOperand *operand)
{
	return operand->type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
}

/* It is @reg + *offset in memory. */
static bool is_at(const ZydisDecodedOperand *operand, ZydisRegister reg, int64_t *offset)
{
	*offset = operand->mem.disp.value;
	return operand->type == ZYDIS_OPERAND_TYPE_MEMORY && operand->mem.base == reg &&
	       operand->mem.index == ZYDIS_REGISTER_NONE &&
	       operand->mem.segment != ZYDIS_REGISTER_FS &&
	       operand->mem.segment != ZYDIS_REGISTER_GS;
}

/* The address that an operand names; 0: none. */
static uint64_t address_of(const struct effects *effects, const ZydisDecodedOperand *operand)
{
	uint64_t address;

	return ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(&effects->instruction, operand,
						     effects->address, &address))
		       ? address
		       : 0;
}

/* --- what becomes of the two registers -------------------------------------------------------- */

static void sp_set(struct effects_state *state, bool known, int64_t sp)
{
	state->sp_known = known && sp > -FRAME_MAX && sp < FRAME_MAX;
	state->sp = state->sp_known ? (int32_t)sp : 0;
	state->taken |= state->sp_known && sp < WORD;
	if (state->sp_known && state->fp_at < -state->sp - RED_ZONE)
		state->fp_at = 0; /* what is there is given up */
}

static void sp_move(struct effects_state *state, int64_t bytes)
{
	sp_set(state, state->sp_known && bytes > -FRAME_MAX && bytes < FRAME_MAX,
	       state->sp - bytes);
}

/* It is CFA - @fp; 0: anything. */
static void fp_set(struct effects_state *state, int64_t fp)
{
	state->fp = fp > -FRAME_MAX && fp < FRAME_MAX ? (int32_t)fp : 0;
	state->fp_changed = true;
}

/* It gets what is at CFA + @at. */
static void fp_load(struct effects_state *state, bool known, int64_t at)
{
	fp_set(state, 0);
	if (!known || !state->fp_at || at != state->fp_at)
		return;
	state->fp_changed = false;
	state->fp_at = 0; /* it is in its register again */
}

/* The frame pointer is written to CFA + @at. */
static void fp_store(struct effects_state *state, bool known, int64_t at)
{
	if (known && !state->fp_changed && !state->fp_at && at > -FRAME_MAX && at <= -2 * WORD)
		state->fp_at = (int32_t)at;
}

/* --- instructions ---------------------------------------------------------------------------- */

/* What is below the stack pointer is written over. */
static void give_up(struct effects_state *state)
{
	if (state->sp_known && state->fp_at < -state->sp)
		state->fp_at = 0;
}

static bool push(const ZydisDecodedOperand *pushed, struct effects_state *state)
{
	give_up(state);
	sp_move(state, -WORD);
	if (is_register(pushed, ZYDIS_REGISTER_RBP))
		fp_store(state, state->sp_known, -state->sp);
	return true;
}

static bool pop(const ZydisDecodedOperand *popped, struct effects_state *state)
{
	if (is_register(popped, ZYDIS_REGISTER_RBP))
		fp_load(state, state->sp_known, -state->sp);
	sp_move(state, WORD);
	if (is_register(popped, ZYDIS_REGISTER_RSP))
		sp_set(state, false, 0);
	return true;
}

static bool leave(struct effects_state *state)
{
	sp_set(state, state->fp, state->fp);
	fp_load(state, state->sp_known, -state->sp);
	sp_move(state, WORD);
	return true;
}

static bool add(const ZydisDecodedOperand *to, const ZydisDecodedOperand *what, int sign,
		struct effects_state *state)
{
	if (!is_register(to, ZYDIS_REGISTER_RSP))
		return false;
	if (is_immediate(what))
		sp_move(state, sign * what->imm.value.s);
	else
		sp_set(state, false, 0);
	return true;
}

/* An address of the frame as a distance: CFA - address. */
static bool distance(const ZydisDecodedOperand *operand, const struct effects_state *state,
		     int64_t *out)
{
	int64_t offset;

	if (is_at(operand, ZYDIS_REGISTER_RSP, &offset) && state->sp_known)
		*out = state->sp - offset;
	else if (is_at(operand, ZYDIS_REGISTER_RBP, &offset) && state->fp)
		*out = state->fp - offset;
	else
		return false;
	return true;
}

static bool lea(const ZydisDecodedOperand *to, const ZydisDecodedOperand *what,
		struct effects_state *state)
{
	int64_t from = 0;
	bool known = distance(what, state, &from);

	if (is_register(to, ZYDIS_REGISTER_RSP))
		sp_set(state, known, from);
	else if (is_register(to, ZYDIS_REGISTER_RBP))
		fp_set(state, known ? from : 0);
	else
		return false;
	return true;
}

static bool move(const ZydisDecodedOperand *to, const ZydisDecodedOperand *what,
		 struct effects_state *state)
{
	int64_t from = 0;

	if (is_register(to, ZYDIS_REGISTER_RBP) && is_register(what, ZYDIS_REGISTER_RSP))
		fp_set(state, state->sp_known ? state->sp : 0);
	else if (is_register(to, ZYDIS_REGISTER_RSP) && is_register(what, ZYDIS_REGISTER_RBP))
		sp_set(state, state->fp, state->fp);
	else if (is_register(to, ZYDIS_REGISTER_RBP) && distance(what, state, &from))
		fp_load(state, true, -from);
	else if (is_register(what, ZYDIS_REGISTER_RBP) && distance(to, state, &from))
		fp_store(state, true, -from);
	else
		return false;
	return true;
}

/* xor %ebp, %ebp: what marks the first function of a thread (System V ABI for x86-64, 3.4.1). */
static bool clear(const ZydisDecodedOperand *to, const ZydisDecodedOperand *what,
		  struct effects_state *state)
{
	if (!(is_register(to, ZYDIS_REGISTER_EBP) && is_register(what, ZYDIS_REGISTER_EBP)) &&
	    !(is_register(to, ZYDIS_REGISTER_RBP) && is_register(what, ZYDIS_REGISTER_RBP)))
		return false;
	state->fp_cleared = !state->fp_changed && !state->fp_at;
	fp_set(state, 0);
	return true;
}

/* What it calls gives them back; but some call what is behind them, for its address. */
static bool call(const struct effects *effects, struct effects_state *state)
{
	give_up(state);
	if (is_immediate(&effects->operands[0]) &&
	    address_of(effects, &effects->operands[0]) ==
		    effects->address + effects->instruction.length)
		sp_move(state, -WORD);
	return true;
}

/* What is known to be done to the two registers; false: nothing is. */
static bool known(const struct effects *effects, struct effects_state *state)
{
	const ZydisDecodedOperand *operands = effects->operands;

	if (effects->instruction.operand_width == 16)
		return false; /* it moves the stack pointer by less */
	switch (effects->instruction.mnemonic) {
	case ZYDIS_MNEMONIC_CALL:
		return call(effects, state);
	case ZYDIS_MNEMONIC_PUSH:
		return push(&operands[0], state);
	case ZYDIS_MNEMONIC_POP:
		return pop(&operands[0], state);
	case ZYDIS_MNEMONIC_PUSHFQ:
		give_up(state);
		sp_move(state, -WORD);
		return true;
	case ZYDIS_MNEMONIC_POPFQ:
		sp_move(state, WORD);
		return true;
	case ZYDIS_MNEMONIC_LEAVE:
		return leave(state);
	case ZYDIS_MNEMONIC_ADD:
		return add(&operands[0], &operands[1], 1, state);
	case ZYDIS_MNEMONIC_SUB:
		return add(&operands[0], &operands[1], -1, state);
	case ZYDIS_MNEMONIC_LEA:
		return lea(&operands[0], &operands[1], state);
	case ZYDIS_MNEMONIC_MOV:
		return move(&operands[0], &operands[1], state);
	case ZYDIS_MNEMONIC_XOR:
		return clear(&operands[0], &operands[1], state);
	default:
		return false;
	}
}

/* Anything else that is written to them, in whole or in part. */
static void unknown(const struct effects *effects, struct effects_state *state)
{
	for (uint8_t i = 0; i < effects->instruction.operand_count; i++) {
		const ZydisDecodedOperand *operand = &effects->operands[i];
		ZydisRegister whole;

		if (operand->type != ZYDIS_OPERAND_TYPE_REGISTER ||
		    !(operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			continue;
		whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64,
							 operand->reg.value);
		if (whole == ZYDIS_REGISTER_RSP)
			sp_set(state, false, 0);
		else if (whole == ZYDIS_REGISTER_RBP)
			fp_set(state, 0);
	}
}

/* --- where it goes on ------------------------------------------------------------------------ */

static enum effects_way way_of(const ZydisDecodedInstruction *instruction)
{
	switch (instruction->mnemonic) {
	case ZYDIS_MNEMONIC_JMP:
		return EFFECTS_JUMP;
	case ZYDIS_MNEMONIC_RET:
		return EFFECTS_RETURN;
	case ZYDIS_MNEMONIC_HLT:
	case ZYDIS_MNEMONIC_INT3:
	case ZYDIS_MNEMONIC_UD0:
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_UD2:
		return EFFECTS_END;
	default:
		break;
	}
	switch (instruction->meta.category) {
	case ZYDIS_CATEGORY_CALL:
		return EFFECTS_CALL;
	case ZYDIS_CATEGORY_COND_BR:
		return EFFECTS_BRANCH;
	case ZYDIS_CATEGORY_RET: /* from an interrupt */
		return EFFECTS_END;
	default:
		return EFFECTS_ON;
	}
}

static bool is_filler(const ZydisDecodedInstruction *instruction)
{
	return instruction->meta.category == ZYDIS_CATEGORY_NOP ||
	       instruction->meta.category == ZYDIS_CATEGORY_WIDENOP;
}

static void targets_find(const struct effects *effects, struct effects_step *step)
{
	const ZydisDecodedOperand *operands = effects->operands;
	int64_t offset;

	if (step->way >= EFFECTS_CALL && step->way <= EFFECTS_JUMP && is_immediate(&operands[0]))
		step->target = address_of(effects, &operands[0]);
	if (effects->instruction.mnemonic == ZYDIS_MNEMONIC_LEA &&
	    is_at(&operands[1], ZYDIS_REGISTER_RIP, &offset))
		step->function = address_of(effects, &operands[1]);
}

/* --- jumps by a table ------------------------------------------------------------------------ */

static bool writes_flags(const ZydisDecodedInstruction *instruction)
{
	const ZydisAccessedFlags *flags = instruction->cpu_flags;

	return flags && (flags->modified | flags->set_0 | flags->set_1 | flags->undefined);
}

/*
 * What gcc and clang make of a switch in code that can be at any address: cmp $n, x; ja default;
 * lea table(%rip), base; movslq (base, x, 4), y; add base, y; jmp *y.
 */
static void table_note(const struct effects *effects, struct effects_state *state,
		       struct effects_step *step)
{
	const ZydisDecodedOperand *operands = effects->operands;
	const ZydisMnemonic mnemonic = effects->instruction.mnemonic;
	const bool jumps_by_register = step->way == EFFECTS_JUMP &&
				       operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER;

	if (mnemonic == ZYDIS_MNEMONIC_CMP) {
		const int64_t last = is_immediate(&operands[1]) ? operands[1].imm.value.s : -1;

		state->compared = last >= 0 && last < TABLE_MAX ? (uint32_t)last + 1 : 0;
	} else if (mnemonic == ZYDIS_MNEMONIC_JNBE && state->compared) {
		state->below = state->compared;
		state->compared = 0;
	} else if (step->function) {
		state->table = state->below ? step->function : 0;
		state->table_len = state->below;
		state->below = 0;
	} else if (step->way != EFFECTS_ON) {
		step->table = jumps_by_register ? state->table : 0;
		step->table_len = jumps_by_register ? state->table_len : 0;
		state->table = state->table_len = state->below = state->compared = 0;
	} else if (writes_flags(&effects->instruction)) {
		state->compared = 0; /* the flags are of something else now */
	}
}

/* --- all of it ------------------------------------------------------------------------------- */

bool effects_step(struct effects *effects, const uint8_t *bytes, size_t len, uint64_t address,
		  struct effects_state *state, struct effects_step *step)
{
	const ZydisDecodedInstruction *instruction = &effects->instruction;

	if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&effects->decoder, bytes, len,
						 &effects->instruction, effects->operands)))
		return false;
	effects->address = address;
	*step = (struct effects_step){ .way = way_of(instruction),
				       .bytes = instruction->length,
				       .filler = is_filler(instruction) };
	targets_find(effects, step);
	table_note(effects, state, step);
	if (!known(effects, state))
		unknown(effects, state);
	return true;
}

int effects_new(struct effects **out)
{
	struct effects *effects = calloc(1, sizeof(*effects));

	if (!effects)
		return -ENOMEM;
	ZydisDecoderInit(&effects->decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	*out = effects;
	return 0;
}

void effects_free(struct effects *effects)
{
	free(effects);
}
