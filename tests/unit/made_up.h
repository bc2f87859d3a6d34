/* SPDX-License-Identifier: Apache-2.0 */
/* What the flags of the feature that tests/unit/features.c makes up have set. */
#ifndef TESTS_MADE_UP_H
#define TESTS_MADE_UP_H

#include <stdbool.h>
#include <stdint.h>

struct made_up_settings {
	uint64_t number, duration_ns;
	const char *text;
	unsigned int choice;
	bool is_switched;
};

/* What that feature was opened with. */
extern const void *made_up_opened_with;

#endif
