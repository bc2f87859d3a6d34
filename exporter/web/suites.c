/* SPDX-License-Identifier: Apache-2.0 */
#include "web/suites.h"

#include <string.h>

#include "base/units.h"

const struct web_choice web_tls_versions[] = {
	[WEB_TLS_1_0] = { "TLS10", "+VERS-TLS1.0" },
	[WEB_TLS_1_1] = { "TLS11", "+VERS-TLS1.1" },
	[WEB_TLS_1_2] = { "TLS12", "+VERS-TLS1.2" },
	[WEB_TLS_1_3] = { "TLS13", "+VERS-TLS1.3" },
	{ NULL, NULL },
};

const struct web_choice web_suites[] = {
	{ "TLS_AES_128_GCM_SHA256", "+AES-128-GCM:+AEAD" },
	{ "TLS_AES_256_GCM_SHA384", "+AES-256-GCM:+AEAD" },
	{ "TLS_CHACHA20_POLY1305_SHA256", "+CHACHA20-POLY1305:+AEAD" },
	{ "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "+AES-128-GCM:+AEAD" },
	{ "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "+AES-128-GCM:+AEAD" },
	{ "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "+AES-256-GCM:+AEAD" },
	{ "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "+AES-256-GCM:+AEAD" },
	{ "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "+CHACHA20-POLY1305:+AEAD" },
	{ "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "+CHACHA20-POLY1305:+AEAD" },
	{ "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA", "+AES-128-CBC:+SHA1" },
	{ "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA", "+AES-128-CBC:+SHA1" },
	{ "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA", "+AES-256-CBC:+SHA1" },
	{ "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA", "+AES-256-CBC:+SHA1" },
	{ NULL, NULL },
};

_Static_assert(COUNT(web_suites) == WEB_SUITES_MAX + 1, "WEB_SUITES_MAX is not their number");

const struct web_choice web_curves[] = {
	{ "CurveP256", "+GROUP-SECP256R1" },
	{ "CurveP384", "+GROUP-SECP384R1" },
	{ "CurveP521", "+GROUP-SECP521R1" },
	{ "X25519", "+GROUP-X25519" },
	{ NULL, NULL },
};

const struct web_choice *web_choice_find(const struct web_choice *choices, const char *name)
{
	for (; choices->name; choices++)
		if (strcmp(choices->name, name) == 0)
			return choices;
	return NULL;
}
