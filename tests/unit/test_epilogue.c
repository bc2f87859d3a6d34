/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps out of functions that no table knows, by what they are about to execute: those that CPython
 * generates for perf, as they are run by the CPU. Each notes its registers when it is entered.
 */
#include "unwinding.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "machine/unwind.h"

/* What a function has found where it began. */
struct entry {
	uint64_t sp, fp, lr;
};
struct entry epilogue_entry;

/* Functions that call their argument with itself. */
typedef void (*caller)(void (*called)(void));
void epilogue_of_rbp(void (*called)(void)), epilogue_of_rsp(void (*called)(void)),
	epilogue_that_keeps_more(void (*called)(void));

#if defined(__x86_64__)
#define MACHINE UNWIND_X86_64
#define NOTE                                \
	"	mov %rsp, epilogue_entry(%rip)\n" \
	"	mov %rbp, 8+epilogue_entry(%rip)\n"
/* As CPython 3.14, 3.12, and what a compiler makes. */
__asm__(".pushsection .text\n"
	"epilogue_of_rbp:\n" NOTE "	push %rbp\n	mov %rsp, %rbp\n	call *%rdi\n"
	"	pop %rbp\n	ret\n"
	"epilogue_of_rsp:\n" NOTE "	sub $8, %rsp\n	call *%rdi\n	add $8, %rsp\n	ret\n"
	"epilogue_that_keeps_more:\n" NOTE "	push %rbp\n	push %rbx\n	sub $8, %rsp\n"
	"	call *%rdi\n	add $8, %rsp\n	pop %rbx\n	pop %rbp\n	ret\n"
	".popsection\n");
#else
#define MACHINE UNWIND_ARM64
#define NOTE                                                            \
	"	adrp x9, epilogue_entry\n	add x9, x9, :lo12:epilogue_entry\n" \
	"	mov x10, sp\n	stp x10, x29, [x9]\n	str x30, [x9, 16]\n"
/* As CPython, without and with pointer authentication, and what a compiler makes. */
__asm__(".pushsection .text\n"
	"epilogue_of_rbp:\n" NOTE "	stp x29, x30, [sp, -16]!\n	mov x29, sp\n	blr x0\n"
	"	ldp x29, x30, [sp], 16\n	ret\n"
	"epilogue_of_rsp:\n" NOTE
	"	hint 25\n	stp x29, x30, [sp, -16]!\n	mov x29, sp\n"
	"	blr x0\n	ldp x29, x30, [sp], 16\n	hint 29\n	ret\n"
	"epilogue_that_keeps_more:\n" NOTE "	stp x29, x30, [sp, -32]!\n	mov x29, sp\n"
	"	str x19, [sp, 16]\n	blr x0\n	ldr x19, [sp, 16]\n"
	"	ldp x29, x30, [sp], 32\n	ret\n"
	".popsection\n");
#endif

static uint64_t word_at(uint64_t address)
{
	uint64_t word;

	memcpy(&word, (const void *)address, sizeof(word)); /* NOLINT(performance-no-int-to-ptr) */
	return word;
}

static struct unwind_rule rule_of(const struct unwind_frame *frame)
{
	struct unwind_rule rule = { .kind = UNWIND_EPILOGUE };

	unwind_epilogue(MACHINE, word_at(unwind_epilogue_at(MACHINE, frame)), &rule);
	return rule;
}

static struct unwind_rule rule_found;
static struct unwind_frame caller_found;

static void step(const struct unwind_rule *rule, struct unwind_frame *frame)
{
	uint64_t cfa = unwind_cfa(rule, frame, 0);
	struct unwind_words at, words;

	cr_assert_eq(unwind_words(MACHINE, rule, frame, cfa, &at), UNWIND_ON);
	words = (struct unwind_words){ .pc = word_at(at.pc), .fp = at.fp ? word_at(at.fp) : 0 };
	cr_assert_eq(unwind_up(MACHINE, rule, frame, cfa, &words), UNWIND_ON);
}

/* Steps out of the function that calls it, while its frame is there. */
static __attribute__((noinline)) void called(void)
{
	caller_found = (struct unwind_frame){
		.pc = (uint64_t)__builtin_extract_return_addr(__builtin_return_address(0)),
		.sp = (uint64_t)__builtin_dwarf_cfa(),
		.fp = *(uint64_t *)__builtin_frame_address(0),
	};
	rule_found = rule_of(&caller_found);
	if (rule_found.kind == UNWIND_CFA)
		step(&rule_found, &caller_found);
}

