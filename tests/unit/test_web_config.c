/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "web/config.h"

#define HASH "$2y$10$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi"
#define CERT "tls_server_config:\n  cert_file: c\n  key_file: k\n"

static void parse(const char *text, struct web_config *config)
{
	struct yaml_error error = { 0 };
	int r = web_config_parse(text, strlen(text), config, &error);

	cr_assert_eq(r, 0, "%zu:%zu: %s\n%s", error.line, error.column, error.text, text);
}

static void expect_refused(const char *text, size_t len, const char *place, const char *words)
{
	struct web_config config = { .rate_burst = 7 };
	struct yaml_error error = { 0 };
	char seen[32];

	cr_expect_eq(web_config_parse(text, len, &config, &error), -EINVAL, "%s", text);
	cr_expect_eq(config.rate_burst, 7, "touched: %s", text);
	snprintf(seen, sizeof(seen), "%zu:%zu", error.line, error.column);
	cr_expect_str_eq(seen, place, "%s, not %s: %s: %s", seen, place, error.text, text);
	cr_expect_not_null(strstr(error.text, words), "wanted \"%s\", got \"%s\"", words,
			   error.text);
}

Test(web_config, an_empty_file_is_valid)
{
	static const char *const texts[] = {
		"",
		"\n",
		"# nothing\n",
		"---\n",
		"{}",
		"~",
		"tls_server_config:\nrate_limit: ~\n",
		"tls_server_config: {}\nhttp_server_config: {}\nbasic_auth_users: {}\n",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		_cleanup_(web_config_free) struct web_config config = { 0 };

		parse(texts[i], &config);
		cr_expect_not(config.tls.enabled);
		cr_expect(config.http2);
		cr_expect_eq(config.users_len, 0);
		cr_expect_eq(config.rate_interval_ns, 0);
		cr_expect_eq(config.tls.min_version, WEB_TLS_1_2);
		cr_expect_eq(config.tls.max_version, WEB_TLS_1_3);
		cr_expect(config.tls.prefer_server_cipher_suites);
	}
}

Test(web_config, reads_every_key_of_tls)
{
	_cleanup_(web_config_free) struct web_config config = { 0 };

	parse("tls_server_config:\n"
	      "  cert_file: certs/server.crt\n"
	      "  key_file: /etc/server.key\n"
	      "  client_ca_file: ca.crt\n"
	      "  client_auth_type: RequireAndVerifyClientCert\n"
	      "  client_allowed_sans: [prometheus.example, \"10.0.0.1\"]\n"
	      "  min_version: TLS11\n"
	      "  max_version: TLS12\n"
	      "  cipher_suites:\n"
	      "    - TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384\n"
	      "    - TLS_AES_128_GCM_SHA256\n"
	      "  curve_preferences: [X25519, CurveP256]\n"
	      "  prefer_server_cipher_suites: no\n",
	      &config);
	cr_assert_eq(web_config_set_base(&config, "/conf/web.yml"), 0);
	cr_expect(config.tls.enabled);
	cr_expect_str_eq(config.tls.cert_file, "/conf/certs/server.crt");
	cr_expect_str_eq(config.tls.key_file, "/etc/server.key");
	cr_expect_str_eq(config.tls.client_ca_file, "/conf/ca.crt");
	cr_expect_eq(config.tls.client_auth, WEB_CLIENT_REQUIRE_AND_VERIFY);
	cr_assert_eq(config.tls.allowed_sans_len, 2);
	cr_expect_str_eq(config.tls.allowed_sans[1], "10.0.0.1");
	cr_expect_eq(config.tls.min_version, WEB_TLS_1_1);
	cr_expect_eq(config.tls.max_version, WEB_TLS_1_2);
	cr_assert_eq(config.tls.suites.len, 2);
	cr_expect_str_eq(config.tls.suites.of[0]->priority, "+AES-256-GCM:+AEAD");
	cr_assert_eq(config.tls.curves.len, 2);
	cr_expect_str_eq(config.tls.curves.of[0]->priority, "+GROUP-X25519");
	cr_expect_not(config.tls.prefer_server_cipher_suites);
}

Test(web_config, takes_certificates_inline)
{
	_cleanup_(web_config_free) struct web_config config = { 0 };

	parse("tls_server_config:\n"
	      "  cert: |\n    -----BEGIN\n    x\n"
	      "  key: \"k\\n\"\n"
	      "  client_ca: c\n"
	      "  client_auth_type: VerifyClientCertIfGiven\n",
	      &config);
	cr_expect_str_eq(config.tls.cert, "-----BEGIN\nx\n");
	cr_expect_str_eq(config.tls.key, "k\n");
	cr_expect_str_eq(config.tls.client_ca, "c");
	cr_expect_null(config.tls.cert_file);
}

