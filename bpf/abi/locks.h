/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Array `lock_words`: what is known of words that threads wait for (machine/words.h). */
#ifndef WORKLOAD_ABI_LOCKS_H
#define WORKLOAD_ABI_LOCKS_H

#include "abi/kernel_types.h"

#define WORD_SETS 2048 /* a power of two */
#define WORDS_PER_SET 4 /* a power of two */

/* Each entry is the hash of a process and an address but for its low and its top byte. */
struct word_set {
	__u64 word[WORDS_PER_SET];
};
_Static_assert(sizeof(struct word_set) == 32, "struct word_set has a hole");

#endif
