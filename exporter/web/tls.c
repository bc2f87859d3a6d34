/* SPDX-License-Identifier: Apache-2.0 */
#include "web/tls.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gnutls/x509.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "web/file.h"
#include "web/sans.h"

#define PRIORITY_BYTES 2048
#define PEM_MAX_BYTES                                                              \
	((size_t)4 << 20) /* a machine's bundle of CAs has a quarter of a megabyte \
			   */

struct web_tls {
	unsigned references;
	enum web_client_auth client_auth;
	bool has_ca; /* of its own, not those of the machine */
	char **allowed_sans; /* copies, because the configuration may be replaced */
	size_t allowed_sans_len;
	gnutls_certificate_credentials_t credentials;
	gnutls_priority_t priority;
};

bool web_tls_authenticates(const struct web_tls *tls)
{
	return tls->client_auth == WEB_CLIENT_REQUIRE_AND_VERIFY &&
	       (tls->has_ca || tls->allowed_sans_len);
}

struct web_tls *web_tls_ref(struct web_tls *tls)
{
	tls->references++;
	return tls;
}

void web_tls_unref(struct web_tls *tls)
{
	if (!tls || --tls->references)
		return;
	for (size_t i = 0; i < tls->allowed_sans_len; i++)
		free(tls->allowed_sans[i]);
	free(tls->allowed_sans);
	if (tls->credentials)
		gnutls_certificate_free_credentials(tls->credentials);
	if (tls->priority)
		gnutls_priority_deinit(tls->priority);
	free(tls);
}

static void tls_unrefp(struct web_tls **tls)
{
	web_tls_unref(*tls);
}

/* --- certificates --------------------------------------------------------------------------- */

/* A PEM text that is inline or in a file; cleared when released, for it may be a key. */
static void pem_free(struct buffer *pem)
{
	if (pem->data)
		explicit_bzero(pem->data, pem->size);
	buffer_free(pem);
}

static int pem_read(const char *text, const char *path, struct buffer *pem, char *error,
		    size_t error_bytes)
{
	int r;

	if (!path) {
		buffer_append(pem, text, strlen(text));
		return pem->error;
	}
	r = web_file_read(path, pem);
	if (r)
		snprintf(error, error_bytes, "cannot read %s: %s", path, web_file_error(r));
	return r ? -EINVAL : 0;
}

static gnutls_datum_t pem_datum(const struct buffer *pem)
{
	return (gnutls_datum_t){ (unsigned char *)pem->data, (unsigned)pem->len };
}

/*
 * 0 or GnuTLS's error. That it can read all certificates is asked before they are loaded: loading
 * loses the memory of one that it cannot read (3.7.9, parse_pem_cert_mem()).
 */
static int pem_check_certificates(const gnutls_datum_t *pem)
{
	gnutls_x509_crt_t *chain = NULL;
	unsigned chain_len = 0;
	int r = gnutls_x509_crt_list_import2(&chain, &chain_len, pem, GNUTLS_X509_FMT_PEM, 0);

	if (r < 0)
		return r;
	for (unsigned i = 0; i < chain_len; i++)
		gnutls_x509_crt_deinit(chain[i]);
	gnutls_free(chain);
	return 0;
}

static int tls_load_pair(struct web_tls *tls, const struct web_tls_config *config, char *error,
			 size_t error_bytes)
{
	_cleanup_(pem_free) struct buffer cert = BUFFER_INIT(PEM_MAX_BYTES);
	_cleanup_(pem_free) struct buffer key = BUFFER_INIT(PEM_MAX_BYTES);
	gnutls_datum_t cert_datum, key_datum;
	int r = pem_read(config->cert, config->cert_file, &cert, error, error_bytes);

	if (!r)
		r = pem_read(config->key, config->key_file, &key, error, error_bytes);
	if (r)
		return r;
	cert_datum = pem_datum(&cert);
	key_datum = pem_datum(&key);
	r = pem_check_certificates(&cert_datum);
	if (!r)
		r = gnutls_certificate_set_x509_key_mem2(tls->credentials, &cert_datum, &key_datum,
							 GNUTLS_X509_FMT_PEM, NULL, 0);
	if (r < 0)
		snprintf(error, error_bytes, "certificate %s with key %s: %s",
			 config->cert_file ? config->cert_file : "(inline)",
			 config->key_file ? config->key_file : "(inline)", gnutls_strerror(r));
	return r < 0 ? -EINVAL : 0;
}

