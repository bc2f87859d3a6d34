/* SPDX-License-Identifier: Apache-2.0 */
#include "web/comparison.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "web/config.h"

void comparison_fill(struct comparison *comparison, const char *hash, const char *password)
{
	*comparison = (struct comparison){ 0 };
	text_copy(comparison->hash, sizeof(comparison->hash), hash);
	text_copy(comparison->password, sizeof(comparison->password), password);
}

uint8_t comparison_answer(struct comparison *comparison, struct crypt_data *data)
{
	uint8_t different = 0;
	const char *hash;

	comparison->hash[COMPARISON_HASH_BYTES - 1] = '\0';
	comparison->password[CHECKER_PASSWORD_BYTES] = '\0';
	if (!web_hash_is_bcrypt(comparison->hash))
		return 0;
	hash = crypt_r(comparison->password, comparison->hash, data);
	if (!hash || strlen(hash) != COMPARISON_HASH_BYTES - 1)
		return 0;
	for (size_t i = 0; i < COMPARISON_HASH_BYTES - 1; i++)
		different |= (uint8_t)(hash[i] ^ comparison->hash[i]);
	return !different;
}
