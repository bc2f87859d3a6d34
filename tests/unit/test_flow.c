/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of x86-64 followed by their instructions, beside what the assembler would write. */
#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include "unwind/flow.h"

#define BEGIN 0x401000ULL

/* What holds from a byte on. Places: */
enum { KEPT, SAVED, LOST };

struct expected {
	size_t at;
	enum unwind_kind kind; /* UNWIND_CFA: */
	enum unwind_base base;
	int cfa, fp; /* CFA = base + cfa; the caller's frame pointer is at CFA + fp */
	int place;
};
#define SP(at, cfa, ...)                                    \
	{                                                   \
		at, UNWIND_CFA, UNWIND_SP, cfa, __VA_ARGS__ \
	}
#define FP(at, cfa, ...)                                    \
	{                                                   \
		at, UNWIND_CFA, UNWIND_FP, cfa, __VA_ARGS__ \
	}
#define NONE(at)                                    \
	{                                           \
		at, UNWIND_NONE, UNWIND_SP, 0, 0, 0 \
	}
#define END(at)                                    \
	{                                          \
		at, UNWIND_END, UNWIND_SP, 0, 0, 0 \
	}

static void expect_rule(const struct expected *expected, const struct unwind_rule *rule)
{
	static const uint32_t places[] = { UNWIND_KEPT, UNWIND_AT_CFA, UNWIND_LOST };

	cr_expect_eq(rule->kind, expected->kind, "at %zu: %u", expected->at, rule->kind);
	if (expected->kind != UNWIND_CFA || rule->kind != UNWIND_CFA)
		return;
	cr_expect_eq(rule->base, expected->base, "at %zu", expected->at);
	cr_expect_eq(rule->cfa_offset, expected->cfa, "at %zu: %d", expected->at, rule->cfa_offset);
	cr_expect_eq(rule->fp_place, places[expected->place], "at %zu: %u", expected->at,
		     rule->fp_place);
	cr_expect_eq(rule->fp_offset, expected->fp, "at %zu: %d", expected->at, rule->fp_offset);
	cr_expect_eq(rule->ra_place, UNWIND_AT_CFA);
	cr_expect_eq(rule->ra_offset, -8);
}

static struct unwind_rule rule_at(const struct flow *flow, size_t wanted, size_t len)
{
	struct unwind_rule rule = { 0 };
	size_t at = 0;

	while (flow_has(at, len) && at <= wanted)
		rule = flow_next(flow, &at);
	return rule;
}

/* Of code at BEGIN: what is expected of some of its bytes. */
static struct flow *follow(const uint8_t *code, size_t len, const struct expected *expected,
			   size_t expected_len)
{
	struct flow *flow;

	cr_assert_eq(flow_new(&flow), 0);
	flow_follow(flow, code, len, BEGIN, false);
	for (size_t i = 0; i < expected_len; i++) {
		const struct unwind_rule rule = rule_at(flow, expected[i].at, len);

		expect_rule(&expected[i], &rule);
	}
	return flow;
}

#define CODE(...) ((const uint8_t[]){ __VA_ARGS__ })
#define EXPECT(code, ...)                                                        \
	flow_free(follow(code, sizeof(code), (struct expected[]){ __VA_ARGS__ }, \
			 sizeof((struct expected[]){ __VA_ARGS__ }) / sizeof(struct expected)))

#define PUSH_RBP 0x55
#define POP_RBP 0x5d
#define PUSH_RBX 0x53
#define POP_RBX 0x5b
#define MOVE_RBP_RSP 0x48, 0x89, 0xe5
#define SUB_RSP(n) 0x48, 0x83, 0xec, n
#define ADD_RSP(n) 0x48, 0x83, 0xc4, n
#define CALL(n) 0xe8, n, 0, 0, 0
#define JUMP(n) 0xeb, (n)&0xff
#define JUMP_ZERO(n) 0x74, (n)&0xff
#define LEAVE 0xc9
#define RET 0xc3
#define NOP 0x90

