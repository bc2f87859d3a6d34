/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The stack of a thread, followed by the tables of the files that it runs, and where it is kept. */
#ifndef WORKLOAD_PROFILES_STACKS_H
#define WORKLOAD_PROFILES_STACKS_H

#include "lib/kernel.h"
#include "lib/task.h"
#include "abi/profiles.h"
#include "machine/unwind.h"
#include "profiles/code.h"

#if defined(__TARGET_ARCH_arm64)
#define MACHINE UNWIND_ARM64
#else
#define MACHINE UNWIND_X86_64
#endif

/* Of what a CPU has of its own: for programs with interrupts off, and for those of faults, which
 * wakeups may interrupt. */
enum { ROW_QUIET, ROW_FAULTS };
_Static_assert(ROW_FAULTS + 1 == PROFILED_ROWS, "PROFILED_ROWS");

/* A stack that is being followed: too large for that of a program. */
struct unwinding {
	struct unwind_frame frame;
	struct unwind_rule rule; /* by which its caller is found */
	__u32 slot; /* of the process */
	__u32 range; /* of the frame, where it is still known */
	__u32 of_parent; /* the slot is; then what is missing in it was not missed by its owner */
	__u64 leaf; /* frame below those that are followed; 0: none */
	__u64 fence;
	struct stack_key key;
	struct stack stack;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PROFILED_ROWS);
	__type(key, __u32);
	__type(value, struct unwinding);
} unwindings SEC(".maps");

static inline struct unwinding *unwinding_here(__u32 row)
{
	return bpf_map_lookup_elem(&unwindings, &row);
}

/* The code of @unwinding's frame; false: it is of no range. */
static inline int code_find(struct unwinding *unwinding, struct code_range *found)
{
	__u64 address = unwind_code(&unwinding->frame);
	__u32 slot = unwinding->slot; /* Linux 6.1 takes no key there */
	struct process_code *code = bpf_map_lookup_elem(&process_code, &slot);
	int range;

	if (!code)
		return 0;
	*found = code->ranges[unwinding->range & (CODE_RANGES_MAX - 1)];
	if (address >= found->begin && address < found->end)
		return 1;
	range = code_range_find(slot, address);
	if (range < 0) {
		if (!unwinding->of_parent)
			code->missed = 1;
		return 0;
	}
	unwinding->range = (__u32)range;
	*found = code->ranges[range & (CODE_RANGES_MAX - 1)];
	return 1;
}

/* The word at @address, which is not read where that is 0. False: it cannot be read. */
static inline int word_read(__u64 address, __u64 *word)
{
	*word = 0;
	return !address || !bpf_probe_read_user(word, sizeof(*word), (const void *)address);
}

/* Goes up by @rule. */
static inline int unwind_by(const struct unwind_rule *rule, struct unwind_frame *frame)
{
	struct unwind_words at, words;
	__u64 word, cfa;
	int result;

	if (!word_read(unwind_cfa_at(rule, frame), &word))
		return UNWIND_UNREADABLE;
	cfa = unwind_cfa(rule, frame, word);
	result = unwind_words(MACHINE, rule, frame, cfa, &at);
	if (result != UNWIND_ON)
		return result;
	if (!word_read(at.pc, &words.pc) || !word_read(at.fp, &words.fp) ||
	    !word_read(at.sp, &words.sp))
		return UNWIND_UNREADABLE;
	return unwind_up(MACHINE, rule, frame, cfa, &words);
}

/* Makes @unwinding's rule what the instructions say that its frame goes on with, if it is such. */
static inline void epilogue_read(struct unwinding *unwinding)
{
	__u64 word;

	if (unwinding->rule.kind != UNWIND_EPILOGUE)
		return;
	if (!word_read(unwind_epilogue_at(MACHINE, &unwinding->frame), &word))
		word = 0; /* no such instructions */
	unwind_epilogue(MACHINE, word, &unwinding->rule);
}

static inline __u32 stack_end_of(int result)
{
	switch (result) {
	case UNWIND_COMPLETE:
		return STACK_COMPLETE;
	case UNWIND_UNREADABLE:
		return STACK_UNREADABLE;
	case UNWIND_ASTRAY:
		return STACK_ASTRAY;
	default:
		return STACK_NO_RULE;
	}
}

