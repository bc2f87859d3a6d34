/* SPDX-License-Identifier: Apache-2.0 */
#include "web/config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "base/units.h"

#define COUNT_MAX 1000000
#define DURATION_MAX_NS (100ULL * 365 * 86400 * NS_PER_S)
#define BCRYPT_BYTES 60
#define RATE_INTERVAL_MAX_NS (3600 * NS_PER_S)
#define FIELD(type, member, read)                     \
	{                                             \
#member, read, offsetof(type, member) \
	}

struct field {
	const char *name;
	/* Reads @value, which is not null, into the member at @offset of the section. */
	int (*read)(void *member, const struct yaml_node *value, struct yaml_error *error);
	size_t offset;
};

static const char *const header_names[WEB_HEADERS] = {
	[WEB_HEADER_CONTENT_SECURITY_POLICY] = "Content-Security-Policy",
	[WEB_HEADER_FRAME_OPTIONS] = "X-Frame-Options",
	[WEB_HEADER_CONTENT_TYPE_OPTIONS] = "X-Content-Type-Options",
	[WEB_HEADER_XSS_PROTECTION] = "X-XSS-Protection",
	[WEB_HEADER_STRICT_TRANSPORT_SECURITY] = "Strict-Transport-Security",
};

const char *web_header_name(enum web_header header)
{
	return header_names[header];
}

/* --- values: each is read into a member of the type that is named ---------------------------- */

/* char *, the node's; NULL for an empty text. */
static int value_text(void *member, const struct yaml_node *value, struct yaml_error *error)
{
	if (value->kind != YAML_TEXT)
		return web_yaml_fail(error, value, "expected a text");
	*(char **)member = *value->text ? value->text : NULL;
	return 0;
}

/* bool: true, false, yes, no, on, off and their capitals, without quotes. */
static int value_bool(void *member, const struct yaml_node *value, struct yaml_error *error)
{
	static const char *const names[2][11] = {
		{ "false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF", "n", "N" },
		{ "true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON", "y", "Y" },
	};
	bool *out = member;

	for (size_t i = 0; value->kind == YAML_TEXT && value->plain && i < COUNT(names[0]); i++) {
		for (int truth = 0; truth < 2; truth++) {
			if (strcmp(value->text, names[truth][i]) != 0)
				continue;
			*out = truth;
			return 0;
		}
	}
	return web_yaml_fail(error, value, "expected true or false");
}

/* uint64_t: a plain number up to a million. */
static int value_count(void *member, const struct yaml_node *value, struct yaml_error *error)
{
	const char *cursor = value->kind == YAML_TEXT && value->plain ? value->text : "";
	uint64_t number;

	if (text_parse_u64(&cursor, &number) < 0 || *cursor || number > COUNT_MAX)
		return web_yaml_fail(error, value, "expected a whole number from 0 to %d",
				     COUNT_MAX);
	*(uint64_t *)member = number;
	return 0;
}

/* uint64_t, nanoseconds: as Go writes it (base/units.h), up to 100 years. */
static int value_duration(void *member, const struct yaml_node *value, struct yaml_error *error)
{
	if (value->kind == YAML_TEXT &&
	    !duration_parse(value->text, false, DURATION_MAX_NS, member))
		return 0;
	return web_yaml_fail(error, value, "expected a duration such as 1s, 500ms or 1m30s, or 0");
}

/* Puts the name of the key, which may be hostile, in front of what is wrong with its value. */
static int fail_prefix(struct yaml_error *error, const char *key)
{
	char text[sizeof(error->text)];

	snprintf(text, sizeof(text), "%.60s: %.190s", key, error->text);
	text_copy(error->text, sizeof(error->text), text);
	return -EINVAL;
}

/* Reads a map whose keys are @fields into @section. */
static int read_fields(const struct field *fields, size_t len, void *section,
		       const struct yaml_node *map, struct yaml_error *error)
{
	if (map->kind != YAML_MAP)
		return web_yaml_fail(error, map, "expected keys with values");
	for (const struct yaml_node *key = map->first; key; key = key->next->next) {
		size_t i = 0;
		int r;

		while (i < len && strcmp(key->text, fields[i].name) != 0)
			i++;
		if (i == len)
			return web_yaml_fail(error, key, "unknown key \"%.80s\"", key->text);
		if (web_yaml_is_null(key->next))
			continue;
		r = fields[i].read((char *)section + fields[i].offset, key->next, error);
		if (r == -EINVAL)
			return fail_prefix(error, key->text);
		if (r)
			return r;
	}
	return 0;
}

