/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "abi/threads.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "profiles/folded.h"
#include "profiles/recording.h"

static size_t recorded; /* bytes of all recordings */

static struct stack made_stack(const char *pool, uint64_t samples, uint32_t end, uint64_t inner)
{
	struct stack stack = { .samples = samples, .end = end, .len = 2 };

	memcpy(stack.pool, pool, strlen(pool));
	stack.frames[0] = frame_make(1, inner);
	stack.frames[1] = frame_make(1, 0x2000);
	return stack;
}

static struct stack_key key_of(uint32_t tree, uint64_t hash)
{
	return (struct stack_key){ .hash = hash, .tree = tree, .state = STATE_RUNNING };
}

static int text_compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The lines of the profile in order, each with an end. */
static char *folded_lines(struct recording *recording)
{
	_cleanup_(buffer_free) struct buffer out = BUFFER_INIT(1 << 20);
	struct profile profile = { .period_ns = 10 };
	const struct files none = { 0 };
	char *lines[64], *rest, *sorted = NULL;
	size_t len = 0, bytes = 0;
	FILE *text = open_memstream(&sorted, &bytes);

	cr_assert_not_null(text);
	cr_assert_eq(recording_profile(recording, &none, &profile), 0);
	folded_write(&profile, &out);
	buffer_char(&out, '\0');
	for (char *line = strtok_r(out.data, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		lines[len++] = line;
	qsort(lines, len, sizeof(*lines), text_compare);
	for (size_t i = 0; i < len; i++)
		fprintf(text, "%s\n", lines[i]);
	fclose(text);
	return sorted;
}

#define EXPECT_FOLDED(recording, text)                      \
	do {                                                \
		char *lines = folded_lines(recording);      \
		cr_expect_str_eq(lines, text, "%s", lines); \
		free(lines);                                \
	} while (0)

/* Trees of one workload are one; pools, ends and workloads are told apart. */
Test(recording, adds_what_is_equal)
{
	struct recording *recording = recording_new(PROFILE_CPU, "", &recorded);
	struct stack one = made_stack("worker", 3, STACK_COMPLETE, 0x1000);
	struct stack other = made_stack("", 5, STACK_UNREADABLE, 0x1000);
	struct stack_key first = key_of(1, 10), second = key_of(2, 10), third = key_of(1, 11);
	struct recording_counts counts;

	recording_add(recording, "web", &first, &one);
	recording_add(recording, "web", &second, &one);
	recording_add(recording, "db", &second, &one);
	recording_add(recording, "web", &third, &other);
	cr_assert_eq(recording_end(recording), 0);
	EXPECT_FOLDED(recording, "db;worker;running;0x2000;0x1000 3\n"
				 "web;other;running;[unreadable];0x2000;0x1000 5\n"
				 "web;worker;running;0x2000;0x1000 6\n");
	counts = recording_counts(recording);
	cr_expect_eq(counts.samples, 14);
	cr_expect_eq(counts.lost, 0);
	cr_expect_eq(counts.ends[STACK_COMPLETE], 9);
	cr_expect_eq(counts.ends[STACK_UNREADABLE], 5);
	recording_free(recording);
}

Test(recording, may_be_of_one_workload)
{
	struct recording *recording = recording_new(PROFILE_CPU, "web", &recorded);
	struct stack stack = made_stack("worker", 3, STACK_COMPLETE, 0x1000);
	struct stack_key key = key_of(1, 10);

	recording_add(recording, "db", &key, &stack);
	recording_add(recording, "web", &key, &stack);
	cr_assert_eq(recording_end(recording), 0);
	EXPECT_FOLDED(recording, "web;worker;running;0x2000;0x1000 3\n");
	cr_expect_eq(recording_counts(recording).samples, 3);
	recording_free(recording);
}

/* Frames of two stacks, one of which is in both. */
Test(recording, asks_for_the_names_of_each_file_once)
{
	struct recording *recording = recording_new(PROFILE_CPU, "", &recorded);
	struct stack one = made_stack("a", 1, STACK_COMPLETE, 0x1000);
	struct stack other = made_stack("a", 1, STACK_NO_FILE, 0x1008);
	struct stack_key first = key_of(1, 10), second = key_of(1, 11);
	const uint64_t *frames;
	size_t len = 0;

	other.frames[1] = frame_make(3, 0x77);
	recording_add(recording, "web", &first, &one);
	recording_add(recording, "web", &second, &other);
	cr_assert_eq(recording_end(recording), 0);
	cr_assert_eq(recording_next_file(recording, &frames, &len), 1);
	cr_assert_eq(len, 3);
	cr_expect_eq(frames[0], frame_make(1, 0x1000));
	cr_expect_eq(frames[1], frame_make(1, 0x1008));
	cr_expect_eq(frames[2], frame_make(1, 0x2000));
	recording_name(recording, frames[0], "work");
	recording_name(recording, frames[2], "main");
	recording_name(recording, frame_make(9, 9), "not one of its own");
	cr_assert_eq(recording_next_file(recording, &frames, &len), 3);
	cr_assert_eq(len, 1);
	recording_name(recording, frames[0], "library");
	cr_expect_eq(recording_next_file(recording, &frames, &len), 0);
	EXPECT_FOLDED(recording, "web;a;running;[code_of_no_file];library;0x1008 1\n"
				 "web;a;running;main;work 1\n");
	recording_free(recording);
}

Test(recording, counts_what_it_has_no_room_for)
{
	struct recording *recording = recording_new(PROFILE_CPU, "", &recorded);
	struct stack stack = made_stack("a", 2, STACK_COMPLETE, 0x1000);
	struct recording_counts counts;

	stack.len = 1;
	for (uint64_t hash = 0; hash < RECORDING_STACKS_MAX + 5; hash++) {
		struct stack_key key = key_of(1, hash);

		recording_add(recording, "web", &key, &stack);
	}
	recording_lose(recording, 100);
	counts = recording_counts(recording);
	cr_expect_eq(counts.samples, 2 * RECORDING_STACKS_MAX);
	cr_expect_eq(counts.lost, 100 + 2 * 5);
	recording_free(recording);
}

/* Deep stacks take more: memory ends before RECORDING_STACKS_MAX. */
Test(recording, is_bounded_in_bytes)
{
	struct recording *recording = recording_new(PROFILE_CPU, "", &recorded);
	struct stack stack = made_stack("a", 1, STACK_TRUNCATED, 0x1000);
	struct recording_counts counts;

	stack.len = FRAMES_MAX + 1; /* more than there are is not read */
	for (uint64_t hash = 0; hash < RECORDING_STACKS_MAX; hash++) {
		struct stack_key key = key_of(1, hash);

		recording_add(recording, "web", &key, &stack);
	}
	counts = recording_counts(recording);
	cr_expect_gt(counts.samples, RECORDING_BYTES_MAX / (FRAMES_MAX * 8 + 500));
	cr_expect_lt(counts.samples, RECORDING_BYTES_MAX / (FRAMES_MAX * 8));
	cr_expect_eq(counts.samples + counts.lost, RECORDING_STACKS_MAX);
	recording_free(recording);
}

/* What two have together is bounded, and what they had is there for the next. */
Test(recording, shares_memory_with_others)
{
	struct recording *one = recording_new(PROFILE_CPU, "", &recorded);
	struct recording *other = recording_new(PROFILE_CPU, "", &recorded);
	struct stack stack = made_stack("a", 1, STACK_COMPLETE, 0x1000);
	struct profile profile = { .period_ns = 10 };
	const struct files none = { 0 };
	uint64_t samples;
	size_t taken;

	recorded = RECORDINGS_BYTES_MAX - 2000;
	for (uint64_t hash = 0; hash < 100; hash++) {
		struct stack_key key = key_of(1, hash);

		recording_add(one, "web", &key, &stack);
		recording_add(other, "web", &key, &stack);
	}
	samples = recording_counts(one).samples;
	cr_expect_gt(samples, 1);
	cr_expect_leq(samples - recording_counts(other).samples, 1);
	cr_expect_eq(samples + recording_counts(one).lost, 100);
	cr_expect_leq(recorded, RECORDINGS_BYTES_MAX);
	cr_assert_eq(recording_end(one), 0);
	taken = recorded;
	recorded = RECORDINGS_BYTES_MAX;
	recording_name(one, frame_make(1, 0x1000), "work");
	recorded = taken;
	recording_name(one, frame_make(1, 0x2000), "main");
	cr_assert_eq(recording_profile(one, &none, &profile), 0);
	cr_assert_eq(profile.names_len, 1);
	cr_expect_eq(profile.names[0].frame, frame_make(1, 0x2000));
	recording_free(one);
	recording_free(other);
	cr_expect_eq(recorded, RECORDINGS_BYTES_MAX - 2000);
}

Test(recording, of_nothing_is_a_profile_as_well)
{
	struct recording *recording = recording_new(PROFILE_CPU, "", &recorded);
	const uint64_t *frames;
	size_t len;

	cr_assert_eq(recording_end(recording), 0);
	cr_expect_eq(recording_next_file(recording, &frames, &len), 0);
	EXPECT_FOLDED(recording, "");
	recording_free(recording);
}

/* A file of a process: its path and build id are those of the profile. */
Test(recording, tells_the_files_of_its_frames)
{
	struct recording *recording = recording_new(PROFILE_CPU, "", &recorded);
	struct stack stack = made_stack("a", 1, STACK_COMPLETE, 0x1000);
	struct stack_key key = key_of(1, 10);
	struct file file = {
		.path = (char *)"/usr/bin/web",
		.program = { .begin = 0x1000,
			     .end = 0x3000,
			     .build_id_len = 2,
			     .build_id = { 1, 0xab } },
	};
	struct files files = { .numbers[1] = &file };
	struct profile profile = { .period_ns = 10 };

	recording_add(recording, "web", &key, &stack);
	cr_assert_eq(recording_end(recording), 0);
	cr_assert_eq(recording_profile(recording, &files, &profile), 0);
	cr_assert_eq(profile.files_len, 1);
	cr_expect_eq(profile.files[0].number, 1);
	cr_expect_str_eq(profile.files[0].path, "/usr/bin/web");
	cr_expect_str_eq(profile.files[0].build_id, "01ab");
	cr_expect_eq(profile.files[0].begin, 0x1000);
	cr_expect_eq(profile.files[0].end, 0x3000);
	cr_expect_eq(profile.stacks[0].ns, 10);
	recording_free(recording);
}

/* --- waits ---------------------------------------------------------------------------------- */

#define US 1000ULL

static struct stack_key wait_of(uint64_t hash, uint32_t state)
{
	return (struct stack_key){ .hash = hash, .tree = 1, .state = state };
}

static struct stack made_wait(uint64_t samples, uint64_t us, uint64_t woken, uint64_t queued_us)
{
	struct stack stack = made_stack("worker", samples, STACK_COMPLETE, 0x1000);

	stack.ns = us * US;
	stack.woken = woken;
	stack.queued_ns = queued_us * US;
	return stack;
}

/* What is told of a wait once its stack is not kept any more. */
static struct stack made_later(const char *pool, uint64_t us, uint64_t queued_us)
{
	struct stack stack = { .ns = us * US,
			       .queued_ns = queued_us * US,
			       .end = STACK_BEGAN_BEFORE };

	memcpy(stack.pool, pool, strlen(pool));
	return stack;
}

/* A wait for a lock, then for a CPU; one for a CPU alone; one for work, then for a CPU. */
static struct recording *recording_of_waits(enum profile_kind kind)
{
	struct recording *recording = recording_new(kind, "", &recorded);
	struct stack lock = made_wait(2, 70, 2, 5), preempted = made_wait(1, 9, 0, 0);
	struct stack idle = made_wait(3, 0, 3, 4), disk = made_wait(1, 40, 0, 0);
	struct stack running = made_stack("worker", 8, STACK_COMPLETE, 0x1000);
	struct stack_key key;

	key = wait_of(10, STATE_LOCK);
	recording_add(recording, "web", &key, &lock);
	key = wait_of(12, STATE_RUNNABLE);
	recording_add(recording, "web", &key, &preempted);
	key = wait_of(14, STATE_IDLE);
	recording_add(recording, "web", &key, &idle);
	key = wait_of(16, STATE_DISK);
	recording_add(recording, "web", &key, &disk);
	key = wait_of(18, STATE_RUNNING);
	recording_add(recording, "web", &key, &running);
	running.samples = 31;
	key = wait_of(20, FAULT_MINOR);
	recording_add(recording, "web", &key, &running);
	running.samples = 1;
	key = wait_of(22, FAULT_MAJOR);
	recording_add(recording, "web", &key, &running);
	cr_assert_eq(recording_end(recording), 0);
	return recording;
}

Test(recording, of_waits_tells_microseconds_by_state_and_none_of_waits_for_work)
{
	static const struct {
		enum profile_kind kind;
		const char *lines;
		uint64_t samples, weight;
	} rows[] = {
		{ PROFILE_CPU, "web;worker;running;0x2000;0x1000 8\n", 8, 8 },
		{ PROFILE_OFFCPU,
		  "web;worker;disk;0x2000;0x1000 40\n"
		  "web;worker;lock;0x2000;0x1000 70\n"
		  "web;worker;runnable;0x2000;0x1000 4\n"
		  "web;worker;runnable;0x2000;0x1000 5\n"
		  "web;worker;runnable;0x2000;0x1000 9\n",
		  4, 128 * US },
		{ PROFILE_BLOCK,
		  "web;worker;disk;0x2000;0x1000 40\n"
		  "web;worker;lock;0x2000;0x1000 70\n",
		  3, 110 * US },
		{ PROFILE_LOCK, "web;worker;lock;0x2000;0x1000 70\n", 2, 70 * US },
		{ PROFILE_FAULT,
		  "web;worker;major;0x2000;0x1000 1\n"
		  "web;worker;minor;0x2000;0x1000 31\n",
		  32, 32 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct recording *recording = recording_of_waits(rows[i].kind);
		struct recording_counts counts = recording_counts(recording);

		EXPECT_FOLDED(recording, rows[i].lines);
		cr_expect_eq(counts.samples, rows[i].samples);
		cr_expect_eq(counts.weight, rows[i].weight);
		cr_expect_eq(counts.ends[STACK_COMPLETE], rows[i].weight);
		recording_free(recording);
	}
}

/* Also the wait for a CPU behind a wait for work, which has no time of its own here. */
Test(recording, adds_what_is_told_later_to_the_stack_of_the_wait)
{
	struct recording *recording = recording_new(PROFILE_OFFCPU, "", &recorded);
	struct stack lock = made_wait(1, 0, 0, 0), later = made_later("worker", 30, 6);
	struct stack_key key = wait_of(10, STATE_LOCK), idle = wait_of(14, STATE_IDLE);

	recording_add(recording, "web", &key, &lock);
	recording_add(recording, "web", &idle, &lock);
	key.hash |= HASH_LATER;
	recording_add(recording, "web", &key, &later);
	later.ns = 0;
	idle.hash |= HASH_LATER;
	recording_add(recording, "web", &idle, &later);
	cr_assert_eq(recording_end(recording), 0);
	EXPECT_FOLDED(recording, "web;worker;lock;0x2000;0x1000 30\n"
				 "web;worker;runnable;0x2000;0x1000 6\n"
				 "web;worker;runnable;0x2000;0x1000 6\n");
	recording_free(recording);
}

/* Or another stack would have the time of the same hash, whose wait begins later. */
Test(recording, tells_waits_that_began_before_by_pool_and_state)
{
	struct recording *recording = recording_new(PROFILE_OFFCPU, "", &recorded);
	struct stack later = made_later("worker", 30, 0), other = made_later("reader", 7, 0);
	struct stack unseen = made_later("worker", 2, 0), lock = made_wait(1, 50, 0, 0);
	struct stack_key key = wait_of(10, STATE_LOCK), none = wait_of(0, STATE_LOCK);

	recording_add(recording, "web", &key, &later);
	recording_add(recording, "web", &key, &other);
	recording_add(recording, "web", &none, &unseen);
	recording_add(recording, "web", &key, &lock);
	cr_assert_eq(recording_end(recording), 0);
	EXPECT_FOLDED(recording, "web;reader;lock;[began_before] 7\n"
				 "web;worker;lock;0x2000;0x1000 50\n"
				 "web;worker;lock;[began_before] 32\n");
	cr_expect_eq(recording_counts(recording).ends[STACK_BEGAN_BEFORE], 39 * US);
	recording_free(recording);
}

/* By libseccomp; what is no number of a call has no name. */
Test(recording, names_the_system_calls_in_which_threads_wait)
{
	struct recording *recording = recording_new(PROFILE_LOCK, "", &recorded);
	struct stack futex = made_wait(1, 7, 0, 0), unknown = made_wait(1, 8, 0, 0);
	struct stack_key one = wait_of(10, STATE_LOCK), other = wait_of(12, STATE_LOCK);

	futex.frames[0] = frame_of_syscall(SYS_futex);
	unknown.frames[0] = frame_of_syscall(SYSCALLS_MAX - 1);
	recording_add(recording, "web", &one, &futex);
	recording_add(recording, "web", &other, &unknown);
	cr_assert_eq(recording_end(recording), 0);
	EXPECT_FOLDED(recording, "web;worker;lock;0x2000;0x100000003ff 8\n"
				 "web;worker;lock;0x2000;sys_futex 7\n");
	cr_expect_eq(frame_of_syscall(-1), 0);
	cr_expect_eq(frame_of_syscall(SYSCALLS_MAX), 0);
	cr_expect_eq(frame_syscall(frame_make(0, STACK_NO_CODE)), -1);
	cr_expect_eq(frame_syscall(frame_make(1, FRAMES_OF_SYSCALLS)), -1);
	cr_expect_eq(frame_syscall(frame_of_syscall(0)), 0);
	recording_free(recording);
}
