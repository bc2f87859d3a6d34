/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How much the maps hold by default. Slot 0 of every table is `other`: what does not fit is
 * measured there and counted (abi/drops.h), so nothing is lost in silence.
 */
#ifndef WORKLOAD_ABI_LIMITS_H
#define WORKLOAD_ABI_LIMITS_H

#define SLOT_OTHER 0U

#define TREES_MAX 1024U /* listening processes with their descendants */
#define ENDPOINTS_BYTES_MAX (16U << 20) /* endpoints times shards: 575 of them with 8 shards */
#define ENDPOINTS_MAX 1024U /* (tree, port) */
#define POOL_STATES_BYTES_MAX (16U << 20) /* pools times CPUs: fewer pools on large machines */
#define POOLS_MIN 128U
#define POOLS_MAX 1024U /* (tree, role, thread name pattern) */
/* One tree with endless ports or thread names must not starve the others: its own `other` follows.
 */
#define ENDPOINTS_PER_TREE 64U
#define POOLS_PER_TREE 64U /* 32 names, each in both roles */
#define SOCKETS_MAX 131072U /* that are tracked: 16 bytes each of a table, and what is taken */
#define SHARDS_MAX 8U /* copies of the atomically written cells, a power of two */

#endif
