// SPDX-License-Identifier: Apache-2.0
#ifndef WORKLOAD_TESTS_URING_H
#define WORKLOAD_TESTS_URING_H

#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "workload.h"

/* The smallest io_uring that can do one thing at a time. */
struct uring {
	int fd;
	char *ring;
	struct io_uring_params params;
	struct io_uring_sqe *sqes;
};

/* @late: what is done later is done at the end of whatever system call comes next. */
static void uring_open(struct uring *uring, bool late)
{
	size_t size;

	uring->params.flags = late ? IORING_SETUP_COOP_TASKRUN : 0;
	uring->fd = (int)syscall(SYS_io_uring_setup, 1, &uring->params);
	if (uring->fd < 0)
		die("io_uring_setup");
	size = uring->params.cq_off.cqes + uring->params.cq_entries * sizeof(struct io_uring_cqe) +
	       4096;
	uring->ring = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, uring->fd,
			   IORING_OFF_SQ_RING);
	uring->sqes = mmap(NULL, sizeof(*uring->sqes), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_POPULATE, uring->fd, IORING_OFF_SQES);
	if (uring->ring == MAP_FAILED || (void *)uring->sqes == MAP_FAILED)
		die("mmap of an io_uring");
}

static uint32_t *uring_word(struct uring *uring, uint32_t offset)
{
	return (uint32_t *)(uring->ring + offset);
}

/* Submits one operation, and waits if @wait for its completion. */
static void uring_submit(struct uring *uring, const struct io_uring_sqe *operation,
			 unsigned int wait)
{
	uint32_t *tail = uring_word(uring, uring->params.sq_off.tail);

	uring->sqes[0] = *operation;
	uring_word(uring, uring->params.sq_off.array)[0] = 0;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
	if (syscall(SYS_io_uring_enter, uring->fd, 1, wait, wait ? IORING_ENTER_GETEVENTS : 0, NULL,
		    0) != 1)
		die("io_uring_enter");
}

static bool uring_is_done(struct uring *uring)
{
	return *uring_word(uring, uring->params.cq_off.head) !=
	       __atomic_load_n(uring_word(uring, uring->params.cq_off.tail), __ATOMIC_ACQUIRE);
}

/* Of the operation that is done. */
static int uring_result(struct uring *uring)
{
	uint32_t *head = uring_word(uring, uring->params.cq_off.head);
	struct io_uring_cqe *cqes =
		(struct io_uring_cqe *)(uring->ring + uring->params.cq_off.cqes);
	int result;

	result = cqes[*head & (uring->params.cq_entries - 1)].res;
	__atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
	return result;
}

#endif
