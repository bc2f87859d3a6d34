/* SPDX-License-Identifier: Apache-2.0 */
#include "base/loop.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/units.h"

#define EVENTS_MAX 16 /* the others are told in the next round */

struct loop {
	int epoll;
	bool ends;
	struct epoll_event events[EVENTS_MAX]; /* of this round; told up to `next` */
	int next, len;
	TAILQ_HEAD(, loop_job) jobs;
};

int loop_new(struct loop **loop)
{
	struct loop *made = calloc(1, sizeof(*made));
	int r;

	if (!made)
		return -ENOMEM;
	made->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (made->epoll < 0) {
		r = -errno;
		free(made);
		return r;
	}
	TAILQ_INIT(&made->jobs);
	*loop = made;
	return 0;
}

void loop_free(struct loop *loop)
{
	if (!loop)
		return;
	close(loop->epoll);
	free(loop);
}

int loop_watch(struct loop *loop, struct loop_watch *watch, enum loop_event event)
{
	static const uint32_t events[] = {
		[LOOP_READABLE] = EPOLLIN,
		[LOOP_ENDED] = EPOLLRDHUP,
		[LOOP_BROKEN] = 0, /* EPOLLERR and EPOLLHUP need not be asked for */
	};
	struct epoll_event wanted = { .events = events[event], .data.ptr = watch };

	return epoll_ctl(loop->epoll, EPOLL_CTL_ADD, watch->fd, &wanted) ? -errno : 0;
}

void loop_forget(struct loop *loop, struct loop_watch *watch)
{
	epoll_ctl(loop->epoll, EPOLL_CTL_DEL, watch->fd, NULL);
	for (int i = loop->next; i < loop->len; i++)
		if (loop->events[i].data.ptr == watch)
			loop->events[i].data.ptr = NULL;
}

void loop_add(struct loop *loop, struct loop_job *job)
{
	TAILQ_INSERT_TAIL(&loop->jobs, job, link);
}

static uint64_t loop_first_date_ns(const struct loop *loop)
{
	uint64_t first_ns = UINT64_MAX;
	const struct loop_job *job;

	TAILQ_FOREACH(job, &loop->jobs, link)
	{
		uint64_t due_ns = job->due_ns(job->arg);

		first_ns = due_ns < first_ns ? due_ns : first_ns;
	}
	return first_ns;
}

/* What epoll_wait wants: rounded up, so that the date has come; -1: for ever. */
static int wait_ms_until(uint64_t until_ns)
{
	uint64_t now_ns = clock_monotonic_ns(), wait_ms;

	if (until_ns == UINT64_MAX)
		return -1;
	if (until_ns <= now_ns)
		return 0;
	wait_ms = (until_ns - now_ns + NS_PER_MS - 1) / NS_PER_MS;
	return wait_ms > INT_MAX ? INT_MAX : (int)wait_ms;
}

static void loop_tell(struct loop *loop)
{
	loop->next = 0;
	while (loop->next < loop->len && !loop->ends) {
		const struct loop_watch *watch = loop->events[loop->next++].data.ptr;

		if (watch)
			watch->ready(watch->arg);
	}
}

static bool job_is_due(const struct loop_job *job)
{
	uint64_t due_ns = job->due_ns(job->arg);

	return due_ns <= clock_monotonic_ns();
}

static int loop_run_jobs(const struct loop *loop)
{
	const struct loop_job *job;
	int r = 0;

	TAILQ_FOREACH(job, &loop->jobs, link)
	{
		if (!r && job_is_due(job))
			r = job->run(job->arg);
	}
	return r;
}

int loop_round(struct loop *loop, uint64_t until_ns)
{
	uint64_t first_ns = loop_first_date_ns(loop);
	int wait_ms = wait_ms_until(first_ns < until_ns ? first_ns : until_ns);

	loop->len = epoll_wait(loop->epoll, loop->events, EVENTS_MAX, wait_ms);
	if (loop->len < 0 && errno != EINTR)
		return -errno;
	loop_tell(loop);
	return loop->ends ? 0 : loop_run_jobs(loop);
}

int loop_run(struct loop *loop)
{
	int r = 0;

	while (!r && !loop->ends)
		r = loop_round(loop, UINT64_MAX);
	return r;
}

void loop_end(struct loop *loop)
{
	loop->ends = true;
}