/* Without a CA that is named the machine's are those to verify with, as in Go. */
static int tls_load_ca(struct web_tls *tls, const struct web_tls_config *config, char *error,
		       size_t error_bytes)
{
	_cleanup_(pem_free) struct buffer ca = BUFFER_INIT(PEM_MAX_BYTES);
	gnutls_datum_t ca_datum;
	int r;

	if (config->client_auth < WEB_CLIENT_VERIFY_IF_GIVEN && !config->client_ca &&
	    !config->client_ca_file)
		return 0;
	if (!config->client_ca && !config->client_ca_file) {
		gnutls_certificate_set_x509_system_trust(tls->credentials);
		return 0;
	}
	r = pem_read(config->client_ca, config->client_ca_file, &ca, error, error_bytes);
	if (r)
		return r;
	ca_datum = pem_datum(&ca);
	r = gnutls_certificate_set_x509_trust_mem(tls->credentials, &ca_datum, GNUTLS_X509_FMT_PEM);
	if (r <= 0)
		snprintf(error, error_bytes, "client CA %s: %s",
			 config->client_ca_file ? config->client_ca_file : "(inline)",
			 r < 0 ? gnutls_strerror(r) : "no certificate in it");
	return r <= 0 ? -EINVAL : 0;
}

static int tls_copy_sans(struct web_tls *tls, const struct web_tls_config *config)
{
	if (!config->allowed_sans_len)
		return 0;
	tls->allowed_sans = calloc(config->allowed_sans_len, sizeof(*tls->allowed_sans));
	if (!tls->allowed_sans)
		return -ENOMEM;
	for (size_t i = 0; i < config->allowed_sans_len; i++) {
		tls->allowed_sans[i] = strdup(config->allowed_sans[i]);
		if (!tls->allowed_sans[i])
			return -ENOMEM;
		tls->allowed_sans_len++;
	}
	return 0;
}

static void priority_choices(const struct web_choices *choices, struct buffer *out)
{
	for (size_t i = 0; i < choices->len; i++)
		buffer_printf(out, ":%s", choices->of[i]->priority);
}

/* GnuTLS chooses ciphers for all versions alike. */
static int tls_make_priority(struct web_tls *tls, const struct web_tls_config *config, char *error,
			     size_t error_bytes)
{
	_cleanup_(buffer_free) struct buffer text = BUFFER_INIT(PRIORITY_BYTES);
	int r;

	buffer_text(&text, "NORMAL:-KX-ALL:+ECDHE-ECDSA:+ECDHE-RSA:-CIPHER-ALL:-MAC-ALL");
	priority_choices(&config->suites, &text);
	for (size_t i = 0; !config->suites.len && web_suites[i].name; i++)
		buffer_printf(&text, ":%s", web_suites[i].priority);
	buffer_text(&text, ":-VERS-ALL");
	for (int version = (int)config->max_version; version >= (int)config->min_version; version--)
		buffer_printf(&text, ":%s", web_tls_versions[version].priority);
	buffer_text(&text, config->curves.len ? ":-GROUP-ALL" : "");
	priority_choices(&config->curves, &text);
	buffer_text(&text, config->prefer_server_cipher_suites ? ":%SERVER_PRECEDENCE" : "");
	buffer_char(&text, '\0');
	r = text.error ? GNUTLS_E_MEMORY_ERROR
		       : gnutls_priority_init(&tls->priority, text.data, NULL);
	if (r < 0)
		snprintf(error, error_bytes, "TLS versions, suites and curves (%s): %s",
			 text.data ? text.data : "", gnutls_strerror(r));
	return r < 0 ? -EINVAL : 0;
}

