/* SPDX-License-Identifier: Apache-2.0 */
/* A snapshot that has one of everything, and what its expositions are held against. */
#ifndef WORKLOAD_TESTS_SAMPLE_H
#define WORKLOAD_TESTS_SAMPLE_H

#include <criterion/criterion.h>

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "model/snapshot.h"

#define EXPOSITION_MAX_BYTES ((size_t)1 << 24)

static inline void observe(struct hist *hist, uint64_t ns)
{
	hist->bucket[hist_index(ns)]++;
	hist->sum_ns += ns;
}

static inline void fill_endpoints(struct endpoint_row endpoints[2])
{
	endpoints[0] = (struct endpoint_row){
		.workload = "nginx.service",
		.port = "8080",
		.abandoned = { 1, 2 },
		.accepted = { [IO_EPOLL] = 40 },
		.received_bytes = 123456,
		.sent_bytes = UINT64_MAX,
		.goodbyes = 10,
		.unanswered_reads = 11,
		.multiplexed = 2,
		.one_way = 5,
		.accept_queue_overflows = 3,
		.queued = 4,
		.in_service = 5,
		.oldest_queued_ns = 1500000000,
		.oldest_in_service_ns = 2500000000,
		.connections = 9,
		.accept_queue = 6,
		.accept_queue_limit = 511,
	};
	endpoints[1] = (struct endpoint_row){
		.workload = "a \"quoted\"\\name",
		.port = "other",
		.accepted = { [IO_BLOCKING] = 1, [IO_URING] = 2 },
		.unrequested_sends = 8,
	};
	observe(&endpoints[0].queue, 0);
	observe(&endpoints[0].queue, 61035);
	observe(&endpoints[0].queue, 61036);
	observe(&endpoints[0].queue, 50000000);
	observe(&endpoints[0].queue, 129000000000);
	observe(&endpoints[0].service, 1);
	observe(&endpoints[0].duration, 1000000000);
}

static inline void fill_pools(struct pool_row pools[2])
{
	pools[0] = (struct pool_row){
		.workload = "nginx.service",
		.pool = "http-nio-#-exec-#",
		.role = "serving",
		.threads = { 1, 0, 2, 0, 0, 0, 0, 17 },
		.thread_ns = { 1, 20, 300, 4000000000, 5500000000, 18446744073709551615U, 0, 7 },
		.started = 30,
		.exited = 10,
		.acquisitions = 4711,
	};
	pools[1] = (struct pool_row){ .workload = "nginx.service",
				      .pool = "evil\n\xff\xc3\xa9",
				      .role = "other" };
	observe(&pools[0].runqueue, 2000);
	observe(&pools[0].mutex, 8000000);
	observe(&pools[0].mutex, 7812500);
}

/* One of everything: valid until the next call. */
static inline struct snapshot sample_snapshot(void)
{
	static struct endpoint_row endpoints[2];
	static struct pool_row pools[2];
	static const struct workload_row workloads[] = {
		{ "nginx.service", "/usr/sbin/nginx", "native", "nginx.service", "", "33", 3,
		  .dropped = { [DROP_UNPAIRED] = 7, [DROP_POOLS_FULL] = 2 } },
		{ "a \"quoted\"\\name", "", "unknown", "", "0123456789ab", "0", 1,
		  .dropped = { 0 } },
	};
	static const struct probe_row probes[] = { { "requests", "sk_data_ready", 1 },
						   { "requests", "sock_send_length", 0 } };
	static const struct profile_row profiles[] = { { "complete", 495 }, { "lost", 1 } };
	static const struct lock_site_row lock_sites[] = {
		{ "nginx.service", "ngx_shmtx_lock+0x1f [nginx]", 9876543210 },
		{ "nginx.service", "other", 0 },
	};
	static const struct blocked_row blocked[] = {
		{ "nginx.service", "nginx-#", "thread-pool", 1500000000 },
		{ "nginx.service", "nginx-#", "other", 1 },
	};
	static const struct mutex_row mutexes[] = { { "attached", 3 }, { "replaced", 0 } };
	static const struct map_row maps[] = { { "endpoints", 2, 512 } };
	static const struct program_row programs[] = { { "threads_switch", 123456789, 1000 } };
	static const struct drop_row drops[] = { { "request_unpaired", 8 } };
	static const struct collector_row collectors[] = { { "requests", 1234567, 1 },
							   { "threads", 0, 0 } };
	static const struct build_row build = { "1.2.3", "0123456789ab", "main", "gcc 12" };
	static const struct process_row process = { 1230000000, 12,           1024,
						    1U << 30,   12 * 1048576, 1700000000123456789 };
	struct snapshot snapshot = {
		.workloads = workloads,
		.workloads_len = 2,
		.endpoints = endpoints,
		.endpoints_len = 2,
		.pools = pools,
		.pools_len = 2,
		.probes = probes,
		.probes_len = 2,
		.blocked = blocked,
		.blocked_len = 2,
		.lock_sites = lock_sites,
		.lock_sites_len = 2,
		.profiles = profiles,
		.profiles_len = 2,
		.mutexes = mutexes,
		.mutexes_len = 2,
		.maps = maps,
		.maps_len = 1,
		.programs = programs,
		.programs_len = 1,
		.drops = drops,
		.drops_len = 1,
		.collectors = collectors,
		.collectors_len = 2,
		.build = &build,
		.process = &process,
	};

	fill_endpoints(endpoints);
	fill_pools(pools);
	return snapshot;
}

static inline void read_file(const char *path, struct buffer *out)
{
	_cleanup_(cleanup_fclose) FILE *file = fopen(path, "r");
	char bytes[4096];
	size_t len;

	cr_assert_not_null(file, "%s: %s (run from the top of the checkout)", path,
			   strerror(errno));
	while ((len = fread(bytes, 1, sizeof(bytes), file)) > 0)
		buffer_append(out, bytes, len);
	cr_assert_eq(out->error, 0);
}

/* @name is a file in tests/golden. What differs is left in build/ for a look. */
static inline void expect_golden(const struct buffer *actual, const char *name)
{
	_cleanup_(buffer_free) struct buffer golden = BUFFER_INIT(1 << 20);
	_cleanup_(cleanup_fclose) FILE *file = NULL;
	char path[256];

	snprintf(path, sizeof(path), "tests/golden/%s", name);
	read_file(path, &golden);
	if (actual->len == golden.len && memcmp(actual->data, golden.data, golden.len) == 0)
		return;
	snprintf(path, sizeof(path), "build/%s", name);
	file = fopen(path, "w");
	if (file)
		fwrite(actual->data, 1, actual->len, file);
	cr_expect_fail("not as in tests/golden/%s; compare with %s", name, path);
}

/* @command must succeed and print nothing. */
static inline void expect_silent(const char *command)
{
	char output[2048] = "";
	FILE *pipe = popen(command, "r");
	size_t len;

	cr_assert_not_null(pipe);
	len = fread(output, 1, sizeof(output) - 1, pipe);
	output[len] = '\0';
	cr_expect_eq(pclose(pipe), 0, "%s: %s", command, output);
	cr_expect_str_empty(output, "%s: %s", command, output);
}

#endif
