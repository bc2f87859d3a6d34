/* SPDX-License-Identifier: Apache-2.0 */
/* Names of functions in profiles, and helpers that fail over them. */
#include "profiler_site.h"

#define ADDRESS 0x10000ULL
#define WEB PROFILER_SITE_WEB
#define PATH_BYTES 64

/* A process that runs files 5 and 6, which the first profile reads before it samples. */
static struct profiler_site *running(bool last, uint32_t numbers[static 2], int *fd,
				     const char *query)
{
	struct profiler_site *ps = profiler_site_new_with(last);

	surveying_add(&ps->helped);
	surveying_map(&ps->helped, 0, ADDRESS, 5);
	surveying_map(&ps->helped, 0, 2 * ADDRESS, 6);
	profiler_site_meet(ps);
	*fd = profiler_site_begin(ps, query);
	for (size_t i = 0; i < 2; i++)
		numbers[i] = surveying_code(&ps->helped, 0)->ranges[i].file;
	ps->helped.script->parser.len = 0;
	return ps;
}

static void sample_of(struct profiler_site *ps, const char *pool, uint32_t inner, uint32_t outer)
{
	const uint64_t frames[] = { frame_make(inner, 0x2004), frame_make(outer, 0x2008),
				    frame_make(outer, 0x200c) };

	profiler_site_sample(ps, WEB, pool, 2, frames, 3);
}

Test(profiler_names, are_asked_for_once_for_each_file)
{
	uint32_t files[2];
	int fd;
	struct profiler_site *ps = running(false, files, &fd, "seconds=1&format=folded");

	sample_of(ps, "worker", files[0], files[1]);
	profiler_site_expect(ps, fd, "web;worker;running;at_200c;at_2008;at_2004 2\n");
	cr_expect_eq(ps->helped.script->parser.len, 2);
	cr_expect_eq(script_times(&ps->helped.script->parser, 1), 2);
	profiler_site_free(ps);
}

Test(profiler_names, are_told_in_each_of_two_profiles)
{
	uint32_t files[2];
	int fds[2];
	struct profiler_site *ps = running(false, files, &fds[0], "seconds=2&format=folded");

	fds[1] = profiler_site_ask(ps, "seconds=1&format=folded");
	profiler_site_turn(ps);
	sample_of(ps, "worker", files[0], files[1]);
	for (int i = 1; i >= 0; i--) {
		struct profiler_answer *answer = profiler_site_answer(ps, fds[i]);

		cr_expect_not_null(
			strstr(answer->body, "web;worker;running;at_200c;at_2008;at_2004 2\n"),
			"%d: %s", i, answer->body);
		free(answer);
	}
	cr_expect_eq(script_times(&ps->helped.script->parser, 1), 4);
	profiler_site_free(ps);
}

/* One after the other, as there is one parser. */
Test(profiler_names, are_waited_for_while_another_profile_asks)
{
	uint32_t files[2];
	int fds[2];
	struct profiler_site *ps = running(false, files, &fds[0], "seconds=1&format=folded");

	sample_of(ps, "first", files[0], files[1]);
	ps->helped.script->held = true;
	PROFILER_SITE_UNTIL(ps, ps->helped.script->parser.len == 1);
	fds[1] = profiler_site_begin(ps, "seconds=1&format=folded");
	sample_of(ps, "second", files[1], files[0]);
	PROFILER_SITE_UNTIL(ps, !profiler_site_samples());
	serve(&ps->site, -1, 0, now_ms() + 50);
	ps->helped.script->held = false;
	profiler_site_expect(ps, fds[0], "web;first;running;at_200c;at_2008;at_2004 2\n");
	profiler_site_expect(ps, fds[1], "web;second;running;at_200c;at_2008;at_2004 2\n");
	profiler_site_free(ps);
}

/* It went while the parser was asked for its names: the other gets its own. */
Test(profiler_names, are_those_of_the_client_that_has_stayed)
{
	uint32_t files[2];
	int fds[2];
	struct profiler_site *ps = running(false, files, &fds[0], "seconds=1&format=folded");
	const uint64_t frame = frame_make(files[0], 0x2004), other = frame_make(files[0], 0x2010);

	profiler_site_sample(ps, WEB, "gone", 1, &frame, 1);
	ps->helped.script->held = true;
	PROFILER_SITE_UNTIL(ps, ps->helped.script->parser.len == 1);
	fds[1] = profiler_site_begin(ps, "seconds=1&format=folded");
	profiler_site_sample(ps, WEB, "worker", 1, &other, 1);
	PROFILER_SITE_UNTIL(ps, !profiler_site_samples());
	close(fds[0]);
	serve(&ps->site, -1, 0, now_ms() + 50);
	ps->helped.script->held = false;
	profiler_site_expect(ps, fds[1], "web;worker;running;at_2010 1\n");
	profiler_site_free(ps);
}

/* Then a frame is told by its file and address. */
Test(profiler_names, may_be_missing)
{
	static const enum script_fault faults[] = { SCRIPT_REFUSE, SCRIPT_RUBBISH, SCRIPT_LIE,
						    SCRIPT_END };

	for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++) {
		uint32_t files[2];
		int fd;
		struct profiler_site *ps = running(false, files, &fd, "seconds=1&format=folded");

		ps->helped.script->names = faults[i];
		sample_of(ps, "worker", files[0], files[0]);
		profiler_site_expect(ps, fd, "web;worker;running;5+0x200c;5+0x2008;5+0x2004 2\n");
		profiler_site_free(ps);
	}
}

/* Of files that are not there any more: each is known at once to have none. */
Test(profiler_names, that_cannot_be_asked_for_keep_no_client_waiting)
{
	uint32_t files[2];
	int fd;
	struct profiler_site *ps = running(false, files, &fd, "seconds=1&format=folded");
	struct profiler_answer *answer;
	uint64_t frames[6];
	int64_t ended_ms;

	for (uint32_t i = 0; i < 6; i++)
		frames[i] = frame_make(3000 + i, 0x10);
	profiler_site_sample(ps, WEB, "worker", 1, frames, 6);
	PROFILER_SITE_UNTIL(ps, !profiler_site_samples());
	ended_ms = now_ms();
	answer = profiler_site_answer(ps, fd);
	cr_expect_str_eq(answer->body, "web;worker;running;0x10;0x10;0x10;0x10;0x10;0x10 1\n", "%s",
			 answer->body);
	cr_expect_lt(now_ms() - ended_ms, 3000, "a second for each would be six");
	free(answer);
	profiler_site_free(ps);
}

/* Its descriptor stays readable: that must not wake the loop again and again. */
Test(profiler_names, a_helper_that_has_ended_keeps_nothing_awake)
{
	uint32_t files[2];
	int fd;
	struct profiler_site *ps = running(true, files, &fd, "seconds=1&format=folded");
	int64_t until_ms;
	size_t rounds = 0;

	ps->helped.script->names = SCRIPT_END;
	sample_of(ps, "worker", files[0], files[1]);
	profiler_site_expect(ps, fd, "web;worker;running;6+0x200c;6+0x2008;5+0x2004 2\n");
	for (until_ms = now_ms() + 200; now_ms() < until_ms; rounds++)
		cr_assert_eq(loop_round(ps->site.loop, (uint64_t)until_ms * 1000000), 0);
	cr_expect_lt(rounds, 20);
	profiler_site_free(ps);
}
