/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Every way in which a measurement can be lost, one row each: DROP(identifier, label, help).
 * The kernel side counts into the map `drops` by index, user space into its own array; both are
 * shown as workload_exporter_dropped_total{reason="label"}.
 */
#ifndef WORKLOAD_ABI_DROPS_H
#define WORKLOAD_ABI_DROPS_H

#define DROP_LIST(DROP)                                                                            \
	DROP(TREES_FULL, "workload_table_full",                                                    \
	     "no free slot for a listening process, or its user has its share")                    \
	DROP(ENDPOINTS_FULL, "endpoint_table_full", "endpoint measured as `other`")                \
	DROP(NAMESPACES_FULL, "namespace_table_full", "overflows of a listener are not counted")   \
	DROP(POOLS_FULL, "pool_table_full", "thread measured in a pool `other`")                   \
	DROP(SOCKET_STORAGE, "socket_untracked", "no memory for the state of a socket")            \
	DROP(CONNECTION_QUOTA, "connection_limit",                                                 \
	     "connection that is not measured: the exporter's memory limit has no room")           \
	DROP(LISTENER_QUOTA, "listener_limit",                                                     \
	     "listener that is not measured: the exporter's memory limit has no room")             \
	DROP(THREAD_STORAGE, "thread_untracked", "no memory for the state of a thread")            \
	DROP(THREAD_QUOTA, "thread_limit",                                                         \
	     "thread that is not measured: the exporter's memory limit has no room")               \
	DROP(THREAD_BUSY, "thread_busy",                                                           \
	     "event of a thread while the state of one was in use on that CPU (before Linux 6.2)") \
	DROP(SWITCH_UNSEEN, "switch_unseen",                                                       \
	     "switch of a thread that no program has seen: the wait before it is in no "           \
	     "histogram, and the thread stayed in its state")                                      \
	DROP(END_UNSEEN, "end_unseen",                                                             \
	     "connection whose end no program has seen: a request that ended with it is in no "    \
	     "counter")                                                                            \
	DROP(WORD_FORGOTTEN, "lock_word_forgotten",                                                \
	     "whether a word is a lock has to be learnt anew: no room")                            \
	DROP(LISTENING_FULL, "listener_table_full",                                                \
	     "listener whose open connections were not looked for")                                \
	DROP(CPU_UNKNOWN, "cpu_unknown", "thread event on a CPU that was not possible at start")   \
	DROP(BACKLOG_ADOPT, "connection_untracked",                                                \
	     "in an accept queue when the exporter started")                                       \
	DROP(MULTIPATH, "multipath_tcp",                                                           \
	     "connection by Multipath TCP: its requests are not measured")                         \
	DROP(UNPAIRED, "request_unpaired", "request whose arrival was not seen: in no histogram")  \
	DROP(SKIPPED, "program_skipped", "event while the same program ran on that CPU")           \
	DROP(STALE, "slot_stale", "event of a socket whose workload was already retired")          \
	DROP(DOORBELL, "doorbell_full",                                                            \
	     "wake-up of user space lost; made up for at the next scrape")                         \
	DROP(TORN, "torn_read",                                                                    \
	     "pool shard kept changing while it was read, or told times that cannot be")           \
	DROP(IDENTITY, "identity_unreadable",                                                      \
	     "service gone or unreadable: without exe, and named by its unit, container or "       \
	     "thread; it is tried again, later each time")                                         \
	DROP(IDENTITY_LATE, "identity_late",                                                       \
	     "service that could not be looked at in time; it is tried again, later each time")    \
	DROP(WORKLOADS_FULL, "workload_limit", "workload shown as `other`")                        \
	DROP(SERIES_FULL, "row_limit", "row shown as `other`")                                     \
	DROP(WALK, "walk_failed", "walk over threads or descriptors failed")

enum drop_reason {
#define DROP(id, label, help) DROP_##id,
	DROP_LIST(DROP)
#undef DROP
		DROP_REASONS,
};

#endif
