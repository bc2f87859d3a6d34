/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles of waits: beside those of CPU time, and of waits that last. */
#include "profiler_site.h"

#define WEB PROFILER_SITE_WEB
#define DB PROFILER_SITE_DB
#define MS 1000000ULL

/* When the look at a tree has begun; 0: there is none. */
static uint64_t look_at(struct profiler_site *ps, uint32_t tree)
{
	const struct profiling *now = plain_at(ps->helped.loader, "profiling", 0);
	const struct look *look = plain_at(ps->helped.loader, "looked_at", tree);

	cr_expect(now->looks || !look->since_ns);
	return look->since_ns;
}

static uint64_t states_of(struct profiler_site *ps)
{
	return ((const struct look *)plain_at(ps->helped.loader, "looked_at", WEB))->states;
}

static uint64_t look_of(struct profiler_site *ps)
{
	return look_at(ps, WEB);
}

/* A page of @kind is asked for, until it is being taken. */
static int begin(struct profiler_site *ps, enum profile_kind kind, const char *query)
{
	int fd;

	ps->kind = kind;
	fd = profiler_site_ask(ps, query);
	PROFILER_SITE_UNTIL(ps, kind == PROFILE_CPU     ? profiler_site_samples()
				: kind == PROFILE_FAULT ? plain_faults()
							: look_of(ps) > 0);
	return fd;
}

static void count(struct profiler_site *ps, uint64_t hash, uint32_t state, uint64_t samples,
		  uint64_t ms)
{
	struct plain_sample sample = {
		.key = { .hash = hash, .tree = WEB, .state = state },
		.stack = { .samples = samples, .ns = ms * MS, .len = 1, .end = STACK_COMPLETE },
	};

	memcpy(sample.stack.pool, "worker", 6);
	sample.stack.frames[0] = frame_make(0, 0x1234);
	plain_sample(ps->helped.loader, &sample);
}

/* A thread has begun to wait, and has waited for so long. */
static void wait_count(struct profiler_site *ps, uint64_t hash, uint32_t state, uint64_t ms)
{
	count(ps, hash, state, 1, ms);
}

static struct wait_told lasting(uint64_t hash, uint64_t ms)
{
	struct wait_told told = { .key = { .hash = hash, .tree = WEB, .state = STATE_LOCK },
				  .ns = ms * MS };

	memcpy(told.pool, "worker", 6);
	return told;
}

Test(profiler_waits, are_looked_at_while_a_profile_of_them_is_taken_and_no_longer)
{
	struct profiler_site *ps = profiler_site_new();
	int cpu = begin(ps, PROFILE_CPU, "seconds=60"), lock, all;
	uint64_t look;

	cr_expect_eq(look_of(ps), 0);
	lock = begin(ps, PROFILE_LOCK, "seconds=60");
	cr_expect_eq(states_of(ps), 1ULL << STATE_LOCK);
	look = look_of(ps);
	all = begin(ps, PROFILE_OFFCPU, "seconds=60");
	PROFILER_SITE_UNTIL(ps, states_of(ps) > 1ULL << STATE_LOCK);
	cr_expect_not(states_of(ps) & 1ULL << STATE_RUNNING);
	cr_expect_gt(look_of(ps), look, "it is of more");
	look = look_of(ps);
	close(lock);
	profiler_site_turn(ps);
	cr_expect_eq(look_of(ps), look, "it goes on");
	close(all);
	PROFILER_SITE_UNTIL(ps, !look_of(ps));
	cr_expect(profiler_site_samples(), "the clock goes on");
	lock = begin(ps, PROFILE_LOCK, "seconds=60");
	cr_expect_neq(look_of(ps), look);
	close(cpu);
	PROFILER_SITE_UNTIL(ps, !profiler_site_samples());
	cr_expect_neq(look_of(ps), 0);
	close(lock);
	profiler_site_free(ps);
}

