/* SPDX-License-Identifier: Apache-2.0 */
/* A stack as it was followed, by one or the other: to be compared. */
#ifndef WORKLOAD_TESTS_FOLLOWED_H
#define WORKLOAD_TESTS_FOLLOWED_H

#include <stddef.h>
#include <stdint.h>

#include "abi/profiles.h"

enum followed_end {
	FOLLOWED_COMPLETE, /* up to the first function of the thread */
	FOLLOWED_CUT, /* where it goes on was not copied */
	FOLLOWED_TRUNCATED, /* FRAMES_MAX */
	FOLLOWED_UNKNOWN, /* how it goes on is not known */
	FOLLOWED_ENDS,
};

struct followed_frame {
	uint64_t address; /* in the file as linked; where a call was made, before its return */
	const char *path; /* of the file; "": of none. Valid as long as what followed it */
};

struct followed {
	struct followed_frame frames[FRAMES_MAX]; /* innermost first */
	size_t len;
	enum followed_end end;
};

#endif
