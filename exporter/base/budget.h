/* SPDX-License-Identifier: Apache-2.0 */
/* The time that one answer may take, and steps of it that are left out where it is too short. */
#ifndef WORKLOAD_BASE_BUDGET_H
#define WORKLOAD_BASE_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

struct budget {
	uint64_t deadline_ns; /* CLOCK_MONOTONIC; UINT64_MAX: none */
	bool cut; /* a step was left out */
};

/* What one step is expected to take: zeroed at first, kept from one answer to the next. */
struct budget_cost {
	uint64_t ns;
};

typedef int (*budget_step_fn)(void *arg, uint64_t now_ns);

/*
 * Runs @step, if it will be done by the deadline: it is expected to take as long as it took last.
 * Each time that is too long it is expected to take a quarter less, so that it is tried again,
 * if nobody else has the time for it. What @step returns, or -ETIME.
 */
int budget_run(struct budget *budget, struct budget_cost *cost, budget_step_fn step, void *arg);

#endif
