/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Programs with copies. The kernel skips a program that is already running on the same CPU
 * (kernel/trace/bpf_trace.c, __bpf_trace_run()). Therefore such a program exists several times at
 * its hook, and whichever copy is free takes the event:
 *
 * - A softirq interrupts a program that a thread runs into, and goes on for up to 2 ms
 *   (kernel/softirq.c, MAX_SOFTIRQ_TIME): TCP takes hundreds of segments in that time. A hook that
 *   threads and softirqs pass has a second copy on all kernels (SOFTIRQ_PROG). One softirq does not
 *   interrupt another, so two are enough. Bytes that arrive pass two hooks, tcp_probe and
 *   sk_data_ready, and the second copy is the program at the other one.
 * - Since Linux 7.0 a program at a tracepoint can be preempted, so what the next task does would
 *   not be seen: there each has three (measured under emulation, where programs run 20 times as
 *   long: with one, 2 of 1000 events are lost, 5 of 1000 with the syscall backend). Older kernels
 *   let nothing preempt a program, and the loader leaves out the copies that are named _spare.
 *
 * All copies that are free run, one after the other: what they do must come to the same if it is
 * done again, or ask event_is_new() first.
 */
#ifndef WORKLOAD_LIB_SPARES_H
#define WORKLOAD_LIB_SPARES_H

#include "lib/kernel.h"

/* As BPF_PROG with its section, for the same arguments; @copy is 0 in the program itself. */
/* clang-format off */
#define SPARED_PROG(hook, name, args...)                                                       \
	PROG_COPIES(hook, name, name##_spare, name##_spare2, args)
#define SOFTIRQ_PROG(hook, name, args...)                                                      \
	PROG_COPIES(hook, name, name##_softirq, name##_spare, args)

#define PROG_COPIES(hook, name, second, third, args...)                                        \
	static __always_inline int ____##name(__u32 copy, unsigned long long *ctx, ##args);    \
	PROG_COPY(hook, name, 0, name, args)                                                   \
	PROG_COPY(hook, second, 1, name, args)                                                 \
	PROG_COPY(hook, third, 2, name, args)                                                  \
	static __always_inline int ____##name(__u32 copy, unsigned long long *ctx, ##args)

#define PROG_COPY(hook, name, copy, event, args...)                                            \
	_Pragma("GCC diagnostic push")                                                         \
	_Pragma("GCC diagnostic ignored \"-Wint-conversion\"")                                 \
	SEC(hook) int name(unsigned long long *ctx)                                            \
	{                                                                                      \
		return ____##event(copy, ___bpf_ctx_cast(args));                               \
	}                                                                                      \
	_Pragma("GCC diagnostic pop")
/* clang-format on */

/*
 * Whether an event is still to be handled. @sequence is a number that the event has moved, @last
 * where the socket remembers it. The first copy never asks in vain: it is the first that runs.
 * Where two threads send on one socket at the same instant, one send may count twice.
 */
static inline int event_is_new(__u32 copy, __u32 *last, __u32 sequence)
{
	__u32 before = *last;

	*last = sequence;
	return !copy || before != sequence;
}

#endif
