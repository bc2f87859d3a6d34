/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Certificates: one as a client sends it (DER), which has names that are allowed or not; and those
 * of the configuration, with a key, all of them from the same text (PEM).
 */
#include <errno.h>
#include <stdbool.h>

#include "base/utf8.h"
#include "web/sans.h"
#include "web/tls.h"
#include "fuzz.h"

#define ASN1_SEQUENCE 0x30
#define ERROR_BYTES 512

static void check_client(const uint8_t *data, size_t len)
{
	char *const allowed[] = { (char[]){ "a.example" }, (char[]){ "10.0.0.1" },
				  (char[]){ "spiffe://x/y" }, (char[]){ "a@example.org" } };
	const size_t allowed_len = sizeof(allowed) / sizeof(*allowed);
	uint8_t *block = malloc(len);
	gnutls_datum_t der = { block, (unsigned int)len };
	bool any = false, all;

	MUST(block);
	memcpy(block, data, len);
	all = certificate_has_allowed_san(&der, allowed, allowed_len);
	for (size_t i = 0; i < allowed_len; i++)
		any |= certificate_has_allowed_san(&der, &allowed[i], 1);
	MUST(any == all);
	MUST(!certificate_has_allowed_san(&der, allowed, 0));
	free(block);
}

static void check_config(const uint8_t *data, size_t len)
{
	char *pem = fuzz_text(data, len), error[ERROR_BYTES] = "";
	const struct web_tls_config config = {
		.enabled = true,
		.cert = pem,
		.key = pem,
		.client_ca = pem,
		.client_auth = len % 2 ? WEB_CLIENT_REQUIRE_AND_VERIFY : WEB_CLIENT_NONE,
		.min_version = WEB_TLS_1_2,
		.max_version = len % 3 ? WEB_TLS_1_3 : WEB_TLS_1_2,
	};
	struct web_tls *tls = NULL;
	int r = web_tls_new(&config, &tls, error, sizeof(error));

	MUST(r == 0 || r == -EINVAL);
	MUST(!r == !!tls);
	MUST(memchr(error, '\0', sizeof(error)) && utf8_is_valid(error));
	MUST(!r == !*error);
	web_tls_unref(tls);
	free(pem);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	if (len && *data == ASN1_SEQUENCE)
		check_client(data, len);
	else if (len && *data)
		check_config(data, len);
	return 0;
}
