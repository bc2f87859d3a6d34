/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Pool names: a thread's name with every run of digits replaced by one `#`. */
#ifndef WORKLOAD_MACHINE_NAMES_H
#define WORKLOAD_MACHINE_NAMES_H

#include "abi/discovery.h"

/*
 * `http-nio-8080-exec-7` -> `http-nio-#-exec-#`. @name is zeroed by the caller and stays padded
 * with NULs, because it becomes part of a key that is compared as bytes.
 */
static inline void name_normalise(const char comm[COMM_LEN], char name[COMM_LEN])
{
	__u32 length = 0, digits = 0;

	for (__u32 i = 0; i < COMM_LEN - 1; i++) {
		char c = comm[i];

		if (!c)
			break;
		if (c >= '0' && c <= '9') {
			if (digits)
				continue;
			digits = 1;
			c = '#';
		} else {
			digits = 0;
		}
		name[length++ & (COMM_LEN - 1)] = c;
	}
}

#endif
