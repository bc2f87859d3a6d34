/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Lanes: what sweeps go through to meet all connections.
 *
 * The kernel keeps the storage of a map in as many lists as there are CPUs, and a walk that goes on
 * after a pause finds its place by counting from the head of a list: 43 ns for each that it passes
 * by. With all connections in one map that grows with the square of their number (measured with
 * 100 000 and two CPUs: 290 ms a sweep in place of 75, and 2.1 ms until it is back at its place).
 * So each connection has a mark in one of several maps, and lists stay short.
 *
 * A connection that comes during a pause is put at the head of its list and moves the place: the
 * mark tells those that were met before. One that goes moves it too, and hides another one from
 * this sweep. Neither happens as long as no lane is longer than a step.
 */
#ifndef WORKLOAD_REQUESTS_LANES_H
#define WORKLOAD_REQUESTS_LANES_H

#include "core/maps.h"
#include "lib/walks.h"

struct lane_mark {
	__u64 walk; /* that has met it last */
};

#define LANE(i)                                        \
	struct {                                       \
		__uint(type, BPF_MAP_TYPE_SK_STORAGE); \
		__uint(map_flags, BPF_F_NO_PREALLOC);  \
		__type(key, int);                      \
		__type(value, struct lane_mark);       \
	} lane##i SEC(".maps");
LANE_LIST(LANE)
#undef LANE

/* From now on sweeps meet @sk, which is or was among the kernel's connections: its hash stays. */
static inline void lane_enter(struct sock *sk)
{
	struct lane_mark *mark = NULL;

	switch (sk->__sk_common.skc_hash & (LANES - 1)) {
#define LANE(i)                                                                          \
	case i:                                                                          \
		mark = bpf_sk_storage_get(&lane##i, sk, 0, BPF_SK_STORAGE_GET_F_CREATE); \
		break;
		LANE_LIST(LANE)
#undef LANE
	}
	if (!mark)
		drop(DROP_SOCKET_STORAGE);
}

/* Whether the walk of @meta has met what has @mark. */
static inline int lane_has_met(struct lane_mark *mark, const struct bpf_iter_meta *meta)
{
	int met = mark->walk == meta->session_id;

	mark->walk = meta->session_id;
	return met;
}

#endif
