/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What bpf/profiles/stacks.h has of the kernel, in this process: so that it runs here as it is. Its
 * maps are arrays, the task is one that was sampled, and its memory the stack that was copied with
 * the sample. One thread.
 */
#ifndef WORKLOAD_TESTS_KERNEL_SIDE_H
#define WORKLOAD_TESTS_KERNEL_SIDE_H

#include <errno.h>
#include <linux/bpf.h>
#include <string.h>

#include "abi/kernel_types.h"
#include "sampling.h"

/* In place of lib/kernel.h and lib/task.h, which have the kernel's own types. */
#define WORKLOAD_LIB_KERNEL_H
#define WORKLOAD_LIB_TASK_H

#ifdef __aarch64__
#define __TARGET_ARCH_arm64
#endif

#define SEC(name)
#define __uint(name, value) int(*name)[value]
#define __type(name, value) __typeof__(value) *name

struct pt_regs {
	__u64 sp;
};

struct task_struct {
	const struct sample *sample;
	struct pt_regs regs;
};

static const struct sample *kernel_sample; /* of the current task */

static inline void *bpf_task_pt_regs(struct task_struct *task)
{
	kernel_sample = task->sample;
	task->regs.sp = task->sample->registers[SAMPLE_SP];
	return &task->regs;
}

static inline __u64 regs_ip(const struct pt_regs *regs)
{
	(void)regs;
	return sample_pc(kernel_sample);
}

static inline __u64 regs_fp(const struct pt_regs *regs)
{
	(void)regs;
	return kernel_sample->registers[SAMPLE_FP];
}

static inline __u64 regs_lr(const struct pt_regs *regs)
{
	(void)regs;
	return sample_lr(kernel_sample);
}

static inline int task_compat(const struct task_struct *task)
{
	(void)task;
	return 0; /* such are not sampled */
}

static inline long bpf_probe_read_user(void *to, __u32 bytes, const void *from)
{
	uint64_t word;

	if (bytes != sizeof(word) || !sample_word(kernel_sample, (__u64)from, &word))
		return -EFAULT;
	memcpy(to, &word, sizeof(word));
	return 0;
}

static inline void *bpf_map_lookup_elem(const void *map, const __u32 *key);

#include "profiles/stacks.h"

static struct {
	uint64_t rows[UNWIND_ROWS_MAX_ALL / 2];
	struct unwind_rule rules[UNWIND_RULES_MAX_ALL];
	struct unwind_page pages[UNWIND_PAGES_MAX];
	struct unwind_file files[UNWIND_FILES_MAX];
	struct process_code code[CODE_PROCESSES_MAX];
} kernel_maps;

#define KERNEL_ELEMENT(array) (*key < sizeof(array) / sizeof(*(array)) ? &(array)[*key] : NULL)

static inline void *bpf_map_lookup_elem(const void *map, const __u32 *key)
{
	if (map == &unwind_rows)
		return KERNEL_ELEMENT(kernel_maps.rows);
	if (map == &unwind_rules)
		return KERNEL_ELEMENT(kernel_maps.rules);
	if (map == &unwind_pages)
		return KERNEL_ELEMENT(kernel_maps.pages);
	if (map == &unwind_files)
		return KERNEL_ELEMENT(kernel_maps.files);
	return map == &process_code ? KERNEL_ELEMENT(kernel_maps.code) : NULL;
}

#endif
