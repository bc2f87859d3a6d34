/* SPDX-License-Identifier: Apache-2.0 */
#include "profiles/sampling.h"

#define PROGRAM "profiles_sample"

int sampling_open(struct sampling *sampling, struct loader *loader)
{
	int r;

	sampling->loader = loader;
	r = sets_open(&sampling->sets, loader);
	return r ? r : waits_open(&sampling->waits, loader);
}

void sampling_close(struct sampling *sampling)
{
	waits_close(&sampling->waits);
	sets_close(&sampling->sets);
}

int sampling_clock(struct sampling *sampling, bool run)
{
	int r = run == sampling->clock ? 0 : loader_run_clock(sampling->loader, PROGRAM, run);

	if (!r)
		sampling->clock = run;
	return r;
}

bool sampling_runs(const struct sampling *sampling)
{
	return sampling->clock || sampling->waits.looks_now;
}

/* Waits that last are read before the sets are, in which their stacks are; and not again until
 * those could be. */
int sampling_take(struct sampling *sampling, bool lasting, table_row_fn row, void *arg)
{
	int r;

	if (lasting && sampling->waits.looks_now && !sampling->behind)
		waits_read(&sampling->waits);
	r = sets_take(&sampling->sets, row, arg);
	sampling->behind = r != 0;
	if (!r)
		waits_take(&sampling->waits, row, arg);
	return r;
}

uint64_t sampling_lost(struct sampling *sampling)
{
	return sets_lost(&sampling->sets) + sampling->waits.lost;
}
