/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles that are taken for clients: what is in them, and when anything is sampled at all. */
#include "profiler_site.h"

#include <libdeflate.h>

#include "base/cleanup.h"
#include "profile.pb-c.h"

#define PLAIN_BYTES (1U << 20)

#define ADDRESS 0x10000ULL
#define WEB PROFILER_SITE_WEB
#define DB PROFILER_SITE_DB
#define UNKNOWN 3U

/* --- what is asked -------------------------------------------------------------------------- */

Test(profiler, says_what_is_wrong_with_arguments)
{
	static const struct {
		const char *query, *text;
	} rows[] = {
		{ "seconds=0", "seconds: a whole number from 1 to 60\n" },
		{ "seconds=61", "seconds: a whole number from 1 to 60\n" },
		{ "seconds=abc", "seconds: a whole number from 1 to 60\n" },
		{ "seconds=", "seconds: a whole number from 1 to 60\n" },
		{ "seconds=-1", "seconds: a whole number from 1 to 60\n" },
		{ "seconds=1.5", "seconds: a whole number from 1 to 60\n" },
		{ "seconds=18446744073709551617", "seconds: a whole number from 1 to 60\n" },
		{ "seconds=1&seconds=61", "seconds: a whole number from 1 to 60\n" },
		{ "format=x", "format: pprof or folded\n" },
		{ "format=", "format: pprof or folded\n" },
		{ "seconds=1&format=Folded", "format: pprof or folded\n" },
	};
	struct profiler_site *ps = profiler_site_new();

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		int fd = profiler_site_ask(ps, rows[i].query);
		struct profiler_answer *answer = profiler_site_answer(ps, fd);

		expect_status(answer->bytes, "400");
		cr_expect_str_eq(answer->body, rows[i].text, "%s: %s", rows[i].query, answer->body);
		free(answer);
	}
	cr_expect_eq(plain_walks(ps->helped.loader, WALK_PROCESSES), 0, "nothing was begun");
	profiler_site_free(ps);
}

Test(profiler, has_no_profile_of_a_workload_that_is_not_there)
{
	struct profiler_site *ps = profiler_site_new();
	int fd = profiler_site_ask(ps, "seconds=1&workload=we");
	struct profiler_answer *answer = profiler_site_answer(ps, fd);

	expect_status(answer->bytes, "404");
	cr_expect_str_eq(answer->body, "no workload has this name: / lists them\n");
	free(answer);
	profiler_site_free(ps);
}

Test(profiler, counts_what_became_of_all_samples)
{
	struct profiler_site *ps = profiler_site_new();
	struct profile_row rows[PROFILER_ROWS];

	close(profiler_site_begin(ps, "seconds=60"));
	profiler_site_count(ps, WEB, "worker", 3);
	profiler_site_count(ps, UNKNOWN, "a", 2);
	PROFILER_SITE_UNTIL(ps, !profiler_site_samples());
	close(profiler_site_begin(ps, "seconds=60"));
	profiler_count(ps->profiler, rows);
	cr_expect_str_eq(rows[0].stack, "complete");
	cr_expect_eq(rows[0].samples, 3);
	for (size_t i = 1; i < STACK_ENDS; i++)
		cr_expect_eq(rows[i].samples, 0, "%s", rows[i].stack);
	cr_expect_str_eq(rows[STACK_ENDS].stack, "lost");
	cr_expect_eq(rows[STACK_ENDS].samples, 2);
	profiler_site_free(ps);
}

Test(profiler, takes_as_long_as_it_is_asked_to)
{
	static const char *const queries[] = { "seconds=1", "seconds=60", "", "other=thing" };
	struct profiler_site *ps = profiler_site_new();

	for (size_t i = 0; i < sizeof(queries) / sizeof(*queries); i++) {
		int fd = profiler_site_begin(ps, queries[i]);

		close(fd);
		PROFILER_SITE_UNTIL(ps, !profiler_site_samples());
	}
	profiler_site_free(ps);
}

/* --- what is in it -------------------------------------------------------------------------- */

