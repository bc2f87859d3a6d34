/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks as the exporter follows them: what the opener and the parser tell of a process, tables in
 * the store, and bpf/profiles/stacks.h as it is. Only one at a time, and one thread.
 */
#ifndef WORKLOAD_TESTS_OURS_H
#define WORKLOAD_TESTS_OURS_H

#include <sys/types.h>

#include "followed.h"
#include "sampling.h"

/* 0; -errno. */
int ours_open(void);
void ours_close(void);

/* What @pid has mapped, as slot @slot, which may hold another process. 0; -errno. */
int ours_read(pid_t pid, uint32_t slot);

void ours_follow(const struct sample *sample, uint32_t slot, struct followed *out);

#endif
