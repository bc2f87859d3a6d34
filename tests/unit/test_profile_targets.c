/* SPDX-License-Identifier: Apache-2.0 */
/* The page that tells scrapers of profiles which services there are. */
#include "profiler_site.h"

#include "profiles/targets.h"

/* The answer to a client that asks for the page at @host. */
static char *targets_of(struct profiler_site *ps, const char *host, unsigned int status)
{
	const struct http_request request = { .host = host };
	struct http_page page = { 0 };
	static char text[4096];

	cr_assert_eq(targets_page(ps->profiler, &request, &page), 0);
	cr_expect_eq(page.status, status, "%s", host);
	cr_assert_lt(page.body->bytes.len, sizeof(text));
	memcpy(text, page.body->bytes.data, page.body->bytes.len);
	text[page.body->bytes.len] = '\0';
	if (status == 200)
		cr_expect_str_eq(page.content_type, "application/json");
	http_body_unref(page.body);
	return text;
}

Test(profile_targets, are_all_workloads_each_once_at_the_address_that_was_asked)
{
	struct profiler_site *ps = profiler_site_new();

	profiler_site_name(ps, 7, "web");
	profiler_site_name(ps, 3, "a \"b\"");
	cr_expect_str_eq(
		targets_of(ps, "[::1]:10070", 200),
		"[{\"targets\":[\"[::1]:10070\"],\"labels\":{\"__param_workload\":\"a \\\"b\\\"\","
		"\"service_name\":\"a \\\"b\\\"\"}},\n"
		"{\"targets\":[\"[::1]:10070\"],\"labels\":{\"__param_workload\":\"db\","
		"\"service_name\":\"db\"}},\n"
		"{\"targets\":[\"[::1]:10070\"],\"labels\":{\"__param_workload\":\"web\","
		"\"service_name\":\"web\"}}]\n");
	profiler_site_free(ps);
}

Test(profile_targets, of_no_workload_are_a_list_as_well)
{
	struct profiler_site *ps = profiler_site_new();

	ps->registry->naming.trees[PROFILER_SITE_WEB].known = false;
	ps->registry->naming.trees[PROFILER_SITE_DB].known = false;
	cr_expect_str_eq(targets_of(ps, "host", 200), "[]\n");
	profiler_site_free(ps);
}

Test(profile_targets, have_an_address_or_are_refused)
{
	static const char *const none[] = { "", "a b", "a/b", "a\"b", "a,b", "a\n", "\xc3\xa4" };
	struct profiler_site *ps = profiler_site_new();

	for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++)
		targets_of(ps, none[i], 400);
	profiler_site_free(ps);
}