Test(flow, follows_a_frame_pointer)
{
	EXPECT(CODE(PUSH_RBP, MOVE_RBP_RSP, SUB_RSP(16), LEAVE, RET), SP(0, 8, 0, KEPT),
	       SP(1, 16, -16, SAVED), SP(4, 16, -16, SAVED), SP(8, 32, -16, SAVED),
	       SP(9, 8, 0, KEPT));
}

Test(flow, follows_the_stack_pointer)
{
	EXPECT(CODE(PUSH_RBX, SUB_RSP(32), CALL(0x70), ADD_RSP(32), POP_RBX, RET),
	       SP(0, 8, 0, KEPT), SP(1, 16, 0, KEPT), SP(5, 48, 0, KEPT), SP(10, 48, 0, KEPT),
	       SP(14, 16, 0, KEPT), SP(15, 8, 0, KEPT));
	/* lea -40(%rsp), %rsp; lea 40(%rsp), %rsp */
	EXPECT(CODE(0x48, 0x8d, 0x64, 0x24, 0xd8, 0x48, 0x8d, 0x64, 0x24, 0x28, RET),
	       SP(5, 48, 0, KEPT), SP(10, 8, 0, KEPT));
	/* sub $256, %rsp; sub $-128, %rsp */
	EXPECT(CODE(0x48, 0x81, 0xec, 0, 1, 0, 0, SUB_RSP(0x80), RET), SP(7, 264, 0, KEPT),
	       SP(11, 136, 0, KEPT));
	/* pushf; popf; push $1; push %ax */
	EXPECT(CODE(0x9c, 0x9d, 0x6a, 1, 0x66, 0x50, RET), SP(1, 16, 0, KEPT), SP(2, 8, 0, KEPT),
	       SP(4, 16, 0, KEPT), NONE(6));
	/* call 1f; 1: pop %rbx */
	EXPECT(CODE(PUSH_RBX, CALL(0), POP_RBX, RET), SP(1, 16, 0, KEPT), SP(6, 24, 0, KEPT),
	       SP(7, 16, 0, KEPT));
}

Test(flow, follows_a_frame_pointer_that_is_moved_to_the_stack)
{
	/* mov %rbp, 16(%rsp); xor %ebp, %ebp; mov 16(%rsp), %rbp */
	EXPECT(CODE(SUB_RSP(24), 0x48, 0x89, 0x6c, 0x24, 16, 0x31, 0xed, 0x48, 0x8b, 0x6c, 0x24, 16,
		    ADD_RSP(24), RET),
	       SP(4, 32, 0, KEPT), SP(9, 32, -16, SAVED), SP(11, 32, -16, SAVED),
	       SP(16, 32, 0, KEPT), SP(20, 8, 0, KEPT));
}

/* Below the stack pointer, where others write. */
Test(flow, knows_no_frame_pointer_that_is_written_over)
{
	/* mov %rbp, -8(%rsp); xor %ebp, %ebp */
	static const uint8_t saves[] = { 0x48, 0x89, 0x6c, 0x24, 0xf8, 0x31, 0xed };

	EXPECT(saves, SP(5, 8, -16, SAVED));
	EXPECT(CODE(0x48, 0x89, 0x6c, 0x24, 0xf8, 0x31, 0xed, PUSH_RBX, NOP), SP(7, 8, -16, SAVED),
	       SP(8, 16, 0, LOST));
	EXPECT(CODE(0x48, 0x89, 0x6c, 0x24, 0xf8, 0x31, 0xed, CALL(0x70), NOP), SP(12, 8, 0, LOST));
}

Test(flow, knows_nothing_behind_instructions_of_16_bits)
{
	EXPECT(CODE(0x66, 0x53, NOP), NONE(2));
	EXPECT(CODE(0x66, 0xc8, 0, 0, 0, NOP), NONE(5));
	/* data16 data16 rex.W call, as of __tls_get_addr */
	EXPECT(CODE(0x66, 0x66, 0x48, 0xe8, 0x70, 0, 0, 0, NOP), SP(8, 8, 0, KEPT));
}