Test(web_config, reads_headers_users_and_the_rate_limit)
{
	_cleanup_(web_config_free) struct web_config config = { 0 };

	parse("http_server_config:\n"
	      "  http2: false\n"
	      "  headers:\n"
	      "    X-Frame-Options: deny\n"
	      "    X-Content-Type-Options: nosniff\n"
	      "    Strict-Transport-Security: max-age=31536000\n"
	      "    Content-Security-Policy: \"\"\n"
	      "basic_auth_users:\n"
	      "  prometheus: " HASH "\n"
	      "  x: " HASH "\n"
	      "rate_limit:\n"
	      "  interval: 1m30.5s\n"
	      "  burst: 20\n",
	      &config);
	cr_expect_not(config.http2);
	cr_expect_str_eq(config.headers[WEB_HEADER_FRAME_OPTIONS], "deny");
	cr_expect_str_eq(config.headers[WEB_HEADER_STRICT_TRANSPORT_SECURITY], "max-age=31536000");
	cr_expect_null(config.headers[WEB_HEADER_CONTENT_SECURITY_POLICY]);
	cr_assert_eq(config.users_len, 2);
	cr_expect_str_eq(config.users[0].name, "prometheus");
	cr_expect_str_eq(config.users[0].hash, HASH);
	cr_expect_eq(config.rate_interval_ns, 90500000000ULL);
	cr_expect_eq(config.rate_burst, 20);
}

static const struct {
	const char *text, *place, *words;
} faults[] = {
	/* YAML itself */
	{ "a: [", "2:1", "" },
	{ "\tx: 1\n", "1:1", "cannot start any token" },
	{ "x: \xff\n", "1:1", "UTF-8" },
	{ "- a\n", "1:1", "expected keys" },
	{ "nonsense\n", "1:1", "expected keys" },
	{ "rate_limit: {}\n---\nrate_limit: {}\n", "2:1", "second document" },
	{ "rate_limit: &a {}\nhttp_server_config: *a\n", "2:21", "aliases" },
	{ "rate_limit: !!map {}\n", "1:13", "tags" },
	{ "? [a]\n: b\n", "1:3", "a key must be a text" },
	{ "rate_limit: {}\nrate_limit: {}\n", "2:1", "given twice" },
	{ "basic_auth_users: {u: " HASH ", u: " HASH "}\n", "1:85", "given twice" },
	{ "a: [[[[[[[[[[x]]]]]]]]]]\n", "1:11", "nested too deeply" },
	{ "rate_limit: {interval: \"1\\0s\"}\n", "1:24", "NUL" },
	/* keys and types */
	{ "tls_config: {}\n", "1:1", "unknown key \"tls_config\"" },
	{ CERT "  certfile: x\n", "4:3", "tls_server_config: unknown key \"certfile\"" },
	{ "rate_limit: {brst: 1}\n", "1:14", "unknown key" },
	{ "http_server_config: {http2: maybe}\n", "1:29", "http2: expected true or false" },
	{ "http_server_config: {http2: \"true\"}\n", "1:29", "true or false" },
	{ "tls_server_config: [x]\n", "1:20", "expected keys" },
	{ "tls_server_config: {cert_file: [x]}\n", "1:32", "cert_file: expected a text" },
	{ "basic_auth_users: x\n", "1:19", "names with hashes" },
	/* TLS */
	{ "tls_server_config: {key_file: k}\n", "1:20", "missing one of cert or cert_file" },
	{ "tls_server_config: {cert_file: c}\n", "1:20", "missing one of key or key_file" },
	{ "tls_server_config: {min_version: TLS13}\n", "1:20", "missing one of cert" },
	{ "tls_server_config: {cert_file: \"\", key_file: k}\n", "1:20", "missing one of cert" },
	{ CERT "  cert: x\n", "2:3", "exclude" },
	{ CERT "  client_ca_file: ca\n", "2:3", "without a client_auth_type" },
	{ CERT "  client_auth_type: Require\n", "4:21", "expected NoClientCert" },
	{ CERT "  client_allowed_sans: [a]\n", "2:3", "needs client_auth_type" },
	{ CERT "  client_auth_type: RequestClientCert\n  client_allowed_sans: [a]\n", "2:3",
	  "needs client_auth_type" },
	{ CERT "  client_allowed_sans: []\n", "4:24", "not an empty one" },
	{ CERT "  client_allowed_sans: [\"\"]\n", "4:25", "empty name" },
	{ CERT "  min_version: TLS1.2\n", "4:16", "min_version: expected TLS10" },
	{ CERT "  min_version: TLS13\n  max_version: TLS12\n", "2:3", "above" },
	{ CERT "  cipher_suites: [TLS_RSA_WITH_RC4_128_SHA]\n", "4:19",
	  "unknown cipher suite \"TLS_RSA_WITH_RC4_128_SHA\"" },
	{ CERT "  cipher_suites: TLS_AES_128_GCM_SHA256\n", "4:18", "expected a list" },
	{ CERT "  cipher_suites: [TLS_AES_128_GCM_SHA256, TLS_AES_128_GCM_SHA256]\n", "4:43",
	  "given twice" },
	{ CERT "  cipher_suites: [TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA]\n", "2:3",
	  "none of TLS 1.3" },
	{ CERT "  curve_preferences: [P256]\n", "4:23", "expected CurveP256" },
	{ CERT "  curve_preferences: [X25519, X25519]\n", "4:31", "given twice" },
	/* headers */
	{ "http_server_config: {headers: {Server: x}}\n", "1:32", "cannot be configured" },
	{ "http_server_config: {headers: {X-Frame-Options: allow}}\n", "1:49", "deny" },
	{ "http_server_config: {headers: {X-Content-Type-Options: sniff}}\n", "1:56", "nosniff" },
	{ "http_server_config: {headers: {X-XSS-Protection: \"a\\nb\"}}\n", "1:50", "control" },
	/* users */
	{ "basic_auth_users: {u: secret}\n", "1:23", "expected a bcrypt hash" },
	{ "basic_auth_users: {u: }\n", "1:23", "expected a bcrypt hash" },
	{ "basic_auth_users: {\"a:b\": " HASH "}\n", "1:20", "colon" },
	{ "basic_auth_users: {\"\": " HASH "}\n", "1:20", "empty user name" },
	/* rate limit */
	{ "rate_limit: {interval: 1}\n", "1:24", "expected a duration" },
	{ "rate_limit: {interval: -1s}\n", "1:24", "expected a duration" },
	{ "rate_limit: {interval: 0.01d}\n", "1:24", "expected a duration" },
	{ "rate_limit: {interval: 1s}\n", "1:13", "burst must be at least 1" },
	{ "rate_limit: {interval: 1h1ns, burst: 1}\n", "1:13", "above 1h" },
	{ "rate_limit: {burst: -1}\n", "1:21", "whole number" },
	{ "rate_limit: {burst: 1.5}\n", "1:21", "whole number" },
	{ "rate_limit: {burst: \"5\"}\n", "1:21", "whole number" },
};

