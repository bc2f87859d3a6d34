/* SPDX-License-Identifier: Apache-2.0 */
#include "read/threads.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "base/utf8.h"
#include "read/requests.h"

/* A writer needs some 20 ns; it can take long only while its virtual CPU is not running. */
#define READ_TRIES 1000

/* A copy between two equal, even sequence numbers. */
static int shard_copy(const struct pool_shard *shard, struct pool_shard *copy)
{
	for (int i = 0; i < READ_TRIES; i++) {
		uint64_t seq = __atomic_load_n(&shard->seq, __ATOMIC_ACQUIRE);

		if (!(seq & 1)) {
			for (size_t w = 0; w < sizeof(*copy) / sizeof(uint64_t); w++)
				((uint64_t *)copy)[w] = __atomic_load_n(
					&((const uint64_t *)shard)[w], __ATOMIC_RELAXED);
			__atomic_thread_fence(__ATOMIC_ACQUIRE);
			if (__atomic_load_n(&shard->seq, __ATOMIC_RELAXED) == seq)
				return 0;
		}
		if (i % 100 == 99)
			sched_yield();
	}
	return -EAGAIN;
}

/* Sums that cannot be negative, read at slightly different instants. */
static uint64_t not_negative(uint64_t sum)
{
	return (int64_t)sum < 0 ? 0 : sum;
}

static int states_read(struct kernel *kernel, uint32_t slot, uint64_t now_ns, struct pool_row *row)
{
	uint64_t n[STATES] = { 0 }, a[STATES] = { 0 };

	for (size_t i = 0; i <= kernel->sizes.cpus; i++) {
		const struct pool_shard *shard =
			view_at(&kernel->pool_states, (size_t)slot * (kernel->sizes.cpus + 1) + i);
		struct pool_shard copy = { 0 };

		if (!shard)
			return -ENOMEM;
		if (shard_copy(shard, &copy)) {
			kernel->lost[DROP_TORN]++;
			return -EAGAIN;
		}
		for (int s = 0; s < STATES; s++) {
			n[s] += copy.n[s];
			a[s] += copy.a[s];
		}
		row->started += copy.started;
		row->exited += copy.exited;
	}
	for (int s = 0; s < STATES; s++) {
		row->threads[s] = not_negative(n[s]);
		row->thread_ns[s] = not_negative(a[s] + n[s] * now_ns);
	}
	return 0;
}

static int waits_read(struct kernel *kernel, uint32_t slot, struct pool_row *row)
{
	for (size_t i = 0; i < kernel->sizes.shards; i++) {
		const struct pool_waits *waits = view_at(&kernel->pool_waits,
							 (size_t)slot * kernel->sizes.shards + i);

		if (!waits)
			return -ENOMEM;
		hist_merge(&row->runqueue, &waits->runqueue);
		hist_merge(&row->disk, &waits->disk);
		hist_merge(&row->mutex, &waits->mutex);
		row->acquisitions += waits->acquisitions;
	}
	return 0;
}

int threads_read(struct kernel *kernel, uint32_t slot, uint64_t now_ns, uint32_t *tree,
		 char name[static THREADS_NAME_LEN], struct pool_row *row)
{
	const struct pool_info *info = view_at(&kernel->pool_info, slot);
	char raw[COMM_LEN + 1] = "";
	int r;

	if (!info)
		return -ENOMEM;
	if (slot != SLOT_OTHER && !__atomic_load_n(&info->used, __ATOMIC_ACQUIRE))
		return 0;
	memset(row, 0, sizeof(*row));
	r = states_read(kernel, slot, now_ns, row);
	if (!r)
		r = waits_read(kernel, slot, row);
	if (r)
		return r;
	memcpy(raw, info->name, COMM_LEN);
	utf8_copy(name, THREADS_NAME_LEN, slot == SLOT_OTHER ? "other" : raw);
	*tree = info->tree;
	return 1;
}

int threads_free(struct kernel *kernel, uint32_t slot)
{
	struct pool_info *info = view_at(&kernel->pool_info, slot);

	if (!info)
		return -ENOMEM;
	for (size_t i = 0; i <= kernel->sizes.cpus; i++) {
		struct pool_shard *shard = view_at(&kernel->pool_states,
						   (size_t)slot * (kernel->sizes.cpus + 1) + i);

		if (!shard)
			return -ENOMEM;
		memset(shard, 0, sizeof(*shard));
	}
	for (size_t i = 0; i < kernel->sizes.shards; i++) {
		struct pool_waits *waits = view_at(&kernel->pool_waits,
						   (size_t)slot * kernel->sizes.shards + i);

		if (!waits)
			return -ENOMEM;
		memset(waits, 0, sizeof(*waits));
	}
	memset(info, 0, sizeof(*info));
	return bpf_map_update_elem(kernel->free_pools, NULL, &slot, BPF_ANY) ? -errno : 0;
}
