/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps up a stack: those of this thread, by the tables of the files that it runs, beside what
 * libgcc finds; and steps that cannot be made.
 */
#include "unwinding.h"

#include <link.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unwind.h>

#include "machine/unwind.h"

#define FRAMES_MAX 64
#define FILES_MAX 64

#if defined(__x86_64__)
#define MACHINE UNWIND_X86_64
#define REGISTERS(frame)                                                  \
	__asm__ volatile("lea 0(%%rip), %0\nmov %%rsp, %1\nmov %%rbp, %2" \
			 : "=r"((frame).pc), "=r"((frame).sp), "=r"((frame).fp))
#else
#define MACHINE UNWIND_ARM64
#define REGISTERS(frame)                                      \
	__asm__ volatile("adr %0, .\nmov %1, sp\nmov %2, x29" \
			 : "=r"((frame).pc), "=r"((frame).sp), "=r"((frame).fp))
#endif

/* A file that is loaded, and the vDSO, which is none. */
struct loaded {
	uint64_t begin, end, bias;
	struct unwind_table table;
};

struct stack {
	uint64_t pc[FRAMES_MAX];
	size_t len;
	int result;
};

static struct loaded files[FILES_MAX];
static size_t files_len;
static struct stack ours, theirs;

static int file_add(struct dl_phdr_info *info, size_t size, void *unused)
{
	const char *path = *info->dlpi_name ? info->dlpi_name : "/proc/self/exe";
	struct loaded *file = &files[files_len];

	(void)size;
	(void)unused;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];

		if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X))
			continue;
		cr_assert_lt(files_len, FILES_MAX);
		file->bias = info->dlpi_addr;
		file->begin = info->dlpi_addr + segment->p_vaddr;
		file->end = file->begin + segment->p_memsz;
	}
	if (path[0] != '/')
		return 0; /* the vDSO: no frame of these tests is in it */
	file->table = table_of(path);
	files_len++;
	return 0;
}

static const struct unwind_rule *rule_at(uint64_t address)
{
	static const struct unwind_rule none;

	for (size_t i = 0; i < files_len; i++)
		if (address >= files[i].begin && address < files[i].end)
			return unwind_table_find(&files[i].table, address - files[i].bias);
	return &none;
}

/* A word of this thread's stack, which ASan knows as parts. */
__attribute__((no_sanitize("address", "undefined"))) static uint64_t word_at(uint64_t address)
{
	return address ? *(const volatile uint64_t *)(uintptr_t)address : 0;
}

static void walk(struct unwind_frame frame)
{
	struct unwind_words at, words;

	do {
		const struct unwind_rule *rule = rule_at(unwind_code(&frame));
		uint64_t cfa = unwind_cfa(rule, &frame, word_at(unwind_cfa_at(rule, &frame)));

		ours.pc[ours.len++] = frame.pc;
		ours.result = unwind_words(MACHINE, rule, &frame, cfa, &at);
		if (ours.result != UNWIND_ON)
			break;
		words = (struct unwind_words){ .pc = word_at(at.pc),
					       .fp = word_at(at.fp),
					       .sp = word_at(at.sp) };
		ours.result = unwind_up(MACHINE, rule, &frame, cfa, &words);
	} while (ours.result == UNWIND_ON && ours.len < FRAMES_MAX);
}

static _Unwind_Reason_Code libgcc_frame(struct _Unwind_Context *context, void *unused)
{
	(void)unused;
	if (theirs.len == FRAMES_MAX)
		return _URC_END_OF_STACK;
	theirs.pc[theirs.len++] = _Unwind_GetIP(context);
	return _URC_NO_REASON;
}

/* Both begin in this function, at two of its instructions. */
__attribute__((noinline)) static void walk_both(void)
{
	struct unwind_frame frame = { .interrupted = 1 };

	ours.len = theirs.len = 0;
	_Unwind_Backtrace(libgcc_frame, NULL);
	REGISTERS(frame);
	walk(frame);
}

