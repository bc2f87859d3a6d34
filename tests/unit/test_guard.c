/* SPDX-License-Identifier: Apache-2.0 */
/* The web configuration file at work, with real files, and through the real server. */
#include "site.h"

#include <stdlib.h>
#include <unistd.h>

#include "web/bucket.h"
#include "web/guard.h"
#include "web/sans.h"

/* Of "secret", at the lowest cost; and what anna sends. */
#define SECRET "$2y$04$sHi80TSybythvzXiyEQIsuxv6.Hee4VMeRBau7TOOEH1fcSUTKHdK"
#define ANNA "Authorization: Basic YW5uYTpzZWNyZXQ=\r\n"
#define WRONG "Authorization: Basic YW5uYTp3cm9uZw==\r\n"

struct file {
	char path[64];
	int said, said_broken;
	char text[512]; /* what was said last */
};

static void file_write(const struct file *file, const char *text)
{
	static int number;
	char other[96];
	FILE *out;

	/* Another file each time, as editors and certificate tools do it. */
	snprintf(other, sizeof(other), "%s.%d", file->path, ++number);
	out = fopen(other, "we");
	cr_assert_not_null(out);
	cr_assert_geq(fputs(text, out), 0);
	cr_assert_eq(fclose(out), 0);
	cr_assert_eq(rename(other, file->path), 0);
}

static void file_make(struct file *file, const char *text)
{
	int fd;

	snprintf(file->path, sizeof(file->path), "/tmp/web_config_XXXXXX");
	fd = mkstemp(file->path);
	cr_assert_geq(fd, 0);
	close(fd);
	file_write(file, text);
}

static void file_remove(const struct file *file)
{
	unlink(file->path);
}

static void file_say(void *arg, bool broken, const char *text)
{
	struct file *file = arg;

	file->said++;
	file->said_broken += broken;
	snprintf(file->text, sizeof(file->text), "%s", text);
}

static void guard_make(struct file *file, struct guard **guard)
{
	struct guard_options options = { .path = file->path, .say = file_say, .arg = file };
	char error[256] = "";

	cr_assert_eq(guard_new(&options, guard, error, sizeof(error)), 0, "%s", error);
}

Test(guard, without_a_file_everybody_may_ask)
{
	const struct guard_options options = { 0 };
	_cleanup_(guard_freep) struct guard *guard = NULL;
	const struct http_origin origin = { 0 };

	cr_assert_eq(guard_new(&options, &guard, NULL, 0), 0);
	for (int i = 0; i < 1000; i++)
		cr_expect_eq(guard_enter(guard, ""), GUARD_ADMIT);
	cr_expect_eq(guard_check(guard, "", &origin), GUARD_ADMIT);
	cr_expect_not(guard_has_tls(guard));
	cr_expect_null(guard_header(guard, WEB_HEADER_FRAME_OPTIONS));
}

Test(guard, goes_by_the_file_as_it_is_now)
{
	_cleanup_(file_remove) struct file file = { 0 };
	_cleanup_(guard_freep) struct guard *guard = NULL;

	file_make(&file, "");
	guard_make(&file, &guard);
	cr_expect_eq(guard_enter(guard, ""), GUARD_ADMIT);
	cr_expect_eq(file.said, 0, "nothing has changed");
	file_write(&file, "basic_auth_users: {anna: " SECRET "}\n");
	cr_expect_eq(guard_enter(guard, ""), GUARD_UNAUTHORIZED);
	cr_expect_eq(guard_enter(guard, "Basic YW5uYTpzZWNyZXQ="), GUARD_ADMIT);
	file_write(&file, "http_server_config: {headers: {X-Frame-Options: deny}}\n");
	cr_expect_eq(guard_enter(guard, ""), GUARD_ADMIT);
	cr_expect_str_eq(guard_header(guard, WEB_HEADER_FRAME_OPTIONS), "deny");
	cr_expect_eq(file.said, 2);
	cr_expect_eq(file.said_broken, 0);
}

Test(guard, a_broken_file_lets_nobody_in_and_is_said_once)
{
	_cleanup_(file_remove) struct file file = { 0 };
	_cleanup_(guard_freep) struct guard *guard = NULL;

	file_make(&file, "");
	guard_make(&file, &guard);
	file_write(&file, "nonsense: 1\n");
	for (int i = 0; i < 5; i++)
		cr_expect_eq(guard_enter(guard, ""), GUARD_BROKEN);
	cr_expect_eq(file.said_broken, 1);
	cr_expect_not_null(strstr(file.text, ":1:1: unknown key"), "%s", file.text);
	unlink(file.path);
	for (int i = 0; i < 5; i++)
		cr_expect_eq(guard_enter(guard, ""), GUARD_BROKEN);
	cr_expect_eq(file.said_broken, 2);
	cr_expect_not_null(strstr(file.text, "No such file"), "%s", file.text);
	file_write(&file, "");
	cr_expect_eq(guard_enter(guard, ""), GUARD_ADMIT);
}