/* The length is read where it is compared: Linux 6.1 does not remember that it was, over a call. */
static inline void frame_note(struct stack *stack, __u64 frame)
{
	__u32 index = *(volatile __u32 *)&stack->len;

	if (index >= FRAMES_MAX)
		return;
	stack->frames[index] = frame;
	stack->len = index + 1;
}

/* Notes the frame and goes to its caller. Negative: there is one; else how the stack ends. */
VERIFIED_ALONE int stack_step(struct unwinding *unwinding)
{
	struct code_range code;
	struct unwind_rule *rule;
	__u64 address;
	__u32 index;
	int result;

	if (!unwinding)
		return STACK_NO_RULE;
	if (unwinding->stack.len >= FRAMES_MAX)
		return STACK_TRUNCATED;
	if (!code_find(unwinding, &code) || !code.file)
		return STACK_NO_FILE; /* such an address may be any word of the stack */
	address = unwind_code(&unwinding->frame) - code.bias;
	frame_note(&unwinding->stack, frame_make(code.file, address));
	index = unwind_rule_find(code.file, address);
	rule = bpf_map_lookup_elem(&unwind_rules, &index);
	if (!rule)
		return STACK_NO_RULE;
	unwinding->rule = *rule;
	epilogue_read(unwinding);
	result = unwind_by(&unwinding->rule, &unwinding->frame);
	return result == UNWIND_ON ? -1 : (int)stack_end_of(result);
}

static inline __u64 hash_add(__u64 hash, __u64 word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
	return hash ^ hash >> 29;
}

VERIFIED_ALONE int stack_hash(struct unwinding *unwinding)
{
	__u64 hash;

	if (!unwinding)
		return 0;
	hash = hash_add(0xcbf29ce484222325ULL, unwinding->stack.end);
	hash = hash_add(hash, unwinding->stack.pool[0]);
	hash = hash_add(hash, unwinding->stack.pool[1]);
	for (__u32 i = 0; i < FRAMES_MAX; i++) {
		if (i >= unwinding->stack.len)
			break;
		hash = hash_add(hash, unwinding->stack.frames[i]);
	}
	unwinding->key.hash = hash & ~HASH_LATER;
	return 0;
}

/* An exchange orders reads before and behind it; there is nothing less that every kernel takes. */
static inline void fence(struct unwinding *unwinding)
{
	__sync_lock_test_and_set(&unwinding->fence, 0);
}

/*
 * Follows the stack of @task, whose memory is the current one, with the code of the slot that it
 * was told, unless that is another process's by now.
 */
static inline void stack_follow(struct unwinding *unwinding, struct task_struct *task,
				const struct code_slot *told)
{
	struct process_code *code;
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	int end = STACK_TRUNCATED;
	__u32 slot;
	__u64 seq;

	unwinding->stack.len = 0;
	unwinding->stack.end = STACK_NO_CODE;
	if (task_compat(task))
		return;
	if (unwinding->leaf)
		frame_note(&unwinding->stack, unwinding->leaf);
	if (!told)
		return;
	slot = told->slot;
	code = bpf_map_lookup_elem(&process_code, &slot);
	if (!code)
		return;
	seq = *(volatile __u64 *)&code->seq;
	fence(unwinding);
	if (code->owner != told->owner)
		return;
	unwinding->slot = slot;
	unwinding->range = 0;
	unwinding->frame = (struct unwind_frame){ .pc = regs_ip(regs),
						  .sp = regs->sp,
						  .fp = regs_fp(regs),
						  .lr = regs_lr(regs),
						  .interrupted = 1 };
	for (__u32 i = 0; i <= FRAMES_MAX; i++) {
		end = stack_step(unwinding);
		if (end >= 0)
			break;
	}
	unwinding->stack.end = (__u32)end;
	fence(unwinding);
	if (seq & 1 || *(volatile __u64 *)&code->seq != seq) {
		unwinding->stack.len = 0; /* what was followed may be of two */
		unwinding->stack.end = STACK_CHANGED;
	}
}

#endif
