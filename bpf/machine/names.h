/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Pool names: a thread's name with every run of digits replaced by one `#`. */
#ifndef WORKLOAD_MACHINE_NAMES_H
#define WORKLOAD_MACHINE_NAMES_H

#include "abi/discovery.h"

/* 1 if @value is below @bound, else 0. A compiler that knew what it is would branch on it. */
static inline __u32 name_below(__u32 value, __u32 bound)
{
	__u64 difference = (__u64)value - bound;

	__asm__("" : "+r"(difference));
	return difference >> 63;
}

/* @yes if @which is 1, @no if it is 0. */
static inline __u32 name_choose(__u32 which, __u32 yes, __u32 no)
{
	return no ^ ((no ^ yes) & -which);
}

/*
 * `http-nio-8080-exec-7` -> `http-nio-#-exec-#`. @name is zeroed by the caller and stays padded
 * with NULs, because it becomes part of a key that is compared as bytes.
 *
 * No decision but the loop's: the verifier follows every path, and decisions about each byte make
 * 76 000 instructions of 300. So each byte is written, and the next one takes its place if it was
 * not to stay.
 */
static inline void name_normalise(const char comm[COMM_LEN], char name[COMM_LEN])
{
	__u32 length = 0, inside = 1, before = 0;

	for (__u32 i = 0; i < COMM_LEN - 1; i++) {
		__u32 c = (unsigned char)comm[i];
		__u32 digit = name_below(c - '0', 10);

		inside &= 1 ^ name_below(c, 1);
		c = name_choose(digit, '#', c);
		name[length & (COMM_LEN - 1)] = (char)name_choose(inside, c, 0);
		length += inside & ~(digit & before);
		before = digit;
	}
	name[length & (COMM_LEN - 1)] = '\0';
}

#endif
