/* SPDX-License-Identifier: Apache-2.0 */
#include "features/feature.h"

/* A step as the budget knows it: with one argument. */
struct step {
	collection_step_fn run;
	void *state;
	struct collection *collection;
};

static int step_run(void *arg, uint64_t now_ns)
{
	const struct step *step = arg;

	return step->run(step->state, step->collection, now_ns);
}

int collection_step(struct collection *collection, struct budget_cost *cost,
		    collection_step_fn step, void *state)
{
	struct step run = { step, state, collection };

	return budget_run(&collection->budget, cost, step_run, &run);
}

static bool all_zero(const void *row, size_t row_bytes)
{
	const char *bytes = row;

	for (size_t i = 0; i < row_bytes; i++)
		if (bytes[i])
			return false;
	return true;
}

bool collection_find(const struct collection *collection, uint32_t tree, const void *row,
		     size_t row_bytes, ledger_handle *handle)
{
	if (tree)
		return collection->find(collection->registry, tree, handle);
	*handle = LEDGER_OTHER;
	return !all_zero(row, row_bytes);
}
