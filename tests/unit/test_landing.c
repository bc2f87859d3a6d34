/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include <string.h>

#include "base/cleanup.h"
#include "http/landing.h"

static const struct http_routes routes = {
	.rows = { { .path = "/metrics", .title = "Metrics" },
		  { .path = "/" },
		  { .path = HTTP_HEALTH_PATH, .title = "Health & more" } },
	.len = 3,
};

/* The page for one workload of this name. */
static void render_landing(const char *workload, struct buffer *out)
{
	struct workload_row workloads[] = {
		{ .workload = workload, .runtime = "jvm", .processes = 3 }
	};
	struct endpoint_row endpoints[] = {
		{ .workload = "", .port = "9999" },
		{ .workload = workload, .port = "80", .queued = 1, .in_service = 2 },
		{ .workload = workload,
		  .port = "8080",
		  .connections = 3,
		  .queued = 4,
		  .in_service = 5 },
		{ .workload = "zzz", .port = "9999" },
	};
	struct probe_row probes[] = { { "requests", "readable", 1 },
				      { "threads", "rename", 0 },
				      { "threads", "switch", 1 },
				      { "threads", "walk", 0 } };
	struct build_row build = { "1.2.3", "abcdef", "main", "gcc" };
	struct snapshot snapshot = {
		.workloads = workloads,
		.workloads_len = 1,
		.endpoints = endpoints,
		.endpoints_len = 4,
		.probes = probes,
		.probes_len = 4,
		.build = &build,
	};

	cr_assert_eq(landing_render(&snapshot, &routes, out), 0);
	buffer_char(out, '\0');
}

static void expect_contains(const struct buffer *page, const char *text)
{
	cr_expect_not_null(strstr(page->data, text), "no %s", text);
}

Test(landing, shows_what_is_watched_and_attached)
{
	_cleanup_(buffer_free) struct buffer page = BUFFER_INIT(65536);

	render_landing("shop", &page);
	expect_contains(&page, "Version 1.2.3");
	expect_contains(&page, "<nav><a href=\"/metrics\">Metrics</a> "
			       "<a href=\"/-/healthy\">Health &amp; more</a></nav>");
	expect_contains(&page, "<tbody>\n<tr><td class=\"name\">shop</td><td>jvm</td>"
			       "<td class=\"n\">3</td><td class=\"n\">80</td>");
	expect_contains(&page, "<tr><td colspan=\"3\"></td><td class=\"n\">8080</td>"
			       "<td class=\"n\">3</td><td class=\"n\">4</td>"
			       "<td class=\"n\">5</td></tr>");
	cr_expect_null(strstr(page.data, "9999"), "a port of somebody else");
	expect_contains(&page, ">requests</td><td><span>readable</span></td></tr>");
	expect_contains(&page, ">threads</td><td><span class=\"no\">rename</span>, "
			       "<span>switch</span>, <span class=\"no\">walk</span></td></tr>");
}

Test(landing, a_service_without_processes_is_told_from_one_that_lives)
{
	_cleanup_(buffer_free) struct buffer page = BUFFER_INIT(65536);
	struct workload_row row = { .workload = "shop", .runtime = "jvm" };
	struct snapshot snapshot = { .workloads = &row, .workloads_len = 1 };

	cr_assert_eq(landing_render(&snapshot, &routes, &page), 0);
	buffer_char(&page, '\0');
	expect_contains(&page, "<tbody class=\"gone\">");
	expect_contains(&page, "<td colspan=\"4\"></td></tr>");
	cr_expect_null(strstr(page.data, "Probes"), "nothing is known of them");
}

Test(landing, names_cannot_become_markup)
{
	_cleanup_(buffer_free) struct buffer page = BUFFER_INIT(65536);

	render_landing("<script>alert(\"'&'\")</script>\x01\xff", &page);
	cr_expect_null(strstr(page.data, "<script"));
	expect_contains(&page, ">&lt;script&gt;alert(&quot;&#39;&amp;&#39;&quot;)&lt;/script&gt;"
			       "\xef\xbf\xbd\xef\xbf\xbd</td>");
}