static void expect_the_same(void)
{
	/* libgcc also shows the function whose caller would have been next. */
	cr_expect_eq(ours.result, UNWIND_COMPLETE, "%d after %zu frames", ours.result, ours.len);
	cr_expect_gt(ours.len, 5);
	cr_expect_geq(theirs.len, ours.len);
	cr_expect_leq(theirs.len, ours.len + 1);
	for (size_t i = 1; i < ours.len; i++)
		cr_expect_eq(ours.pc[i], theirs.pc[i], "frame %zu: %#lx and not %#lx", i,
			     ours.pc[i], theirs.pc[i]);
}

Test(unwind_machine, finds_the_callers_that_libgcc_finds)
{
	dl_iterate_phdr(file_add, NULL);
	walk_both();
	expect_the_same();
}

#if defined(__x86_64__) /* on arm64 nothing tells how to leave a signal */

static void on_signal(int number)
{
	(void)number;
	walk_both();
}

static int compare(const void *a, const void *b)
{
	if (!ours.len)
		raise(SIGUSR1);
	return *(const int *)a - *(const int *)b;
}

/* Through a library without frame pointers, and through the frame of a signal. */
Test(unwind_machine, finds_the_callers_of_a_signal_in_a_library)
{
	int numbers[] = { 3, 1, 2 };

	dl_iterate_phdr(file_add, NULL);
	signal(SIGUSR1, on_signal);
	qsort(numbers, 3, sizeof(numbers[0]), compare);
	expect_the_same();
	cr_expect_gt(ours.len, 10);
}

#endif

/* --- steps that cannot be made --------------------------------------------------------------- */

static const struct unwind_rule on_stack = {
	.kind = UNWIND_CFA, .ra_place = UNWIND_AT_CFA, .cfa_offset = 16, .ra_offset = -8
};
static const struct unwind_rule in_register = { .kind = UNWIND_CFA };
static const struct unwind_frame at = { .pc = 0x1000, .sp = 0x7000, .fp = 0x7100, .lr = 0x2000 };

Test(unwind_machine, needs_words_only_where_registers_were_saved)
{
	struct unwind_rule rule = on_stack;
	struct unwind_frame frame = at;
	struct unwind_words words;
	uint64_t cfa = unwind_cfa(&rule, &frame, 0);

	cr_expect_eq(cfa, 0x7010);
	cr_expect_eq(unwind_cfa_at(&rule, &frame), 0);
	cr_expect_eq(unwind_words(UNWIND_X86_64, &rule, &frame, cfa, &words), UNWIND_ON);
	cr_expect_eq(words.pc, 0x7008);
	cr_expect_eq(words.fp, 0);
	rule.fp_place = UNWIND_AT_CFA;
	rule.fp_offset = -16;
	unwind_words(UNWIND_X86_64, &rule, &frame, cfa, &words);
	cr_expect_eq(words.fp, 0x7000);
	rule.fp_place = UNWIND_AT_FP;
	rule.fp_offset = 8;
	unwind_words(UNWIND_X86_64, &rule, &frame, cfa, &words);
	cr_expect_eq(words.fp, 0x7108);
}

Test(unwind_machine, takes_the_cfa_from_memory)
{
	const struct unwind_rule rule = {
		.kind = UNWIND_CFA_AT, .base = UNWIND_FP, .cfa_offset = -8, .cfa_add = 24
	};

	cr_expect_eq(unwind_cfa_at(&rule, &at), 0x70f8);
	cr_expect_eq(unwind_cfa(&rule, &at, 0x9000), 0x9018);
}

Test(unwind_machine, knows_how_far_an_entry_of_a_plt_has_come)
{
	const struct unwind_rule rule = { .kind = UNWIND_PLT, .cfa_offset = 8, .cfa_add = 11 };
	struct unwind_frame frame = at;

	frame.interrupted = 1;
	frame.pc = 0x100a;
	cr_expect_eq(unwind_cfa(&rule, &frame, 0), 0x7008);
	frame.pc = 0x100b;
	cr_expect_eq(unwind_cfa(&rule, &frame, 0), 0x7010);
}

