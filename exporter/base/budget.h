/* SPDX-License-Identifier: Apache-2.0 */
/* The time that one answer may take, and steps of it that are left out where it is too short. */
#ifndef WORKLOAD_BASE_BUDGET_H
#define WORKLOAD_BASE_BUDGET_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

struct budget {
	uint64_t deadline_ns; /* CLOCK_MONOTONIC; UINT64_MAX: none */
	uint64_t step_ns; /* when the step that is under way began */
	bool cut; /* a step was left out */
};

/* What one step is expected to take: zeroed at first, kept from one answer to the next. */
struct budget_cost {
	uint64_t ns;
};

/*
 * Does @step, an expression that is 0 or -errno, if it will be done by the deadline: it is expected
 * to take as long as it took last. Each time that is too long it is expected to take a quarter
 * less, so that it is tried again, even if no answer has the time that it took last. What @step
 * is, or -ETIME. Steps do not nest.
 */
#define BUDGET_STEP(budget, cost, step) \
	(budget_begin(budget, cost) ? budget_end(budget, cost, step) : -ETIME)

/* Its halves: whether the step may begin; and takes note that it is done, with @r, which it
 * returns. */
bool budget_begin(struct budget *budget, struct budget_cost *cost);
int budget_end(const struct budget *budget, struct budget_cost *cost, int r);

#endif
