/* SPDX-License-Identifier: Apache-2.0 */
/* A wish for names (struct survey_wish) as one of the steps of the survey. */
#ifndef WORKLOAD_PROFILES_WISH_H
#define WORKLOAD_PROFILES_WISH_H

#include <stdint.h>

#include "profiles/survey.h"

#define OPENER_NS NS_PER_S /* to answer in */
#define PARSER_NS (20 * NS_PER_S) /* it gives way to what the machine is busy with */

/*
 * Asks for the names that are wished for; of what a process generates, first for its perf map. It
 * asks nothing while a helper is replaced.
 */
void wish_ask(struct survey *survey, uint64_t now_ns);

/* The perf map, which is taken over; negative: why there is none, and it is the one there was. */
void wish_map_take(struct survey *survey, int given, uint64_t now_ns);

/* The names; or an error, in place of them. */
void wish_names_take(struct survey *survey, const struct parser_answer *answer);

/*
 * The machine may be busy, or a name be made so that demangling it has no end: where they took too
 * long they are asked for once more, quickly (profiles/parser.h), and so are others of that file
 * for some minutes.
 */
void wish_names_fail(struct survey *survey, int error, uint64_t now_ns);

#endif
