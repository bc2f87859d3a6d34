/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/cfi.h"

#include <errno.h>
#include <string.h>

/* DWARF 5, table 7.29; the last three are extensions of Arm and GNU. */
enum {
	CFA_ADVANCE = 0x40, /* these three hold an operand in their low six bits */
	CFA_OFFSET = 0x80,
	CFA_RESTORE = 0xc0,
	CFA_NOP = 0x00,
	CFA_ADVANCE1 = 0x02,
	CFA_ADVANCE2 = 0x03,
	CFA_ADVANCE4 = 0x04,
	CFA_OFFSET_EXTENDED = 0x05,
	CFA_RESTORE_EXTENDED = 0x06,
	CFA_UNDEFINED = 0x07,
	CFA_SAME_VALUE = 0x08,
	CFA_REGISTER = 0x09,
	CFA_REMEMBER = 0x0a,
	CFA_RECALL = 0x0b,
	CFA_DEF_CFA = 0x0c,
	CFA_DEF_CFA_REGISTER = 0x0d,
	CFA_DEF_CFA_OFFSET = 0x0e,
	CFA_DEF_CFA_EXPRESSION = 0x0f,
	CFA_EXPRESSION = 0x10,
	CFA_OFFSET_SIGNED = 0x11,
	CFA_DEF_CFA_SIGNED = 0x12,
	CFA_DEF_CFA_OFFSET_SIGNED = 0x13,
	CFA_VALUE_OFFSET = 0x14,
	CFA_VALUE_OFFSET_SIGNED = 0x15,
	CFA_VALUE_EXPRESSION = 0x16,
	CFA_NEGATE_RA_STATE_WITH_PC = 0x2c,
	CFA_NEGATE_RA_STATE = 0x2d,
	CFA_ARGS_SIZE = 0x2e,
};
#define CFA_HIGH 0xc0
#define CFA_OPERAND 0x3f

/* DWARF 5, table 7.9. */
enum {
	OP_DEREF = 0x06,
	OP_AND = 0x1a,
	OP_PLUS = 0x22,
	OP_PLUS_CONSTANT = 0x23,
	OP_SHL = 0x24,
	OP_GE = 0x2a,
	OP_LIT0 = 0x30,
	OP_BREG0 = 0x70,
	OP_BREG31 = 0x8f,
};
#define OP_LIT(n) (OP_LIT0 + (n))
#define X86_RSP 7
#define X86_RIP 16
#define X86_SIGNAL_RSP 160 /* where the kernel puts rsp, from that of the handler on */

/*
 * The expression that linkers give to a PLT of x86-64 (elfxx-x86-64 of bfd, binutils): rsp + 8, and
 * 8 more where rip is N or more bytes behind the beginning of its 16-byte entry, which has pushed
 * by then.
 */
static bool expression_is_plt(struct reader code, uint64_t *pushed)
{
	static const uint8_t before[] = { OP_BREG0 + X86_RSP, 8,     OP_BREG0 + X86_RIP, 0,
					  OP_LIT(15),         OP_AND };
	static const uint8_t after[] = { OP_GE, OP_LIT(3), OP_SHL, OP_PLUS };
	uint8_t literal;

	if (reader_left(&code) != sizeof(before) + 1 + sizeof(after))
		return false;
	literal = code.at[sizeof(before)];
	*pushed = literal - OP_LIT0;
	return memcmp(code.at, before, sizeof(before)) == 0 && *pushed < 16 &&
	       memcmp(code.at + sizeof(before) + 1, after, sizeof(after)) == 0;
}