/* --- tls_server_config ---------------------------------------------------------------------- */

static int read_client_auth(void *member, const struct yaml_node *value, struct yaml_error *error)
{
	static const struct {
		const char *name;
		enum web_client_auth auth;
	} names[] = {
		{ "", WEB_CLIENT_NONE },
		{ "NoClientCert", WEB_CLIENT_NONE },
		{ "RequestClientCert", WEB_CLIENT_REQUEST },
		{ "RequireAnyClientCert", WEB_CLIENT_REQUIRE_ANY },
		{ "RequireClientCert", WEB_CLIENT_REQUIRE_ANY }, /* the toolkit's old name */
		{ "VerifyClientCertIfGiven", WEB_CLIENT_VERIFY_IF_GIVEN },
		{ "RequireAndVerifyClientCert", WEB_CLIENT_REQUIRE_AND_VERIFY },
	};
	enum web_client_auth *auth = member;

	for (size_t i = 0; value->kind == YAML_TEXT && i < COUNT(names); i++) {
		if (strcmp(value->text, names[i].name) != 0)
			continue;
		*auth = names[i].auth;
		return 0;
	}
	return web_yaml_fail(error, value,
			     "expected NoClientCert, RequestClientCert, RequireAnyClientCert, "
			     "VerifyClientCertIfGiven or RequireAndVerifyClientCert");
}

static int read_version(void *member, const struct yaml_node *value, struct yaml_error *error)
{
	const struct web_choice *version =
		web_choice_find(web_tls_versions, value->kind == YAML_TEXT ? value->text : "");

	if (!version)
		return web_yaml_fail(error, value, "expected TLS10, TLS11, TLS12 or TLS13");
	*(enum web_tls_version *)member = (enum web_tls_version)(version - web_tls_versions);
	return 0;
}

static int read_choices(struct web_choices *choices, const struct web_choice *all,
			const char *wrong, const struct yaml_node *value, struct yaml_error *error)
{
	if (value->kind != YAML_LIST)
		return web_yaml_fail(error, value, "expected a list");
	for (const struct yaml_node *item = value->first; item; item = item->next) {
		const char *name = item->kind == YAML_TEXT ? item->text : "";
		const struct web_choice *choice = web_choice_find(all, name);

		if (!choice)
			return web_yaml_fail(error, item, "%s \"%.80s\"", wrong, name);
		for (size_t i = 0; i < choices->len; i++)
			if (choices->of[i] == choice)
				return web_yaml_fail(error, item, "%s is given twice",
						     choice->name);
		choices->of[choices->len++] = choice;
	}
	return 0;
}

static int read_suites(void *member, const struct yaml_node *value, struct yaml_error *error)
{
	return read_choices(member, web_suites, "unknown cipher suite", value, error);
}

static int read_curves(void *member, const struct yaml_node *value, struct yaml_error *error)
{
	return read_choices(member, web_curves,
			    "expected CurveP256, CurveP384, CurveP521 or X25519, not", value,
			    error);
}

static int read_sans(void *member, const struct yaml_node *value, struct yaml_error *error)
{
	struct web_tls_config *tls = member;
	size_t len = 0;

	if (value->kind != YAML_LIST || !value->first)
		return web_yaml_fail(error, value,
				     "expected a list of names, and not an empty one");
	for (const struct yaml_node *item = value->first; item; item = item->next)
		len++;
	tls->allowed_sans = calloc(len, sizeof(*tls->allowed_sans));
	if (!tls->allowed_sans)
		return -ENOMEM;
	for (const struct yaml_node *item = value->first; item; item = item->next) {
		int r = value_text(&tls->allowed_sans[tls->allowed_sans_len], item, error);

		if (r)
			return r;
		if (!tls->allowed_sans[tls->allowed_sans_len++])
			return web_yaml_fail(error, item, "an empty name");
	}
	return 0;
}

/* Whether TLS 1.3 has one of them, as those with a MAC of their own are older. */
static bool suites_are_new(const struct web_choices *suites)
{
	bool new = !suites->len;

	for (size_t i = 0; i < suites->len; i++)
		new |= strstr(suites->of[i]->priority, "+AEAD") != NULL;
	return new;
}

/* What no single key can tell. */
static int tls_check(struct web_tls_config *tls, const struct yaml_node *map,
		     struct yaml_error *error)
{
	bool has_ca = tls->client_ca || tls->client_ca_file;