Test(epilogue, leads_to_the_caller)
{
	static const caller callers[] = { epilogue_of_rbp, epilogue_of_rsp };

	for (size_t i = 0; i < 2; i++) {
		callers[i](called);
		cr_assert_eq(rule_found.kind, UNWIND_CFA, "%zu", i);
		cr_expect_eq(caller_found.fp, epilogue_entry.fp, "%zu", i);
#if defined(__x86_64__)
		cr_expect_eq(caller_found.sp, epilogue_entry.sp + 8, "%zu", i);
#else
		cr_expect_eq(caller_found.sp, epilogue_entry.sp, "%zu", i);
		cr_expect_eq(caller_found.pc, epilogue_entry.lr, "%zu", i);
#endif
	}
}

Test(epilogue, is_none_where_more_is_taken_down)
{
	const struct unwind_rule none = { 0 };

	epilogue_that_keeps_more(called);
	cr_expect_arr_eq(&rule_found, &none, sizeof(none));
}

/* Instructions that begin as those do, one byte of each changed. */
Test(epilogue, is_none_where_one_byte_is_another)
{
	static const struct {
		uint32_t machine;
		uint64_t word;
		uint32_t from; /* the first of its bytes that counts */
		uint32_t to;
	} cases[] = {
		{ UNWIND_X86_64, 0xc308c48348000000, 3, 8 },
		{ UNWIND_X86_64, 0xffffffc35d000000, 3, 5 },
		{ UNWIND_ARM64, 0xd65f03c0a8c17bfd, 0, 8 },
		{ UNWIND_ARM64, 0xd50323bfa8c17bfd, 0, 8 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		for (uint32_t byte = 0; byte < 8; byte++) {
			bool counts = byte >= cases[i].from && byte < cases[i].to;
			struct unwind_rule rule = { .kind = UNWIND_EPILOGUE };

			unwind_epilogue(cases[i].machine,
					cases[i].word ^ UINT64_C(0x20) << 8 * byte, &rule);
			cr_expect_eq(rule.kind, counts ? UNWIND_NONE : UNWIND_CFA, "%zu: %u", i,
				     byte);
		}
}

/* What generates code beside Python may keep frame pointers. */
Test(epilogue, is_as_the_rule_says_where_it_is_another)
{
	const struct unwind_rule kept = { .kind = UNWIND_CFA,
					  .base = UNWIND_FP,
					  .fp_place = UNWIND_AT_CFA,
					  .ra_place = UNWIND_AT_CFA,
					  .cfa_offset = 16,
					  .fp_offset = -16,
					  .ra_offset = -8 };
	struct unwind_rule rule = kept;

	rule.kind = UNWIND_EPILOGUE;
	unwind_epilogue(UNWIND_X86_64, 0, &rule);
	cr_expect_arr_eq(&rule, &kept, sizeof(rule));
	rule.kind = UNWIND_EPILOGUE;
	unwind_epilogue(UNWIND_X86_64, 0xc308c48348000000, &rule);
	cr_expect_eq(rule.base, UNWIND_SP);
	cr_expect_eq(rule.fp_place, UNWIND_KEPT);
	cr_expect_eq(rule.fp_offset, 0);
}

/* The page may end behind the last instruction. */
Test(epilogue, is_read_up_to_its_end)
{
	const size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *pages = mmap(NULL, 2 * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			      -1, 0);
	static const uint8_t x86[] = { 0x48, 0x83, 0xc4, 0x08, 0xc3 };
	static const uint8_t arm64[] = { 0xfd, 0x7b, 0xc1, 0xa8, 0xc0, 0x03, 0x5f, 0xd6 };
	const bool is_x86 = MACHINE == UNWIND_X86_64;
	const size_t len = is_x86 ? sizeof(x86) : sizeof(arm64);
	struct unwind_frame frame;

	cr_assert_neq(pages, MAP_FAILED);
	cr_assert_eq(munmap(pages + bytes, bytes), 0);
	memcpy(pages + bytes - len, is_x86 ? x86 : arm64, len);
	frame = (struct unwind_frame){ .pc = (uint64_t)(pages + bytes - len) };
	cr_expect_eq(rule_of(&frame).kind, UNWIND_CFA);
	munmap(pages, bytes);
}