/* A register and an offset; perhaps the word there; perhaps plus a constant. */
static void run_cfa_expression(struct cfi_state *state, struct reader code)
{
	enum unwind_kind kind = UNWIND_CFA;
	uint64_t pushed;
	uint8_t op;

	state->cfa = UNWIND_NONE;
	state->cfa_add = 0;
	if (expression_is_plt(code, &pushed)) {
		state->cfa = UNWIND_PLT;
		state->cfa_offset = 8;
		state->cfa_add = (int64_t)pushed;
		return;
	}
	op = (uint8_t)reader_number(&code, 1);
	if (op < OP_BREG0 || op > OP_BREG31)
		return;
	state->cfa_register = op - OP_BREG0;
	state->cfa_offset = reader_sleb(&code);
	if (reader_left(&code)) {
		kind = UNWIND_CFA_AT;
		if (reader_number(&code, 1) != OP_DEREF)
			return;
	}
	if (reader_left(&code)) {
		if (reader_number(&code, 1) != OP_PLUS_CONSTANT)
			return;
		state->cfa_add = (int64_t)reader_uleb(&code);
	}
	if (!reader_left(&code) && !code.bad)
		state->cfa = kind;
}

/* Where the caller's value is: of the two registers that matter, NULL for others. */
static struct cfi_register *saved(struct cfi_program *program, uint64_t number)
{
	const struct cfi_machine *machine = program->common->machine;

	if (number == machine->ra)
		return &program->state.ra;
	return number == machine->fp ? &program->state.fp : NULL;
}

static void save(struct cfi_program *program, uint64_t number, enum cfi_place place, int64_t offset)
{
	struct cfi_register *at = saved(program, number);

	if (at)
		*at = (struct cfi_register){ place, offset };
}

static void restore(struct cfi_program *program, uint64_t number)
{
	const struct cfi_state *initial = &program->common->state;
	struct cfi_register *at = saved(program, number);

	if (at)
		*at = at == &program->state.ra ? initial->ra : initial->fp;
}

/* At the frame pointer plus an offset; what other expressions say rules cannot. */
static void save_by_expression(struct cfi_program *program, uint64_t number, struct reader code)
{
	uint8_t op = (uint8_t)reader_number(&code, 1);
	int64_t offset = reader_sleb(&code);
	bool at_fp = op == OP_BREG0 + program->common->machine->fp && !reader_left(&code) &&
		     !code.bad && number == program->common->machine->fp;

	save(program, number, at_fp ? CFI_AT_FP : CFI_ELSEWHERE, offset);
}

static void define_cfa(struct cfi_state *state, uint64_t number, int64_t offset)
{
	state->cfa = UNWIND_CFA;
	state->cfa_register = number;
	state->cfa_offset = state->offset = offset;
	state->cfa_add = 0;
}

/* Another offset: of an expression only the one that outlives it. */
static void define_offset(struct cfi_state *state, int64_t offset)
{
	state->offset = offset;
	if (state->cfa == UNWIND_CFA)
		state->cfa_offset = offset;
}

static int64_t factored(const struct cfi_program *program, int64_t number)
{
	int64_t offset;

	/* A program that overflows says nothing true; what it says is bounded later. */
	__builtin_mul_overflow(number, program->common->data_factor, &offset);
	return offset;
}

/* Instructions about the CFA. False: it is none of them. */
static bool run_cfa(struct cfi_program *program, uint8_t op)
{
	struct cfi_state *state = &program->state;
	struct reader *code = &program->code;
	uint64_t number;

	switch (op) {
	case CFA_DEF_CFA:
		number = reader_uleb(code);
		define_cfa(state, number, (int64_t)reader_uleb(code));
		return true;
	case CFA_DEF_CFA_SIGNED:
		number = reader_uleb(code);
		define_cfa(state, number, factored(program, reader_sleb(code)));
		return true;
	case CFA_DEF_CFA_REGISTER:
		/* Behind an expression as well, as libgcc takes it (its unwind-dw2). */
		define_cfa(state, reader_uleb(code), state->offset);
		return true;
	case CFA_DEF_CFA_OFFSET:
		define_offset(state, (int64_t)reader_uleb(code));
		return true;
	case CFA_DEF_CFA_OFFSET_SIGNED:
		define_offset(state, factored(program, reader_sleb(code)));
		return true;
	case CFA_DEF_CFA_EXPRESSION:
		run_cfa_expression(state, reader_part(code, reader_uleb(code)));
		return true;
	default:
		return false;
	}
}

