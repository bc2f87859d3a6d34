/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that a walk of a plain kernel side meets (plain_kernel.h), and what is told of them. */
#ifndef TESTS_HERD_H
#define TESTS_HERD_H

#include <criterion/criterion.h>

#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "features/features.h"
#include "plain_profiles.h"
#include "profiles/processes.h"

#define SECOND 1000000000ULL
#define NOW (1000 * SECOND)

struct herd {
	struct loader *loader;
	struct processes processes;
	struct tree_process met[CODE_PROCESSES_MAX + 1];
	size_t len;
	int walk; /* what comes of it */
};

static inline int herd_walk(void *arg, enum walk walk)
{
	const struct herd *herd = arg;

	cr_expect_eq(walk, WALK_PROCESSES);
	return herd->walk;
}

static inline struct herd *herd_new(void)
{
	struct herd *herd = calloc(1, sizeof(*herd));
	unsigned int wanted = 1U << (unsigned int)features_find("profiles") |
			      1U << (unsigned int)features_find("discovery");

	cr_assert_not_null(herd);
	herd->loader = plain_loader_new(wanted, herd_walk, herd);
	cr_assert_eq(processes_open(&herd->processes, herd->loader), 0);
	return herd;
}

static inline void herd_free(struct herd *herd)
{
	processes_free(&herd->processes);
	plain_loader_free(herd->loader);
	free(herd);
}

static inline struct tree_process *herd_add(struct herd *herd, uint32_t tgid)
{
	struct tree_process *process = &herd->met[herd->len++];

	*process = (struct tree_process){ .start_ns = 7, .tgid = tgid, .tid = tgid, .tree = 1 };
	return process;
}

static inline int herd_look(struct herd *herd, uint64_t now_ns)
{
	plain_processes(herd->loader, herd->met, herd->len);
	return processes_walk(&herd->processes, now_ns);
}

static inline struct process *herd_find(const struct herd *herd,
					const struct tree_process *identity)
{
	return processes_find(&herd->processes, identity);
}

static inline const struct process_code *herd_code(struct herd *herd, uint32_t slot)
{
	return plain_at(herd->loader, "process_code", slot);
}

/* Numbers of which there is no process are those of this one. */
static inline int herd_tell_these(struct herd *herd, struct process *process,
				  const struct code_range *ranges, size_t len)
{
	_cleanup_(cleanup_close) int pidfd = process_open(process);

	if (pidfd < 0)
		pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	return process_tell(&herd->processes, process, pidfd, ranges, len, NULL, 0);
}

/* As after its code was read: ranges that begin at @begin, and so many of them. */
static inline int herd_tell(struct herd *herd, struct process *process, uint64_t begin, size_t len)
{
	struct code_range ranges[CODE_RANGES_MAX];

	for (size_t i = 0; i < len; i++)
		ranges[i] = (struct code_range){ .begin = begin + i, .end = begin + i + 1 };
	return herd_tell_these(herd, process, ranges, len);
}

#endif
