/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One step up a stack: from a frame and the rule for its code to the frame of its caller. The words
 * of the thread's memory that a step depends on are named here, and read by the caller:
 *
 *   unwind_cfa_at() -> a word -> unwind_words() -> words -> unwind_up()
 *
 * A rule of the kind UNWIND_EPILOGUE is first made one of the others:
 *
 *   unwind_epilogue_at() -> a word -> unwind_epilogue()
 *
 * Offsets are those of a hostile file, and so are all words: sums may wrap. Each step leads up the
 * stack, but those out of a leaf of arm64 and to another stack: the caller bounds their number.
 */
#ifndef WORKLOAD_MACHINE_UNWIND_H
#define WORKLOAD_MACHINE_UNWIND_H

#include "abi/unwind.h"

enum { UNWIND_X86_64, UNWIND_ARM64 };

/* What has become of a stack. */
enum unwind_result {
	UNWIND_ON, /* there is a caller */
	UNWIND_COMPLETE, /* that was the first function of the thread */
	UNWIND_UNKNOWN, /* no rule for this code, or one that needs a register that is lost */
	UNWIND_UNREADABLE, /* a word of the stack could not be read */
	UNWIND_ASTRAY, /* the frame leads down */
};

struct unwind_frame {
	__u64 pc;
	__u64 sp;
	__u64 fp;
	__u64 lr; /* arm64: the link register, of the innermost frame */
	__u32 fp_lost; /* what fp was in this frame is not known */
	__u32 interrupted; /* pc is executed next; in all other frames it is a return address */
};

/* Where the words are that a step reads, or what they are; 0 for those it does without. */
struct unwind_words {
	__u64 pc, fp, sp;
};

/* Which address tells the rule: behind a call that does not return another function may begin. */
static inline __u64 unwind_code(const struct unwind_frame *frame)
{
	return frame->interrupted ? frame->pc : frame->pc - 1;
}

/*
 * Where the word of instructions is that unwind_epilogue() reads. On x86-64 it ends with the five
 * bytes that are executed next, as there may be no more: a page may end there.
 */
static inline __u64 unwind_epilogue_at(__u32 machine, const struct unwind_frame *frame)
{
	return machine == UNWIND_X86_64 ? frame->pc - 3 : frame->pc;
}

/*
 * Makes @rule, which is of that kind, one of the others. Where a function with a frame of two words
 * goes on to return, its instructions say where its caller is, whatever conventions its code keeps.
 * Such is what CPython puts between two functions of Python for perf (its
 * Python/asm_trampoline.S). Where @word holds others, it is one of UNWIND_CFA by its own members,
 * or if these are 0 none.
 */
static inline void unwind_epilogue(__u32 machine, __u64 word, struct unwind_rule *rule)
{
	__u64 first = word & 0xffffffff, second = word >> 32, bytes = word >> 24;
	int arm64 = machine == UNWIND_ARM64;
	int pops = arm64 ? first == 0xa8c17bfd && /* ldp x29, x30, [sp], #16 */
				   (second == 0xd65f03c0 || second == 0xd50323bf) /* ret, autiasp */
			 : (bytes & 0xffff) == 0xc35d; /* pop %rbp; ret */
	int adds = !arm64 && bytes == 0xc308c48348; /* add $8, %rsp; ret */

	if (pops || adds)
		*rule = (struct unwind_rule){ .kind = UNWIND_CFA,
					      .base = UNWIND_SP,
					      .fp_place = pops ? UNWIND_AT_CFA : UNWIND_KEPT,
					      .ra_place = UNWIND_AT_CFA,
					      .cfa_offset = 16,
					      .fp_offset = pops ? -16 : 0,
					      .ra_offset = -8 };
	else
		rule->kind = rule->cfa_offset ? UNWIND_CFA : UNWIND_NONE;
}

static inline __u64 unwind_base(const struct unwind_rule *rule, const struct unwind_frame *frame)
{
	return (rule->base == UNWIND_FP ? frame->fp : frame->sp) + (__u64)(__s64)rule->cfa_offset;
}

/* Where the word is that the CFA is taken from; 0: it is not in memory. */
static inline __u64 unwind_cfa_at(const struct unwind_rule *rule, const struct unwind_frame *frame)
{
	return rule->kind == UNWIND_CFA_AT ? unwind_base(rule, frame) : 0;
}

