/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks as libdwfl follows them, which has all of it of its own: mappings, tables, steps. */
#ifndef WORKLOAD_TESTS_THEIRS_H
#define WORKLOAD_TESTS_THEIRS_H

#include <stdbool.h>
#include <sys/types.h>

#include "followed.h"
#include "sampling.h"

struct theirs;

/* What @pid has mapped. 0 with *@out, which theirs_close() releases; -ESRCH: it cannot be read. */
int theirs_open(pid_t pid, struct theirs **out);
void theirs_close(struct theirs *theirs);

void theirs_follow(struct theirs *theirs, const struct sample *sample, struct followed *out);

/*
 * Whether the files tell how frame @i of the last stack is left, as far as libdw understands them.
 * Where they do not libdwfl guesses that there is a frame pointer.
 */
bool theirs_knows(const struct theirs *theirs, size_t i);

#endif
