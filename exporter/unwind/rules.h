/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules in the order of their bytes, so that an equal one is found. A hash would not do: the files
 * that rules come from are hostile, and could choose equal ones.
 */
#ifndef WORKLOAD_UNWIND_RULES_H
#define WORKLOAD_UNWIND_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/unwind.h"

/* All is borrowed; @order has room for as many as there may be. */
struct rules {
	const struct unwind_rule *rules; /* at any places */
	uint16_t *order; /* those places */
	size_t len;
};

/* Whether there is one that equals @rule; *@at is where in the order it is, or belongs. */
bool rules_find(const struct rules *rules, const struct unwind_rule *rule, size_t *at);

/* The rule at @place is one more, where rules_find() has said that it belongs. */
void rules_insert(struct rules *rules, size_t at, uint16_t place);

/* The one that is there in the order is none any more. */
void rules_remove(struct rules *rules, size_t at);

#endif
