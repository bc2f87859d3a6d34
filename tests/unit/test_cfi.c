/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules from call frame information that the assembler writes: of functions that are never run,
 * whose labels are looked up in the table of this program.
 */
#include "unwinding.h"

#include <errno.h>
#include <link.h>
#include <string.h>

#include "unwind/cfi.h"

#define LEN(array) (sizeof(array) / sizeof((array)[0]))

#if defined(__x86_64__)
#define SP "%rsp"
#define FP "%rbp"
#define RA "%rip"
#define OTHER "%rbx"
#define AT_CALL 8 /* the CFA, from the stack pointer */
#define CALLER .ra_place = UNWIND_AT_CFA, .ra_offset = -8
#define FP_NUMBER "6"
#define KERNEL_SIGNAL UNWIND_SIGNAL
#define BREG_SP "0x77"
#define BREG_FP "0x76"
#define BREG_OTHER "0x73"
#else
#define SP "sp"
#define FP "x29"
#define RA "x30"
#define OTHER "x19"
#define AT_CALL 0
#define CALLER .ra_place = UNWIND_KEPT
#define FP_NUMBER "29"
#define KERNEL_SIGNAL UNWIND_NONE
#define BREG_SP "0x8f"
#define BREG_FP "0x8d"
#define BREG_OTHER "0x83"
#endif

/* A function of its own for each: what the assembler is told, and the rule at its end. */
#define FUNCTIONS(FUNCTION)                                                                        \
	FUNCTION(plain, "", .kind = UNWIND_CFA, .cfa_offset = AT_CALL, CALLER)                     \
	FUNCTION(pushed, ".cfi_def_cfa_offset 48", .kind = UNWIND_CFA, .cfa_offset = 48, CALLER)   \
	FUNCTION(framed, ".cfi_def_cfa " FP ", 16\n.cfi_offset " FP ", -16", .kind = UNWIND_CFA,   \
		 .base = UNWIND_FP, .cfa_offset = 16, .fp_place = UNWIND_AT_CFA, .fp_offset = -16, \
		 CALLER)                                                                           \
	FUNCTION(by_another_register, ".cfi_def_cfa " OTHER ", 16", .kind = UNWIND_NONE)           \
	FUNCTION(ra_saved, ".cfi_offset " RA ", -24", .kind = UNWIND_CFA, .cfa_offset = AT_CALL,   \
		 .ra_place = UNWIND_AT_CFA, .ra_offset = -24)                                      \
	FUNCTION(first, ".cfi_undefined " RA, .kind = UNWIND_END)                                  \
	FUNCTION(ra_elsewhere, ".cfi_register " RA ", " OTHER, .kind = UNWIND_NONE)                \
	FUNCTION(fp_undefined, ".cfi_undefined " FP, .kind = UNWIND_CFA, .cfa_offset = AT_CALL,    \
		 .fp_place = UNWIND_LOST, CALLER)                                                  \
	FUNCTION(fp_elsewhere, ".cfi_register " FP ", " OTHER, .kind = UNWIND_CFA,                 \
		 .cfa_offset = AT_CALL, .fp_place = UNWIND_LOST, CALLER)                           \
	FUNCTION(fp_is_a_sum, ".cfi_val_offset " FP ", -16", .kind = UNWIND_CFA,                   \
		 .cfa_offset = AT_CALL, .fp_place = UNWIND_LOST, CALLER)                           \
	FUNCTION(fp_restored, ".cfi_offset " FP ", -16\nnop\n.cfi_restore " FP,                    \
		 .kind = UNWIND_CFA, .cfa_offset = AT_CALL, CALLER)                                \
	FUNCTION(fp_the_same, ".cfi_offset " FP ", -16\nnop\n.cfi_same_value " FP,                 \
		 .kind = UNWIND_CFA, .cfa_offset = AT_CALL, CALLER)                                \
	FUNCTION(remembered,                                                                       \
		 ".cfi_remember_state\n.cfi_def_cfa_offset 64\nnop\n.cfi_restore_state",           \
		 .kind = UNWIND_CFA, .cfa_offset = AT_CALL, CALLER)                                \
	FUNCTION(signalled, ".cfi_signal_frame\n.cfi_escape 0x0f,4," BREG_SP ",0xa0,1,6",          \
		 .kind = KERNEL_SIGNAL)                                                            \
	FUNCTION(signalled_by_others, ".cfi_signal_frame\n.cfi_def_cfa_offset 160",                \
		 .kind = UNWIND_NONE)                                                              \
	FUNCTION(with_personality,                                                                 \
		 ".cfi_personality 0x9b, personality\n.cfi_lsda 0x1b, personality",                \
		 .kind = UNWIND_CFA, .cfa_offset = AT_CALL, CALLER)                                \
	FUNCTION(dereferenced, ".cfi_escape 0x0f,3," BREG_FP ",0x58,0x06", .kind = UNWIND_CFA_AT,  \
		 .base = UNWIND_FP, .cfa_offset = -40, CALLER)                                     \
	FUNCTION(dereferenced_plus, ".cfi_escape 0x0f,6," BREG_SP ",0xc8,0,0x06,0x23,8",           \
		 .kind = UNWIND_CFA_AT, .cfa_offset = 72, .cfa_add = 8, CALLER)                    \
	FUNCTION(summed, ".cfi_escape 0x0f,2," BREG_SP ",6", .kind = UNWIND_CFA, .cfa_offset = 6,  \
		 CALLER)                                                                           \
	FUNCTION(dereferenced_twice, ".cfi_escape 0x0f,4," BREG_SP ",8,0x06,0x06",                 \
		 .kind = UNWIND_NONE)                                                              \
	FUNCTION(dereferenced_another, ".cfi_escape 0x0f,3," BREG_OTHER ",8,0x06",                 \
		 .kind = UNWIND_NONE)                                                              \
	FUNCTION(behind_an_expression,                                                             \
		 ".cfi_def_cfa_offset 32\nnop\n.cfi_escape 0x0f,3," BREG_FP                        \
		 ",8,0x06\nnop\n.cfi_def_cfa_register " SP,                                        \
		 .kind = UNWIND_CFA, .cfa_offset = 32, CALLER)                                     \
	FUNCTION(fp_at_fp, ".cfi_escape 0x10," FP_NUMBER ",2," BREG_FP ",0", .kind = UNWIND_CFA,   \
		 .cfa_offset = AT_CALL, .fp_place = UNWIND_AT_FP, CALLER)                          \
	FUNCTION(far_away, ".cfi_def_cfa_offset 0x7fffffff", .kind = UNWIND_CFA,                   \
		 .cfa_offset = 0x7fffffff, CALLER)                                                 \
	FUNCTION(too_far, ".cfi_escape 0x0e,0x80,0x80,0x80,0x80,0x08", .kind = UNWIND_NONE)        \
	FUNCTION(recalled_nothing, ".cfi_escape 0x0b", .kind = UNWIND_NONE)

