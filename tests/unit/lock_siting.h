/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits for locks by call site, of made-up files, names and pools; names of functions are told as
 * the parser tells them.
 */
#ifndef TESTS_LOCK_SITING_H
#define TESTS_LOCK_SITING_H

#include <criterion/criterion.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/threads.h"
#include "base/units.h"
#include "profiles/lock_sites.h"

#define SERVER 1U
#define LIBC 2U
#define MS 1000000ULL
#define SECOND NS_PER_S

/* Functions of the server begin at multiples of FUNCTION_BYTES: f1, f2, ... but for those of
 * @names. */
#define FUNCTION_BYTES 0x100ULL

struct lock_site_test {
	struct files files;
	struct file file[3];
	struct lock_sites *sites;
	struct ledger *ledger;
	struct pool_row pools[2];
	const char *names[16]; /* of functions; NULL: f and its number; "": none */
	uint64_t now_ns;
};

static inline struct lock_site_test *test_new(void)
{
	static const char *const paths[] = { NULL, "/usr/bin/server", "/usr/lib/libc.so.6" };
	struct lock_site_test *test = calloc(1, sizeof(*test));
	struct identity identity = { .name = "web", .runtime = "native" };

	cr_assert_not_null(test);
	for (uint32_t number = SERVER; number <= LIBC; number++) {
		test->file[number] = (struct file){ .number = number, .id = 100 + number };
		test->file[number].path = (char *)paths[number];
		test->files.numbers[number] = &test->file[number];
	}
	test->sites = lock_sites_new();
	test->ledger = ledger_new(SECOND);
	cr_assert(test->sites && test->ledger);
	ledger_join(test->ledger, &identity, 0);
	for (int i = 0; i < 2; i++)
		test->pools[i] = (struct pool_row){ .workload = "web",
						    .role = "serving",
						    .pool = i ? "io" : "worker" };
	test->now_ns = SECOND;
	return test;
}

static inline void test_free(struct lock_site_test *test)
{
	lock_sites_free(test->sites);
	ledger_free(test->ledger);
	free(test);
}

/* A call in function @number of the server, 0x10 behind its begin. */
static inline uint64_t call_in(uint64_t number)
{
	return frame_make(SERVER, number * FUNCTION_BYTES + 0x10);
}

static inline void add_to(struct lock_site_test *test, const char *workload, const uint64_t *frames,
			  uint32_t len, uint64_t ns)
{
	struct stack_key key = { .tree = 1, .state = STATE_LOCK };
	struct stack stack = { .samples = 1, .ns = ns, .len = len, .end = STACK_COMPLETE };

	for (uint32_t i = 0; i < len; i++)
		key.hash += frames[i] << 1;
	memcpy(stack.frames, frames, len * sizeof(*frames));
	lock_sites_add(test->sites, &test->files, workload, &key, &stack);
}

/* By way of the C library, whose frames are no site. */
static inline void add(struct lock_site_test *test, uint64_t number, uint64_t ns)
{
	const uint64_t frames[] = { frame_of_syscall(202), frame_make(LIBC, 0x5000),
				    call_in(number), call_in(900) };

	add_to(test, "web", frames, 4, ns);
}

/* Of a wait whose stack was told before, and that is @over. */
static inline void add_later(struct lock_site_test *test, uint64_t number, uint64_t ns, bool over)
{
	struct stack_key key = { .tree = 1, .state = STATE_LOCK };
	struct stack stack = { .ns = ns, .woken = over, .end = STACK_BEGAN_BEFORE };

	key.hash =
		((frame_of_syscall(202) + frame_make(LIBC, 0x5000) + call_in(number) + call_in(900))
		 << 1) |
		HASH_LATER;
	lock_sites_add(test->sites, &test->files, "web", &key, &stack);
}

/* As the parser would. */
static inline void names_tell(struct lock_site_test *test, struct survey_wish *wish)
{
	struct parsed_names *names = &wish->names;
	size_t at = 1;

	names->names = calloc(wish->len, sizeof(*names->names));
	names->texts = calloc(wish->len + 1, 128);
	cr_assert(names->names && names->texts);
	names->len = wish->len;
	for (size_t i = 0; i < wish->len; i++) {
		uint64_t number = frame_address(wish->frames[i]) / FUNCTION_BYTES;
		const char *name = number < 16 ? test->names[number] : NULL;
		char own[32];

		snprintf(own, sizeof(own), "f%" PRIu64, number);
		if (!name)
			name = own;
		names->names[i].begin = number * FUNCTION_BYTES;
		if (!*name)
			continue;
		names->names[i].text = (uint32_t)at;
		names->names[i].bytes = (uint32_t)strlen(name);
		memcpy(names->texts + at, name, strlen(name));
		at += strlen(name) + 1;
	}
}

static inline void names_come(struct lock_site_test *test)
{
	struct survey_wish wish;

	while (lock_sites_ask(test->sites, &test->files, &wish)) {
		names_tell(test, &wish);
		lock_sites_named(test->sites, &wish);
	}
}

/* The threads of a pool have waited so long more; then there is a scrape, @passed_ns later. */
static inline void scrape_after(struct lock_site_test *test, uint64_t ns, uint64_t passed_ns)
{
	test->pools[0].mutex.sum_ns += ns;
	test->now_ns += passed_ns;
	lock_sites_share(test->sites, test->ledger, test->pools, 2, test->now_ns);
}

static inline void scrape(struct lock_site_test *test, uint64_t ns)
{
	scrape_after(test, ns, 10 * SECOND);
}

/* They are shown from the next scrape on. */
static inline void sites_come(struct lock_site_test *test)
{
	names_come(test);
	scrape(test, 0);
}

/* Of web; UINT64_MAX: it is not shown. */
static inline uint64_t shown(const struct lock_site_test *test, const char *site)
{
	size_t len;
	const struct lock_site_row *rows = lock_sites_rows(test->sites, &len);

	for (size_t i = 0; i < len; i++)
		if (!strcmp(rows[i].site, site) && !strcmp(rows[i].workload, "web"))
			return rows[i].wait_ns;
	return UINT64_MAX;
}

static inline uint64_t shown_in_all(const struct lock_site_test *test, size_t *len)
{
	const struct lock_site_row *rows = lock_sites_rows(test->sites, len);
	uint64_t sum = 0;

	for (size_t i = 0; i < *len; i++)
		sum += rows[i].wait_ns;
	return sum;
}

#define NOT_SHOWN UINT64_MAX

#endif
