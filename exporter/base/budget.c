/* SPDX-License-Identifier: Apache-2.0 */
#include "base/budget.h"

#include "base/clock.h"

bool budget_begin(struct budget *budget, struct budget_cost *cost)
{
	budget->step_ns = clock_monotonic_ns();
	if (budget->step_ns < budget->deadline_ns &&
	    cost->ns <= budget->deadline_ns - budget->step_ns)
		return true;
	cost->ns -= cost->ns / 4;
	budget->cut = true;
	return false;
}

int budget_end(const struct budget *budget, struct budget_cost *cost, int r)
{
	cost->ns = clock_monotonic_ns() - budget->step_ns;
	return r;
}
