/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The evidence for machine/futex.h: what a thread that waits can see in its own memory. Only for
 * the thread that is about to be switched out, whose memory it is; nothing is faulted in.
 */
#ifndef WORKLOAD_THREADS_FUTEX_H
#define WORKLOAD_THREADS_FUTEX_H

#include "core/maps.h"
#include "lib/task.h"
#include "machine/futex.h"
#include "machine/words.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, WORD_SETS);
	__type(key, __u32);
	__type(value, struct word_set);
} lock_words SEC(".maps");

static inline void futex_wait_read(const struct sleeper *sleeper, struct futex_wait *wait)
{
	wait->word = sleeper->args[0];
	wait->op = sleeper->args[1];
	wait->expected = sleeper->args[2];
	wait->timed = sleeper->args[3] != 0;
	wait->own_frame = wait->word - sleeper->sp < FUTEX_OWN_FRAME_BYTES;
}

/* --- what is known of a word ------------------------------------------------------------------ */

static inline __u64 word_of(struct task_struct *task, __u64 address)
{
	struct task_struct *leader = BPF_CORE_READ(task, group_leader); /* as in cgroup_of() */

	return word_hash(BPF_CORE_READ(leader, start_boottime) +
				 BPF_CORE_READ(leader, self_exec_id),
			 address);
}

static inline struct word_set *word_set_of(__u64 hash)
{
	__u32 index = hash & (WORD_SETS - 1);

	return bpf_map_lookup_elem(&lock_words, &index);
}

VERIFIED_ALONE __u64 word_look_up(__u64 hash)
{
	const struct word_set *set = word_set_of(hash);

	return set ? word_known(set, hash) : 0;
}

/* Returns whether another word was forgotten for it. */
VERIFIED_ALONE int word_put(__u64 hash, __u64 bits)
{
	struct word_set *set = word_set_of(hash);

	return set && word_remember(set, hash, bits, bpf_ktime_get_ns() >> 4);
}

/* Not in word_put(): the stacks of all that call each other are 512 bytes in all. */
static inline void word_note(__u64 hash, __u64 bits)
{
	if (word_put(hash, bits))
		drop(DROP_WORD_FORGOTTEN);
}

/*
 * A thread goes to sleep again after it has waited at a word of which little was known. Whether it
 * has gone on since cannot be told if it comes back to that word at once: a signal may have woken
 * it.
 */
VERIFIED_ALONE int word_review(struct thread *thread, const struct sleeper *sleeper, __u64 ran_ns)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct word_wait waited;
	__u64 hash, known, judged;
	__u32 now = 0;

	if (!thread || !sleeper)
		return 0;
	waited = thread->word;
	if (sleeper->syscall == SYS_FUTEX && sleeper->args[0] == waited.address &&
	    ran_ns < EPISODE_GAP_NS)
		return 0;
	thread->word.address = 0;
	if (bpf_probe_read_user(&now, sizeof(now), (const void *)waited.address))
		return 0;
	hash = word_of(task, waited.address);
	known = word_look_up(hash);
	judged = word_judge(known, waited.expected, now);
	if (!known || judged != (known & ~WORD_TAG))
		word_note(hash, judged);
	return 0;
}

static inline __u32 word_lock(struct task_struct *task, struct thread *thread,
			      const struct futex_wait *wait, __u64 address)
{
	thread->word.address = wait->word;
	thread->word.expected = wait->expected;
	return word_is_lock(word_look_up(word_of(task, address)));
}

/* --- what there is to see --------------------------------------------------------------------- */

static inline __u32 futex_see_code(const struct futex_wait *wait, const struct sleeper *sleeper)
{
	struct futex_sight sight = {};

	bpf_probe_read_user(sight.code, sizeof(sight.code),
			    (const void *)(sleeper->ip - sizeof(sight.code)));
	if (!code_waits_for_two(sight.code) || wait->expected != 2)
		bpf_probe_read_user(sight.words, sizeof(sight.words), (const void *)wait->word);
	return futex_code_is_lock(wait, &sight);
}

static inline __u32 futex_see_owner(const struct sleeper *sleeper)
{
	struct futex_sight sight = {};

	bpf_probe_read_user(sight.code, sizeof(sight.code),
			    (const void *)(sleeper->ip - sizeof(sight.code)));
	return futex_owner_is_lock(&sight);
}

