/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ELF files that linkers did not write, and perf maps: what the parser answers is what the exporter
 * takes, and is the same each time. What a parser that has been taken over might answer is the same
 * bytes, laid over a right answer.
 */
#include <errno.h>

#include "base/utf8.h"
#include "profiles/parsed.h"
#include "fuzz.h"

#define ADDRESSES 64 /* from 0 on, STEP apart, where seeds have their code; and the last one */
#define STEP 37

static union parser_shared shared;

static void addresses_set(uint64_t *addresses)
{
	for (size_t i = 0; i < ADDRESSES - 1; i++)
		addresses[i] = i * STEP;
	addresses[ADDRESSES - 1] = UINT64_MAX;
	memcpy(shared.names.addresses, addresses, ADDRESSES * sizeof(*addresses));
}

static void check_names(const struct parsed_names *names, const uint64_t *addresses)
{
	for (size_t i = 0; i < ADDRESSES; i++) {
		const char *text = parsed_names_text(names, i);

		MUST(names->names[i].begin <= addresses[i]);
		MUST(!text || (strlen(text) == names->names[i].bytes && utf8_is_valid(text)));
		MUST(!text || strlen(text) <= NAME_BYTES_MAX);
	}
}

static void read_names(uint32_t what, const uint8_t *data, size_t len)
{
	/* Demangling may take time without end (profiles/demangled.h). */
	const struct parser_question question = { what, ADDRESSES, true };
	struct parser_answer answer = { 0 };
	struct parsed_names names, again;
	uint64_t addresses[ADDRESSES];

	addresses_set(addresses);
	if (parser_read(&question, data, len, &shared, &answer))
		return;
	MUST(parsed_names(&answer, &shared, addresses, ADDRESSES, &names) == 0);
	check_names(&names, addresses);
	memset(&answer, 0, sizeof(answer));
	MUST(parser_read(&question, data, len, &shared, &answer) == 0);
	MUST(parsed_names(&answer, &shared, addresses, ADDRESSES, &again) == 0);
	MUST(memcmp(names.names, again.names, ADDRESSES * sizeof(*names.names)) == 0);
	parsed_names_free(&again);
	parsed_names_free(&names);
}

static void read_table(const uint8_t *data, size_t len)
{
	static const struct parser_question question = { .what = PARSER_TABLE };
	struct parser_answer answer = { 0 };
	struct unwind_table table;
	int r = parser_read(&question, data, len, &shared, &answer);

	MUST(r == 0 || r == -ENOEXEC);
	if (r)
		return;
	MUST(parsed_check(&answer));
	r = parsed_table(&answer, &shared, &table);
	MUST(r == (answer.table.reason == PARSER_MADE ? 0 : -ENODATA));
	if (!r)
		unwind_table_free(&table);
}

/* No such answer leads the exporter astray, whatever is in the memory that is shared. */
static void take_lies(const uint8_t *data, size_t len)
{
	struct parser_answer answer = { .what = PARSER_NAMES, .names = { .texts_bytes = 64 } };
	const size_t names = len / 2 < sizeof(shared.names.names) ? len / 2 : 0;
	struct parsed_names taken;
	struct unwind_table table;
	uint64_t addresses[ADDRESSES];

	addresses_set(addresses);
	memcpy(shared.names.names, data, names);
	memcpy(shared.names.texts, data + names, len - names < 64 ? len - names : 64);
	if (parsed_names(&answer, &shared, addresses, ADDRESSES, &taken) == 0) {
		check_names(&taken, addresses);
		parsed_names_free(&taken);
	}
	memcpy(&answer, data, len < sizeof(answer) ? len : sizeof(answer));
	if (parsed_names(&answer, &shared, addresses, ADDRESSES, &taken) == 0) {
		check_names(&taken, addresses);
		parsed_names_free(&taken);
	}
	if (parsed_table(&answer, &shared, &table) == 0)
		unwind_table_free(&table);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	read_table(data, len);
	read_names(PARSER_NAMES, data, len);
	read_names(PARSER_PERF_MAP, data, len);
	take_lies(data, len);
	return 0;
}
