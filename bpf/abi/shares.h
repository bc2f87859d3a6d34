/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What each user has of the tables, and how much one may have. */
#ifndef WORKLOAD_ABI_SHARES_H
#define WORKLOAD_ABI_SHARES_H

#include "abi/kernel_types.h"

/* Entries of tables that users share. */
#define SHARE_TREES 0U
#define SHARE_ENDPOINTS 1U
#define SHARE_POOLS 2U
#define SHARE_KINDS 4U

struct user_share {
	__u32 taken[SHARE_KINDS];
};

/* Users whose ids are equal modulo USER_SHARES - 1 share a share. */
#define USER_SHARES 1024U
#define SHARE_ALL 0U /* the share of all users together */

static inline __u32 user_share_index(__u32 user)
{
	return 1 + user % (USER_SHARES - 1);
}

/*
 * Whether a user that has @mine of the @used entries of a table with room for @max gets no more:
 * once half the table is taken, no user gets beyond a quarter, and the last eighth is root's. So no
 * user keeps others out of it, and all users together do not keep out what root runs.
 */
static inline int share_refused(__u32 user, __u32 mine, __u32 used, __u32 max)
{
	if (!user)
		return 0;
	return (used >= max / 2 && mine >= max / 4) || used >= max - max / 8;
}

#endif
