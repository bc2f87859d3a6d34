/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop: where the exporter waits at rest, and the only place that calls epoll_wait. It waits
 * for what descriptors are watched for, and for the dates of jobs. What it calls back works without
 * blocking, or for a short time with a bound.
 *
 * A round waits, calls back for each descriptor that is ready, and then runs each job that is due,
 * in the order in which the jobs were added. The loop asks a job for its date before the wait and
 * after it, so nothing has to be set anew when what a date depends on changes. A date is absolute:
 * one that moves on each time it is asked for never comes. Without a date, and with no descriptor
 * ready, the loop sleeps.
 *
 * One thread.
 */
#ifndef WORKLOAD_BASE_LOOP_H
#define WORKLOAD_BASE_LOOP_H

#include <stdint.h>
#include <sys/queue.h>

struct loop;

/* A descriptor; both belong to the caller, and the loop keeps a pointer until it forgets. */
struct loop_watch {
	int fd;
	void (*ready)(void *arg); /* what it is watched for is so: again while it stays so */
	void *arg;
};

/* Belongs to the caller as well. */
struct loop_job {
	uint64_t (*due_ns)(const void *arg); /* CLOCK_MONOTONIC; 0: now; UINT64_MAX: no date */
	int (*run)(void *arg); /* 0, or -errno, which ends the loop */
	void *arg;
	TAILQ_ENTRY(loop_job) link; /* the loop's */
};

/* 0 with the loop in @loop (free releases it), or -errno. */
int loop_new(struct loop **loop);
void loop_free(struct loop *loop); /* NULL is nothing */

/* What a descriptor is watched for. That it is broken, or shut down here, is told in any case. */
enum loop_event {
	LOOP_READABLE,
	LOOP_ENDED, /* the other side of a connection sends no more */
	LOOP_BROKEN, /* nothing else */
};

/* 0 or -errno: -EEXIST for a descriptor that is watched already. */
int loop_watch(struct loop *loop, struct loop_watch *watch, enum loop_event event);

/* It is not called again, not in this round either. Before its descriptor is closed. */
void loop_forget(struct loop *loop, struct loop_watch *watch);

void loop_add(struct loop *loop, struct loop_job *job);

/* One round, which waits until @until_ns at the latest. 0 or -errno: of the wait, or of a job. */
int loop_round(struct loop *loop, uint64_t until_ns);

/* Rounds until loop_end() is called: 0; or until one fails: -errno. */
int loop_run(struct loop *loop);

/* Nothing is called back any more, in this round either. */
void loop_end(struct loop *loop);

static inline void loop_freep(struct loop **loop)
{
	loop_free(*loop);
}

#endif
