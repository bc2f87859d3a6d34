/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/flow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

#define WORD 8
#define ALIGNED 16 /* bytes, that compilers begin functions and loops at multiples of */
#define LOOP_MAX 4096 /* bytes from its begin up to where it is jumped to from */
#define FUNCTIONS_MAX 1024 /* that are noted of one: the rest is found of others, or never */

/* At a byte of the function. */
struct place {
	struct effects_state state;
	uint8_t bytes; /* of the instruction that begins there; 0: none is known to */
	bool reached; /* its state is one */
	bool waits; /* to be followed */
};

struct flow {
	struct effects *effects;
	const uint8_t *bytes;
	size_t len, whole; /* that are followed, and that there are */
	uint64_t begin;
	struct reader data;
	uint64_t data_begin;
	bool first;
	struct flow_ends ends;
	uint32_t waiting[FLOW_BYTES_MAX], reached[FLOW_BYTES_MAX];
	size_t waiting_len, reached_len;
	size_t steps; /* that were taken */
	struct flow_function functions[FUNCTIONS_MAX];
	size_t functions_len;
	uint64_t endless[FLOW_ENDLESS_MAX]; /* ascending */
	size_t endless_len;
	struct place places[FLOW_BYTES_MAX];
};

/* --- where ways meet ------------------------------------------------------------------------- */

static bool is_same(const struct effects_state *a, const struct effects_state *b)
{
	return a->sp == b->sp && a->fp == b->fp && a->fp_at == b->fp_at &&
	       a->sp_known == b->sp_known && a->fp_changed == b->fp_changed &&
	       a->fp_cleared == b->fp_cleared && a->taken == b->taken &&
	       a->compared == b->compared && a->below == b->below && a->table == b->table &&
	       a->table_len == b->table_len;
}

/* What both say. It never says more than one of them: so it ends. */
static struct effects_state joined(const struct effects_state *a, const struct effects_state *b)
{
	struct effects_state both = *a;

	if (a->sp != b->sp || a->sp_known != b->sp_known) {
		both.sp = 0;
		both.sp_known = false;
	}
	if (a->fp != b->fp)
		both.fp = 0;
	if (a->fp_at != b->fp_at)
		both.fp_at = 0;
	both.fp_changed |= b->fp_changed; /* else it is in its register, saved or not */
	both.fp_cleared &= b->fp_cleared;
	both.taken |= b->taken;
	if (a->compared != b->compared)
		both.compared = 0;
	if (a->below != b->below)
		both.below = 0;
	if (a->table != b->table || a->table_len != b->table_len)
		both.table = both.table_len = 0;
	return both;
}

static void way_add(struct flow *flow, uint64_t at, const struct effects_state *state)
{
	struct effects_state both;
	struct place *place;

	if (at >= flow->len)
		return;
	place = &flow->places[at];
	both = place->reached ? joined(&place->state, state) : *state;
	if (place->reached && is_same(&both, &place->state))
		return;
	if (!place->reached)
		flow->reached[flow->reached_len++] = (uint32_t)at;
	place->reached = true;
	place->state = both;
	if (!place->waits)
		flow->waiting[flow->waiting_len++] = (uint32_t)at;
	place->waits = true;
}

/* --- functions that never return ------------------------------------------------------------- */

static bool is_endless(const struct flow *flow, uint64_t address)
{
	size_t at = array_first_at(flow->endless, flow->endless_len, address);

	return address && at < flow->endless_len && flow->endless[at] == address;
}

bool flow_add_endless(struct flow *flow, uint64_t address)
{
	size_t at = array_first_at(flow->endless, flow->endless_len, address);

	if (is_endless(flow, address))
		return true;
	if (flow->endless_len == FLOW_ENDLESS_MAX)
		return false;
	memmove(&flow->endless[at + 1], &flow->endless[at],
		(flow->endless_len - at) * sizeof(*flow->endless));
	flow->endless[at] = address;
	flow->endless_len++;
	return true;
}

/* --- jumps by a table ------------------------------------------------------------------------ */

void flow_set_data(struct flow *flow, struct reader data, uint64_t address)
{
	flow->data = data;
	flow->data_begin = address;
}

