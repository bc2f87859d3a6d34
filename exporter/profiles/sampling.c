/* SPDX-License-Identifier: Apache-2.0 */
#include "profiles/sampling.h"

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

static const struct {
	const char *program;
	uint64_t states; /* which it samples */
} programs[SAMPLING_PROGRAMS] = {
	{ "profiles_sample", UINT64_C(1) << STATE_RUNNING },
	{ "profiles_minor", UINT64_C(1) << FAULT_MINOR },
	{ "profiles_major", UINT64_C(1) << FAULT_MAJOR },
};

int sampling_run(struct sampling *sampling, uint64_t states)
{
	int error = 0;

	for (size_t i = 0; i < SAMPLING_PROGRAMS; i++) {
		bool run = states & programs[i].states;
		int r = run == sampling->runs[i]
				? 0
				: loader_run_perf(sampling->loader, programs[i].program, run);

		if (!r)
			sampling->runs[i] = run;
		else
			error = r;
	}
	return error;
}

bool sampling_runs(const struct sampling *sampling)
{
	bool runs = sampling->waits.looks_now;

	for (size_t i = 0; i < SAMPLING_PROGRAMS; i++)
		runs |= sampling->runs[i];
	return runs;
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

uint64_t sampling_lost(struct sampling *sampling, bool faults)
{
	return sets_lost(&sampling->sets, faults) + (faults ? 0 : sampling->waits.lost);
}
