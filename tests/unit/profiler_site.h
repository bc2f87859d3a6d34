/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The profiler behind a real server, with helpers that follow a script (surveying.h). Tree 1 is of
 * workload "web", tree 2 of "db", and no other is known.
 */
#ifndef TESTS_PROFILER_SITE_H
#define TESTS_PROFILER_SITE_H

#include "profiles/page.h"
#include "site.h"
#include "surveying.h"

#define PROFILER_SITE_WEB 1U
#define PROFILER_SITE_DB 2U
#define PROFILER_SITE_BYTES (1U << 20)

struct profiler_site {
	struct site site;
	struct surveying helped; /* without a survey of its own */
	struct ledger *ledger;
	struct registry *registry;
	struct profiler *profiler;
	enum profile_kind kind; /* that the page is of */
	bool lock_sites; /* are wanted */
	size_t asked; /* how often, for the page */
};

static inline int profiler_site_page(void *arg, const struct http_request *request,
				     struct http_page *page)
{
	struct profiler_site *ps = arg;

	ps->asked++;
	return profile_page(ps->profiler, ps->kind, request, page);
}

/* As if the namer had told it. */
static inline void profiler_site_name(struct profiler_site *ps, uint32_t tree, const char *name)
{
	struct identity identity = { .runtime = "native" };

	snprintf(identity.name, sizeof(identity.name), "%s", name);
	ps->registry->naming.trees[tree].known = true;
	ps->registry->naming.trees[tree].handle = ledger_join(ps->ledger, &identity, 0);
}

static inline void profiler_site_open(struct profiler_site *ps)
{
	struct profiler_env env = {
		.loader = ps->helped.loader,
		.registry = ps->registry,
		.ledger = ps->ledger,
		.opener = ps->helped.opener,
		.parser = ps->helped.parser,
		.lock_sites = ps->lock_sites,
	};
	const struct http_route route = {
		.path = "/profile",
		.page = profiler_site_page,
		.arg = ps,
		.later_ms = PROFILE_PAGE_LATE_MS,
		.later_max = PROFILE_PAGES_MAX,
	};

	cr_assert_eq(http_routes_add(&ps->site.routes, &route), 0);
	site_start(&ps->site);
	env.loop = ps->site.loop;
	cr_assert_eq(profiler_new(&env, &ps->profiler), 0);
}

/* The processes that answer are replaced where they end, unless @last. */
static inline struct profiler_site *profiler_site_make(bool last, bool lock_sites)
{
	struct profiler_site *ps = calloc(1, sizeof(*ps));

	cr_assert_not_null(ps);
	ps->lock_sites = lock_sites;
	ps->helped.script = script_new();
	script_help(ps->helped.script, ps->helped.kinds, last, &ps->helped.opener,
		    &ps->helped.parser);
	ps->helped.loader = surveying_loader();
	ps->ledger = ledger_new(SURVEY_WAIT_NS);
	ps->registry = calloc(1, sizeof(*ps->registry));
	cr_assert(ps->ledger && ps->registry);
	profiler_site_name(ps, PROFILER_SITE_WEB, "web");
	profiler_site_name(ps, PROFILER_SITE_DB, "db");
	profiler_site_open(ps);
	return ps;
}

static inline struct profiler_site *profiler_site_new_with(bool last)
{
	return profiler_site_make(last, false);
}

static inline struct profiler_site *profiler_site_new(void)
{
	return profiler_site_new_with(false);
}

/* In the order of the program: the clients first. */
static inline void profiler_site_free(struct profiler_site *ps)
{
	size_t told;

	site_stop(&ps->site);
	cr_expect_not(plain_clock(&told) || plain_faults(), "nothing samples any more");
	profiler_free(ps->profiler);
	helper_stop(ps->helped.opener);
	helper_stop(ps->helped.parser);
	plain_loader_free(ps->helped.loader);
	ledger_free(ps->ledger);
	for (size_t i = 0; i < ps->helped.len; i++)
		surveying_end(&ps->helped, i);
	free(ps->registry);
	free(ps);
}