Test(flow, goes_all_ways)
{
	EXPECT(CODE(PUSH_RBP, 0x85, 0xff, JUMP_ZERO(2), POP_RBP, RET, POP_RBX, RET),
	       SP(5, 16, -16, SAVED), SP(6, 8, 0, KEPT), SP(7, 16, -16, SAVED));
	/* and back */
	EXPECT(CODE(PUSH_RBX, NOP, 0xff, 0xcf, JUMP_ZERO(-5), POP_RBX, RET), SP(1, 16, 0, KEPT),
	       SP(6, 16, 0, KEPT), SP(7, 8, 0, KEPT));
}

Test(flow, knows_nothing_where_ways_meet_that_differ)
{
	EXPECT(CODE(0x85, 0xff, JUMP_ZERO(1), PUSH_RBX, NOP, RET), SP(4, 8, 0, KEPT), NONE(5),
	       NONE(6));
	/* of the frame pointer alone: mov %rdi, %rbp */
	EXPECT(CODE(0x85, 0xff, JUMP_ZERO(3), 0x48, 0x89, 0xfd, RET), SP(4, 8, 0, KEPT),
	       SP(7, 8, 0, LOST));
}

Test(flow, knows_nothing_where_no_way_leads)
{
	/* jmp *%rax */
	EXPECT(CODE(PUSH_RBX, 0xff, 0xe0, POP_RBX, RET), SP(1, 16, 0, KEPT), NONE(3), NONE(4));
	EXPECT(CODE(JUMP(0x40), NOP), SP(0, 8, 0, KEPT), NONE(2));
	EXPECT(CODE(RET, NOP), NONE(1));
	/* ud2, ud1 0(%eax), %eax, hlt, int3 */
	EXPECT(CODE(0x0f, 0x0b, NOP), NONE(2));
	EXPECT(CODE(0x67, 0x0f, 0xb9, 0x40, 0, NOP), NONE(5));
	EXPECT(CODE(0xf4, NOP), NONE(1));
	EXPECT(CODE(0xcc, NOP), NONE(1));
	/* an instruction that is none, and one that is cut */
	EXPECT(CODE(PUSH_RBX, 0x06, NOP), SP(0, 8, 0, KEPT), NONE(1), NONE(2));
	EXPECT(CODE(PUSH_RBX, 0xe8, 0), NONE(1));
}

Test(flow, knows_nothing_of_a_stack_pointer_that_is_set)
{
	/* and $-16, %rsp; mov %rdi, %rsp; sub %rax, %rsp; pop %rsp; mov (%rdi), %rsp; enter */
	EXPECT(CODE(0x48, 0x83, 0xe4, 0xf0, NOP), NONE(4));
	EXPECT(CODE(0x48, 0x89, 0xfc, NOP), NONE(3));
	EXPECT(CODE(0x48, 0x29, 0xc4, NOP), NONE(3));
	EXPECT(CODE(0x5c, NOP), NONE(1));
	EXPECT(CODE(0x48, 0x8b, 0x27, NOP), NONE(3));
	EXPECT(CODE(0xc8, 16, 0, 0, NOP), NONE(4));
	/* but by the frame pointer: push %rbp; mov %rsp, %rbp; and $-16, %rsp; leave; ret */
	EXPECT(CODE(PUSH_RBP, MOVE_RBP_RSP, 0x48, 0x83, 0xe4, 0xf0, LEAVE, RET),
	       FP(8, 16, -16, SAVED), SP(9, 8, 0, KEPT));
	/* and lea -8(%rbp), %rsp */
	EXPECT(CODE(PUSH_RBP, MOVE_RBP_RSP, 0x48, 0x29, 0xc4, 0x48, 0x8d, 0x65, 0xf8, POP_RBX,
		    POP_RBP, RET),
	       FP(7, 16, -16, SAVED), SP(11, 24, -16, SAVED), SP(12, 16, -16, SAVED),
	       SP(13, 8, 0, KEPT));
}

