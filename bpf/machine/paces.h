/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Paces: every how many nanoseconds something happens, and how much of it to leave out. By the past
 * alone: whether an event is left out has nothing to do with what will come of it.
 */
#ifndef WORKLOAD_MACHINE_PACES_H
#define WORKLOAD_MACHINE_PACES_H

#include "abi/kernel_types.h"

#define PACE_SHIFT_MAX 8
#define PACE_NS_MAX 1000000000ULL
#define PACE_KEPT 8 /* events, about, that a pace is of */
#define THREAD_PACE_NS 1000000ULL /* a thread's waits are sampled 1 000 times a second, */
#define CPU_PACE_NS 500000ULL /* and those of a CPU 2 000 times of either kind; about */
#define SELDOM_NS 10000000ULL /* threads that wait less often than that are of the other kind */

struct pace {
	__u64 last_ns; /* when it happened; 0: never */
	__u64 every_ns;
};

/* It happens @now. Of 1 << @return events one is to be taken, so that they come every @wanted_ns or
 * later. */
VERIFIED_ALONE __u32 pace_step(struct pace *pace, __u64 now_ns, __u64 wanted_ns)
{
	__u64 interval;
	__u32 shift = 0;

	if (!pace)
		return 0;
	interval = now_ns > pace->last_ns ? now_ns - pace->last_ns : 0;
	if (interval > PACE_NS_MAX)
		interval = PACE_NS_MAX;
	pace->last_ns = now_ns;
	pace->every_ns += interval / PACE_KEPT - pace->every_ns / PACE_KEPT;
	for (int i = 0; i < PACE_SHIFT_MAX; i++)
		shift += pace->every_ns << i < wanted_ns;
	return shift;
}

/* Of a CPU: of threads that wait often, and of those that seldom do, which the others do not crowd
 * out. */
struct paces {
	struct pace often, seldom;
};

/*
 * Whether a wait of a thread that begins @now on a CPU, or a fault, is sampled, by @chance, a
 * random number: for how many it stands, as a power of two; negative: it is not. What the thread
 * leaves out costs the CPU nothing, and is not of its pace. @cost: of a sample, in those of waits:
 * so many times fewer are taken.
 */
static inline int pace_draw(struct pace *thread, struct paces *cpu, __u32 cost, __u64 now_ns,
			    __u32 chance)
{
	__u32 first = pace_step(thread, now_ns, cost * THREAD_PACE_NS), second;

	if (chance & ((1U << first) - 1))
		return -1;
	second = pace_step(thread->every_ns < SELDOM_NS ? &cpu->often : &cpu->seldom, now_ns,
			   cost * CPU_PACE_NS);
	return chance >> first & ((1U << second) - 1) ? -1 : (int)(first + second);
}

#endif
