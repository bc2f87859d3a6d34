/* SPDX-License-Identifier: Apache-2.0 */
/* Which processes are read first, and have a slot where there are fewer of them. */
#include <criterion/criterion.h>

#include <errno.h>
#include <string.h>

#include "herd.h"

Test(processes, that_are_wanted_are_read_before_those_that_are_not)
{
	struct herd *herd = herd_new();
	struct process *wanted, *deferred;

	herd_add(herd, 10);
	herd_add(herd, 20);
	cr_assert_eq(herd_look(herd, NOW), 0);
	deferred = herd_find(herd, &herd->met[0]);
	wanted = herd_find(herd, &herd->met[1]);
	deferred->deferred = true;
	cr_expect_eq(processes_next(&herd->processes, NOW), wanted);
	wanted->read_ns = NOW;
	cr_expect_eq(processes_next(&herd->processes, NOW), deferred);
	deferred->read_ns = NOW;
	cr_expect_null(processes_next(&herd->processes, NOW));
	herd_free(herd);
}

/* --- room ----------------------------------------------------------------------------------- */

/* All of them are this process: only slots count here. */
Test(processes, that_find_no_slot_have_none_until_one_has_ended)
{
	struct herd *herd = herd_new();
	struct tree_process first, last;
	struct process *process;
	bool taken[CODE_PROCESSES_MAX] = { false };

	for (uint32_t i = 0; i < CODE_PROCESSES_MAX; i++)
		herd_add(herd, 1000 + i);
	first = herd->met[0];
	last = herd->met[CODE_PROCESSES_MAX - 1];
	cr_assert_eq(herd_look(herd, NOW), 0);
	for (size_t i = 0; i < CODE_PROCESSES_MAX - 1; i++) {
		process = herd_find(herd, &herd->met[i]);
		herd_tell(herd, process, 100, 1);
		cr_assert(process->slot && process->slot < CODE_PROCESSES_MAX);
		cr_assert_not(taken[process->slot], "%u is two processes'", process->slot);
		taken[process->slot] = true;
	}
	cr_expect_eq(processes_slots(&herd->processes), CODE_PROCESSES_MAX - 1);
	process = herd_find(herd, &last);
	cr_expect_eq(herd_tell(herd, process, 100, 1), -ENOSPC);
	cr_expect_eq(process->slot, 0);
	memmove(herd->met, herd->met + 1, --herd->len * sizeof(*herd->met));
	cr_assert_eq(herd_look(herd, NOW), 0);
	cr_expect_null(herd_find(herd, &first));
	cr_expect_neq(herd_tell(herd, process, 300, 1), -ENOSPC);
	cr_expect_eq(herd_code(herd, process->slot)->ranges[0].begin, 300);
	cr_expect_eq(processes_slots(&herd->processes), CODE_PROCESSES_MAX - 1);
	herd_free(herd);
}

Test(processes, that_are_wanted_take_the_slots_of_those_that_are_not)
{
	struct herd *herd = herd_new();
	struct process *process, *deferred = NULL;
	uint32_t slot;

	for (uint32_t i = 0; i < CODE_PROCESSES_MAX; i++)
		herd_add(herd, 1000 + i);
	cr_assert_eq(herd_look(herd, NOW), 0);
	for (size_t i = 0; i < CODE_PROCESSES_MAX - 1; i++) {
		process = herd_find(herd, &herd->met[i]);
		herd_tell(herd, process, 100, 1);
		process->deferred = i == 7;
		if (process->deferred)
			deferred = process;
	}
	process = herd_find(herd, &herd->met[CODE_PROCESSES_MAX - 1]);
	process->deferred = true;
	cr_expect_eq(herd_tell(herd, process, 200, 1), -ENOSPC, "it may not take it");
	slot = deferred->slot;
	process->deferred = false;
	cr_expect_neq(herd_tell(herd, process, 300, 1), -ENOSPC);
	cr_expect_eq(process->slot, slot);
	cr_expect_eq(herd_code(herd, slot)->ranges[0].begin, 300);
	cr_expect_eq(deferred->slot, 0);
	cr_expect_eq(processes_slots(&herd->processes), CODE_PROCESSES_MAX - 1);
	herd_free(herd);
}