Test(web_config, faults_are_named_with_their_place)
{
	for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++)
		expect_refused(faults[i].text, strlen(faults[i].text), faults[i].place,
			       faults[i].words);
}

Test(web_config, bounds_size_and_number_of_values)
{
	_cleanup_(cleanup_free) char *text = malloc(YAML_BYTES_MAX + 1);

	cr_assert_not_null(text);
	memset(text, '#', YAML_BYTES_MAX + 1);
	expect_refused(text, YAML_BYTES_MAX + 1, "0:0", "larger than");
	for (size_t i = 0; i < YAML_BYTES_MAX; i += 2)
		memcpy(text + i, i ? "x," : "[x", 2);
	expect_refused(text, 100000, "1:20001", "too many values");
}

Test(web_config, survives_truncation_at_every_byte)
{
	static const char text[] = CERT "  client_allowed_sans: [a, \"b\"]\n"
					"  client_auth_type: RequireAnyClientCert\n"
					"http_server_config: {headers: {X-Frame-Options: deny}}\n"
					"basic_auth_users:\n  u: " HASH "\n";

	for (size_t len = 0; len < sizeof(text); len++) {
		_cleanup_(web_config_free) struct web_config config = { 0 };
		struct yaml_error error = { 0 };
		int r = web_config_parse(text, len, &config, &error);

		cr_expect(r == 0 || (r == -EINVAL && *error.text), "%zu", len);
	}
}

Test(web_config, knows_bcrypt_by_its_form)
{
	static const char tail[] = "QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi";
	static const struct {
		const char *head;
		bool good;
	} heads[] = {
		{ "$2y$10$", true },  { "$2a$04$", true },  { "$2b$31$", true },
		{ "$2x$10$", false }, { "$2y$03$", false }, { "$2y$32$", false },
		{ "$2y$1a$", false }, { "$2y$99$", false }, { "$6$1234", false },
	};
	char hash[128];

	for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++) {
		snprintf(hash, sizeof(hash), "%s%s", heads[i].head, tail);
		cr_expect_eq(web_hash_is_bcrypt(hash), heads[i].good, "%s", hash);
	}
	snprintf(hash, sizeof(hash), "$2y$10$%s", tail + 1);
	cr_expect_not(web_hash_is_bcrypt(hash), "too short");
	snprintf(hash, sizeof(hash), "$2y$10$%sx", tail);
	cr_expect_not(web_hash_is_bcrypt(hash), "too long");
	snprintf(hash, sizeof(hash), "$2y$10$:%s", tail + 1);
	cr_expect_not(web_hash_is_bcrypt(hash), "a character of another alphabet");
}
