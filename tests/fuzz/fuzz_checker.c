/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of the process that compares passwords, both ways: the input is a question of an
 * intruder in the exporter, and an answer of an intruder in that process.
 */
#include <errno.h>

#include "web/checker.h"
#include "web/comparison.h"
#include "web/config.h"
#include "fuzz.h"

static struct crypt_data crypt_data;

/* A comparison takes as long as its hash says: here all are as cheap as can be. */
static void cheapen(struct comparison *comparison)
{
	char hash[COMPARISON_HASH_BYTES + 1] = "";

	memcpy(hash, comparison->hash, COMPARISON_HASH_BYTES - 1);
	if (web_hash_is_bcrypt(hash))
		memcpy(comparison->hash + strlen("$2y$"), "04", 2);
}

static void check_question(const uint8_t *data, size_t len)
{
	struct comparison *comparison = calloc(1, sizeof(*comparison));
	uint8_t answer;

	MUST(comparison);
	memcpy(comparison, data, len < sizeof(*comparison) ? len : sizeof(*comparison));
	cheapen(comparison);
	crypt_data.output[0] = 'x';
	answer = comparison_answer(comparison, &crypt_data);
	MUST(answer <= 1);
	MUST(memchr(comparison->hash, '\0', sizeof(comparison->hash)));
	MUST(memchr(comparison->password, '\0', sizeof(comparison->password)));
	if (!web_hash_is_bcrypt(comparison->hash))
		MUST(!answer && crypt_data.output[0] == 'x');
	if (answer)
		MUST(strcmp(crypt_data.output, comparison->hash) == 0);
	free(comparison);
}

/* What the exporter itself asks is cut to what there is room for. */
static void check_filled(const uint8_t *data, size_t len)
{
	char *text = fuzz_text(data, len);
	struct comparison comparison;

	comparison_fill(&comparison, text, text);
	MUST(memchr(comparison.hash, '\0', sizeof(comparison.hash)));
	MUST(memchr(comparison.password, '\0', sizeof(comparison.password)));
	MUST(strncmp(comparison.hash, text, sizeof(comparison.hash) - 1) == 0);
	MUST(strncmp(comparison.password, text, sizeof(comparison.password) - 1) == 0);
	free(text);
}

static void check_answer(const uint8_t *data, size_t len)
{
	uint8_t answer = len ? *data : 0;

	MUST(!checker_kind.check(&answer) || answer == 0 || answer == 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	check_question(data, len);
	check_filled(data, len);
	check_answer(data, len);
	return 0;
}
