/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Walks that let others run. The kernel walks descriptors and tasks without a scheduling point,
 * as far as one read(2) goes, and that ends once as much was written as the reader has asked for
 * (bpf_seq_read()): so a walk writes a byte every now and then, and its reader asks for one byte.
 */
#ifndef WORKLOAD_LIB_WALKS_H
#define WORKLOAD_LIB_WALKS_H

#include "lib/kernel.h"

#define WALK_STEP \
	512ULL /* objects: a millisecond or less, a microsecond each where nothing is cached */

static inline void walk_pause(struct bpf_iter_meta *meta)
{
	__u8 pause = 0;

	if (meta->seq_num % WALK_STEP == WALK_STEP - 1)
		bpf_seq_write(meta->seq, &pause, sizeof(pause));
}

#endif
