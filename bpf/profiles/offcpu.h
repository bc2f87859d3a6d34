/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Waits of threads: their stacks, and how long they last (machine/waits.h). How long that will be
 * is unknown when the stack must be taken: where threads wait often only some are, and stand for
 * the others. Which ones is a matter of chance, and how many of the past, so that no kind of wait
 * is favoured.
 */
#ifndef WORKLOAD_PROFILES_OFFCPU_H
#define WORKLOAD_PROFILES_OFFCPU_H

#include "lib/kernel.h"
#include "core/maps.h"
#include "machine/waits.h"
#include "profiles/samples.h"

/* @thread, which is the current one, begins to wait in @state: its stack. */
static inline void wait_sample(struct thread *thread, __u32 state, __u32 shift, __u64 now)
{
	struct unwinding *unwinding = unwinding_here(ROW_QUIET);
	struct profiled *here = profiled_here(ROW_QUIET);
	__u32 set;

	if (!unwinding || !here)
		return;
	set = set_enter(here);
	unwinding->key.state = state;
	/* One that was preempted has called nothing, or has not come to wait for it. */
	unwinding->leaf = state == STATE_RUNNABLE ? 0 : frame_of_syscall(thread->syscall);
	if (stack_sample(unwinding, here, set, thread, 1ULL << shift))
		wait_start(thread_wait_of(thread), &unwinding->key, shift, now);
	set_leave(here, set);
}

/* What is counted on the stack of @piece; once that was taken, on one for what is told later. */
static inline struct stack *piece_stack(__u32 set, const struct thread *thread,
					const struct wait_piece *piece)
{
	struct stack *known = bpf_map_lookup_elem(set_stacks(set), &piece->key);
	struct unwinding *unwinding;

	if (known)
		return known;
	unwinding = unwinding_here(ROW_QUIET);
	if (!unwinding)
		return NULL;
	unwinding->key = piece->key;
	unwinding->key.hash |= HASH_LATER;
	unwinding->stack.end = STACK_BEGAN_BEFORE;
	unwinding->stack.len = 0;
	pool_name(thread, unwinding->stack.pool);
	return stack_known(set, unwinding);
}

/* @woken: and then the wait is over. */
static inline void piece_tell(const struct thread *thread, const struct wait_piece *piece,
			      __u32 woken)
{
	struct profiled *here = profiled_here(ROW_QUIET);
	struct stack *known;
	__u32 set;

	if (!here)
		return;
	set = set_enter(here);
	known = piece_stack(set, thread, piece);
	if (!known)
		step(&here->lost[set]);
	else if (piece->woken)
		__sync_fetch_and_add(&known->queued_ns, piece->ns);
	else
		__sync_fetch_and_add(&known->ns, piece->ns);
	if (known && woken)
		__sync_fetch_and_add(&known->woken, 1ULL << piece->shift);
	set_leave(here, set);
}

/* --- what the scheduler tells --------------------------------------------------------------- */

static inline void wait_begins(struct task_struct *task, struct thread *thread,
			       const struct look *look)
{
	struct thread_wait *wait = thread_wait_of(thread);
	__u32 state = where_state(thread->where);
	__u64 now = thread->since_ns;
	struct wait_piece none;
	int shift;

	wait_stop(wait, look, thread->tree, where_pool(thread->where), &now, &none);
	if (!state_is_looked_at(look, state) || task->flags & PF_EXITING)
		return;
	shift = sample_draw(&wait->pace, ROW_QUIET, 1, now);
	if (shift >= 0)
		wait_sample(thread, state, (__u32)shift, now);
}

static inline void wait_ends(struct thread *thread, const struct look *look)
{
	struct wait_piece piece;
	__u64 now = thread->since_ns;

	if (wait_stop(thread_wait_of(thread), look, thread->tree, where_pool(thread->where), &now,
		      &piece))
		piece_tell(thread, &piece, 0);
}

static inline void wait_is_woken(struct thread *thread, const struct look *look)
{
	struct thread_wait *wait = thread_wait_of(thread);
	struct wait_piece piece;
	__u64 now = thread->since_ns;

	if (!wait_can_wake(wait, look) ||
	    !wait_stop(wait, look, thread->tree, where_pool(thread->where), &now, &piece))
		return;
	piece_tell(thread, &piece, 1);
	wait_wake(wait, look, now);
}

/* A thread that has not run yet has no stack. */
static inline void wait_is_first(struct thread *thread, const struct look *look)
{
	struct stack_key key = { .hash = unseen_hash(where_pool(thread->where)),
				 .tree = thread->tree,
				 .state = STATE_RUNNABLE };
	struct thread_wait *wait = thread_wait_of(thread);

	wait->look_ns = look->since_ns;
	if (state_is_looked_at(look, STATE_RUNNABLE))
		wait_start(wait, &key, 0, thread->since_ns);
}

#endif
