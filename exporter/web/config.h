/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The web configuration file: the format of Prometheus' exporter-toolkit (docs/web-configuration.md
 * there), read strictly. What the file means is decided in the other files of this folder.
 *
 * Stricter than the toolkit where it would go on in silence: a certificate both inline and as a
 * file, TLS settings without a certificate, an empty list of allowed names, a burst of 0, a header
 * value with control characters, a user name with a colon.
 */
#ifndef WORKLOAD_WEB_CONFIG_H
#define WORKLOAD_WEB_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "web/suites.h"
#include "web/yaml.h"

enum web_client_auth {
	WEB_CLIENT_NONE,
	WEB_CLIENT_REQUEST, /* asked for; whatever comes is taken */
	WEB_CLIENT_REQUIRE_ANY, /* some certificate, of whatever issuer */
	WEB_CLIENT_VERIFY_IF_GIVEN,
	WEB_CLIENT_REQUIRE_AND_VERIFY,
};

struct web_choices {
	const struct web_choice *of[WEB_SUITES_MAX]; /* in the order of preference */
	size_t len;
};

/* Texts are NULL where the file has none, or an empty one. */
struct web_tls_config {
	bool enabled;
	char *cert, *cert_file; /* at most one of each pair */
	char *key, *key_file;
	char *client_ca, *client_ca_file;
	enum web_client_auth client_auth;
	char **allowed_sans; /* NULL: all that pass client_auth are allowed */
	size_t allowed_sans_len;
	enum web_tls_version min_version, max_version;
	struct web_choices suites; /* none: all that are known */
	struct web_choices curves; /* none: the library's */
	bool prefer_server_cipher_suites;
};

enum web_header {
	WEB_HEADER_CONTENT_SECURITY_POLICY,
	WEB_HEADER_FRAME_OPTIONS,
	WEB_HEADER_CONTENT_TYPE_OPTIONS,
	WEB_HEADER_XSS_PROTECTION,
	WEB_HEADER_STRICT_TRANSPORT_SECURITY,
	WEB_HEADERS,
};

struct web_user {
	char *name;
	char *hash; /* of bcrypt, well-formed */
};

/* Texts are those of @root, but for names of files that were made longer. */
struct web_config {
	struct yaml_node *root;
	char *joined[3];
	struct web_tls_config tls;
	bool http2; /* wanted; cannot be had */
	char *headers[WEB_HEADERS]; /* NULL: not sent */
	struct web_user *users; /* NULL: every client is let in */
	size_t users_len;
	uint64_t rate_interval_ns; /* between two requests in the long run; 0: no limit */
	uint64_t rate_burst;
};

/* The names of the headers, by enum web_header. */
const char *web_header_name(enum web_header header);

/*
 * Reads the @len bytes of a file. 0 with @config filled, which web_config_free releases; -EINVAL
 * with the fault in @error; -ENOMEM. @config is untouched on failure. Pure: no file is opened.
 */
int web_config_parse(const char *text, size_t len, struct web_config *config,
		     struct yaml_error *error);

/*
 * Makes the names of files relative to the directory of @path, that of the configuration, unless
 * they begin with /. 0 or -ENOMEM.
 */
int web_config_set_base(struct web_config *config, const char *path);

/* Releases what @config owns and clears it. For _cleanup_ as well. */
void web_config_free(struct web_config *config);

/* Whether @hash is one of bcrypt as crypt(5) writes them: $2a$, $2b$ or $2y$, costs 4 to 31. */
bool web_hash_is_bcrypt(const char *hash);

#endif
