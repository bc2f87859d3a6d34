/* SPDX-License-Identifier: Apache-2.0 */
/* Requests whose password is being compared, which takes a fifth of a second here. */
#include "site.h"

#include <stdio.h>
#include <unistd.h>

#define HASH "$2y$12$abcdefghijklmnopqrstuuT1Iwu6o8Wx7BoOyIMHfgVJq6JO/IJhW"
#define CONFIG "basic_auth_users:\n  u: " HASH "\n"
#define ASK "GET /metrics HTTP/1.1\r\nConnection: close\r\nAuthorization: Basic "
#define RIGHT ASK "dTpzZWNyZXQ=\r\n\r\n"
#define WRONG ASK "dTp3cm9uZw==\r\n\r\n"
#define RUNS_MAX                                                                        \
	10 /* until there is an answer; of a server that polls there would be many more \
	    */

struct guarded {
	struct site site;
	char path[64];
};

static void guarded_start(struct guarded *guarded)
{
	int fd;

	snprintf(guarded->path, sizeof(guarded->path), "/tmp/test_http_passwords.XXXXXX");
	fd = mkstemp(guarded->path);
	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, CONFIG, sizeof(CONFIG) - 1), (ssize_t)sizeof(CONFIG) - 1);
	close(fd);
	guarded->site.web_config = guarded->path;
	site_start(&guarded->site);
}

static void expect_response(struct site *site, int fd, const char *status)
{
	char response[4096];

	cr_expect(read_to_end(site, fd, response, sizeof(response)));
	expect_status(response, status);
	close(fd);
}

/* The server has presumably read the request when this returns. */
static int ask(struct site *site, const char *request)
{
	int fd = connect_to(site);

	send_text(site, fd, request);
	serve(site, -1, 0, now_ms() + 30);
	return fd;
}

/* To the only child: the process that compares. While it is stopped no comparison ends. */
static void checker_signal(int signal)
{
	char path[64];
	FILE *file;
	int pid;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	file = fopen(path, "re");
	cr_assert_not_null(file);
	cr_assert_eq(fscanf(file, "%d", &pid), 1);
	fclose(file);
	cr_assert_eq(kill(pid, signal), 0);
}

/* One that is stopped would not see its end. */
static void guarded_stop(struct guarded *guarded)
{
	checker_signal(SIGCONT);
	site_stop(&guarded->site);
	unlink(guarded->path);
}

Test(http_passwords, nothing_polls_for_a_comparison)
{
	_cleanup_(guarded_stop) struct guarded guarded = { 0 };
	struct site *site = &guarded.site;
	int fd;

	guarded_start(&guarded);
	fd = ask(site, RIGHT);
	expect_response(site, fd, "200");
	cr_expect_leq(site->runs, RUNS_MAX, "%zu", site->runs);
	site->runs = 0;
	fd = ask(site, WRONG);
	expect_response(site, fd, "401");
	cr_expect_leq(site->runs, RUNS_MAX, "%zu", site->runs);
}

/* Beside a connection that is older, and so looked at in another order. */
Test(http_passwords, a_client_that_sends_no_more_is_answered)
{
	_cleanup_(guarded_stop) struct guarded guarded = { 0 };
	struct site *site = &guarded.site;
	int idle, fd;

	guarded_start(&guarded);
	checker_signal(SIGSTOP);
	idle = ask(site, "GET /nothing HTTP/1.1\r\n");
	fd = ask(site, RIGHT);
	shutdown(fd, SHUT_WR);
	serve(site, -1, 0, now_ms() + 30);
	checker_signal(SIGCONT);
	expect_response(site, fd, "200");
	close(idle);
}

Test(http_passwords, a_client_that_breaks_off_is_forgotten_before_the_comparison_is_over)
{
	_cleanup_(guarded_stop) struct guarded guarded = { 0 };
	const struct linger reset = { .l_onoff = 1 };
	struct site *site = &guarded.site;
	int64_t until_ms;
	int fd;

	guarded_start(&guarded);
	checker_signal(SIGSTOP);
	fd = ask(site, WRONG);
	cr_expect_neq(http_server_due_ns(site->server), UINT64_MAX);
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	close(fd);
	until_ms = now_ms() + PATIENCE_MS;
	while (http_server_due_ns(site->server) != UINT64_MAX && now_ms() < until_ms)
		serve(site, -1, 0, now_ms() + 1);
	cr_expect_eq(http_server_due_ns(site->server), UINT64_MAX);
}

Test(http_passwords, a_comparison_that_never_ends_is_an_error)
{
	_cleanup_(guarded_stop) struct guarded guarded = { 0 };
	int fd;

	guarded_start(&guarded);
	checker_signal(SIGSTOP);
	fd = ask(&guarded.site, RIGHT);
	checker_signal(SIGKILL);
	expect_response(&guarded.site, fd, "500");
}

Test(http_passwords, another_password_of_the_same_address_is_refused_at_once)
{
	_cleanup_(guarded_stop) struct guarded guarded = { 0 };
	struct site *site = &guarded.site;
	int wrong, fd;

	guarded_start(&guarded);
	checker_signal(SIGSTOP);
	wrong = ask(site, WRONG);
	fd = ask(site, RIGHT);
	expect_response(site, fd, "429");
	fd = connect_from(site, 2);
	send_text(site, fd, RIGHT);
	serve(site, -1, 0, now_ms() + 30);
	checker_signal(SIGCONT);
	expect_response(site, fd, "200");
	expect_response(site, wrong, "401");
}