	if ((tls->cert && tls->cert_file) || (tls->key && tls->key_file) ||
	    (tls->client_ca && tls->client_ca_file))
		return web_yaml_fail(error, map,
				     "cert, key and client_ca exclude cert_file, key_file and "
				     "client_ca_file");
	if (!tls->cert && !tls->cert_file)
		return web_yaml_fail(error, map, "missing one of cert or cert_file");
	if (!tls->key && !tls->key_file)
		return web_yaml_fail(error, map, "missing one of key or key_file");
	if (has_ca && tls->client_auth == WEB_CLIENT_NONE)
		return web_yaml_fail(error, map, "a client CA without a client_auth_type");
	if (tls->allowed_sans && tls->client_auth != WEB_CLIENT_REQUIRE_ANY &&
	    tls->client_auth != WEB_CLIENT_REQUIRE_AND_VERIFY)
		return web_yaml_fail(
			error, map,
			"client_allowed_sans needs client_auth_type RequireAnyClientCert "
			"or RequireAndVerifyClientCert");
	if (tls->min_version > tls->max_version)
		return web_yaml_fail(error, map, "min_version is above max_version");
	if (tls->max_version == WEB_TLS_1_3 && !suites_are_new(&tls->suites))
		return web_yaml_fail(error, map,
				     "cipher_suites has none of TLS 1.3: lower max_version");
	tls->enabled = true;
	return 0;
}

static int read_tls(void *member, const struct yaml_node *value, struct yaml_error *error)
{
	static const struct field fields[] = {
		FIELD(struct web_tls_config, cert, value_text),
		FIELD(struct web_tls_config, cert_file, value_text),
		FIELD(struct web_tls_config, key, value_text),
		FIELD(struct web_tls_config, key_file, value_text),
		FIELD(struct web_tls_config, client_ca, value_text),
		FIELD(struct web_tls_config, client_ca_file, value_text),
		{ "client_auth_type", read_client_auth,
		  offsetof(struct web_tls_config, client_auth) },
		{ "client_allowed_sans", read_sans, 0 },
		FIELD(struct web_tls_config, min_version, read_version),
		FIELD(struct web_tls_config, max_version, read_version),
		{ "cipher_suites", read_suites, offsetof(struct web_tls_config, suites) },
		{ "curve_preferences", read_curves, offsetof(struct web_tls_config, curves) },
		FIELD(struct web_tls_config, prefer_server_cipher_suites, value_bool),
	};
	int r = read_fields(fields, COUNT(fields), member, value, error);

	return r || !value->first ? r : tls_check(member, value, error);
}

/* --- http_server_config, basic_auth_users, rate_limit ---------------------------------------- */

static int header_check(enum web_header header, const struct yaml_node *value,
			struct yaml_error *error)
{
	const char *text = value->text;

	if (header == WEB_HEADER_CONTENT_TYPE_OPTIONS && strcmp(text, "nosniff") != 0)
		return web_yaml_fail(error, value, "expected nosniff");
	if (header == WEB_HEADER_FRAME_OPTIONS && strcmp(text, "deny") != 0 &&
	    strcmp(text, "sameorigin") != 0)
		return web_yaml_fail(error, value, "expected deny or sameorigin");
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			return web_yaml_fail(error, value, "a control character in a header");
	return 0;
}

static int header_find(const char *name)
{
	int header = 0;

	while (header < WEB_HEADERS && strcmp(name, header_names[header]) != 0)
		header++;
	return header;
}

static int read_headers(void *member, const struct yaml_node *value, struct yaml_error *error)
{
	char **headers = member;

	if (value->kind != YAML_MAP)
		return web_yaml_fail(error, value, "expected names of headers with values");
	for (const struct yaml_node *key = value->first; key; key = key->next->next) {
		int header = header_find(key->text), r;

		if (header == WEB_HEADERS)
			return web_yaml_fail(error, key, "header \"%.80s\" cannot be configured",
					     key->text);
		if (web_yaml_is_null(key->next))
			continue;
		r = value_text(&headers[header], key->next, error);
		if (!r && headers[header])
			r = header_check(header, key->next, error);
		if (r)
			return fail_prefix(error, key->text);
	}
	return 0;
}

static int read_http(void *member, const struct yaml_node *value, struct yaml_error *error)
{
	static const struct field fields[] = {
		FIELD(struct web_config, http2, value_bool),
		FIELD(struct web_config, headers, read_headers),
	};

	return read_fields(fields, COUNT(fields), member, value, error);
}

