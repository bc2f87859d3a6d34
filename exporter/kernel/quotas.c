/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/quotas.h"

#include <errno.h>
#include <stddef.h>

#define RESERVE_BYTES (16ULL << 20)
#define LEAST 8U /* 0 would be no bound */

static uint64_t fit_into(uint64_t bytes, uint64_t each)
{
	each = each ? each : 1;
	return bytes / each > LEAST ? bytes / each : LEAST;
}

void quotas_fit(const struct memory_limit *limit, const uint32_t bytes[static QUOTAS],
		struct quotas_fit *fit)
{
	uint64_t left = 0;

	if (limit->limit_bytes > limit->used_bytes)
		left = limit->limit_bytes - limit->used_bytes;
	left -= left / 2 < RESERVE_BYTES ? left / 2 : RESERVE_BYTES;
	fit->max[QUOTA_SOCKETS] = fit_into(left / 2, bytes[QUOTA_SOCKETS]);
	fit->max[QUOTA_THREADS] = fit_into(left / 4, bytes[QUOTA_THREADS]);
	if (fit->max[QUOTA_SOCKETS] > SOCKETS_MOST)
		fit->max[QUOTA_SOCKETS] = SOCKETS_MOST;
}

void quotas_set(struct kernel *kernel, const struct quotas_fit *fit)
{
	for (unsigned int kind = 0; kind < QUOTAS; kind++) {
		struct quota *quota = view_at(&kernel->quotas, kind);

		if (quota)
			__atomic_store_n(&quota->max, fit->max[kind], __ATOMIC_RELAXED);
	}
}

struct map_row quotas_row(struct kernel *kernel, unsigned int kind, const char *name)
{
	const struct quota *quota = view_at(&kernel->quotas, kind);
	int64_t held;

	if (!quota)
		return (struct map_row){ .map = name };
	held = quota_held(quota);
	return (struct map_row){ name, held > 0 ? (uint64_t)held : 0, quota->max };
}

bool quotas_have_room(struct kernel *kernel, unsigned int kind)
{
	const struct quota *quota = view_at(&kernel->quotas, kind);

	return quota && quota_left(quota, 0);
}

/*
 * Since @before the walk has met @quota->met. What has come meanwhile it may have met or not, and
 * what has gone: there are no more than those met and those that came, and no fewer than those met
 * without those that went. But a thread that has exited has its state until a grace period of RCU
 * is over, and no walk meets it then: what is too much is so when two walks in a row have found it.
 */
static void quota_correct(struct quota *quota, const struct quota *before)
{
	uint64_t given = __atomic_load_n(&quota->given, __ATOMIC_ACQUIRE);
	uint64_t taken = __atomic_load_n(&quota->taken, __ATOMIC_ACQUIRE);
	int64_t most = (int64_t)(quota->met + (taken - before->taken));
	int64_t least = (int64_t)(quota->met - (given - before->given));
	int64_t held = (int64_t)(taken - given);
	uint64_t excess = held > most ? (uint64_t)(held - most) : 0;
	uint64_t lasting = excess < quota->excess ? excess : quota->excess;

	quota->excess = excess - lasting;
	if (held < least)
		lasting = (uint64_t)(held - least);
	__atomic_fetch_add(&quota->given, lasting, __ATOMIC_RELAXED);
}

int quotas_recount_threads(struct kernel *kernel)
{
	struct quota *quota = view_at(&kernel->quotas, QUOTA_THREADS);
	struct quota before;
	int r;

	if (!quota)
		return -ENOMEM;
	__atomic_store_n(&quota->met, 0, __ATOMIC_RELAXED);
	before = (struct quota){
		.given = __atomic_load_n(&quota->given, __ATOMIC_ACQUIRE),
		.taken = __atomic_load_n(&quota->taken, __ATOMIC_ACQUIRE),
	};
	r = loader_walk(kernel->loader, WALK_MEMBERS);
	if (!r)
		quota_correct(quota, &before);
	return r;
}
