/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel side of plain memory, so that what reads it runs natively: a table of bytes in place of
 * each map, a list in place of each stack of free slots, and walks that a test answers. It stands
 * in for exporter/kernel/ as far as that makes system calls of BPF.
 */
#ifndef TESTS_PLAIN_KERNEL_H
#define TESTS_PLAIN_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/kernel_types.h"
#include "abi/discovery.h"
#include "abi/profiles.h"
#include "abi/requests.h"
#include "abi/threads.h"
#include "kernel/loader.h"

#define PLAIN_CPUS 2U
#define PLAIN_SHARDS 2U
#define PLAIN_ENDPOINTS 8U
#define PLAIN_POOLS 8U

/* A table of bytes; of a map that is none of these only what was done to it is known. */
struct plain_table {
	const char *name, *feature; /* it is there with that feature alone, */
	const char *sized_by; /* or has one element without it */
	size_t entries, element_bytes; /* of arrays; 0: a list, or a table of keys */
	unsigned char *bytes;
	size_t pushed, deleted;
	uint32_t last;
};

/* A walk is asked for: what it does to the tables, and what comes of it. */
typedef int (*plain_walk_fn)(void *arg, enum walk walk);

/* What the exporter asks of a kernel: tables for @wanted features, all of which are on. */
struct loader *plain_loader_new(unsigned int wanted, plain_walk_fn walk, void *arg);
void plain_loader_free(struct loader *loader);

/* Turns a feature off, as a refused hook does: its tables stay. */
void plain_feature_off(struct loader *loader, const char *name);

/* Element @index of table @name; the test fails if there is none. */
void *plain_at(struct loader *loader, const char *name, size_t index);

/* Table @name; the test fails if there is none. And the one with this descriptor. */
struct plain_table *plain_table(const struct loader *loader, const char *name);
struct plain_table *plain_table_at(int fd);

/* Slots that were given back to list @name: how many, and the last one. */
size_t plain_pushed(const struct loader *loader, const char *name, uint32_t *last);

/* Keys that were taken away from table @name. */
size_t plain_deleted(const struct loader *loader, const char *name);

/* How often @walk was asked for. */
size_t plain_walks(const struct loader *loader, enum walk walk);

/* What the walk over processes meets from now on; borrowed. At first there are none. */
void plain_processes(struct loader *loader, const struct tree_process *processes, size_t len);

/* What comes of @walk from now on. */
void plain_walk_fails(struct loader *loader, enum walk walk, int error);

/* The same of the walk over waits that last. */
void plain_waits(struct loader *loader, const struct wait_told *waits, size_t len);

#endif
