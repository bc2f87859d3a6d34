/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/quotas.h"

#include <stddef.h>

#define SOCKET_BYTES 640U
#define SOCKET_BYTES_SYSCALL 800U
#define THREAD_BYTES 576U
#define RESERVE_BYTES (16ULL << 20)
#define LEAST 8U /* 0 would be no bound */

static uint64_t fit_into(uint64_t bytes, uint64_t each)
{
	return bytes / each > LEAST ? bytes / each : LEAST;
}

void quotas_fit(const struct memory_limit *limit, bool syscall_backend, struct quotas_fit *fit)
{
	uint64_t left = 0;

	if (limit->limit_bytes > limit->used_bytes)
		left = limit->limit_bytes - limit->used_bytes;
	left -= left / 2 < RESERVE_BYTES ? left / 2 : RESERVE_BYTES;
	fit->max[QUOTA_SOCKETS] = fit_into(left / 2,
					   syscall_backend ? SOCKET_BYTES_SYSCALL : SOCKET_BYTES);
	fit->max[QUOTA_THREADS] = fit_into(left / 4, THREAD_BYTES);
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

	if (!quota)
		return (struct map_row){ .map = name };
	return (struct map_row){ name, __atomic_load_n(&quota->held, __ATOMIC_RELAXED),
				 quota->max };
}

bool quotas_have_room(struct kernel *kernel, unsigned int kind)
{
	const struct quota *quota = view_at(&kernel->quotas, kind);

	return quota && quota_left(quota, 0);
}
