/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a function does to its frame, by its instructions, where no frame information tells of it:
 * they are followed from the first one on, along each jump whose target they name. Where ways meet
 * that say different things, and where no way leads, nothing is known.
 *
 * The bytes are hostile. Time is in proportion to what is followed of them, and bounded.
 */
#ifndef WORKLOAD_UNWIND_FLOW_H
#define WORKLOAD_UNWIND_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/unwind.h"
#include "unwind/effects.h"
#include "unwind/reader.h"

#define FLOW_BYTES_MAX (64U << 10) /* of a function: the rest is not followed */
#define FLOW_STEPS_MAX (2U << 20) /* of all functions, about: musl takes 210 000 */
#define FLOW_ENDLESS_MAX 1024U /* functions that are known to return never */

struct flow;

/* 0 with *@flow, which flow_free() releases; -ENOMEM. */
int flow_new(struct flow **flow);

/* NULL is nothing. */
void flow_free(struct flow *flow);

/* Where the tables are that switches jump by: @data, borrowed, which is at @address. */
void flow_set_data(struct flow *flow, struct reader data, uint64_t address);

/* The function at @address never returns: what is behind its calls is not run. False: too many. */
bool flow_add_endless(struct flow *flow, uint64_t address);

/*
 * Follows the function whose @len bytes, which are borrowed up to the next one, are at @begin.
 * @first: the kernel begins it, so it has no caller.
 */
void flow_follow(struct flow *flow, const uint8_t *bytes, size_t len, uint64_t begin, bool first);

/* As many steps are taken from here on. */
void flow_renew(struct flow *flow);

/* How the last one ends: on some of its ways. */
struct flow_ends {
	bool returns; /* with the stack as it was called with */
	bool wrong; /* with another one: it does not begin or end where it is taken to */
	bool broken; /* at bytes that are no instruction */
	bool leaves; /* for code elsewhere, for what its code does not tell, for what is behind it
		      */
};

struct flow_ends flow_ends(const struct flow *flow);

/* No way ends so that the caller goes on. */
static inline bool flow_is_endless(const struct flow_ends *ends)
{
	return !ends->returns && !ends->wrong && !ends->broken && !ends->leaves;
}

/* An address that the last one names, not its own: elsewhere, or within what it is taken for. */
struct flow_function {
	uint64_t address;
	bool called; /* or jumped to instead of returning; else it may be of anything */
};

/* All of those; *@len. Valid until the next one is followed. */
const struct flow_function *flow_functions(const struct flow *flow, size_t *len);

/* What holds of the last one from byte *@at on. The next one at which that changes is *@at then. */
struct unwind_rule flow_next(const struct flow *flow, size_t *at);

/* Whether it goes on behind byte @at. */
static inline bool flow_has(size_t at, size_t len)
{
	return at < len && at < FLOW_BYTES_MAX;
}

#endif
