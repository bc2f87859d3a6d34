/* SPDX-License-Identifier: Apache-2.0 */
/* What flags of made-up features and commands have set (features.c, commands.c). */
#ifndef TESTS_MADE_UP_H
#define TESTS_MADE_UP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/budget.h"
#include "features/feature.h"
#include "model/snapshot.h"

struct made_up_settings {
	uint64_t number, duration_ns;
	const char *text;
	unsigned int choice;
	bool is_switched;
};

#define MADE_UP_PATH "/made-up" /* its page */

/* What that feature was opened with. */
extern const void *made_up_opened_with;
/* And its processes: one answers with the byte that it is asked, the other with the next one. */
extern struct helper *made_up_helpers[FEATURE_HELPERS_MAX];

struct made_up_count {
	bool json;
	uint64_t number, least;
};

/* How the made-up commands were called. */
extern struct made_up_call {
	int times;
	bool json;
	uint64_t number, least;
	const char *operand;
} made_up_call;

/* What the feature `counted` knows, which is collected for each scrape. */
struct made_up_counted {
	uint64_t taken; /* how often; shown as workload_exporter_mutex_processes */
	struct budget_cost cost; /* what its step is expected to take */
	struct mutex_row row;
};
extern struct made_up_counted made_up_counted;

#endif
