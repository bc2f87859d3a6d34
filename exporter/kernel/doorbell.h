/* SPDX-License-Identifier: Apache-2.0 */
/* The doorbell: wakes user space when a tree was founded or has ended, so that nothing polls. */
#ifndef WORKLOAD_KERNEL_DOORBELL_H
#define WORKLOAD_KERNEL_DOORBELL_H

#include "kernel/loader.h"

struct ring_buffer;

struct doorbell_reader {
	struct ring_buffer *ring; /* owned */
};

/* 0 or -errno. */
int doorbell_open(struct doorbell_reader *reader, const struct loader *loader);
void doorbell_close(struct doorbell_reader *reader);

/* A descriptor to wait for: readable when the bell has rung. Owned by the reader. */
int doorbell_fd(const struct doorbell_reader *reader);

/* Empties it; what to do is in the table of trees (kernel/trees.h). */
void doorbell_drain(struct doorbell_reader *reader);

#endif
