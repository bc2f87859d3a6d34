/* SPDX-License-Identifier: Apache-2.0 */
#include "web/passwords.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>

#include "base/text.h"
#include "base/units.h"

#define COST_AT 4 /* of the two digits in $2y$10$... */

/* bcrypt's hash of something, at whatever cost is written into it: it need not be right. */
static const char nobody[] = "$2y$10$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi";

int passwords_init(struct passwords *passwords, struct helper *checker)
{
	*passwords = (struct passwords){ .checker = checker };
	return gnutls_rnd(GNUTLS_RND_KEY, passwords->secret.bytes, PASSWORD_KEY_BYTES) < 0 ? -EIO
											   : 0;
}

/* --- what a client says --------------------------------------------------------------------- */

static int credentials_split(const gnutls_datum_t *decoded, struct credentials *out)
{
	const char *text = (const char *)decoded->data;
	const char *colon = memchr(text, ':', decoded->size);
	size_t name_len, password_len;

	/* crypt(3) would take what precedes a NUL for the password. */
	if (!colon || memchr(text, '\0', decoded->size))
		return -EINVAL;
	name_len = (size_t)(colon - text);
	password_len = decoded->size - name_len - 1;
	if (name_len >= sizeof(out->name) || password_len >= sizeof(out->password))
		return -EINVAL;
	text_copy_bytes(out->name, sizeof(out->name), text, name_len);
	text_copy_bytes(out->password, sizeof(out->password), colon + 1, password_len);
	return 0;
}

int credentials_parse(const char *header, struct credentials *out)
{
	static const char scheme[] = "Basic ";
	gnutls_datum_t encoded, decoded = { 0 };
	int r;

	explicit_bzero(out, sizeof(*out));
	if (strncasecmp(header, scheme, sizeof(scheme) - 1) != 0)
		return -EINVAL;
	header += sizeof(scheme) - 1;
	header += strspn(header, " ");
	encoded.data = (unsigned char *)(uintptr_t)header; /* only read */
	encoded.size = (unsigned)strlen(header);
	if (!encoded.size || gnutls_base64_decode2(&encoded, &decoded) < 0)
		return -EINVAL;
	r = decoded.data ? credentials_split(&decoded, out) : -EINVAL;
	if (decoded.data)
		explicit_bzero(decoded.data, decoded.size);
	gnutls_free(decoded.data);
	return r;
}

/* --- what is remembered --------------------------------------------------------------------- */

/* Of all three, each with its NUL, which none of them holds: so no two triples are alike. */
static int key_make(const struct passwords *passwords, const char *hash,
		    const struct credentials *given, struct password_key *key)
{
	const char *const parts[] = { hash, given->name, given->password };
	gnutls_hmac_hd_t hmac;

	if (gnutls_hmac_init(&hmac, GNUTLS_MAC_SHA256, passwords->secret.bytes,
			     PASSWORD_KEY_BYTES) < 0)
		return -EIO;
	for (size_t i = 0; i < COUNT(parts); i++)
		gnutls_hmac(hmac, parts[i], strlen(parts[i]) + 1);
	gnutls_hmac_deinit(hmac, key->bytes);
	return 0;
}

/* Takes as long whether it is there or not. */
static bool key_is_in(const struct password_key *keys, size_t len, const struct password_key *key)
{
	bool found = false;

	for (size_t i = 0; i < len; i++)
		found |= gnutls_memcmp(keys[i].bytes, key->bytes, PASSWORD_KEY_BYTES) == 0;
	return found;
}

static size_t at_most(size_t len, size_t max)
{
	return len < max ? len : max;
}

static enum password_verdict passwords_recall(const struct passwords *passwords,
					      const struct password_key *key)
{
	if (key_is_in(passwords->right, at_most(passwords->right_len, PASSWORDS_RIGHT), key))
		return PASSWORD_RIGHT;
	if (key_is_in(passwords->wrong, at_most(passwords->wrong_len, PASSWORDS_WRONG), key))
		return PASSWORD_WRONG;
	return PASSWORD_PENDING;
}

