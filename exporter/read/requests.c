/* SPDX-License-Identifier: Apache-2.0 */
#include "read/requests.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

void hist_merge(struct hist *to, const struct hist *from)
{
	to->sum_ns += from->sum_ns;
	for (int i = 0; i < HIST_BUCKETS; i++)
		to->bucket[i] += from->bucket[i];
}

int requests_sweep(struct kernel *kernel)
{
	for (uint32_t slot = 0; slot < kernel->sizes.endpoints; slot++) {
		struct endpoint_gauges *gauges = view_at(&kernel->endpoint_gauges, slot);

		if (!gauges)
			return -ENOMEM;
		memset(gauges, 0, sizeof(*gauges));
	}
	return loader_walk(kernel->loader, WALK_SOCKETS);
}

static void shard_merge(struct endpoint_row *row, const struct endpoint_shard *shard)
{
	for (int i = 0; i < STAGES; i++)
		row->abandoned[i] += shard->abandoned[i];
	for (int i = 0; i < IO_MODELS; i++)
		row->accepted[i] += shard->accepted[i];
	row->received_bytes += shard->received_bytes;
	row->sent_bytes += shard->sent_bytes;
	row->unrequested_sends += shard->unrequested_sends;
	row->accept_queue_overflows += shard->overflows;
	hist_merge(&row->queue, &shard->queue);
	hist_merge(&row->service, &shard->service);
	hist_merge(&row->duration, &shard->duration);
	hist_merge(&row->accept_wait, &shard->accept_wait);
}

static void gauges_fill(struct endpoint_row *row, const struct endpoint_gauges *gauges,
			uint64_t swept_ns)
{
	row->queued = gauges->queued;
	row->in_service = gauges->in_service;
	row->connections = gauges->connections;
	row->accept_queue = gauges->accept_queue;
	row->accept_queue_limit = gauges->accept_queue_limit;
	if (gauges->oldest_ns && swept_ns > gauges->oldest_ns)
		row->oldest_queued_ns = swept_ns - gauges->oldest_ns;
}

int requests_read(struct kernel *kernel, uint32_t slot, uint64_t swept_ns, uint32_t *tree,
		  uint16_t *port, struct endpoint_row *row)
{
	const struct endpoint_info *info = view_at(&kernel->endpoint_info, slot);
	const struct endpoint_gauges *gauges = view_at(&kernel->endpoint_gauges, slot);

	if (!info || !gauges)
		return -ENOMEM;
	if (slot != SLOT_OTHER && !__atomic_load_n(&info->used, __ATOMIC_ACQUIRE))
		return 0;
	memset(row, 0, sizeof(*row));
	for (size_t i = 0; i < kernel->sizes.shards; i++) {
		const struct endpoint_shard *shard =
			view_at(&kernel->endpoints, (size_t)slot * kernel->sizes.shards + i);

		if (!shard)
			return -ENOMEM;
		shard_merge(row, shard);
	}
	gauges_fill(row, gauges, swept_ns);
	*tree = info->tree;
	*port = (uint16_t)info->port;
	return 1;
}

int requests_close(struct kernel *kernel, uint32_t slot)
{
	const struct endpoint_info *info = view_at(&kernel->endpoint_info, slot);

	if (!info)
		return -ENOMEM;
	for (size_t i = 0; i < kernel->sizes.shards; i++) {
		struct endpoint_shard *shard = view_at(&kernel->endpoints,
						       (size_t)slot * kernel->sizes.shards + i);

		if (!shard)
			return -ENOMEM;
		__atomic_store_n(&shard->generation, info->generation + 1, __ATOMIC_SEQ_CST);
	}
	return 0;
}

int requests_free(struct kernel *kernel, uint32_t slot)
{
	struct endpoint_info *info = view_at(&kernel->endpoint_info, slot);
	struct endpoint_gauges *gauges = view_at(&kernel->endpoint_gauges, slot);

	if (!info || !gauges)
		return -ENOMEM;
	for (size_t i = 0; i < kernel->sizes.shards; i++) {
		struct endpoint_shard *shard = view_at(&kernel->endpoints,
						       (size_t)slot * kernel->sizes.shards + i);

		if (!shard)
			return -ENOMEM;
		memset(&shard->abandoned, 0,
		       sizeof(*shard) - offsetof(struct endpoint_shard, abandoned));
	}
	memset(gauges, 0, sizeof(*gauges)); /* of the last sweep: not the next owner's */
	*info = (struct endpoint_info){ .generation = info->generation + 1 };
	return bpf_map_update_elem(kernel->free_endpoints, NULL, &slot, BPF_ANY) ? -errno : 0;
}