static int line_compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The lines of an answer in order. */
static void expect_lines(struct profiler_site *ps, int fd, const char *lines)
{
	struct profiler_answer *answer = profiler_site_answer(ps, fd);
	char *line[64], *rest, sorted[4096] = "";
	size_t len = 0, at = 0;

	expect_status(answer->bytes, "200");
	expect_header(answer->bytes, "Content-Type: text/plain; charset=utf-8");
	for (char *text = strtok_r((char *)answer->body, "\n", &rest); text;
	     text = strtok_r(NULL, "\n", &rest))
		if (len < 64)
			line[len++] = text;
	qsort(line, len, sizeof(*line), line_compare);
	for (size_t i = 0; i < len; i++)
		at += (size_t)snprintf(sorted + at, sizeof(sorted) - at, "%s\n", line[i]);
	cr_expect_str_eq(sorted, lines, "%s", sorted);
	free(answer);
}

Test(profiler, tells_what_was_sampled_as_folded_stacks)
{
	struct profiler_site *ps = profiler_site_new();
	int fd = profiler_site_begin(ps, "seconds=1&format=folded");

	profiler_site_count(ps, WEB, "worker", 3);
	profiler_take(ps->profiler);
	cr_expect(profiler_site_is_read(ps));
	profiler_site_count(ps, WEB, "worker", 4);
	profiler_site_count(ps, DB, "writer", 5);
	expect_lines(ps, fd,
		     "db;writer;running;0x1234 5\n"
		     "web;worker;running;0x1234 7\n");
	profiler_site_free(ps);
}

Test(profiler, tells_of_one_workload_what_was_sampled)
{
	struct profiler_site *ps = profiler_site_new();
	int fd = profiler_site_begin(ps, "seconds=1&workload=db&format=folded");

	profiler_site_count(ps, WEB, "worker", 3);
	profiler_site_count(ps, DB, "writer", 5);
	expect_lines(ps, fd, "db;writer;running;0x1234 5\n");
	profiler_site_free(ps);
}

/* Neither the tree nor its name is known; or the workload was removed. */
Test(profiler, tells_nothing_of_trees_that_are_of_no_workload)
{
	struct profiler_site *ps = profiler_site_new();
	int fd = profiler_site_begin(ps, "seconds=1&format=folded");

	ps->registry->naming.trees[DB].handle = UINT32_MAX;
	profiler_site_count(ps, UNKNOWN, "a", 3);
	profiler_site_count(ps, TREES_MAX, "b", 3);
	profiler_site_count(ps, UINT32_MAX, "c", 3);
	profiler_site_count(ps, DB, "d", 3);
	profiler_site_count(ps, WEB, "e", 1);
	expect_lines(ps, fd, "[lost] 12\nweb;e;running;0x1234 1\n");
	profiler_site_free(ps);
}

/* As before a tree is given back (features/profiles.c): its name is known until then. */
Test(profiler, takes_what_was_sampled_before_a_name_goes)
{
	struct profiler_site *ps = profiler_site_new();
	int fd = profiler_site_begin(ps, "seconds=1&format=folded");

	profiler_site_count(ps, DB, "writer", 3);
	profiler_take(ps->profiler);
	ps->registry->naming.trees[DB].known = false;
	profiler_site_count(ps, DB, "writer", 4);
	expect_lines(ps, fd, "[lost] 4\ndb;writer;running;0x1234 3\n");
	profiler_site_count(ps, WEB, "worker", 1);
	profiler_take(ps->profiler);
	cr_expect_not(profiler_site_is_read(ps), "without a profile nothing is read");
	profiler_site_free(ps);
}

static Pprof__Profile *unpack(const struct profiler_answer *answer)
{
	struct libdeflate_decompressor *decompressor = libdeflate_alloc_decompressor();
	size_t len = answer->len - (size_t)(answer->body - answer->bytes), bytes = 0;
	_cleanup_(cleanup_free) uint8_t *plain = malloc(PLAIN_BYTES);
	Pprof__Profile *profile;

	cr_assert_not_null(plain);
	cr_assert_eq(libdeflate_gzip_decompress(decompressor, answer->body, len, plain, PLAIN_BYTES,
						&bytes),
		     LIBDEFLATE_SUCCESS);
	libdeflate_free_decompressor(decompressor);
	profile = pprof__profile__unpack(NULL, bytes, plain);
	cr_assert_not_null(profile);
	return profile;
}