static void passwords_remember(struct passwords *passwords, const struct password_key *key,
			       bool right)
{
	if (right)
		passwords->right[passwords->right_len++ % PASSWORDS_RIGHT] = *key;
	else
		passwords->wrong[passwords->wrong_len++ % PASSWORDS_WRONG] = *key;
}

/* --- what is to be compared ----------------------------------------------------------------- */

static void queue_drop_first(struct passwords *passwords)
{
	passwords->queue_len--;
	memmove(passwords->queue, passwords->queue + 1,
		passwords->queue_len * sizeof(*passwords->queue));
	explicit_bzero(&passwords->queue[passwords->queue_len], sizeof(*passwords->queue));
}

static void queue_ask(struct passwords *passwords)
{
	const struct password_question *first = passwords->queue;

	if (passwords->queue_len && checker_ask(passwords->checker, first->hash, first->password))
		passwords->ended = true; /* nothing else is open */
}

static enum password_verdict queue_add(struct passwords *passwords, const struct password_key *key,
				       const char *hash, const struct credentials *given,
				       const struct http_origin *origin)
{
	bool busy = passwords->queue_len == PASSWORDS_QUEUE;
	struct password_question *question = passwords->queue;

	for (; question < passwords->queue + passwords->queue_len; question++) {
		if (memcmp(&question->key, key, sizeof(*key)) == 0)
			return PASSWORD_PENDING;
		busy |= http_origin_equal(&question->origin, origin);
	}
	if (busy)
		return PASSWORD_BUSY;
	passwords->queue_len++;
	question->key = *key;
	question->origin = *origin;
	text_copy(question->hash, sizeof(question->hash), hash);
	text_copy(question->password, sizeof(question->password), given->password);
	if (passwords->queue_len == 1)
		queue_ask(passwords);
	return passwords->ended ? PASSWORD_BROKEN : PASSWORD_PENDING;
}

/* The hash of no user, as expensive as the most expensive of the users'. */
static void nobody_like(const struct web_user *users, size_t users_len, char *hash)
{
	text_copy(hash, sizeof(nobody), nobody);
	memcpy(hash + COST_AT, "04", 2);
	for (size_t i = 0; i < users_len; i++)
		if (memcmp(users[i].hash + COST_AT, hash + COST_AT, 2) > 0)
			memcpy(hash + COST_AT, users[i].hash + COST_AT, 2);
}

enum password_verdict passwords_check(struct passwords *passwords, const struct web_user *users,
				      size_t users_len, const struct credentials *given,
				      const struct http_origin *origin)
{
	char nobodys[sizeof(nobody)];
	const char *hash = nobodys;
	enum password_verdict verdict;
	struct password_key key;
	bool known = false;

	nobody_like(users, users_len, nobodys);
	for (size_t i = 0; i < users_len; i++) {
		if (strcmp(users[i].name, given->name) != 0)
			continue;
		hash = users[i].hash;
		known = true;
	}
	if (key_make(passwords, hash, given, &key) < 0)
		return PASSWORD_BROKEN;
	verdict = passwords_recall(passwords, &key);
	if (verdict == PASSWORD_PENDING)
		return passwords->ended ? PASSWORD_BROKEN
					: queue_add(passwords, &key, hash, given, origin);
	return known ? verdict : PASSWORD_WRONG;
}

bool passwords_run(struct passwords *passwords)
{
	bool right = false;
	int taken = passwords->ended ? 0 : checker_take(passwords->checker, &right);

	if (taken < 0)
		passwords->ended = true;
	if (taken <= 0 || !passwords->queue_len)
		return false;
	passwords_remember(passwords, &passwords->queue[0].key, right);
	queue_drop_first(passwords);
	queue_ask(passwords);
	return true;
}
