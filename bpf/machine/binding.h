/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which thread is at which request. A thread is bound to the request that it has read, or to the
 * one that it is answering, and both sides remember it: the thread the address of the connection's
 * state and the request's read_ns, the connection the address of the thread's state. Neither side
 * may follow the other's pointer; a copy of what is there is believed only if it points back.
 *
 * No hook, no helper, no map; the caller brings the copies and the clock.
 */
#ifndef WORKLOAD_MACHINE_BINDING_H
#define WORKLOAD_MACHINE_BINDING_H

#include "machine/classify.h"
#include "machine/requests.h"
#include "machine/threads.h"

/*
 * @thread, whose state is at @thread_addr and whose id is @tid, is at the request on @conn, which
 * is at @conn_addr; @file: the connection's, 0 if it has none. @by_send: it has not read it.
 */
static inline void binding_make(struct thread *thread, __u64 thread_addr, __u32 tid,
				struct conn *conn, __u64 conn_addr, __u64 file, __u32 by_send)
{
	conn->tid = thread ? tid : 0;
	conn->thread = thread ? thread_addr : 0;
	if (!thread)
		return;
	thread_serves(thread);
	thread->request = conn_addr;
	thread->request_ns = conn->read_ns;
	thread->client = file;
	thread->by_send = by_send;
}

/* Whether the request is still one of @conn, in service or answered. */
static inline int binding_lasts(const struct thread *thread, const struct conn *conn)
{
	return !conn->closed && conn->phase != PHASE_IDLE && conn->read_ns == thread->request_ns;
}

/*
 * How far the request is that @thread is in; @conn is a copy of what is at thread->request. After
 * the answer has begun only the thread that sends it is in the request, until it goes and waits for
 * work; with one more send it is back.
 */
static inline __u32 binding_part(const struct thread *thread, __u64 thread_addr,
				 const struct conn *conn)
{
	if (!binding_lasts(thread, conn))
		return IN_NOTHING;
	if (conn->phase == PHASE_SERVICE)
		return IN_SERVICE;
	return conn->thread == thread_addr && conn->phase > thread->left_ns ? IN_ANSWER
									    : IN_NOTHING;
}

/*
 * Whether the thread that has read the request in service on @conn, which is at @conn_addr, is not
 * at it any more, though nothing was sent; @thread is a copy of what is at conn->thread.
 */
static inline int binding_left(const struct conn *conn, __u64 conn_addr,
			       const struct thread *thread)
{
	return thread->request != conn_addr || thread->request_ns != conn->read_ns ||
	       thread->left_ns > conn->read_ns;
}

enum { HELD_NOT, HELD_PERHAPS, HELD };

/*
 * Whether a thread is still at the answered request on @conn, which is at @conn_addr; @thread is a
 * copy of what is at conn->thread. One that is blocked, and not for work, is. One that has a CPU or
 * wants one may be at something else, at the rest of its loop or at what comes after an answer: so
 * not before a while, and not if it waits for events of many connections. One that has not read the
 * request may have gone on to the next in a queue: perhaps, until it has paused once between sends.
 */
static inline __u32 binding_held(const struct conn *conn, __u64 conn_addr,
				 const struct thread *thread, __u64 now)
{
	__u32 state = where_state(thread->where);

	if (thread->request != conn_addr || thread->request_ns != conn->read_ns ||
	    conn->phase <= PHASE_SERVICE || conn->phase <= thread->left_ns)
		return HELD_NOT;
	if (state == STATE_IDLE || state >= STATES)
		return HELD_NOT;
	if ((state == STATE_RUNNING || state == STATE_RUNNABLE) &&
	    (syscall_is_epoll(thread->syscall) || now < conn->phase + PAUSE_NS))
		return HELD_NOT;
	return thread->by_send && !conn->paused ? HELD_PERHAPS : HELD;
}

/*
 * Whether what @thread was blocked for is over while it sleeps on: another thread has answered the
 * request, or, if it is @parked, has gone on to the next one of the connection. *end_ns becomes
 * when, 0 if that is not known. A request without an answer is not over when its client has gone:
 * the thread that works for it is not free.
 */
static inline int binding_over(const struct thread *thread, __u64 thread_addr,
			       const struct conn *conn, int parked, __u64 *end_ns)
{
	*end_ns = 0;
	if (conn->read_ns != thread->request_ns)
		return parked;
	if (conn->thread == thread_addr || conn->phase == PHASE_SERVICE)
		return 0;
	if (conn->phase != PHASE_IDLE)
		*end_ns = conn->phase;
	else if (conn->settled_ns >= conn->read_ns)
		*end_ns = conn->settled_ns;
	return 1;
}

/*
 * The time at which a wait is said to be over that ended at @end_ns (0: not known): within the
 * state that began at @since_ns, and not before it was judged last, when it was not over yet. What
 * is not known is taken for early: a thread that waits for work must not look busy.
 */
static inline __u64 binding_end(__u64 end_ns, __u64 since_ns, __u64 judged_ns, __u64 now)
{
	__u64 first = since_ns > judged_ns ? since_ns : judged_ns;

	if (!first || end_ns > now)
		return now;
	return end_ns > first ? end_ns : first;
}

#endif