Test(profiler_faults, are_looked_at_while_a_profile_of_them_is_taken_and_no_longer)
{
	struct profiler_site *ps = profiler_site_new();
	int cpu = begin(ps, PROFILE_CPU, "seconds=60"), fault;

	cr_expect_not(plain_faults());
	fault = begin(ps, PROFILE_FAULT, "seconds=60&workload=web");
	cr_expect_eq(look_of(ps), 0, "they are no waits");
	cr_expect_eq(states_of(ps), STATES_OF_FAULTS);
	cr_expect_eq(((const struct look *)plain_at(ps->helped.loader, "looked_at", DB))->states, 0,
		     "nor of others");
	close(cpu);
	PROFILER_SITE_UNTIL(ps, !profiler_site_samples());
	cr_expect(plain_faults());
	close(fault);
	PROFILER_SITE_UNTIL(ps, !plain_faults());
	profiler_site_free(ps);
}

Test(profiler_faults, are_in_their_profile_and_in_no_other)
{
	struct profiler_site *ps = profiler_site_new();
	int cpu = begin(ps, PROFILE_CPU, "seconds=1&format=folded");
	int fault = begin(ps, PROFILE_FAULT, "seconds=1&format=folded");
	int waits = begin(ps, PROFILE_OFFCPU, "seconds=1&format=folded");

	profiler_site_count(ps, WEB, "worker", 3);
	count(ps, 10, FAULT_MINOR, 62, 0);
	wait_count(ps, 12, STATE_DISK, 7);
	profiler_site_expect(ps, fault, "web;worker;minor;0x1234 62\n");
	profiler_site_expect(ps, cpu, "web;worker;running;0x1234 3\n");
	profiler_site_expect(ps, waits, "web;worker;disk;0x1234 7000\n");
	profiler_site_free(ps);
}

/* Which costs time. */
Test(profiler_waits, are_looked_at_where_a_profile_wants_them)
{
	struct profiler_site *ps = profiler_site_new();
	int web = begin(ps, PROFILE_LOCK, "seconds=60&workload=web"), both;

	cr_expect_eq(look_at(ps, DB), 0);
	cr_expect_eq(look_at(ps, 3), 0, "it is of no workload");
	both = begin(ps, PROFILE_BLOCK, "seconds=60");
	PROFILER_SITE_UNTIL(ps, look_at(ps, DB) > 0);
	close(both);
	PROFILER_SITE_UNTIL(ps, !look_at(ps, DB));
	cr_expect_neq(look_of(ps), 0);
	profiler_site_name(ps, 3, "web");
	PROFILER_SITE_UNTIL(ps, look_at(ps, 3) > 0);
	close(web);
	profiler_site_free(ps);
}

Test(profiler_waits, are_in_no_profile_of_cpu_time_nor_that_in_theirs)
{
	struct profiler_site *ps = profiler_site_new();
	int cpu = begin(ps, PROFILE_CPU, "seconds=1&format=folded");
	int lock = begin(ps, PROFILE_LOCK, "seconds=1&format=folded");

	profiler_site_count(ps, WEB, "worker", 3);
	wait_count(ps, 10, STATE_LOCK, 5);
	wait_count(ps, 12, STATE_DISK, 7);
	profiler_site_expect(ps, lock, "web;worker;lock;0x1234 5000\n");
	profiler_site_expect(ps, cpu, "web;worker;running;0x1234 3\n");
	profiler_site_free(ps);
}