Test(profiler, tells_pprof_when_and_how_long_it_has_sampled)
{
	struct profiler_site *ps = profiler_site_new();
	int64_t before = (int64_t)time(NULL) - 1;
	int fd = profiler_site_begin(ps, "seconds=1");
	struct profiler_answer *answer;
	Pprof__Profile *profile;

	profiler_site_count(ps, WEB, "worker", 3);
	answer = profiler_site_answer(ps, fd);
	expect_status(answer->bytes, "200");
	expect_header(answer->bytes, "Content-Type: application/octet-stream");
	profile = unpack(answer);
	cr_assert_eq(profile->n_sample, 1);
	cr_assert_eq(profile->sample[0]->n_value, 2);
	cr_expect_eq(profile->sample[0]->value[0], 3);
	cr_expect_eq(profile->sample[0]->value[1], 3 * (int64_t)(1000000000 / 99));
	cr_expect_geq(profile->duration_nanos, 1000000000);
	cr_expect_lt(profile->duration_nanos, PATIENCE_MS * INT64_C(1000000));
	cr_expect_geq(profile->time_nanos, before * 1000000000);
	cr_expect_leq(profile->time_nanos, ((int64_t)time(NULL) + 1) * 1000000000);
	pprof__profile__free_unpacked(profile, NULL);
	free(answer);
	profiler_site_free(ps);
}

/* --- when it samples ------------------------------------------------------------------------ */

Test(profiler, lets_the_clock_run_while_a_profile_samples_and_no_longer)
{
	struct profiler_site *ps = profiler_site_new();
	size_t told;
	int fds[2];

	cr_expect_not(plain_clock(&told));
	cr_expect_eq(told, 0);
	surveying_add(&ps->helped);
	surveying_map(&ps->helped, 0, ADDRESS, 5);
	profiler_site_meet(ps);
	ps->helped.script->held = true;
	fds[0] = profiler_site_ask(ps, "seconds=3&format=folded");
	PROFILER_SITE_UNTIL(ps, ps->helped.script->parser.len == 1);
	cr_expect_not(plain_clock(&told), "code is read before");
	cr_expect_eq(told, 0);
	ps->helped.script->held = false;
	PROFILER_SITE_UNTIL(ps, profiler_site_samples());
	cr_expect_not_null(surveying_code(&ps->helped, 0));
	fds[1] = profiler_site_ask(ps, "seconds=1&format=folded");
	expect_lines(ps, fds[1], "");
	cr_expect(plain_clock(&told), "the other one goes on");
	expect_lines(ps, fds[0], "");
	cr_expect_not(plain_clock(&told));
	cr_expect_eq(told, 2, "once on, once off");
	profiler_site_free(ps);
}

Test(profiler, samples_at_last_although_code_cannot_be_read)
{
	struct profiler_site *ps = profiler_site_new();

	surveying_add(&ps->helped);
	surveying_map(&ps->helped, 0, ADDRESS, 5);
	profiler_site_meet(ps);
	ps->helped.script->held = true;
	close(profiler_site_begin(ps, "seconds=1&format=folded"));
	cr_expect_eq(plain_slot(ps->helped.loader, ps->helped.children[0]).slot, 0,
		     "it is still being read");
	profiler_site_free(ps);
}

/* One that is of all is begun meanwhile: then the other process is read as well. */
Test(profiler, reads_what_the_profile_is_of_and_no_other)
{
	struct profiler_site *ps = profiler_site_new();
	const struct script_log *opener = &ps->helped.script->opener;
	int fds[2];

	surveying_add(&ps->helped);
	surveying_map(&ps->helped, 0, ADDRESS, 5);
	surveying_add(&ps->helped)->tree = DB;
	profiler_site_meet(ps);
	fds[0] = profiler_site_begin(ps, "seconds=60&workload=db&format=folded");
	cr_expect_neq(plain_slot(ps->helped.loader, ps->helped.children[1]).slot, 0);
	profiler_site_turn(ps);
	cr_expect_eq(opener->len, 1);
	cr_expect_eq(opener->pids[0], ps->helped.children[1]);
	fds[1] = profiler_site_ask(ps, "seconds=60&format=folded");
	PROFILER_SITE_UNTIL(ps, plain_slot(ps->helped.loader, ps->helped.children[0]).slot);
	close(fds[0]);
	close(fds[1]);
	profiler_site_free(ps);
}