/* @word is that at unwind_cfa_at(). */
static inline __u64 unwind_cfa(const struct unwind_rule *rule, const struct unwind_frame *frame,
			       __u64 word)
{
	if (rule->kind == UNWIND_CFA_AT)
		return word + (__u64)(__s64)rule->cfa_add;
	if (rule->kind == UNWIND_PLT)
		return frame->sp + (__u64)(__s64)rule->cfa_offset +
		       ((unwind_code(frame) & 15) >= (__u32)rule->cfa_add ? 8 : 0);
	return unwind_base(rule, frame);
}

/*
 * The kernel's frame of a signal on x86-64, from the stack pointer on: struct ucontext, and in it
 * struct sigcontext (include/uapi/asm-generic/ucontext.h, arch/x86/include/uapi/asm/sigcontext.h).
 */
static inline void unwind_signal_words(const struct unwind_frame *frame, struct unwind_words *at)
{
	at->fp = frame->sp + 40 + 10 * 8;
	at->sp = frame->sp + 40 + 15 * 8;
	at->pc = frame->sp + 40 + 16 * 8;
}

/*
 * Where the frame pointer of x86-64 points is the one of the caller, and behind that the return
 * address: prologues leave them there.
 */
static inline void unwind_switch_words(const struct unwind_frame *frame, struct unwind_words *at)
{
	at->fp = frame->fp;
	at->pc = frame->fp + 8;
}

/* Whether the caller may be on another stack, which may be anywhere. */
static inline int unwind_leaps(const struct unwind_rule *rule)
{
	return rule->kind == UNWIND_SIGNAL || rule->kind == UNWIND_SWITCH;
}

/* Which words the step needs, where there is to be a caller at all. */
static inline int unwind_words(__u32 machine, const struct unwind_rule *rule,
			       const struct unwind_frame *frame, __u64 cfa, struct unwind_words *at)
{
	*at = (struct unwind_words){};
	switch (rule->kind) {
	case UNWIND_END:
		return UNWIND_COMPLETE;
	case UNWIND_SIGNAL:
		unwind_signal_words(frame, at);
		return UNWIND_ON;
	case UNWIND_SWITCH:
		unwind_switch_words(frame, at);
		return frame->fp_lost ? UNWIND_UNKNOWN : UNWIND_ON;
	case UNWIND_CFA:
	case UNWIND_CFA_AT:
	case UNWIND_PLT:
		break;
	default:
		return UNWIND_UNKNOWN;
	}
	if (frame->fp_lost && (rule->base == UNWIND_FP || rule->fp_place == UNWIND_AT_FP))
		return UNWIND_UNKNOWN;
	if (rule->fp_place == UNWIND_AT_CFA)
		at->fp = cfa + (__u64)(__s64)rule->fp_offset;
	if (rule->fp_place == UNWIND_AT_FP)
		at->fp = frame->fp + (__u64)(__s64)rule->fp_offset;
	if (rule->ra_place == UNWIND_AT_CFA)
		at->pc = cfa + (__u64)(__s64)rule->ra_offset;
	else if (machine != UNWIND_ARM64 || !frame->interrupted)
		return UNWIND_UNKNOWN;
	return UNWIND_ON;
}

/* arm64 signs return addresses in the bits above the 48 of an address. */
static inline __u64 unwind_strip(__u32 machine, __u64 address)
{
	return machine == UNWIND_ARM64 ? address & 0xffffffffffffULL : address;
}

/*
 * Makes @frame that of the caller; @word holds what is at unwind_words(). A call pushes its return
 * address on x86-64, so each frame is higher there; on arm64 the innermost may use no stack.
 */
static inline int unwind_up(__u32 machine, const struct unwind_rule *rule,
			    struct unwind_frame *frame, __u64 cfa, const struct unwind_words *word)
{
	int signal = rule->kind == UNWIND_SIGNAL, leaps = unwind_leaps(rule);
	__u64 sp = signal ? word->sp : rule->kind == UNWIND_SWITCH ? frame->fp + 16 : cfa;

	if (!leaps && sp <= frame->sp &&
	    !(machine == UNWIND_ARM64 && frame->interrupted && sp == frame->sp))
		return UNWIND_ASTRAY;
	frame->pc = unwind_strip(machine,
				 leaps || rule->ra_place == UNWIND_AT_CFA ? word->pc : frame->lr);
	if (leaps || rule->fp_place == UNWIND_AT_CFA || rule->fp_place == UNWIND_AT_FP) {
		frame->fp = word->fp;
		frame->fp_lost = 0;
	} else if (rule->fp_place == UNWIND_LOST) {
		frame->fp_lost = 1;
	}
	frame->sp = sp;
	frame->lr = 0;
	frame->interrupted = signal;
	return frame->pc ? UNWIND_ON : UNWIND_COMPLETE;
}

#endif