/* Its stack is in the set that is read after it. */
Test(profiler_waits, that_last_have_the_stack_with_which_they_began)
{
	struct profiler_site *ps = profiler_site_new();
	struct wait_told told[] = { lasting(10, 4), lasting(0, 9) };
	int fd = begin(ps, PROFILE_LOCK, "seconds=1&format=folded");

	wait_count(ps, 10, STATE_LOCK, 0);
	plain_waits(ps->helped.loader, told, 1);
	cr_expect_eq(profiler_take(ps->profiler), 0);
	plain_waits(ps->helped.loader, told, 0);
	profiler_site_expect(ps, fd, "web;worker;lock;0x1234 4000\n");
	plain_waits(ps->helped.loader, told, 0);
	fd = begin(ps, PROFILE_LOCK, "seconds=1&format=folded");
	plain_waits(ps->helped.loader, told + 1, 1);
	cr_expect_eq(profiler_take(ps->profiler), 0);
	plain_waits(ps->helped.loader, told, 0);
	profiler_site_expect(ps, fd, "web;worker;lock;[began_before] 9000\n");
	profiler_site_free(ps);
}

/* A CPU stands still in a set: what was read of waits is kept until their stacks can be. */
Test(profiler_waits, that_last_are_kept_until_their_stacks_are_read)
{
	struct profiler_site *ps = profiler_site_new();
	struct wait_told told = lasting(10, 4);
	int fd = begin(ps, PROFILE_LOCK, "seconds=1&format=folded");
	uint64_t set;

	wait_count(ps, 10, STATE_LOCK, 0);
	plain_waits(ps->helped.loader, &told, 1);
	set = plain_enter(ps->helped.loader, 1);
	cr_expect_eq(profiler_take(ps->profiler), -EAGAIN);
	plain_waits(ps->helped.loader, &told, 0);
	plain_leave(ps->helped.loader, 1, set);
	cr_expect_eq(profiler_take(ps->profiler), 0);
	profiler_site_expect(ps, fd, "web;worker;lock;0x1234 4000\n");
	profiler_site_free(ps);
}

/* The same of CPU time goes on. */
Test(profiler_waits, that_cannot_be_walked_are_lost_and_nothing_else)
{
	struct profiler_site *ps = profiler_site_new();
	int cpu = begin(ps, PROFILE_CPU, "seconds=1&format=folded");
	int lock = begin(ps, PROFILE_LOCK, "seconds=1&format=folded");

	plain_walk_fails(ps->helped.loader, WALK_LASTING, -ENOMEM);
	profiler_site_count(ps, WEB, "worker", 3);
	wait_count(ps, 10, STATE_LOCK, 5);
	cr_expect_eq(profiler_take(ps->profiler), 0);
	plain_walk_fails(ps->helped.loader, WALK_LASTING, 0);
	profiler_site_expect(ps, lock,
			     "web;worker;lock;0x1234 5000\n"
			     "[lost] 1\n");
	profiler_site_expect(ps, cpu,
			     "web;worker;running;0x1234 3\n"
			     "[lost] 1\n");
	profiler_site_free(ps);
}

/* What is read at the begin of another one's look does not keep the end from being read. */
Test(profiler_waits, that_last_are_read_to_the_end_of_each_profile)
{
	static const char line[] = "web;worker;lock;0x1234 ";
	struct profiler_site *ps = profiler_site_new();
	struct wait_told told = lasting(10, 4);
	int lock = begin(ps, PROFILE_LOCK, "seconds=1&format=folded"), all;
	size_t before = plain_walks(ps->helped.loader, WALK_LASTING), walks;
	struct profiler_answer *answer;

	wait_count(ps, 10, STATE_LOCK, 0);
	plain_waits(ps->helped.loader, &told, 1);
	all = begin(ps, PROFILE_OFFCPU, "seconds=60");
	PROFILER_SITE_UNTIL(ps, states_of(ps) > 1ULL << STATE_LOCK);
	walks = plain_walks(ps->helped.loader, WALK_LASTING) - before;
	answer = profiler_site_answer(ps, lock);
	cr_assert(!strncmp(answer->body, line, strlen(line)), "%s", answer->body);
	cr_expect_geq(strtoull(answer->body + strlen(line), NULL, 10), 4000 * (walks + 1));
	free(answer);
	close(all);
	profiler_site_free(ps);
}
