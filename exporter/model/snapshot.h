/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plain data of one scrape: what was read from the kernel, merged by workload, nothing rendered
 * yet. A test can build one by hand. Times are nanoseconds, of CLOCK_MONOTONIC where they are
 * dates.
 *
 * All pointers are borrowed: they stay valid until the next snapshot is taken.
 */
#ifndef WORKLOAD_MODEL_SNAPSHOT_H
#define WORKLOAD_MODEL_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/discovery.h"
#include "abi/drops.h"
#include "abi/histogram.h"
#include "abi/kernel_types.h"
#include "abi/requests.h"
#include "abi/threads.h"

/* One service. Empty strings mean "not known" or "does not apply". */
struct workload_row {
	const char *workload;
	const char *exe; /* path of the executable, of one of its processes */
	const char *runtime; /* native, jvm, go, node, python, ruby, dotnet or unknown */
	const char *unit; /* systemd unit */
	const char *container; /* container id, short form */
	const char *user; /* real user id of one of its processes */
	uint64_t processes; /* alive now */
	uint64_t dropped[DROP_REASONS]; /* measurements that were lost, as far as it is known whose
					 */
};

/* One listening port of a service. Counters and histograms never decrease while the row exists. */
struct endpoint_row {
	const char *workload;
	const char *port; /* decimal, or "other" */
	struct endpoint_counts;
	struct hist duration;
	uint64_t queued;
	uint64_t in_service;
	uint64_t oldest_queued_ns; /* age; 0 if nothing is queued */
	uint64_t oldest_in_service_ns; /* since it was read; 0 if nothing is in service */
	uint64_t connections;
	uint64_t accept_queue;
	uint64_t accept_queue_limit;
};

/* One thread pool of a service. */
struct pool_row {
	const char *workload;
	const char *pool;
	const char *role; /* serving or other: whether its threads read and answer requests */
	uint64_t threads[STATES]; /* in each state now */
	uint64_t thread_ns[STATES]; /* time spent in each, open intervals included */
	uint64_t started;
	uint64_t exited;
	struct pool_waits;
};

/* What threads of one pool have waited for locks that those of another one have released. */
struct blocked_row {
	const char *workload;
	const char *pool;
	const char *holder_pool;
	uint64_t blocked_ns;
};

/* How many processes the probes on mutexes are attached to, or are not, and why. */
struct mutex_row {
	const char *result;
	uint64_t processes;
};

/* A place in the code of a service where its threads wait for locks. All of a service together grow
 * by what the waits of its pools do. */
struct lock_site_row {
	const char *workload;
	const char *site; /* as call_site_text() tells it, or "other" */
	uint64_t wait_ns;
};

/* What has become of the samples of all profiles. */
struct profile_row {
	const char *stack; /* how it ends: enum stack_end, or "lost" */
	uint64_t samples;
};

/* One hook and whether it is attached. */
struct probe_row {
	const char *feature;
	const char *probe;
	uint64_t attached; /* 0 or 1 */
};

struct map_row {
	const char *map;
	uint64_t entries;
	uint64_t capacity;
};

/* Only present while BPF statistics are on (kernel.bpf_stats_enabled). */
struct program_row {
	const char *program;
	uint64_t run_ns;
	uint64_t runs;
};

struct drop_row {
	const char *reason;
	uint64_t dropped;
};

/* What the exporter's own HTTP server has turned away. */
struct http_refusal_row {
	const char *reason;
	uint64_t refused;
};

/* A part of the scrape: how long it took and whether it worked. */
struct collector_row {
	const char *collector;
	uint64_t duration_ns;
	uint64_t success; /* 0 or 1 */
};

struct build_row {
	const char *version;
	const char *revision;
	const char *branch;
	const char *compiler;
};

/* The exporter's own process, as the official client libraries name it. */
struct process_row {
	uint64_t cpu_ns;
	uint64_t open_fds;
	uint64_t max_fds;
	uint64_t virtual_bytes;
	uint64_t resident_bytes;
	uint64_t start_ns; /* since the Unix epoch */
};

struct snapshot {
	const struct workload_row *workloads;
	size_t workloads_len;
	const struct endpoint_row *endpoints;
	size_t endpoints_len;
	const struct pool_row *pools;
	size_t pools_len;
	const struct blocked_row *blocked;
	size_t blocked_len;
	const struct probe_row *probes;
	size_t probes_len;
	const struct mutex_row *mutexes; /* none without probes on mutexes */
	size_t mutexes_len;
	const struct lock_site_row *lock_sites; /* none without --profiles.lock-sites */
	size_t lock_sites_len;
	const struct profile_row *profiles; /* none without --collector.profiles */
	size_t profiles_len;
	const struct map_row *maps;
	size_t maps_len;
	const struct program_row *programs;
	size_t programs_len;
	const struct drop_row *drops;
	size_t drops_len;
	const struct http_refusal_row *http_refusals;
	size_t http_refusals_len;
	const struct collector_row *collectors;
	size_t collectors_len;
	const struct build_row *build; /* exactly one */
	const struct process_row *process; /* one, or NULL if /proc/self could not be read */
};

#endif