/* The target that is @index-th, as an offset in the function; beyond its end: it is in no table. */
static uint64_t table_target(const struct flow *flow, const struct effects_step *step,
			     uint32_t index)
{
	uint64_t at = step->table - flow->data_begin + 4ULL * index,
		 bytes = reader_left(&flow->data);
	int32_t offset;

	if (step->table < flow->data_begin || bytes < sizeof(offset) || at > bytes - sizeof(offset))
		return UINT64_MAX;
	memcpy(&offset, flow->data.at + at, sizeof(offset));
	return step->table + (uint64_t)(int64_t)offset - flow->begin;
}

/* Whether all targets of a jump are known: they are in its function. */
static bool has_table(struct flow *flow, const struct effects_step *step)
{
	if (step->way != EFFECTS_JUMP || step->target || !step->table_len)
		return false;
	flow->steps += step->table_len;
	for (uint32_t i = 0; i < step->table_len; i++)
		if (table_target(flow, step, i) >= flow->len)
			return false;
	return true;
}

/* --- following ------------------------------------------------------------------------------- */

/* The instruction at byte @at; false: it is none. */
static bool step_at(struct flow *flow, size_t at, struct effects_state *state,
		    struct effects_step *step)
{
	flow->steps++;
	return at < flow->len && effects_step(flow->effects, flow->bytes + at, flow->len - at,
					      flow->begin + at, state, step);
}

/* Whether something behind byte @at jumps there, as a loop does. */
static bool is_loop(struct flow *flow, size_t begin)
{
	struct effects_state any = EFFECTS_BEGIN;
	struct effects_step step;

	for (size_t at = begin; at - begin < LOOP_MAX && step_at(flow, at, &any, &step);
	     at += step.bytes)
		if (step.target == flow->begin + begin && step.way != EFFECTS_CALL)
			return true;
	return false;
}

/*
 * Compilers fill the space up to what is jumped to, and up to the next function. What calls in
 * front of the latter does not return, though nothing else may tell that of what it calls.
 */
static bool is_last(struct flow *flow, size_t at)
{
	struct effects_state any = EFFECTS_BEGIN;
	struct effects_step step;
	const size_t begin = at;

	while (step_at(flow, at, &any, &step) && step.filler)
		at += step.bytes;
	return at != begin && !((flow->begin + at) % ALIGNED) && !is_loop(flow, at);
}

static bool goes_on(struct flow *flow, size_t at, const struct effects_step *step)
{
	if (step->way == EFFECTS_CALL)
		return !is_endless(flow, step->target) && !is_last(flow, at + step->bytes);
	return step->way < EFFECTS_JUMP;
}

static void ways_add(struct flow *flow, size_t at, const struct effects_step *step,
		     const struct effects_state *behind)
{
	struct effects_state taken = *behind;

	taken.below = 0; /* what leads to a table is a branch that is not taken */
	if (step->target && step->way != EFFECTS_CALL)
		way_add(flow, step->target - flow->begin, &taken);
	if (goes_on(flow, at, step))
		way_add(flow, at + step->bytes, behind);
	if (has_table(flow, step))
		for (uint32_t i = 0; i < step->table_len; i++)
			way_add(flow, table_target(flow, step, i), behind);
}

static void place_follow(struct flow *flow, size_t at)
{
	struct place *place = &flow->places[at];
	struct effects_state behind = place->state;
	struct effects_step step;

	place->waits = false;
	if (step_at(flow, at, &behind, &step)) {
		place->bytes = (uint8_t)step.bytes;
		ways_add(flow, at, &step, &behind);
	} else {
		flow->ends.broken = true;
	}
}

/* --- what is told of it, once all states are final -------------------------------------------- */

static void function_note(struct flow *flow, uint64_t address, bool called)
{
	if (address && address != flow->begin && flow->functions_len < FUNCTIONS_MAX)
		flow->functions[flow->functions_len++] = (struct flow_function){ address, called };
}

static bool is_elsewhere(const struct flow *flow, uint64_t address)
{
	return address - flow->begin >= flow->whole;
}

/* As if it were called: another function goes on in its place. */
static bool is_begin(const struct effects_state *state)
{
	return state->sp_known && state->sp == WORD && !state->fp_changed;
}

/* Compilers end a function with a call only where it does not return. */
static bool leaves(struct flow *flow, size_t at, const struct effects_step *step)
{
	switch (step->way) {
	case EFFECTS_JUMP:
		return (!step->target && !has_table(flow, step)) ||
		       (step->target && step->target - flow->begin >= flow->len &&
			!is_endless(flow, step->target));
	case EFFECTS_BRANCH:
		return step->target - flow->begin >= flow->len || at + step->bytes >= flow->len;
	case EFFECTS_ON:
		return at + step->bytes >= flow->len;
	default:
		return false;
	}
}

