/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Programs with spares. The kernel skips a program that is already running on the same CPU. Since
 * Linux 7.0 a program at a tracepoint can be preempted, so what the next task does meanwhile would
 * not be seen. Therefore such a program exists three times at its hook, and whichever copy is free
 * takes the event (measured under emulation, where programs run 20 times as long: without spares
 * 2 of 1000 events are lost, 5 of 1000 with the syscall backend). Older kernels let nothing preempt
 * a program; there the loader leaves out the programs whose names end as below.
 *
 * All copies that are free run, one after the other: what they do must come to the same if it is
 * done again, or ask event_is_new() first.
 */
#ifndef WORKLOAD_LIB_SPARES_H
#define WORKLOAD_LIB_SPARES_H

#include "lib/kernel.h"
#include "lib/knobs.h"

/* As BPF_PROG with its section, for the same arguments; @copy is 0 in the program itself. */
/* clang-format off */
#define SPARED_PROG(hook, name, args...)                                                       \
	static __always_inline int ____##name(__u32 copy, unsigned long long *ctx, ##args);    \
	SPARED_COPY(hook, name, 0, name, args)                                                 \
	SPARED_COPY(hook, name##_spare, 1, name, args)                                         \
	SPARED_COPY(hook, name##_spare2, 2, name, args)                                        \
	static __always_inline int ____##name(__u32 copy, unsigned long long *ctx, ##args)

#define SPARED_COPY(hook, name, copy, event, args...)                                          \
	_Pragma("GCC diagnostic push")                                                         \
	_Pragma("GCC diagnostic ignored \"-Wint-conversion\"")                                 \
	SEC(hook) int name(unsigned long long *ctx)                                            \
	{                                                                                      \
		return ____##event(copy, ___bpf_ctx_cast(args));                               \
	}                                                                                      \
	_Pragma("GCC diagnostic pop")
/* clang-format on */

static inline int event_has_moved(__u32 copy, __u32 *last, __u32 sequence)
{
	__u32 before = *last;

	*last = sequence;
	return !copy || before != sequence;
}

/*
 * Whether an event is still to be handled. @sequence is a number that the event has moved, read
 * only where there are spares; @last where the socket remembers it. The first copy never asks in
 * vain: it is the first that runs. Where two threads send on one socket at the same instant, one
 * send may count twice.
 */
#define event_is_new(copy, last, sequence) (!spares || event_has_moved(copy, last, sequence))

#endif