/* The next walk meets all that were added. */
static inline void profiler_site_meet(struct profiler_site *ps)
{
	plain_processes(ps->helped.loader, ps->helped.met, ps->helped.len);
}

#define PROFILER_SITE_UNTIL(ps, condition)                                                 \
	do {                                                                               \
		int64_t until_ms = now_ms() + PATIENCE_MS;                                 \
		while (!(condition)) {                                                     \
			cr_assert_lt(now_ms(), until_ms, "it does not come: " #condition); \
			serve(&(ps)->site, -1, 0, now_ms() + 1);                           \
		}                                                                          \
	} while (0)

/* Asks for a profile; returns once the page was asked. */
static inline int profiler_site_ask(struct profiler_site *ps, const char *query)
{
	char request[256];
	size_t before = ps->asked;
	int fd = connect_to(&ps->site);

	snprintf(request, sizeof(request), "GET /profile?%s" CLOSE, query);
	send_text(&ps->site, fd, request);
	PROFILER_SITE_UNTIL(ps, ps->asked > before);
	return fd;
}

static inline bool profiler_site_samples(void)
{
	size_t told;

	return plain_clock(&told);
}

/* And until it samples. */
static inline int profiler_site_begin(struct profiler_site *ps, const char *query)
{
	int fd = profiler_site_ask(ps, query);

	PROFILER_SITE_UNTIL(ps, profiler_site_samples());
	return fd;
}

/* A thread of @pool is met @samples times at the @len frames. */
static inline void profiler_site_sample(struct profiler_site *ps, uint32_t tree, const char *pool,
					uint64_t samples, const uint64_t *frames, uint32_t len)
{
	struct plain_sample sample = {
		.key = { .tree = tree, .state = STATE_RUNNING },
		.stack = { .samples = samples, .end = STACK_COMPLETE, .len = len },
	};

	memcpy(sample.stack.pool, pool, strlen(pool));
	memcpy(&sample.key.hash, pool, strlen(pool) < 8 ? strlen(pool) : 8);
	memcpy(sample.stack.frames, frames, len * sizeof(*frames));
	plain_sample(ps->helped.loader, &sample);
}

/* The same at a place of no file. */
static inline void profiler_site_count(struct profiler_site *ps, uint32_t tree, const char *pool,
				       uint64_t samples)
{
	const uint64_t frame = frame_make(0, 0x1234);

	profiler_site_sample(ps, tree, pool, samples, &frame, 1);
}

static inline bool profiler_site_is_read(struct profiler_site *ps)
{
	return !plain_table(ps->helped.loader, "stacks_0")->pushed &&
	       !plain_table(ps->helped.loader, "stacks_1")->pushed;
}

/* What was asked for before has begun by then, unless code is being read for it. */
static inline void profiler_site_turn(struct profiler_site *ps)
{
	serve(&ps->site, -1, 0, now_ms() + 20);
}

struct profiler_answer {
	char bytes[PROFILER_SITE_BYTES];
	size_t len;
	const char *body;
};

static inline struct profiler_answer *profiler_site_answer(struct profiler_site *ps, int fd)
{
	struct profiler_answer *answer = calloc(1, sizeof(*answer));
	const char *end;
	ssize_t got = 1;

	cr_assert_not_null(answer);
	while (got > 0 && serve(&ps->site, fd, POLLIN, now_ms() + PATIENCE_MS)) {
		got = recv(fd, answer->bytes + answer->len, sizeof(answer->bytes) - 1 - answer->len,
			   MSG_DONTWAIT);
		answer->len += got > 0 ? (size_t)got : 0;
	}
	cr_assert_eq(got, 0, "the answer does not end");
	close(fd);
	end = strstr(answer->bytes, "\r\n\r\n");
	cr_assert_not_null(end);
	answer->body = end + 4;
	return answer;
}

static inline void profiler_site_expect(struct profiler_site *ps, int fd, const char *body)
{
	struct profiler_answer *answer = profiler_site_answer(ps, fd);

	expect_status(answer->bytes, "200");
	cr_expect_str_eq(answer->body, body, "%s", answer->body);
	free(answer);
}

#endif