static void return_note(struct flow_ends *ends, const struct effects_state *state)
{
	ends->leaves |= !state->sp_known;
	ends->returns |= state->sp_known && state->sp == WORD;
	ends->wrong |= state->sp_known && state->sp != WORD;
}

static void place_note(struct flow *flow, size_t at)
{
	const struct effects_state *before = &flow->places[at].state;
	struct effects_state state = *before;
	struct effects_step step;

	if (!step_at(flow, at, &state, &step))
		return;
	if (step.way == EFFECTS_RETURN)
		return_note(&flow->ends, before);
	flow->ends.leaves |= leaves(flow, at, &step);
	if (step.way == EFFECTS_CALL ? step.target != flow->begin + at + step.bytes
				     : is_begin(before) && is_elsewhere(flow, step.target))
		function_note(flow, step.target, true);
	function_note(flow, step.function, false);
}

static void flow_end(struct flow *flow)
{
	if (flow->waiting_len) {
		/* Too many steps: states are not final. */
		flow->len = flow->waiting_len = 0;
		flow->ends.broken = true;
	}
	for (size_t i = 0; flow->len && i < flow->reached_len; i++)
		place_note(flow, flow->reached[i]);
}

void flow_follow(struct flow *flow, const uint8_t *bytes, size_t len, uint64_t begin, bool first)
{
	static const struct effects_state called = EFFECTS_BEGIN;

	flow->bytes = bytes;
	flow->len = len < FLOW_BYTES_MAX ? len : FLOW_BYTES_MAX;
	flow->whole = len;
	flow->begin = begin;
	flow->first = first;
	flow->ends = (struct flow_ends){ 0 };
	flow->functions_len = 0;
	while (flow->reached_len)
		flow->places[flow->reached[--flow->reached_len]] = (struct place){ 0 };
	way_add(flow, 0, &called);
	while (flow->waiting_len && flow->steps < FLOW_STEPS_MAX)
		place_follow(flow, flow->waiting[--flow->waiting_len]);
	flow_end(flow);
}

void flow_renew(struct flow *flow)
{
	flow->steps = 0;
}

struct flow_ends flow_ends(const struct flow *flow)
{
	return flow->ends;
}

const struct flow_function *flow_functions(const struct flow *flow, size_t *len)
{
	*len = flow->functions_len;
	return flow->functions;
}

/* --- rules ----------------------------------------------------------------------------------- */

static struct unwind_rule rule_of(const struct flow *flow, const struct effects_state *state)
{
	struct unwind_rule rule = { .kind = UNWIND_CFA,
				    .base = state->sp_known ? UNWIND_SP : UNWIND_FP,
				    .ra_place = UNWIND_AT_CFA,
				    .cfa_offset = state->sp_known ? state->sp : state->fp,
				    .fp_offset = state->fp_at,
				    .ra_offset = -WORD };

	/* A thread begins with one that takes what is in place of a return address. */
	if (flow->first || (state->taken && state->fp_cleared))
		return (struct unwind_rule){ .kind = UNWIND_END };
	if (state->taken || (!state->sp_known && !state->fp))
		return (struct unwind_rule){ .kind = UNWIND_NONE };
	rule.fp_place = state->fp_at        ? UNWIND_AT_CFA
			: state->fp_changed ? UNWIND_LOST
					    : UNWIND_KEPT;
	return rule;
}

struct unwind_rule flow_next(const struct flow *flow, size_t *at)
{
	const struct place *place = &flow->places[*at];

	if (*at >= flow->len || !place->bytes) {
		while (*at < flow->len && !flow->places[*at].bytes)
			++*at;
		if (!flow->len)
			*at = flow->whole;
		return (struct unwind_rule){ .kind = UNWIND_NONE };
	}
	*at += place->bytes;
	return rule_of(flow, &place->state);
}

/* --- all of it ------------------------------------------------------------------------------- */

int flow_new(struct flow **out)
{
	struct flow *flow = calloc(1, sizeof(*flow));
	int r = flow ? effects_new(&flow->effects) : -ENOMEM;

	if (r)
		free(flow);
	else
		*out = flow;
	return r;
}

void flow_free(struct flow *flow)
{
	if (!flow)
		return;
	effects_free(flow->effects);
	free(flow);
}