Test(guard, limits_the_rate_of_requests)
{
	_cleanup_(file_remove) struct file file = { 0 };
	_cleanup_(guard_freep) struct guard *guard = NULL;

	file_make(&file, "rate_limit: {interval: 1h, burst: 3}\n");
	guard_make(&file, &guard);
	for (int i = 0; i < 3; i++)
		cr_expect_eq(guard_enter(guard, ""), GUARD_ADMIT);
	cr_expect_eq(guard_enter(guard, ""), GUARD_LIMITED);
}

Test(guard, a_bucket_fills_at_its_interval)
{
	struct bucket bucket = { .interval_ns = 100, .burst = 2 };

	cr_expect(bucket_take(&bucket, 1000));
	cr_expect(bucket_take(&bucket, 1000));
	cr_expect_not(bucket_take(&bucket, 1000));
	cr_expect_not(bucket_take(&bucket, 1099));
	cr_expect(bucket_take(&bucket, 1100));
	cr_expect_not(bucket_take(&bucket, 1100));
	cr_expect(bucket_take(&bucket, 9000) && bucket_take(&bucket, 9000));
	cr_expect_not(bucket_take(&bucket, 9000), "it holds no more than its burst");
}

Test(guard, the_server_asks_for_passwords)
{
	_cleanup_(file_remove) struct file file = { 0 };
	_cleanup_(site_stop) struct site site = { 0 };
	char response[4096];

	file_make(&file, "basic_auth_users: {anna: " SECRET "}\n"
			 "http_server_config: {headers: {Strict-Transport-Security: max-age=1}}\n");
	site.web_config = file.path;
	site_start(&site);
	exchange(&site, "GET /metrics" CLOSE, response, sizeof(response));
	expect_status(response, "401");
	expect_header(response, "WWW-Authenticate: Basic realm=\"workload_exporter\", "
				"charset=\"UTF-8\"");
	expect_header(response, "Strict-Transport-Security: max-age=1");
	exchange(&site, "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" WRONG "\r\n",
		 response, sizeof(response));
	expect_status(response, "401");
	exchange(&site, "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" ANNA "\r\n",
		 response, sizeof(response));
	expect_status(response, "200");
	cr_expect_eq(site.asked, 1);
}

Test(guard, names_in_certificates_match_exactly)
{
	char *const allowed[] = { (char[]){ "a.example" }, (char[]){ "10.0.0.1" },
				  (char[]){ "2001:db8::1" }, (char[]){ "spiffe://x/y" } };
	static const unsigned char v6[] = {
		0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1
	};
	static const unsigned char mapped[] = { 0, 0, 0,    0,    0,  0, 0, 0,
						0, 0, 0xff, 0xff, 10, 0, 0, 1 };

	cr_expect(san_is_allowed(SAN_TEXT, "a.example", 9, allowed, 4));
	cr_expect(san_is_allowed(SAN_TEXT, "spiffe://x/y", 12, allowed, 4));
	cr_expect_not(san_is_allowed(SAN_TEXT, "A.example", 9, allowed, 4));
	cr_expect_not(san_is_allowed(SAN_TEXT, "b.a.example", 11, allowed, 4));
	cr_expect_not(san_is_allowed(SAN_TEXT, "a.example\0.evil", 15, allowed, 4), "a NUL");
	cr_expect_not(san_is_allowed(SAN_TEXT, "a.exampl", 8, allowed, 4));
	cr_expect(san_is_allowed(SAN_ADDRESS, (char[]){ 10, 0, 0, 1 }, 4, allowed, 4));
	cr_expect_not(san_is_allowed(SAN_ADDRESS, (char[]){ 10, 0, 0, 2 }, 4, allowed, 4));
	cr_expect(san_is_allowed(SAN_ADDRESS, v6, 16, allowed, 4));
	cr_expect(san_is_allowed(SAN_ADDRESS, mapped, 16, allowed, 4));
	cr_expect_not(san_is_allowed(SAN_ADDRESS, v6, 15, allowed, 4));
}

Test(guard, an_address_may_lie_anywhere_in_a_certificate)
{
	char *const allowed[] = { (char[]){ "10.0.0.1" } };
	_Alignas(8) unsigned char bytes[17] = { [11] = 0xff, [12] = 0xff, [13] = 10, [16] = 1 };

	cr_expect(san_is_allowed(SAN_ADDRESS, bytes + 1, 16, allowed, 1));
}