/* As the system call vfork of a C library: pop %rdx; push %rdx. */
Test(flow, knows_nothing_once_the_return_address_is_taken)
{
	EXPECT(CODE(0x5a, NOP, 0x52, RET), SP(0, 8, 0, KEPT), NONE(1), NONE(2), NONE(3));
}

/* As what begins a thread: it clears the frame pointer, and takes what is no return address. */
Test(flow, ends_where_a_thread_begins)
{
	EXPECT(CODE(0x48, 0x31, 0xed, 0x5f, 0xff, 0xd1, 0xf4), SP(3, 8, 0, LOST), END(4), END(6));
	/* but not where only one of the two is done */
	EXPECT(CODE(0x31, 0xed, 0x48, 0x83, 0xe4, 0xf0, NOP), SP(2, 8, 0, LOST), NONE(6));
	EXPECT(CODE(PUSH_RBP, 0x31, 0xed, 0x5f, 0x5f, NOP), SP(3, 16, -16, SAVED), NONE(5));
}

/* As _start. */
Test(flow, ends_in_what_the_kernel_begins)
{
	const uint8_t code[] = { 0x31, 0xed, 0x48, 0x83, 0xe4, 0xf0, CALL(0x70), 0xf4, NOP };
	static const struct expected expected[] = { END(0), END(2), END(6), END(11), NONE(12) };
	struct flow *flow;

	cr_assert_eq(flow_new(&flow), 0);
	flow_follow(flow, code, sizeof(code), BEGIN, true);
	for (size_t i = 0; i < 5; i++) {
		const struct unwind_rule rule = rule_at(flow, expected[i].at, sizeof(code));

		expect_rule(&expected[i], &rule);
	}
	flow_free(flow);
}

/* --- how they end ---------------------------------------------------------------------------- */

enum { RETURNS = 1, WRONG = 2, BROKEN = 4, LEAVES = 8 };

static void expect_ends(struct flow *flow, const uint8_t *code, size_t len, int wanted)
{
	struct flow_ends ends;

	flow_follow(flow, code, len, BEGIN, false);
	ends = flow_ends(flow);
	cr_expect_eq(ends.returns, !!(wanted & RETURNS), "%#x", code[0]);
	cr_expect_eq(ends.wrong, !!(wanted & WRONG), "%#x", code[0]);
	cr_expect_eq(ends.broken, !!(wanted & BROKEN), "%#x", code[0]);
	cr_expect_eq(ends.leaves, !!(wanted & LEAVES), "%#x", code[0]);
	cr_expect_eq(flow_is_endless(&ends), !wanted);
}
#define EXPECT_ENDS(wanted, ...) \
	expect_ends(flow, CODE(__VA_ARGS__), sizeof(CODE(__VA_ARGS__)), wanted)

Test(flow, tells_how_functions_end)
{
	struct flow *flow;

	cr_assert_eq(flow_new(&flow), 0);
	EXPECT_ENDS(RETURNS, PUSH_RBX, POP_RBX, RET);
	EXPECT_ENDS(WRONG, PUSH_RBX, RET);
	EXPECT_ENDS(WRONG, POP_RBX, RET); /* from a label within one that has pushed */
	EXPECT_ENDS(RETURNS | WRONG, 0x85, 0xff, JUMP_ZERO(1), RET, PUSH_RBX, RET);
	EXPECT_ENDS(BROKEN, 0x06);
	EXPECT_ENDS(LEAVES, NOP);
	EXPECT_ENDS(LEAVES, JUMP(0x40));
	EXPECT_ENDS(LEAVES, 0xff, 0xe0); /* jmp *%rax */
	EXPECT_ENDS(RETURNS | LEAVES, 0x85, 0xff, JUMP_ZERO(0x40), RET);
	/* mov %rdi, %rsp; ret */
	EXPECT_ENDS(LEAVES, 0x48, 0x89, 0xfc, RET);
	/* hlt; 1: jmp 1b; a call that is the last */
	EXPECT_ENDS(0, 0xf4);
	EXPECT_ENDS(0, PUSH_RBX, JUMP(-2));
	EXPECT_ENDS(0, PUSH_RBX, CALL(0x70));
	flow_free(flow);
}