/* Instructions about a register, whose number comes first. False: it is none of them. */
static bool run_register(struct cfi_program *program, uint8_t op)
{
	struct reader *code = &program->code;
	uint64_t number;

	if (op < CFA_OFFSET_EXTENDED || op > CFA_VALUE_EXPRESSION || op == CFA_REMEMBER ||
	    op == CFA_RECALL)
		return false;
	number = reader_uleb(code);
	switch (op) {
	case CFA_OFFSET_EXTENDED:
		save(program, number, CFI_AT_CFA, factored(program, (int64_t)reader_uleb(code)));
		return true;
	case CFA_OFFSET_SIGNED:
		save(program, number, CFI_AT_CFA, factored(program, reader_sleb(code)));
		return true;
	case CFA_RESTORE_EXTENDED:
		restore(program, number);
		return true;
	case CFA_UNDEFINED:
		save(program, number, CFI_UNDEFINED, 0);
		return true;
	case CFA_SAME_VALUE:
		save(program, number, CFI_KEPT, 0);
		return true;
	case CFA_REGISTER:
	case CFA_VALUE_OFFSET:
	case CFA_VALUE_OFFSET_SIGNED:
		reader_uleb(code); /* of a signed number as well: it has as many bytes */
		save(program, number, CFI_ELSEWHERE, 0);
		return true;
	case CFA_EXPRESSION:
		save_by_expression(program, number, reader_part(code, reader_uleb(code)));
		return true;
	case CFA_VALUE_EXPRESSION:
		reader_part(code, reader_uleb(code));
		save(program, number, CFI_ELSEWHERE, 0);
		return true;
	default:
		return false;
	}
}

/* Instructions that stand alone. 0 or -EINVAL: it is none of them, or cannot be done. */
static int run_other(struct cfi_program *program, uint8_t op)
{
	switch (op) {
	case CFA_NOP:
	case CFA_NEGATE_RA_STATE_WITH_PC:
	case CFA_NEGATE_RA_STATE: /* what signs an address is stripped from every one */
		return 0;
	case CFA_ARGS_SIZE:
		reader_uleb(&program->code);
		return 0;
	case CFA_REMEMBER:
		if (program->remembered_len == CFI_REMEMBERED_MAX)
			return -EINVAL;
		program->remembered[program->remembered_len++] = program->state;
		return 0;
	case CFA_RECALL:
		if (!program->remembered_len)
			return -EINVAL;
		program->state = program->remembered[--program->remembered_len];
		return 0;
	default:
		return -EINVAL;
	}
}

/* An instruction of no advance. */
static int run(struct cfi_program *program, uint8_t op)
{
	switch (op & CFA_HIGH) {
	case CFA_OFFSET:
		save(program, op & CFA_OPERAND, CFI_AT_CFA,
		     factored(program, (int64_t)reader_uleb(&program->code)));
		return 0;
	case CFA_RESTORE:
		restore(program, op & CFA_OPERAND);
		return 0;
	default:
		return run_cfa(program, op) || run_register(program, op) ? 0
									 : run_other(program, op);
	}
}

/* Whether @op advances, and to where. */
static bool advances(struct cfi_program *program, uint8_t op, uint64_t *to)
{
	uint64_t factor = program->common->code_factor;
	struct reader *code = &program->code;

	if ((op & CFA_HIGH) == CFA_ADVANCE) {
		*to = program->address + (op & CFA_OPERAND) * factor;
		return true;
	}
	switch (op) {
	case CFA_ADVANCE1:
		*to = program->address + reader_number(code, 1) * factor;
		return true;
	case CFA_ADVANCE2:
		*to = program->address + reader_number(code, 2) * factor;
		return true;
	case CFA_ADVANCE4:
		*to = program->address + reader_number(code, 4) * factor;
		return true;
	default:
		return false;
	}
}

int cfi_common_run(struct cfi_common *common, struct reader code)
{
	struct cfi_program program = { .common = common, .code = code };
	int r = 0;

	while (!r && reader_left(&program.code))
		r = run(&program, (uint8_t)reader_number(&program.code, 1));
	common->state = program.state;
	return r || program.code.bad ? -EINVAL : 0;
}

