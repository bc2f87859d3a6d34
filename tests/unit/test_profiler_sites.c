/* SPDX-License-Identifier: Apache-2.0 */
/* Call sites of locks: looked at all the time, beside profiles. */
#include "profiler_site.h"

#define ADDRESS 0x10000ULL
#define WEB PROFILER_SITE_WEB
#define MS 1000000ULL
#define LOCK (1ULL << STATE_LOCK | LOOK_QUEUED)

static const struct look *look_of(struct profiler_site *ps, uint32_t tree)
{
	return plain_at(ps->helped.loader, "looked_at", tree);
}

static uint64_t states_of(struct profiler_site *ps)
{
	return look_of(ps, WEB)->states;
}

/* A process that runs file 5, whose code is known once this returns. */
static struct profiler_site *running(uint32_t *file)
{
	struct profiler_site *ps = profiler_site_make(false, true);
	const struct process_code *code;

	surveying_add(&ps->helped);
	surveying_map(&ps->helped, 0, ADDRESS, 5);
	profiler_site_meet(ps);
	PROFILER_SITE_UNTIL(
		ps, plain_slot(ps->helped.loader, ps->helped.script->processes[0].pid).slot);
	code = surveying_code(&ps->helped, 0);
	*file = code->ranges[0].file;
	return ps;
}

static void wait_count(struct profiler_site *ps, uint32_t file, uint64_t address, uint64_t ns)
{
	struct plain_sample sample = {
		.key = { .hash = address << 1, .tree = WEB, .state = STATE_LOCK },
		.stack = { .samples = 1, .ns = ns, .len = 1, .end = STACK_COMPLETE },
	};

	sample.stack.frames[0] = frame_make(file, address);
	plain_sample(ps->helped.loader, &sample);
}

/* A scrape, by which the threads of web have waited @sum_ns in all; what site @i of it has. */
static struct lock_site_row scrape(struct profiler_site *ps, uint64_t sum_ns, size_t i)
{
	const struct pool_row pool = {
		.workload = "web", .role = "serving", .pool = "worker", .mutex.sum_ns = sum_ns
	};
	struct snapshot snapshot = { .pools = &pool, .pools_len = 1 };

	profiler_show_sites(ps->profiler, &snapshot);
	return i < snapshot.lock_sites_len ? snapshot.lock_sites[i] : (struct lock_site_row){ 0 };
}

/* Whether a scrape before anything has waited shows a place that is called so. */
static bool is_shown(struct profiler_site *ps, const char *name)
{
	const char *site = scrape(ps, 0, 0).site;

	return site && strstr(site, name);
}

Test(profiler_sites, waits_for_locks_are_looked_at_without_a_profile)
{
	uint32_t file;
	struct profiler_site *ps = running(&file);

	PROFILER_SITE_UNTIL(ps, states_of(ps) == LOCK);
	cr_expect_not(profiler_site_samples(), "the clock stands still");
	wait_count(ps, file, 0x2004, 3 * MS);
	PROFILER_SITE_UNTIL(ps, profiler_site_is_read(ps));
	PROFILER_SITE_UNTIL(ps, is_shown(ps, "at_2004"));
	cr_expect_eq(script_times(&ps->helped.script->parser, 1), 1);
	cr_expect_eq(scrape(ps, 5 * MS, 0).wait_ns, 5 * MS);
	cr_expect_str_eq(scrape(ps, 5 * MS, 0).workload, "web");
	cr_expect_str_eq(scrape(ps, 5 * MS, 1).site, "other");
	cr_expect_eq(scrape(ps, 5 * MS, 1).wait_ns, 0);
	profiler_site_free(ps);
}

Test(profiler_sites, go_on_when_a_profile_ends_and_begin_before_it)
{
	uint32_t file;
	struct profiler_site *ps = running(&file);
	uint64_t since;
	int fd;

	PROFILER_SITE_UNTIL(ps, states_of(ps) == LOCK);
	since = look_of(ps, WEB)->since_ns;
	ps->kind = PROFILE_LOCK;
	fd = profiler_site_ask(ps, "seconds=1&workload=web&format=folded");
	profiler_site_turn(ps);
	wait_count(ps, file, 0x2004, 3 * MS);
	profiler_site_expect(ps, fd, "web;other;lock;at_2004 3000\n");
	cr_expect_eq(states_of(ps), LOCK);
	cr_expect_eq(look_of(ps, WEB)->since_ns, since, "it is the same look");
	wait_count(ps, file, 0x2004, MS);
	PROFILER_SITE_UNTIL(ps, is_shown(ps, "at_2004"));
	cr_expect_eq(scrape(ps, 8 * MS, 0).wait_ns, 8 * MS, "both");
	profiler_site_free(ps);
}

Test(profiler_sites, and_a_profile_ask_for_names_one_after_the_other)
{
	uint32_t file;
	struct profiler_site *ps = running(&file);
	struct profiler_answer *answer;
	int fd;

	PROFILER_SITE_UNTIL(ps, states_of(ps) == LOCK);
	ps->kind = PROFILE_LOCK;
	fd = profiler_site_ask(ps, "seconds=2&workload=web&format=folded");
	profiler_site_turn(ps);
	ps->helped.script->held = true;
	wait_count(ps, file, 0x2004, MS);
	PROFILER_SITE_UNTIL(ps, script_times(&ps->helped.script->parser, 1) == 1);
	wait_count(ps, file, 0x2008, 3 * MS);
	serve(&ps->site, -1, 0, now_ms() + 2000);
	cr_expect_eq(script_times(&ps->helped.script->parser, 1), 1);
	ps->helped.script->held = false;
	answer = profiler_site_answer(ps, fd);
	cr_expect(strstr(answer->body, "web;other;lock;at_2004 1000\n"), "%s", answer->body);
	cr_expect(strstr(answer->body, "web;other;lock;at_2008 3000\n"), "%s", answer->body);
	free(answer);
	PROFILER_SITE_UNTIL(ps, is_shown(ps, "at_2004"));
	cr_expect_eq(scrape(ps, 8 * MS, 0).wait_ns, 2 * MS);
	cr_expect_eq(scrape(ps, 8 * MS, 1).wait_ns, 6 * MS, "named by then, or other");
	profiler_site_free(ps);
}