/* Call sites of locks are wanted of all: of the one that cannot be read it does not wait. */
Test(profiler, reads_first_what_the_profile_is_of)
{
	struct profiler_site *ps = profiler_site_make(false, true);
	const struct script_log *opener = &ps->helped.script->opener;
	int fd;

	profiler_site_turn(ps);
	surveying_add(&ps->helped);
	surveying_map(&ps->helped, 0, ADDRESS, 5);
	surveying_add(&ps->helped)->tree = DB;
	profiler_site_meet(ps);
	ps->helped.script->held = true;
	fd = profiler_site_ask(ps, "seconds=1&workload=db&format=folded");
	PROFILER_SITE_UNTIL(ps, ps->helped.script->parser.len == 1);
	cr_expect_eq(opener->pids[0], ps->helped.children[1]);
	cr_expect_eq(opener->pids[1], ps->helped.children[0]);
	serve(&ps->site, -1, 0, now_ms() + 500);
	cr_expect(profiler_site_samples(), "it waits for the other one");
	cr_expect_neq(plain_slot(ps->helped.loader, ps->helped.children[1]).slot, 0);
	close(fd);
	profiler_site_free(ps);
}

/* Its samples would end there, as its code would not be known yet. */
Test(profiler, waits_for_a_file_at_which_the_opener_was_late)
{
	struct profiler_site *ps = profiler_site_new();
	const struct process_code *code;
	struct code_slot slot;
	int fd;

	surveying_add(&ps->helped);
	surveying_map(&ps->helped, 0, ADDRESS, 5);
	profiler_site_meet(ps);
	ps->helped.script->file = SCRIPT_HANG;
	fd = profiler_site_ask(ps, "seconds=1&format=folded");
	PROFILER_SITE_UNTIL(ps, ps->helped.script->opener.len == 2);
	ps->helped.script->file = SCRIPT_NONE;
	PROFILER_SITE_UNTIL(ps, profiler_site_samples());
	slot = plain_slot(ps->helped.loader, ps->helped.children[0]);
	code = plain_at(ps->helped.loader, "process_code", slot.slot);
	cr_expect_neq(code->ranges[0].file, 0);
	close(fd);
	profiler_site_free(ps);
}

/* It begins, and so ends, between two looks for samples. */
Test(profiler, takes_what_was_sampled_last)
{
	struct profiler_site *ps = profiler_site_new();
	int fd;

	surveying_add(&ps->helped);
	surveying_map(&ps->helped, 0, ADDRESS, 5);
	profiler_site_meet(ps);
	ps->helped.script->held = true;
	fd = profiler_site_ask(ps, "seconds=1&format=folded"); /* the first look */
	PROFILER_SITE_UNTIL(ps, ps->helped.script->parser.len == 1);
	serve(&ps->site, -1, 0, now_ms() + 500);
	ps->helped.script->held = false;
	PROFILER_SITE_UNTIL(ps, profiler_site_samples());
	profiler_site_count(ps, WEB, "first", 1);
	PROFILER_SITE_UNTIL(ps, profiler_site_is_read(ps));
	profiler_site_count(ps, WEB, "last", 2);
	expect_lines(ps, fd,
		     "web;first;running;0x1234 1\n"
		     "web;last;running;0x1234 2\n");
	profiler_site_free(ps);
}

/* --- several -------------------------------------------------------------------------------- */