/* What is behind a call of one that never returns is another function, or not run. */
Test(flow, does_not_go_on_where_a_function_never_returns)
{
	const uint8_t calls[] = { PUSH_RBX, CALL(0x70), RET };
	const uint8_t jumps[] = { JUMP(0x74) };
	struct flow *flow;

	cr_assert_eq(flow_new(&flow), 0);
	EXPECT_ENDS(WRONG, PUSH_RBX, CALL(0x70), RET);
	for (uint64_t i = FLOW_ENDLESS_MAX; i > 1; i--)
		cr_expect(flow_add_endless(flow, BEGIN + 0x1000 * i));
	cr_expect(flow_add_endless(flow, BEGIN + 0x76));
	cr_expect_not(flow_add_endless(flow, BEGIN + 0x78));
	cr_expect(flow_add_endless(flow, BEGIN + 0x76), "it is there already");
	expect_ends(flow, calls, sizeof(calls), 0);
	expect_ends(flow, jumps, sizeof(jumps), 0);
	flow_free(flow);
}

/* What is behind it up to a multiple of 16 bytes is filled: there is another function. */
Test(flow, does_not_go_on_where_a_call_is_the_last)
{
	EXPECT(CODE(PUSH_RBX, CALL(0x70), NOP, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0, NOP, /* */
		    POP_RBX, RET),
	       SP(1, 16, 0, KEPT), NONE(6), NONE(16));
	/* but for a loop that begins there, or where it is not filled up to such */
	EXPECT(CODE(PUSH_RBX, CALL(0x70), NOP, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0, NOP, /* */
		    0xff, 0xcf, JUMP_ZERO(-4), POP_RBX, RET),
	       SP(6, 16, 0, KEPT), SP(16, 16, 0, KEPT), SP(21, 8, 0, KEPT));
	EXPECT(CODE(PUSH_RBX, CALL(0x70), NOP, POP_RBX, RET), SP(6, 16, 0, KEPT),
	       SP(8, 8, 0, KEPT));
}

/* As gcc makes it: cmp $2, %edi; ja; lea 0x100(%rip), %rax; movslq; add; jmp *%rax */
Test(flow, goes_all_ways_of_a_table)
{
	static const uint8_t code[] = { PUSH_RBX,
					0x83,
					0xff,
					2,
					0x77,
					16,
					0x48,
					0x8d,
					0x05,
					0xf3,
					0,
					0,
					0,
					0x48,
					0x63,
					0x3c,
					0xb8,
					0x48,
					0x01,
					0xc7,
					0xff,
					0xe7,
					/* 22 */ POP_RBX,
					RET,
					NOP,
					POP_RBX,
					RET };
	int32_t offsets[] = { 22 - 0x100, 25 - 0x100, 22 - 0x100 };
	const struct reader data = { (uint8_t *)offsets, (uint8_t *)(offsets + 3), false };
	struct flow *flow;

	cr_assert_eq(flow_new(&flow), 0);
	flow_follow(flow, code, sizeof(code), BEGIN, false);
	cr_expect_eq(rule_at(flow, 25, sizeof(code)).kind, UNWIND_NONE, "no data");
	for (int i = 0; i < 3; i++) {
		flow_set_data(flow, data, BEGIN + 0x100);
		flow_follow(flow, code, sizeof(code), BEGIN, false);
		cr_expect_eq(rule_at(flow, 25, sizeof(code)).cfa_offset, i ? 0 : 16, "%d", i);
		cr_expect_eq(flow_ends(flow).leaves, i > 0, "%d", i);
		offsets[i] = i ? -2 : 0x100; /* it leads elsewhere */
	}
	flow_free(flow);
}