bool web_hash_is_bcrypt(const char *hash)
{
	static const char digits[] = "./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				     "0123456789";
	unsigned cost;

	if (strlen(hash) != BCRYPT_BYTES || hash[0] != '$' || hash[1] != '2' ||
	    !strchr("aby", hash[2]) || hash[3] != '$' || hash[6] != '$')
		return false;
	if (hash[4] < '0' || hash[4] > '3' || hash[5] < '0' || hash[5] > '9')
		return false;
	cost = (unsigned)(hash[4] - '0') * 10 + (unsigned)(hash[5] - '0');
	return cost >= 4 && cost <= 31 && strspn(hash + 7, digits) == BCRYPT_BYTES - 7;
}

static int read_user(struct web_user *user, const struct yaml_node *key, struct yaml_error *error)
{
	if (!*key->text)
		return web_yaml_fail(error, key, "an empty user name");
	if (strchr(key->text, ':'))
		return web_yaml_fail(
			error, key, "user \"%.80s\": a name with a colon cannot log in", key->text);
	if (key->next->kind != YAML_TEXT || !web_hash_is_bcrypt(key->next->text))
		return web_yaml_fail(
			error, key->next,
			"user \"%.80s\": expected a bcrypt hash ($2y$10$...), as htpasswd "
			"-nBC 10 \"\" writes it",
			key->text);
	*user = (struct web_user){ key->text, key->next->text };
	return 0;
}

static int read_users(void *member, const struct yaml_node *value, struct yaml_error *error)
{
	struct web_config *config = member;
	size_t len = 0;
	int r = 0;

	if (value->kind != YAML_MAP)
		return web_yaml_fail(error, value, "expected names with hashes");
	for (const struct yaml_node *key = value->first; key; key = key->next->next)
		len++;
	config->users = calloc(len + 1, sizeof(*config->users));
	if (!config->users)
		return -ENOMEM;
	for (const struct yaml_node *key = value->first; !r && key; key = key->next->next)
		r = read_user(&config->users[config->users_len++], key, error);
	return r;
}

static int read_rate(void *member, const struct yaml_node *value, struct yaml_error *error)
{
	static const struct field fields[] = {
		{ "interval", value_duration, offsetof(struct web_config, rate_interval_ns) },
		{ "burst", value_count, offsetof(struct web_config, rate_burst) },
	};
	struct web_config *config = member;
	int r = read_fields(fields, COUNT(fields), member, value, error);

	if (!r && config->rate_interval_ns > RATE_INTERVAL_MAX_NS)
		return web_yaml_fail(error, value, "interval is above 1h");
	if (!r && config->rate_interval_ns && !config->rate_burst)
		return web_yaml_fail(error, value, "with an interval, burst must be at least 1");
	return r;
}

/* --- the file ------------------------------------------------------------------------------- */

static int config_read(struct web_config *config, const struct yaml_node *root,
		       struct yaml_error *error)
{
	static const struct field fields[] = {
		{ "tls_server_config", read_tls, offsetof(struct web_config, tls) },
		{ "http_server_config", read_http, 0 },
		{ "basic_auth_users", read_users, 0 },
		{ "rate_limit", read_rate, 0 },
	};

	return web_yaml_is_null(root) ? 0 : read_fields(fields, COUNT(fields), config, root, error);
}

int web_config_parse(const char *text, size_t len, struct web_config *config,
		     struct yaml_error *error)
{
	struct web_config parsed = {
		.tls = { .min_version = WEB_TLS_1_2,
			 .max_version = WEB_TLS_1_3,
			 .prefer_server_cipher_suites = true },
		.http2 = true,
	};
	int r = web_yaml_read(text, len, &parsed.root, error);

	if (!r)
		r = config_read(&parsed, parsed.root, error);
	if (r)
		web_config_free(&parsed);
	else
		*config = parsed;
	return r;
}

int web_config_set_base(struct web_config *config, const char *path)
{
	int len = (int)(text_base_name(path) - path); /* of its directory */
	char **const paths[] = { &config->tls.cert_file, &config->tls.key_file,
				 &config->tls.client_ca_file };

	for (size_t i = 0; i < COUNT(paths); i++) {
		if (!*paths[i] || **paths[i] == '/')
			continue;
		if (asprintf(&config->joined[i], "%.*s%s", len, path, *paths[i]) < 0) {
			config->joined[i] = NULL;
			return -ENOMEM;
		}
		*paths[i] = config->joined[i];
	}
	return 0;
}

void web_config_free(struct web_config *config)
{
	for (size_t i = 0; i < COUNT(config->joined); i++)
		free(config->joined[i]);
	free(config->tls.allowed_sans);
	free(config->users);
	web_yaml_free(config->root);
	*config = (struct web_config){ 0 };
}
