/* SPDX-License-Identifier: Apache-2.0 */
#include "base/budget.h"

#include <errno.h>

#include "base/clock.h"

int budget_run(struct budget *budget, struct budget_cost *cost, budget_step_fn step, void *arg)
{
	uint64_t now_ns = clock_monotonic_ns();
	int r;

	if (now_ns >= budget->deadline_ns || cost->ns > budget->deadline_ns - now_ns) {
		cost->ns -= cost->ns / 4;
		budget->cut = true;
		return -ETIME;
	}
	r = step(arg, now_ns);
	cost->ns = clock_monotonic_ns() - now_ns;
	return r;
}
