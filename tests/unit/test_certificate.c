/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates: names in those of clients, and our own when they are broken. */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <gnutls/x509.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

#include "base/cleanup.h"
#include "web/sans.h"
#include "web/tls.h"

#define PEM_BYTES 8192

/* A certificate and its key, with a name of each kind that can be allowed. */
struct pair {
	gnutls_x509_crt_t certificate;
	gnutls_x509_privkey_t key;
};

static void pair_free(struct pair *pair)
{
	gnutls_x509_crt_deinit(pair->certificate);
	gnutls_x509_privkey_deinit(pair->key);
}

static void pair_name(const struct pair *pair, gnutls_x509_subject_alt_name_t type,
		      const void *name, size_t len)
{
	cr_assert_eq(gnutls_x509_crt_set_subject_alt_name(pair->certificate, type, name,
							  (unsigned)len, GNUTLS_FSAN_APPEND),
		     0);
}

static struct pair pair_make(void)
{
	struct pair pair;
	time_t now = time(NULL);

	cr_assert_eq(gnutls_x509_privkey_init(&pair.key), 0);
	cr_assert_eq(gnutls_x509_privkey_generate(pair.key, GNUTLS_PK_EDDSA_ED25519, 0, 0), 0);
	cr_assert_eq(gnutls_x509_crt_init(&pair.certificate), 0);
	gnutls_x509_crt_set_version(pair.certificate, 3);
	gnutls_x509_crt_set_serial(pair.certificate, "1", 1);
	gnutls_x509_crt_set_activation_time(pair.certificate, now);
	gnutls_x509_crt_set_expiration_time(pair.certificate, now + 3600);
	gnutls_x509_crt_set_key(pair.certificate, pair.key);
	pair_name(&pair, GNUTLS_SAN_DNSNAME, "a.example", 9);
	pair_name(&pair, GNUTLS_SAN_IPADDRESS, (char[]){ 10, 0, 0, 1 }, 4);
	pair_name(&pair, GNUTLS_SAN_URI, "spiffe://x/y", 12);
	pair_name(&pair, GNUTLS_SAN_RFC822NAME, "a@example.org", 13);
	cr_assert_eq(gnutls_x509_crt_sign2(pair.certificate, pair.certificate, pair.key,
					   GNUTLS_DIG_SHA512, 0),
		     0);
	return pair;
}

static bool allows(const gnutls_datum_t *der, const char *name)
{
	char *allowed[] = { (char[]){ "other" }, strdup(name) };
	bool is = certificate_has_allowed_san(der, allowed, 2);

	free(allowed[1]);
	return is;
}

Test(certificate, a_client_needs_one_of_the_names)
{
	_cleanup_(pair_free) struct pair pair = pair_make();
	gnutls_datum_t der;

	cr_assert_eq(gnutls_x509_crt_export2(pair.certificate, GNUTLS_X509_FMT_DER, &der), 0);
	cr_expect(allows(&der, "a.example"));
	cr_expect(allows(&der, "10.0.0.1"));
	cr_expect(allows(&der, "spiffe://x/y"));
	cr_expect(allows(&der, "a@example.org"));
	cr_expect_not(allows(&der, "b.example"));
	cr_expect_not(allows(&der, ""));
	der.size--;
	cr_expect_not(allows(&der, "a.example"), "cut");
	der.size = 0;
	cr_expect_not(allows(&der, "a.example"), "empty");
	gnutls_free(der.data);
}

static void pair_export(const struct pair *pair, char *cert, char *key)
{
	size_t cert_len = PEM_BYTES, key_len = PEM_BYTES;

	cr_assert_eq(
		gnutls_x509_crt_export(pair->certificate, GNUTLS_X509_FMT_PEM, cert, &cert_len), 0);
	cr_assert_eq(gnutls_x509_privkey_export_pkcs8(pair->key, GNUTLS_X509_FMT_PEM, NULL,
						      GNUTLS_PKCS_PLAIN, key, &key_len),
		     0);
}

static struct web_tls_config config_of(char *cert, char *key)
{
	return (struct web_tls_config){
		.enabled = true,
		.cert = cert,
		.key = key,
		.min_version = WEB_TLS_1_2,
		.max_version = WEB_TLS_1_3,
	};
}

static int tls_make(const struct web_tls_config *config, struct web_tls **tls)
{
	char error[256] = "";
	int r = web_tls_new(config, tls, error, sizeof(error));

	cr_expect_eq(!r, !*error, "%d with \"%s\"", r, error);
	cr_expect_eq(!r, *tls != NULL);
	return r;
}

static int tls_try(char *cert, char *key)
{
	const struct web_tls_config config = config_of(cert, key);
	struct web_tls *tls = NULL;
	int r = tls_make(&config, &tls);

	web_tls_unref(tls);
	return r;
}

/* The files are read again whenever they change, also for the worse. */
Test(certificate, one_that_is_broken_costs_no_memory)
{
	_cleanup_(pair_free) struct pair pair = pair_make();
	static char cert[PEM_BYTES], key[PEM_BYTES], broken[2 * PEM_BYTES];

	pair_export(&pair, cert, key);
	cr_expect_eq(tls_try(cert, key), 0);
	snprintf(broken, sizeof(broken), "%s%s", cert,
		 "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n");
	for (int i = 0; i < 10; i++)
		cr_expect_eq(tls_try(broken, key), -EINVAL);
#ifdef __SANITIZE_ADDRESS__
	cr_expect_eq(__lsan_do_recoverable_leak_check(), 0);
#endif
}

/* Whether clients of a server with @auth, and with @ca as the only one it trusts, are known. */
static bool authenticates(enum web_client_auth auth, char *ca, char *cert, char *key)
{
	struct web_tls_config config = config_of(cert, key);
	struct web_tls *tls = NULL;
	bool is;

	config.client_ca = ca;
	config.client_auth = auth;
	cr_assert_eq(tls_make(&config, &tls), 0);
	is = web_tls_authenticates(tls);
	web_tls_unref(tls);
	return is;
}

Test(certificate, only_one_of_a_ca_that_was_named_tells_who_a_client_is)
{
	_cleanup_(pair_free) struct pair pair = pair_make();
	char cert[PEM_BYTES] = "", key[PEM_BYTES] = "";

	pair_export(&pair, cert, key);
	cr_expect(authenticates(WEB_CLIENT_REQUIRE_AND_VERIFY, cert, cert, key));
	cr_expect_not(authenticates(WEB_CLIENT_VERIFY_IF_GIVEN, cert, cert, key));
	cr_expect_not(authenticates(WEB_CLIENT_REQUIRE_ANY, NULL, cert, key));
	cr_expect_not(authenticates(WEB_CLIENT_NONE, NULL, cert, key));
}
