/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes, followed as the instructions of a function, of which the first half may be the tables
 * of its switches. What was followed before must not tell: each input is followed twice.
 */
#include <stdlib.h>
#include <string.h>

#include "unwind/flow.h"
#include "fuzz.h"

#define BEGIN 0x401000

static void check_rule(const struct unwind_rule *rule)
{
	static const struct unwind_rule none = { .kind = UNWIND_NONE },
					end = { .kind = UNWIND_END };

	if (rule->kind == UNWIND_CFA) {
		MUST(rule->base == UNWIND_FP || rule->cfa_offset >= 8);
		MUST(rule->ra_place == UNWIND_AT_CFA && rule->ra_offset == -8);
		MUST((rule->fp_place == UNWIND_AT_CFA) == (rule->fp_offset != 0));
		MUST(!rule->cfa_add);
	} else {
		MUST(!memcmp(rule, &none, sizeof(none)) || !memcmp(rule, &end, sizeof(end)));
	}
}

/* All that is told, as one number. */
static uint64_t told(const struct flow *flow, size_t len)
{
	const struct flow_ends ends = flow_ends(flow);
	uint64_t sum = (uint64_t)(ends.returns | ends.wrong << 1 | ends.broken << 2 |
				  ends.leaves << 3);
	const struct flow_function *functions;
	size_t found;

	for (size_t at = 0; flow_has(at, len);) {
		const size_t before = at;
		const struct unwind_rule rule = flow_next(flow, &at);

		MUST(at > before && at <= len);
		check_rule(&rule);
		sum = sum * 31 + rule.kind + 7 * rule.base + (uint32_t)rule.cfa_offset + at;
		sum = sum * 31 + rule.fp_place + (uint32_t)rule.fp_offset;
	}
	functions = flow_functions(flow, &found);
	for (size_t i = 0; i < found; i++)
		sum = sum * 31 + functions[i].address + functions[i].called;
	return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct flow *flow;
	const struct reader tables = { data, data + len / 2, false };
	uint64_t first;

	if (!flow)
		MUST(!flow_new(&flow));
	if (!len)
		return 0;
	flow_renew(flow);
	flow_set_data(flow, tables, BEGIN + 0x100);
	flow_follow(flow, data, len, BEGIN, *data & 1);
	first = told(flow, len);
	flow_follow(flow, data, len, BEGIN, *data & 1);
	MUST(told(flow, len) == first);
	return 0;
}
