/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where the code of a process is told (code.h): by a slot of its own, or of its parent. */
#ifndef WORKLOAD_PROFILES_SLOTS_H
#define WORKLOAD_PROFILES_SLOTS_H

#include "lib/kernel.h"
#include "abi/profiles.h"
#include "profiles/stacks.h"

/* Of a process, on its leader: written by user space. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct code_slot);
} code_slots SEC(".maps");

/* What was told of a process; NULL: nothing, or of what it was before exec. */
static inline struct code_slot *slot_told(struct task_struct *leader)
{
	struct code_slot *told = bpf_task_storage_get(&code_slots, leader, 0, 0);

	return told && told->exec_id == leader->self_exec_id ? told : NULL;
}

/*
 * What was told of the parent, if @task runs the same since a fork: a fork leaves both with one
 * open file of the program, and each exec opens its own before memory is replaced (the kernel's
 * fs/exec.c). NULL: nothing, or it does not.
 */
static inline struct code_slot *slot_of_parent(struct task_struct *task)
{
	struct task_struct *parent = task->group_leader->real_parent->group_leader;
	struct mm_struct *mine = task->mm, *other = parent->mm;

	if (!mine || !other || !mine->exe_file || mine->exe_file != other->exe_file)
		return NULL;
	return slot_told(parent);
}

/* Follows the stack of @task, whose memory is the current one. */
static inline void stack_of(struct unwinding *unwinding, struct task_struct *task)
{
	struct code_slot *told = slot_told(task->group_leader);

	unwinding->of_parent = !told;
	stack_follow(unwinding, task, told ? told : slot_of_parent(task));
	stack_hash(unwinding);
}

#endif
