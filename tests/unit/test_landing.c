/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include <string.h>

#include "base/cleanup.h"
#include "http/landing.h"

/* The page for one workload of this name. */
static void render_landing(const char *workload, struct buffer *out)
{
	struct workload_row workloads[] = {
		{ .workload = workload, .runtime = "jvm", .processes = 3 }
	};
	struct endpoint_row endpoints[] = {
		{ .workload = workload, .port = "8080", .queued = 4, .in_service = 5 },
		{ .workload = "another", .port = "9999" },
	};
	struct probe_row probes[] = { { "requests", "sk_data_ready", 1 },
				      { "threads", "sched_switch", 0 } };
	struct build_row build = { "1.2.3", "abcdef", "main", "gcc" };
	struct snapshot snapshot = {
		.workloads = workloads,
		.workloads_len = 1,
		.endpoints = endpoints,
		.endpoints_len = 2,
		.probes = probes,
		.probes_len = 2,
		.build = &build,
	};

	cr_assert_eq(landing_render(&snapshot, "/metrics", out), 0);
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
	expect_contains(&page, "<a href=\"/metrics\">");
	expect_contains(&page, "<a href=\"/-/healthy\">");
	expect_contains(&page, "<tr><td>shop</td><td>jvm</td><td>3</td>"
			       "<td>8080: 4 queued, 5 in service</td></tr>");
	expect_contains(&page, "<tr><td>requests</td><td>sk_data_ready</td><td>yes</td></tr>");
	expect_contains(&page,
			"<tr><td>threads</td><td>sched_switch</td><td class=\"no\">no</td></tr>");
}

Test(landing, names_cannot_become_markup)
{
	_cleanup_(buffer_free) struct buffer page = BUFFER_INIT(65536);

	render_landing("<script>alert(\"'&'\")</script>\x01\xff", &page);
	cr_expect_null(strstr(page.data, "<script"));
	expect_contains(&page, "<td>&lt;script&gt;alert(&quot;&#39;&amp;&#39;&quot;)&lt;/script&gt;"
			       "\xef\xbf\xbd\xef\xbf\xbd</td>");
}