Test(profiler, each_profile_has_what_was_sampled_in_its_own_time, .timeout = 60)
{
	struct profiler_site *ps = profiler_site_new();
	int first = profiler_site_begin(ps, "seconds=5&format=folded"), second;

	profiler_site_count(ps, WEB, "before", 1);
	second = profiler_site_ask(ps, "seconds=1&format=folded");
	profiler_site_turn(ps);
	profiler_site_count(ps, WEB, "both", 2);
	expect_lines(ps, second, "web;both;running;0x1234 2\n");
	profiler_site_count(ps, WEB, "after", 4);
	expect_lines(ps, first,
		     "web;after;running;0x1234 4\n"
		     "web;before;running;0x1234 1\n"
		     "web;both;running;0x1234 2\n");
	profiler_site_free(ps);
}

Test(profiler, a_client_that_leaves_ends_its_profile_and_no_other)
{
	struct profiler_site *ps = profiler_site_new();
	int fds[2] = { profiler_site_begin(ps, "seconds=60"), 0 };
	size_t told;

	fds[1] = profiler_site_ask(ps, "seconds=3&format=folded");
	profiler_site_turn(ps);
	close(fds[0]);
	profiler_site_count(ps, WEB, "worker", 3);
	cr_expect(plain_clock(&told));
	expect_lines(ps, fds[1], "web;worker;running;0x1234 3\n");
	cr_expect_not(plain_clock(&told));
	fds[0] = profiler_site_begin(ps, "seconds=60");
	close(fds[0]);
	PROFILER_SITE_UNTIL(ps, !plain_clock(&told));
	profiler_site_free(ps);
}

/* It was not read: no profile samples any more that it could be for. */
Test(profiler, what_was_sampled_for_a_client_that_left_is_in_no_other_profile)
{
	struct profiler_site *ps = profiler_site_new();
	int fd = profiler_site_begin(ps, "seconds=60");

	profiler_site_count(ps, WEB, "gone", 3);
	close(fd);
	PROFILER_SITE_UNTIL(ps, !profiler_site_samples());
	fd = profiler_site_begin(ps, "seconds=1&format=folded");
	profiler_site_count(ps, WEB, "worker", 1);
	expect_lines(ps, fd, "web;worker;running;0x1234 1\n");
	profiler_site_free(ps);
}

/* --- end ------------------------------------------------------------------------------------ */

static void profile_told(void *arg, int error, const struct profile *profile)
{
	size_t *told = arg;

	(void)error;
	(void)profile;
	++*told;
}

/* Asked without a server, so that nothing but the profiler knows of them. */
Test(profiler, ends_with_profiles_that_are_being_taken)
{
	struct profiler_site *ps = profiler_site_new();
	size_t told = 0;
	const struct profiler_order order = {
		.workload = "web",
		.seconds = 60,
		.taken = profile_told,
		.arg = &told,
	};
	struct profiler_run *runs[3];

	for (size_t i = 0; i < 3; i++)
		cr_expect_eq(profiler_begin(ps->profiler, &order, &runs[i]), 0);
	PROFILER_SITE_UNTIL(ps, profiler_site_samples());
	profiler_give_up(runs[1]);
	cr_expect(profiler_site_samples());
	profiler_free(ps->profiler);
	cr_expect_not(profiler_site_samples());
	cr_expect_eq(told, 0);
	ps->profiler = NULL; /* which is nothing */
	profiler_site_free(ps);
}

/* Those that have no room for an answer that comes later are asked again. */
Test(profiler, begins_nothing_for_a_request_that_cannot_wait)
{
	struct profiler_site *ps = profiler_site_new();
	struct http_request request = { .later = NULL };
	struct http_page page = { 0 };

	cr_expect_eq(profile_page(ps->profiler, PROFILE_CPU, &request, &page), -EAGAIN);
	profiler_site_turn(ps);
	cr_expect_not(profiler_site_samples());
	profiler_site_free(ps);
}

Test(profiler, does_not_start_without_the_feature)
{
	struct loader *loader = plain_loader_new(0, NULL, NULL);
	const struct profiler_env env = { .loader = loader };
	struct profiler *profiler = NULL;

	cr_expect_eq(profiler_new(&env, &profiler), -ENOENT);
	cr_expect_null(profiler);
	plain_loader_free(loader);
}
