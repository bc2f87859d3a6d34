/* SPDX-License-Identifier: Apache-2.0 */
#include "web/suites.h"

#include <errno.h>
#include <string.h>

#include "base/units.h"

static const struct web_suite suites[] = {
	{ "TLS_AES_128_GCM_SHA256", NULL, "AES-128-GCM", "AEAD" },
	{ "TLS_AES_256_GCM_SHA384", NULL, "AES-256-GCM", "AEAD" },
	{ "TLS_CHACHA20_POLY1305_SHA256", NULL, "CHACHA20-POLY1305", "AEAD" },
	{ "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "ECDHE-ECDSA", "AES-128-GCM", "AEAD" },
	{ "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA", "AES-128-GCM", "AEAD" },
	{ "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "ECDHE-ECDSA", "AES-256-GCM", "AEAD" },
	{ "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "ECDHE-RSA", "AES-256-GCM", "AEAD" },
	{ "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-ECDSA", "CHACHA20-POLY1305",
	  "AEAD" },
	{ "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA", "CHACHA20-POLY1305", "AEAD" },
	{ "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA", "ECDHE-ECDSA", "AES-128-CBC", "SHA1" },
	{ "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA", "ECDHE-RSA", "AES-128-CBC", "SHA1" },
	{ "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA", "ECDHE-ECDSA", "AES-256-CBC", "SHA1" },
	{ "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA", "ECDHE-RSA", "AES-256-CBC", "SHA1" },
};

_Static_assert(COUNT(suites) == WEB_SUITES_MAX, "WEB_SUITES_MAX is not the number of suites");

static const struct web_curve curves[] = {
	{ "CurveP256", "GROUP-SECP256R1" },
	{ "CurveP384", "GROUP-SECP384R1" },
	{ "CurveP521", "GROUP-SECP521R1" },
	{ "X25519", "GROUP-X25519" },
};

_Static_assert(COUNT(curves) == WEB_CURVES_MAX, "WEB_CURVES_MAX is not the number of curves");

static const struct {
	const char *name;
	const char *priority;
} versions[WEB_TLS_VERSIONS] = {
	[WEB_TLS_1_0] = { "TLS10", "VERS-TLS1.0" },
	[WEB_TLS_1_1] = { "TLS11", "VERS-TLS1.1" },
	[WEB_TLS_1_2] = { "TLS12", "VERS-TLS1.2" },
	[WEB_TLS_1_3] = { "TLS13", "VERS-TLS1.3" },
};

const struct web_suite *web_suite_find(const char *name)
{
	for (size_t i = 0; i < COUNT(suites); i++)
		if (strcmp(name, suites[i].name) == 0)
			return &suites[i];
	return NULL;
}

const struct web_suite *web_suite_at(size_t index)
{
	return index < COUNT(suites) ? &suites[index] : NULL;
}

const struct web_curve *web_curve_find(const char *name)
{
	for (size_t i = 0; i < COUNT(curves); i++)
		if (strcmp(name, curves[i].name) == 0)
			return &curves[i];
	return NULL;
}

int web_tls_version_parse(const char *name, enum web_tls_version *version)
{
	for (size_t i = 0; i < COUNT(versions); i++) {
		if (strcmp(name, versions[i].name) != 0)
			continue;
		*version = (enum web_tls_version)i;
		return 0;
	}
	return -EINVAL;
}

const char *web_tls_version_priority(enum web_tls_version version)
{
	return versions[version].priority;
}
