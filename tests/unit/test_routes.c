/* SPDX-License-Identifier: Apache-2.0 */
/* Which pages there are, and which clients have them. */
#include "site.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <unistd.h>

#include "core.h"
#include "made_up.h"

#define HASH "$2y$12$abcdefghijklmnopqrstuuT1Iwu6o8Wx7BoOyIMHfgVJq6JO/IJhW" /* of "secret" */
#define RIGHT " HTTP/1.1\r\nConnection: close\r\nAuthorization: Basic dTpzZWNyZXQ=\r\n\r\n"

TestSuite(routes);

static int page(void *arg, const struct http_request *request, struct http_page *page)
{
	(void)arg;
	(void)request;
	(void)page;
	return 0;
}

Test(routes, a_path_is_there_once)
{
	const struct http_route row = { .path = "/x", .page = page };
	struct http_routes routes = { 0 };

	cr_expect_null(http_routes_find(&routes, "/x"));
	cr_expect_eq(http_routes_add(&routes, &row), 0);
	cr_expect_eq(http_routes_add(&routes, &row), -EEXIST);
	cr_expect_eq(routes.len, 1);
	cr_expect_eq(http_routes_find(&routes, "/x"), &routes.rows[0]);
	cr_expect_null(http_routes_find(&routes, "/x/"));
}

Test(routes, there_are_not_more_than_have_room)
{
	char paths[HTTP_ROUTES_MAX + 1][8];
	struct http_routes routes = { 0 };

	for (size_t i = 0; i <= HTTP_ROUTES_MAX; i++) {
		const struct http_route row = { .path = paths[i], .page = page };

		snprintf(paths[i], sizeof(paths[i]), "/%zu", i);
		cr_expect_eq(http_routes_add(&routes, &row), i < HTTP_ROUTES_MAX ? 0 : -ENOSPC);
	}
	cr_expect_null(http_routes_find(&routes, paths[HTTP_ROUTES_MAX]));
}

/* --- of features ---------------------------------------------------------------------------- */

Test(routes, a_feature_brings_its_pages_while_it_is_on)
{
	struct core *core = core_start(core_mask("made_up"));
	const struct http_route *made_up;
	struct http_routes routes = { 0 };

	cr_expect_eq(features_routes(&core->features, &routes), 0);
	made_up = http_routes_find(&routes, MADE_UP_PATH);
	cr_assert_not_null(made_up);
	cr_expect_eq(made_up->arg, &made_up_opened_with, "its state");
	cr_expect_eq(features_routes(&core->features, &routes), -EEXIST);
	core_stop(core);

	core = core_start(0);
	routes.len = 0;
	cr_expect_eq(features_routes(&core->features, &routes), 0);
	cr_expect_eq(routes.len, 0);
	cr_expect(features_have_page(MADE_UP_PATH), "no other page may have its path");
	cr_expect_not(features_have_page("/metrics"));
	core_stop(core);
}

/* --- access --------------------------------------------------------------------------------- */

/* An IPv4 address of this machine by which others can reach it; false: it has none. */
static bool outer_address(char out[static INET_ADDRSTRLEN])
{
	struct ifaddrs *all, *one;
	bool found = false;

	cr_assert_eq(getifaddrs(&all), 0);
	for (one = all; one && !found; one = one->ifa_next) {
		const struct sockaddr_in *v4 = (const void *)one->ifa_addr;

		if (!v4 || v4->sin_family != AF_INET || ntohl(v4->sin_addr.s_addr) >> 24 == 127)
			continue;
		found = inet_ntop(AF_INET, &v4->sin_addr, out, INET_ADDRSTRLEN);
	}
	freeifaddrs(all);
	return found;
}

static void expect_at(struct site *site, const char *request, const char *status)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(site->port) };
	_cleanup_(cleanup_close) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char response[4096];

	inet_pton(AF_INET, site->host ? site->host : "127.0.0.1", &address.sin_addr);
	cr_assert_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	send_text(site, fd, request);
	cr_assert(read_to_end(site, fd, response, sizeof(response)));
	expect_status(response, status);
}

static uint64_t refused(const struct site *site, const char *reason)
{
	size_t len;
	const struct http_refusal_row *rows = http_server_refusals(site->server, &len);

	for (size_t i = 0; i < len; i++)
		if (!strcmp(rows[i].reason, reason))
			return rows[i].refused;
	cr_assert_fail("%s is no reason", reason);
	return 0;
}

Test(routes, a_private_page_is_for_this_machine)
{
	struct site site = { 0 };

	site_start(&site);
	expect_at(&site, "GET /private" CLOSE, "200");
	site_stop(&site);
}

Test(routes, others_do_not_get_a_private_page_without_having_shown_who_they_are)
{
	char host[INET_ADDRSTRLEN];
	struct site site = { .host = host };

	if (!outer_address(host))
		cr_skip_test("this machine has no address but its own");
	site_start(&site);
	expect_at(&site, "GET /private" CLOSE, "403");
	expect_at(&site, "HEAD /private" CLOSE, "403");
	expect_at(&site, "GET /open" CLOSE, "200");
	expect_at(&site, "GET /-/healthy" CLOSE, "200");
	expect_at(&site, "GET /metrics" CLOSE, "200");
	cr_expect_eq(refused(&site, "private"), 2, "counted before a page shows them");
	site_stop(&site);
}

Test(routes, a_password_opens_a_private_page_and_none_is_asked_for_an_open_one)
{
	char host[INET_ADDRSTRLEN], path[] = "/tmp/test_routes.XXXXXX";
	struct site site = { .web_config = path };
	int fd = mkstemp(path);

	site.host = outer_address(host) ? host : NULL;
	cr_assert_geq(fd, 0);
	dprintf(fd, "basic_auth_users:\n  u: %s\n", HASH);
	close(fd);
	site_start(&site);
	expect_at(&site, "GET /private" CLOSE, "401");
	expect_at(&site, "GET /private" RIGHT, "200");
	expect_at(&site, "GET /open" CLOSE, "200");
	site_stop(&site);
	unlink(path);
}

Test(routes, loopback_is_what_only_this_machine_has)
{
	static const struct {
		const char *host;
		bool is;
	} hosts[] = { { "127.0.0.1", true },        { "127.1.2.3", true }, { "::1", true },
		      { "::ffff:127.0.0.1", true }, { "0.0.0.0", false },  { "", false } };
	char error[256];

	for (size_t i = 0; i < COUNT(hosts); i++) {
		_cleanup_(cleanup_close) int fd = http_listen(hosts[i].host, "0", error,
							      sizeof(error));

		cr_assert_geq(fd, 0, "%s: %s", hosts[i].host, error);
		cr_expect_eq(http_is_loopback(fd), hosts[i].is, "%s", hosts[i].host);
	}
	cr_expect_not(http_is_loopback(-1));
}