/* Where the branch may have been taken, or the flags are of something else, nothing is bounded. */
Test(flow, does_not_take_any_number_for_the_length_of_a_table)
{
	static const uint8_t compares[] = { 0x83, 0xff, 2, 0x77, 0 },
			     tests[] = { 0x83, 0xff, 2, 0x85, 0xff, 0x77, 10 };
	static const uint8_t jumps[] = { 0x48, 0x8d, 0x05, 0xf0, 0,    0,    0,    0x48, 0x63,
					 0x3c, 0xb8, 0x48, 0x01, 0xc7, 0xff, 0xe7, RET };
	int32_t offsets[] = { 0, 0, 0 };
	const struct reader data = { (uint8_t *)offsets, (uint8_t *)(offsets + 3), false };
	uint8_t code[sizeof(tests) + sizeof(jumps)];
	struct flow *flow;

	cr_assert_eq(flow_new(&flow), 0);
	for (int i = 0; i < 2; i++) {
		const size_t begin = i ? sizeof(tests) : sizeof(compares);
		const size_t table = begin + 7 + 0xf0;

		for (int entry = 0; entry < 3; entry++)
			offsets[entry] = -(int32_t)table;
		memcpy(code, i ? tests : compares, begin);
		memcpy(code + begin, jumps, sizeof(jumps));
		flow_set_data(flow, data, BEGIN + table);
		flow_follow(flow, code, begin + sizeof(jumps), BEGIN, false);
		cr_expect(flow_ends(flow).leaves, "%d", i);
	}
	flow_free(flow);
}

/* --- which others they lead to --------------------------------------------------------------- */

/* Calls, and jumps with the frame as at the begin, and addresses that are taken. */
Test(flow, tells_which_functions_there_are)
{
	const uint8_t code[] = {
		CALL(0x70), /* 0x75 */
		0x48,
		0x8d,
		0x3d,
		0x70,
		0,
		0,
		0, /* lea 0x70(%rip), %rdi: 0x7c */
		0x85,
		0xff,
		JUMP_ZERO(0x70), /* 0x80 */
		PUSH_RBX,
		JUMP_ZERO(0x60), /* a part of this one, elsewhere */
		POP_RBX,
		JUMP(0x50), /* 0x66 */
	};
	static const uint64_t wanted[] = { 0x75, 0x7c, 0x80, 0x66 };
	struct flow *flow = follow(code, sizeof(code), NULL, 0);
	size_t len;
	const struct flow_function *functions = flow_functions(flow, &len);

	cr_assert_eq(len, 4);
	for (size_t i = 0; i < 4; i++) {
		cr_expect_eq(functions[i].address, BEGIN + wanted[i], "%zu: %#lx", i,
			     functions[i].address);
		cr_expect_eq(functions[i].called, i != 1, "%zu", i);
	}
	flow_free(flow);
}

Test(flow, ends_with_what_it_may_be_long)
{
	const size_t len = FLOW_BYTES_MAX + 16;
	uint8_t *code = malloc(len);
	struct flow *flow;

	cr_assert_not_null(code);
	memset(code, NOP, len);
	flow = follow(code, len, (struct expected[]){ SP(FLOW_BYTES_MAX - 1, 8, 0, KEPT) }, 1);
	cr_expect_not(flow_has(FLOW_BYTES_MAX, len));
	flow_free(flow);
	free(code);
}

/* Instructions that leap about, and that any bytes are: it ends, and says nothing impossible. */
Test(flow, ends_with_any_bytes)
{
	static uint8_t code[4096];
	uint64_t random = 88172645463325252ULL;
	struct flow *flow;

	cr_assert_eq(flow_new(&flow), 0);
	for (int round = 0; round < 64; round++) {
		for (size_t i = 0; i < sizeof(code); i++) {
			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			code[i] = (uint8_t)random;
		}
		flow_follow(flow, code, sizeof(code), BEGIN, false);
		for (size_t at = 0; flow_has(at, sizeof(code));) {
			size_t before = at;
			const struct unwind_rule rule = flow_next(flow, &at);

			cr_assert_gt(at, before);
			cr_expect(rule.kind == UNWIND_NONE || rule.kind == UNWIND_END ||
				  rule.kind == UNWIND_CFA);
			cr_expect(rule.kind != UNWIND_CFA || rule.base == UNWIND_FP ||
				  rule.cfa_offset >= 8);
		}
	}
	flow_free(flow);
}