/* What is called last in a function may never return, and begin another one behind the call. */
Test(unwind_machine, asks_for_the_rule_of_the_call_and_not_of_what_follows)
{
	struct unwind_frame frame = at;

	cr_expect_eq(unwind_code(&frame), 0xfff);
	frame.interrupted = 1;
	cr_expect_eq(unwind_code(&frame), 0x1000);
}

Test(unwind_machine, ends_where_there_is_no_rule)
{
	static const struct unwind_rule none, end = { .kind = UNWIND_END };
	struct unwind_words words;

	cr_expect_eq(unwind_words(UNWIND_X86_64, &none, &at, 0, &words), UNWIND_UNKNOWN);
	cr_expect_eq(unwind_words(UNWIND_X86_64, &end, &at, 0, &words), UNWIND_COMPLETE);
}

/* The link register is that of the innermost function, as others have called since. */
Test(unwind_machine, takes_the_link_register_of_the_innermost_frame_only)
{
	const struct unwind_words nothing = { 0 };
	struct unwind_frame frame = at;
	struct unwind_words words;

	cr_expect_eq(unwind_words(UNWIND_ARM64, &in_register, &frame, at.sp, &words),
		     UNWIND_UNKNOWN);
	frame.interrupted = 1;
	cr_expect_eq(unwind_words(UNWIND_X86_64, &in_register, &frame, at.sp, &words),
		     UNWIND_UNKNOWN);
	cr_expect_eq(unwind_words(UNWIND_ARM64, &in_register, &frame, at.sp, &words), UNWIND_ON);
	cr_expect_eq(words.pc, 0);
	cr_expect_eq(unwind_up(UNWIND_ARM64, &in_register, &frame, at.sp, &nothing), UNWIND_ON);
	cr_expect_eq(frame.pc, 0x2000);
	cr_expect_eq(frame.sp, at.sp);
	cr_expect_eq(frame.fp, at.fp);
	cr_expect_eq(frame.interrupted, 0);
	cr_expect_eq(frame.lr, 0);
}

Test(unwind_machine, strips_what_signs_an_address)
{
	const struct unwind_words words = { .pc = 0x12340000aaaabbbb };
	struct unwind_frame frame = at;

	cr_expect_eq(unwind_up(UNWIND_ARM64, &on_stack, &frame, 0x7010, &words), UNWIND_ON);
	cr_expect_eq(frame.pc, 0x0000aaaabbbb);
}

Test(unwind_machine, goes_up_only)
{
	const struct unwind_words words = { .pc = 0x3000 };
	struct unwind_frame frame = at;

	cr_expect_eq(unwind_up(UNWIND_X86_64, &on_stack, &frame, at.sp, &words), UNWIND_ASTRAY);
	cr_expect_eq(unwind_up(UNWIND_ARM64, &on_stack, &frame, at.sp, &words), UNWIND_ASTRAY);
	cr_expect_eq(unwind_up(UNWIND_ARM64, &on_stack, &frame, at.sp - 1, &words), UNWIND_ASTRAY);
	cr_expect_eq(unwind_up(UNWIND_X86_64, &on_stack, &frame, at.sp + 1, &words), UNWIND_ON);
}

Test(unwind_machine, stays_where_it_is_in_a_leaf_of_arm64_only)
{
	const struct unwind_words words = { .pc = 0x3000 };
	struct unwind_frame frame = at;

	frame.interrupted = 1;
	cr_expect_eq(unwind_up(UNWIND_X86_64, &on_stack, &frame, at.sp, &words), UNWIND_ASTRAY);
	cr_expect_eq(unwind_up(UNWIND_ARM64, &on_stack, &frame, at.sp - 1, &words), UNWIND_ASTRAY);
	cr_expect_eq(unwind_up(UNWIND_ARM64, &on_stack, &frame, at.sp, &words), UNWIND_ON);
}