int web_tls_new(const struct web_tls_config *config, struct web_tls **tls, char *error,
		size_t error_bytes)
{
	_cleanup_(tls_unrefp) struct web_tls *made = calloc(1, sizeof(*made));
	int r;

	if (!made)
		return -ENOMEM;
	made->references = 1;
	made->client_auth = config->client_auth;
	made->has_ca = config->client_ca || config->client_ca_file;
	if (gnutls_certificate_allocate_credentials(&made->credentials) < 0)
		return -ENOMEM;
	r = tls_copy_sans(made, config);
	if (!r)
		r = tls_load_pair(made, config, error, error_bytes);
	if (!r)
		r = tls_load_ca(made, config, error, error_bytes);
	if (!r)
		r = tls_make_priority(made, config, error, error_bytes);
	if (!r)
		*tls = TAKE_PTR(made);
	return r;
}

/* --- sessions ------------------------------------------------------------------------------- */

/* Of the certificates that the client has sent the first is its own. */
static bool peer_has_allowed_san(const struct web_tls *tls, gnutls_session_t session)
{
	unsigned chain_len = 0;
	const gnutls_datum_t *chain = gnutls_certificate_get_peers(session, &chain_len);

	return chain && chain_len &&
	       certificate_has_allowed_san(&chain[0], tls->allowed_sans, tls->allowed_sans_len);
}

static bool peer_is_verified(gnutls_session_t session)
{
	gnutls_typed_vdata_st purpose = {
		.type = GNUTLS_DT_KEY_PURPOSE_OID,
		.data = (unsigned char *)(uintptr_t)GNUTLS_KP_TLS_WWW_CLIENT, /* only read */
	};
	unsigned status = 0;

	return gnutls_certificate_verify_peers(session, &purpose, 1, &status) >= 0 && !status;
}

/* During the handshake, once the client has sent its certificate, or that it has none. */
static int tls_verify(gnutls_session_t session)
{
	const struct web_tls *tls = gnutls_db_get_ptr(session);
	unsigned chain_len = 0;
	bool given = gnutls_certificate_get_peers(session, &chain_len) && chain_len;

	if (!given && tls->client_auth != WEB_CLIENT_REQUIRE_ANY &&
	    tls->client_auth != WEB_CLIENT_REQUIRE_AND_VERIFY)
		return 0;
	if (!given)
		return GNUTLS_E_CERTIFICATE_ERROR;
	if (tls->client_auth >= WEB_CLIENT_VERIFY_IF_GIVEN && !peer_is_verified(session))
		return GNUTLS_E_CERTIFICATE_ERROR;
	if (tls->allowed_sans && !peer_has_allowed_san(tls, session))
		return GNUTLS_E_CERTIFICATE_ERROR;
	return 0;
}

int web_tls_use(struct web_tls *tls, gnutls_session_t session)
{
	static const gnutls_certificate_request_t requests[] = {
		[WEB_CLIENT_NONE] = GNUTLS_CERT_IGNORE,
		[WEB_CLIENT_REQUEST] = GNUTLS_CERT_REQUEST,
		[WEB_CLIENT_REQUIRE_ANY] = GNUTLS_CERT_REQUIRE,
		[WEB_CLIENT_VERIFY_IF_GIVEN] = GNUTLS_CERT_REQUEST,
		[WEB_CLIENT_REQUIRE_AND_VERIFY] = GNUTLS_CERT_REQUIRE,
	};

	if (gnutls_priority_set(session, tls->priority) < 0 ||
	    gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, tls->credentials) < 0)
		return -EIO;
	gnutls_db_set_ptr(session, tls);
	gnutls_certificate_server_set_request(session, requests[tls->client_auth]);
	if (tls->client_auth != WEB_CLIENT_NONE)
		gnutls_session_set_verify_function(session, tls_verify);
	return 0;
}