static inline __u32 futex_see_rwlock(struct task_struct *task, const struct futex_wait *wait)
{
	/* One byte on: what Rust's locks are known for is another matter. */
	__u64 hash = word_of(task, futex_rwlock(wait) + 1), known = word_look_up(hash);
	struct futex_sight sight = {};

	bpf_probe_read_user(sight.rwlock, sizeof(sight.rwlock), (const void *)futex_rwlock(wait));
	if (wait->timed && wait->expected == 2)
		bpf_probe_read_user(sight.words, sizeof(sight.words), (const void *)wait->word);
	if (rwlock_is_held(wait, sight.rwlock) && !word_is_lock(known))
		word_note(hash, (known & ~WORD_TAG) | WORD_SCORE_LOCK);
	return futex_rwlock_is_lock(wait, &sight, word_is_lock(known));
}

/* Returns the address of the lock. */
static inline __u64 futex_see_key(const struct futex_wait *wait)
{
	struct futex_sight sight = {};
	__u8 byte;

	bpf_probe_read_user(sight.before, sizeof(sight.before),
			    (const void *)(wait->word - sizeof(sight.before)));
	bpf_probe_read_user(sight.words, 2 * sizeof(__u32), (const void *)wait->word);
	if (!parking_lot_thread(wait, &sight))
		return 0;
	bpf_probe_read_user(&sight.key, sizeof(sight.key), (const void *)futex_key(&sight));
	sight.pointer = !bpf_probe_read_user(&byte, sizeof(byte), (const void *)sight.key);
	return futex_key_is_lock(wait, &sight) ? futex_key(&sight) : 0;
}

static inline __u32 futex_see_word(struct task_struct *task, struct thread *thread,
				   const struct futex_wait *wait)
{
	struct futex_sight sight = {};
	__u64 hash;

	bpf_probe_read_user(&sight.before[3], sizeof(__u64), (const void *)(wait->word - 8));
	switch (futex_word_kind(wait, &sight)) {
	case WORD_IS_LOCK:
		hash = word_of(task, wait->word);
		break;
	case WORD_IS_STATE:
		hash = word_of(task, wait->word - sizeof(__u32));
		break;
	case WORD_MAY_BE:
		return word_lock(task, thread, wait, wait->word);
	case WORD_MAY_BE_STATE:
		return word_is_lock(word_look_up(word_of(task, wait->word - sizeof(__u32))));
	default:
		hash = word_of(task, wait->word);
		if (!(word_look_up(hash) & WORD_COUNTS))
			word_note(hash, WORD_COUNTS);
		return 0;
	}
	if (!word_is_lock(word_look_up(hash)))
		word_note(hash, WORD_SCORE_LOCK);
	return 1;
}

/* The lock for which the current task waits in futex(2); 0 if that is none. */
VERIFIED_ALONE __u64 futex_lock(struct thread *thread, const struct sleeper *sleeper)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct futex_wait wait;

	if (!thread || !sleeper)
		return 0;
	futex_wait_read(sleeper, &wait);
	switch (futex_ask(&wait)) {
	case FUTEX_LOCK:
		return wait.word;
	case FUTEX_ASK_CODE:
		return futex_see_code(&wait, sleeper) ? wait.word : 0;
	case FUTEX_ASK_OWNER:
		return futex_see_owner(sleeper) ? wait.word : 0;
	case FUTEX_ASK_RWLOCK:
		return futex_see_rwlock(task, &wait) ? wait.word : 0;
	case FUTEX_ASK_KEY:
		return futex_see_key(&wait);
	case FUTEX_ASK_WORD:
		return futex_see_word(task, thread, &wait) ? wait.word : 0;
	default:
		return 0;
	}
}

/* The same for a task that is not current, whose memory cannot be seen: by the value alone. */
static inline __u64 futex_lock_of_other(const struct sleeper *sleeper)
{
	struct futex_wait wait;
	__u32 asks;

	futex_wait_read(sleeper, &wait);
	asks = futex_ask(&wait);
	return asks == FUTEX_LOCK || asks == FUTEX_ASK_OWNER ? wait.word : 0;
}

#endif