/* Without a return address there is no caller: so clone(2) begins the stack of a thread in musl. */
Test(unwind_machine, is_complete_at_a_return_address_of_0)
{
	const struct unwind_words words = { 0 };
	struct unwind_frame frame = at;

	cr_expect_eq(unwind_up(UNWIND_X86_64, &on_stack, &frame, 0x7010, &words), UNWIND_COMPLETE);
}

Test(unwind_machine, does_not_go_on_by_a_register_that_is_lost)
{
	const struct unwind_words words = { .pc = 0x3000, .fp = 0x7200 };
	struct unwind_rule loses = on_stack, saved = on_stack, by_fp = on_stack;
	struct unwind_frame frame = at;
	struct unwind_words read;

	loses.fp_place = UNWIND_LOST;
	saved.fp_place = UNWIND_AT_CFA;
	by_fp.base = UNWIND_FP;
	cr_expect_eq(unwind_up(UNWIND_X86_64, &loses, &frame, 0x7010, &words), UNWIND_ON);
	cr_expect_eq(unwind_words(UNWIND_X86_64, &on_stack, &frame, 0x7020, &read), UNWIND_ON);
	cr_expect_eq(unwind_up(UNWIND_X86_64, &on_stack, &frame, 0x7020, &words), UNWIND_ON);
	cr_expect_eq(unwind_words(UNWIND_X86_64, &by_fp, &frame, 0x7030, &read), UNWIND_UNKNOWN);
	cr_expect_eq(unwind_up(UNWIND_X86_64, &saved, &frame, 0x7030, &words), UNWIND_ON);
	cr_expect_eq(unwind_words(UNWIND_X86_64, &by_fp, &frame, 0x7040, &read), UNWIND_ON);
}

/* Where a function of Go has gone on upon another stack. */
Test(unwind_machine, goes_on_by_the_frame_pointer_on_another_stack)
{
	const struct unwind_rule rule = { .kind = UNWIND_SWITCH };
	const struct unwind_words words = { .pc = 0x3000, .fp = 0x5100 };
	struct unwind_frame frame = at;
	struct unwind_words read;

	frame.fp = 0x5000; /* below the stack pointer */
	cr_expect_eq(unwind_cfa_at(&rule, &frame), 0);
	cr_expect_eq(unwind_words(UNWIND_X86_64, &rule, &frame, 0, &read), UNWIND_ON);
	cr_expect_eq(read.fp, 0x5000);
	cr_expect_eq(read.pc, 0x5008);
	cr_expect_eq(read.sp, 0);
	cr_expect_eq(unwind_up(UNWIND_X86_64, &rule, &frame, 0, &words), UNWIND_ON);
	cr_expect_eq(frame.pc, 0x3000);
	cr_expect_eq(frame.sp, 0x5010);
	cr_expect_eq(frame.fp, 0x5100);
	cr_expect_eq(frame.interrupted, 0);
	frame.fp_lost = 1;
	cr_expect_eq(unwind_words(UNWIND_X86_64, &rule, &frame, 0, &read), UNWIND_UNKNOWN);
}

/* All that a signal has interrupted is on the stack, wherever that is. */
Test(unwind_machine, goes_on_where_a_signal_has_interrupted)
{
	const struct unwind_rule rule = { .kind = UNWIND_SIGNAL };
	const struct unwind_words words = { .pc = 0x3000, .sp = 0x5000, .fp = 0x5100 };
	struct unwind_frame frame = at;
	struct unwind_words read;

	cr_expect_eq(unwind_words(UNWIND_X86_64, &rule, &frame, 0, &read), UNWIND_ON);
	cr_expect_eq(read.fp - at.sp, 120);
	cr_expect_eq(read.sp - at.sp, 160);
	cr_expect_eq(read.pc - at.sp, 168);
	cr_expect_eq(unwind_up(UNWIND_X86_64, &rule, &frame, 0, &words), UNWIND_ON);
	cr_expect_eq(frame.pc, 0x3000);
	cr_expect_eq(frame.sp, 0x5000);
	cr_expect_eq(frame.fp, 0x5100);
	cr_expect_eq(frame.interrupted, 1);
	cr_expect_eq(unwind_code(&frame), 0x3000);
}
