/* SPDX-License-Identifier: Apache-2.0 */
/* The Authorization header: what is taken fits, and means the same when it is written anew. */
#include <errno.h>
#include <stdbool.h>

#include <gnutls/gnutls.h>

#include "web/passwords.h"
#include "fuzz.h"

static bool is_clear(const void *bytes, size_t len)
{
	const char *byte = bytes;

	while (len && !*byte)
		byte++, len--;
	return !len;
}

/* Nothing lies behind the ends of the texts. */
static void check_text(const char *text, size_t size)
{
	MUST(memchr(text, '\0', size));
	MUST(is_clear(text + strlen(text), size - strlen(text)));
}

static void check_written_anew(const struct credentials *given)
{
	char text[sizeof(given->name) + sizeof(given->password)];
	char header[sizeof("Basic ") + 2 * sizeof(text)] = "Basic ";
	int len = snprintf(text, sizeof(text), "%s:%s", given->name, given->password);
	gnutls_datum_t plain = { (unsigned char *)text, (unsigned int)len }, encoded;
	struct credentials again;

	MUST(gnutls_base64_encode2(&plain, &encoded) == 0);
	MUST(encoded.size < sizeof(header) - strlen(header));
	memcpy(header + strlen(header), encoded.data, encoded.size);
	gnutls_free(encoded.data);
	MUST(credentials_parse(header, &again) == 0);
	MUST(memcmp(&again, given, sizeof(again)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char *header = fuzz_text(data, len);
	struct credentials given;
	int r;

	memset(&given, 'x', sizeof(given));
	r = credentials_parse(header, &given);
	MUST(r == 0 || (r == -EINVAL && is_clear(&given, sizeof(given))));
	check_text(given.name, sizeof(given.name));
	check_text(given.password, sizeof(given.password));
	MUST(!strchr(given.name, ':'));
	if (!r)
		check_written_anew(&given);
	free(header);
	return 0;
}