#define ASSEMBLE(name, directives, ...)                                                         \
	__asm__(".text\n.p2align 4\n.type cfi_" #name ",%function\n.cfi_startproc\n" directives \
		"\n.globl cfi_" #name "\ncfi_" #name ":\nnop\nnop\n.cfi_endproc\n");            \
	extern const char cfi_##name[] __attribute__((visibility("hidden")));
__asm__(".text\npersonality: nop\n");
FUNCTIONS(ASSEMBLE)

struct row {
	const char *name;
	const char *code;
	struct unwind_rule rule;
};

static const struct row rows[] = {
#define ROW(function, directives, ...) { #function, cfi_##function, { __VA_ARGS__ } },
	FUNCTIONS(ROW)
};

static int program_bias(struct dl_phdr_info *info, size_t size, void *bias)
{
	(void)size;
	*(uint64_t *)bias = info->dlpi_addr;
	return 1; /* the first is the program */
}

static uint64_t linked(const char *code)
{
	uint64_t bias = 0;

	dl_iterate_phdr(program_bias, &bias);
	return (uint64_t)(uintptr_t)code - bias;
}

Test(cfi, becomes_the_rules_that_the_assembler_was_told)
{
	struct unwind_table table = table_of("/proc/self/exe");

	for (size_t i = 0; i < LEN(rows); i++) {
		const struct unwind_rule *found = unwind_table_find(&table, linked(rows[i].code));

		cr_expect_arr_eq(found, &rows[i].rule, sizeof(*found),
				 "%s: kind %u base %u cfa %d %d fp %u %d ra %u %d", rows[i].name,
				 found->kind, found->base, found->cfa_offset, found->cfa_add,
				 found->fp_place, found->fp_offset, found->ra_place,
				 found->ra_offset);
	}
	unwind_table_free(&table);
}

static const struct cfi_machine x86_64 = { .sp = 7, .fp = 6, .ra = 16 };
static const struct cfi_machine arm64 = { .sp = 31, .fp = 29, .ra = 30 };

/* A CIE that says that the CFA is sp + 8, and where a call leaves the return address there. */
static struct cfi_common common_of(const struct cfi_machine *machine)
{
	static const uint8_t on_x86_64[] = { 0x0c, 7, 8, 0x90, 1 }, on_arm64[] = { 0x0c, 31, 8 };
	struct cfi_common common = { .machine = machine, .code_factor = 4, .data_factor = -8 };
	struct reader code = { on_arm64, on_arm64 + sizeof(on_arm64), false };

	if (machine == &x86_64) {
		common.code_factor = 1;
		code = (struct reader){ on_x86_64, on_x86_64 + sizeof(on_x86_64), false };
	}
	cr_assert_eq(cfi_common_run(&common, code), 0);
	return common;
}

/* The last state of a function at 0x1000, and where it begins. False: it is not understood. */
static bool state_on(const struct cfi_machine *machine, const uint8_t *code, size_t len,
		     struct unwind_rule *rule, uint64_t *begin)
{
	struct cfi_common common = common_of(machine);
	struct cfi_program program;
	uint64_t next;
	int r;

	cfi_begin(&program, &common, (struct reader){ code, code + len, false }, 0x1000);
	while ((r = cfi_next(&program, &next)) > 0) {
		cfi_rule(&common, &program.state, rule);
		*begin = next;
	}
	return r == 0;
}

static bool state_after(const uint8_t *code, size_t len, struct unwind_rule *rule)
{
	uint64_t unused;

	return state_on(&x86_64, code, len, rule, &unused);
}

/* As linkers write it (elfxx-x86-64 of bfd, binutils): lazy, with MPX, with IBT. */
Test(cfi, of_a_plt_tells_from_which_byte_on_something_has_been_pushed)
{
	static const uint8_t pushed_from[] = { 11, 5, 10, 9 };

	for (size_t i = 0; i < LEN(pushed_from); i++) {
		const uint8_t code[] = { 0x0f, 11,   0x77,
					 8,    0x80, 0,
					 0x3f, 0x1a, (uint8_t)(0x30 + pushed_from[i]),
					 0x2a, 0x33, 0x24,
					 0x22 };
		const struct unwind_rule wanted = { .kind = UNWIND_PLT,
						    .ra_place = UNWIND_AT_CFA,
						    .cfa_offset = 8,
						    .cfa_add = pushed_from[i],
						    .ra_offset = -8 };
		struct unwind_rule rule;

		cr_expect(state_after(code, sizeof(code), &rule));
		cr_expect_arr_eq(&rule, &wanted, sizeof(rule));
	}
}

#define CODE(...) .len = sizeof((uint8_t[]){ __VA_ARGS__ }), .code = { __VA_ARGS__ }
#define CFA_IS .kind = UNWIND_CFA, .ra_place = UNWIND_AT_CFA, .ra_offset = -8, .cfa_offset

struct program_row {
	const char *what;
	size_t len;
	uint8_t code[16];
	struct unwind_rule rule;
};

/* Instructions that the assembler chooses a shorter form of, or never writes. */
static const struct program_row program_rows[] = {
	{ "a far register saved",
	  CODE(0x05, 6, 2),
	  { CFA_IS = 8, .fp_place = UNWIND_AT_CFA, .fp_offset = -16 } },
	{ "a far register restored", CODE(0x05, 6, 2, 0x06, 6), { CFA_IS = 8 } },
	{ "a register saved above the CFA",
	  CODE(0x11, 6, 0x7e),
	  { CFA_IS = 8, .fp_place = UNWIND_AT_CFA, .fp_offset = 16 } },
	{ "a signed CFA", CODE(0x12, 6, 0x7e), { CFA_IS = 16, .base = UNWIND_FP } },
	{ "a signed offset of the CFA", CODE(0x13, 0x7d), { CFA_IS = 24 } },
	{ "the lowest CFA", CODE(0x13, 0x80, 0x80, 0x80, 0x80, 0x01), { CFA_IS = INT32_MIN } },
	{ "one below", CODE(0x13, 0x81, 0x80, 0x80, 0x80, 0x01), { 0 } },
	{ "a value at a signed offset",
	  CODE(0x15, 6, 0x7e, 0x0e, 16),
	  { CFA_IS = 16, .fp_place = UNWIND_LOST } },
	{ "a value by an expression",
	  CODE(0x16, 6, 2, 0x77, 8, 0x0e, 16),
	  { CFA_IS = 16, .fp_place = UNWIND_LOST } },
	{ "the size of arguments", CODE(0x2e, 32, 0x0e, 16), { CFA_IS = 16 } },
	{ "no instruction", CODE(0x00, 0x0e, 16), { CFA_IS = 16 } },
	{ "the frame pointer at an offset from the stack pointer",
	  CODE(0x10, 6, 2, 0x77, 8),
	  { CFA_IS = 8, .fp_place = UNWIND_LOST } },
	{ "the frame pointer where another word points",
	  CODE(0x10, 6, 3, 0x76, 0, 0x06),
	  { CFA_IS = 8, .fp_place = UNWIND_LOST } },
	{ "the frame pointer by an expression that is cut off",
	  CODE(0x10, 6, 1, 0x76),
	  { CFA_IS = 8, .fp_place = UNWIND_LOST } },
	{ "the return address by an expression", CODE(0x10, 16, 2, 0x76, 8), { 0 } },
	{ "a CFA by an expression that is cut off", CODE(0x0f, 1, 0x77), { 0 } },
	{ "a CFA by an expression of nothing", CODE(0x0f, 0), { 0 } },
	{ "a CFA by a constant", CODE(0x0f, 2, 0x31, 0), { 0 } },
	{ "a PLT of entries that push behind their end",
	  CODE(0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x40, 0x2a, 0x33, 0x24, 0x22),
	  { 0 } },
	{ "an expression that begins as that of a PLT",
	  CODE(0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x1c),
	  { 0 } },
	{ "an expression that ends as that of a PLT",
	  CODE(0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1b, 0x3b, 0x2a, 0x33, 0x24, 0x22),
	  { 0 } },
};

Test(cfi, becomes_rules_from_every_form_of_an_instruction)
{
	for (size_t i = 0; i < LEN(program_rows); i++) {
		const struct program_row *row = &program_rows[i];
		struct unwind_rule rule;

		cr_expect(state_after(row->code, row->len, &rule), "%s", row->what);
		cr_expect_arr_eq(&rule, &row->rule, sizeof(rule),
				 "%s: kind %u base %u cfa %d %d fp %u %d ra %u %d", row->what,
				 rule.kind, rule.base, rule.cfa_offset, rule.cfa_add, rule.fp_place,
				 rule.fp_offset, rule.ra_place, rule.ra_offset);
	}
}

Test(cfi, of_arm64_has_registers_and_steps_of_its_own)
{
	static const uint8_t code[] = { 0x42, 0x0f, 2, 0x8f, 16 };
	const struct unwind_rule wanted = { .kind = UNWIND_CFA, .cfa_offset = 16 };
	struct unwind_rule rule;
	uint64_t begin;

	cr_expect(state_on(&arm64, code, sizeof(code), &rule, &begin));
	cr_expect_arr_eq(&rule, &wanted, sizeof(rule));
	cr_expect_eq(begin, 0x1008);
}

Test(cfi, advances_by_numbers_of_any_width)
{
	static const struct program_row advances[] = {
		{ "6 bits", CODE(0x7f, 0x0e, 16), { 0 } },
		{ "a byte", CODE(0x02, 0x3f, 0x0e, 16), { 0 } },
		{ "two", CODE(0x03, 0x3f, 0, 0x0e, 16), { 0 } },
		{ "four", CODE(0x04, 0x3f, 0, 0, 0, 0x0e, 16), { 0 } },
		{ "not at all, and then", CODE(0x40, 0x02, 0, 0x7f, 0x0e, 16), { 0 } },
	};

	for (size_t i = 0; i < LEN(advances); i++) {
		const struct unwind_rule wanted = { CFA_IS = 16 };
		struct unwind_rule rule;
		uint64_t begin;

		cr_expect(state_on(&x86_64, advances[i].code, advances[i].len, &rule, &begin), "%s",
			  advances[i].what);
		cr_expect_eq(begin, 0x103f, "%s: %#lx", advances[i].what, begin);
		cr_expect_arr_eq(&rule, &wanted, sizeof(rule), "%s", advances[i].what);
	}
}

Test(cfi, that_ends_within_an_instruction_is_not_understood)
{
	static const uint8_t code[] = { 0x0c, 0x07 };
	static const uint8_t expression[] = { 0x0f, 5, 0x77, 8 };
	static const uint8_t advance[] = { 0x04, 1, 0 };
	struct unwind_rule rule;

	cr_expect_not(state_after(code, sizeof(code), &rule));
	cr_expect_not(state_after(expression, sizeof(expression), &rule));
	cr_expect_not(state_after(advance, sizeof(advance), &rule));
}

Test(cfi, of_an_instruction_of_no_standard_is_not_understood)
{
	static const uint8_t code[] = { 0x0e, 16, 0x3f };
	struct unwind_rule rule;

	cr_expect(state_after(code, 2, &rule));
	cr_expect_not(state_after(code, 3, &rule));
}

Test(cfi, remembers_no_more_states_than_there_is_room_for)
{
	uint8_t code[2 * CFI_REMEMBERED_MAX + 2];
	struct unwind_rule rule;

	memset(code, 0x0a, CFI_REMEMBERED_MAX);
	memset(code + CFI_REMEMBERED_MAX, 0x0b, CFI_REMEMBERED_MAX);
	cr_expect(state_after(code, 2 * CFI_REMEMBERED_MAX, &rule));
	code[CFI_REMEMBERED_MAX] = 0x0a;
	cr_expect_not(state_after(code, CFI_REMEMBERED_MAX + 1, &rule));
}