void cfi_begin(struct cfi_program *program, const struct cfi_common *common, struct reader code,
	       uint64_t address)
{
	*program = (struct cfi_program){
		.common = common, .code = code, .address = address, .state = common->state
	};
}

int cfi_next(struct cfi_program *program, uint64_t *begin)
{
	*begin = program->address;
	if (program->over)
		return 0;
	while (reader_left(&program->code)) {
		uint8_t op = (uint8_t)reader_number(&program->code, 1);
		uint64_t to;

		if (!advances(program, op, &to)) {
			if (run(program, op) || program->code.bad)
				return -EINVAL;
			continue;
		}
		if (program->code.bad || to < program->address)
			return -EINVAL;
		if (to == program->address)
			continue;
		program->address = to;
		return 1;
	}
	program->over = true;
	return 1;
}

/* --- rules ---------------------------------------------------------------------------------- */

static bool fits(int64_t number)
{
	return number >= INT32_MIN && number <= INT32_MAX;
}

/* False: the CFA is not a sum of the stack or the frame pointer. */
static bool rule_cfa(const struct cfi_common *common, const struct cfi_state *state,
		     struct unwind_rule *rule)
{
	rule->kind = state->cfa;
	rule->cfa_offset = (int32_t)state->cfa_offset;
	rule->cfa_add = (int32_t)state->cfa_add;
	rule->base = UNWIND_SP;
	if (state->cfa == UNWIND_NONE || !fits(state->cfa_offset) || !fits(state->cfa_add))
		return false;
	if (state->cfa == UNWIND_PLT || state->cfa_register == common->machine->sp)
		return true;
	rule->base = UNWIND_FP;
	return state->cfa_register == common->machine->fp;
}

/* False: the return address is neither on the stack nor in its register. */
static bool rule_ra(const struct cfi_register *ra, struct unwind_rule *rule)
{
	rule->ra_place = ra->place == CFI_AT_CFA ? UNWIND_AT_CFA : UNWIND_KEPT;
	rule->ra_offset = (int32_t)ra->offset;
	return fits(ra->offset) && (ra->place == CFI_AT_CFA || ra->place == CFI_KEPT);
}

static void rule_fp(const struct cfi_register *fp, struct unwind_rule *rule)
{
	static const enum unwind_place places[] = {
		[CFI_KEPT] = UNWIND_KEPT,      [CFI_AT_CFA] = UNWIND_AT_CFA,
		[CFI_AT_FP] = UNWIND_AT_FP,    [CFI_UNDEFINED] = UNWIND_LOST,
		[CFI_ELSEWHERE] = UNWIND_LOST,
	};

	rule->fp_place = fits(fp->offset) ? places[fp->place] : UNWIND_LOST;
	rule->fp_offset = rule->fp_place == UNWIND_LOST ? 0 : (int32_t)fp->offset;
}

/*
 * Whether a frame of the kernel's is there, as glibc says of its __restore_rt on x86-64: the stack
 * pointer that was interrupted is in that place of it. Others call frames of their own those of a
 * signal, as Wine does. On arm64 the kernel has described none since Linux 5.8.
 */
static bool is_kernel_signal(const struct cfi_common *common, const struct cfi_state *state)
{
	return common->machine->ra == X86_RIP && state->cfa == UNWIND_CFA_AT &&
	       state->cfa_register == X86_RSP && state->cfa_offset == X86_SIGNAL_RSP &&
	       !state->cfa_add;
}

bool cfi_rule(const struct cfi_common *common, const struct cfi_state *state,
	      struct unwind_rule *rule)
{
	static const struct unwind_rule none, end = { .kind = UNWIND_END },
					      signal = { .kind = UNWIND_SIGNAL };

	*rule = none;
	if (common->signal) {
		*rule = is_kernel_signal(common, state) ? signal : none;
		return rule->kind == UNWIND_SIGNAL;
	}
	if (state->ra.place == CFI_UNDEFINED) {
		*rule = end;
		return true;
	}
	if (rule_cfa(common, state, rule) && rule_ra(&state->ra, rule)) {
		rule_fp(&state->fp, rule);
		return true;
	}
	*rule = none;
	return false;
}
