/* SPDX-License-Identifier: Apache-2.0 */
/* Which processes there are, and what the kernel side is told of their code. */
#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "helping.h"
#include "herd.h"
#include "stored.h"

/* --- which there are ---------------------------------------------------------------------------
 */

Test(processes, are_those_that_the_last_walk_has_met)
{
	struct herd *herd = herd_new();
	struct tree_process one = *herd_add(herd, 10), other = *herd_add(herd, 20);

	cr_assert_eq(herd_look(herd, NOW), 0);
	cr_expect_not_null(herd_find(herd, &one));
	cr_expect_not_null(herd_find(herd, &other));
	herd->len = 1;
	cr_assert_eq(herd_look(herd, NOW), 0);
	cr_expect_not_null(herd_find(herd, &one));
	cr_expect_null(herd_find(herd, &other));
	herd_free(herd);
}

Test(processes, stay_where_a_walk_fails)
{
	struct herd *herd = herd_new();
	struct tree_process one = *herd_add(herd, 10);

	cr_assert_eq(herd_look(herd, NOW), 0);
	herd->walk = -ENOMEM;
	herd->len = 0;
	cr_expect_eq(herd_look(herd, NOW), -ENOMEM);
	cr_expect_not_null(herd_find(herd, &one));
	herd_free(herd);
}

/* Of a process whose first thread has ended there is a row for each other thread, and one of none.
 */
Test(processes, without_their_first_thread_are_none)
{
	struct herd *herd = herd_new();
	struct tree_process *leaderless = herd_add(herd, 10);

	leaderless->tid = 0;
	*herd_add(herd, 10) = *leaderless;
	herd->met[1].tid = 11;
	cr_assert_eq(herd_look(herd, NOW), 0);
	cr_expect_null(processes_next(&herd->processes, NOW));
	herd_free(herd);
}

Test(processes, are_others_after_exec_and_where_a_number_is_given_anew)
{
	struct herd *herd = herd_new();
	struct tree_process *met = herd_add(herd, (uint32_t)getpid()), before;

	for (int i = 0; i < 2; i++) {
		struct process *process;
		uint32_t slot;

		before = *met;
		cr_assert_eq(herd_look(herd, NOW), 0);
		process = herd_find(herd, met);
		cr_assert_not_null(process);
		cr_assert_eq(herd_tell(herd, process, 100, 3), 0);
		process->read_ns = NOW;
		cr_assert_null(processes_next(&herd->processes, NOW));
		slot = process->slot;
		if (i)
			met->start_ns++;
		else
			met->exec_id++;
		cr_assert_eq(herd_look(herd, NOW), 0);
		cr_expect_null(herd_find(herd, &before));
		cr_expect_eq(herd_code(herd, slot)->len, 0, "its code is not the new one's");
		process = processes_next(&herd->processes, NOW);
		cr_assert_eq(process, herd_find(herd, met), "it is to be read at once");
		cr_expect_eq(process->slot, 0);
	}
	herd_free(herd);
}

/* --- slots ---------------------------------------------------------------------------------- */

Test(processes, are_told_their_slot_by_the_process_itself)
{
	struct herd *herd = herd_new();
	pid_t pid = helping_child();
	struct tree_process *met = herd_add(herd, (uint32_t)pid);
	const struct process_code *code;
	struct process *process;
	struct code_slot told;

	met->exec_id = 5;
	cr_assert_eq(herd_look(herd, NOW), 0);
	process = herd_find(herd, met);
	cr_assert_eq(herd_tell(herd, process, 100, 3), 0);
	told = plain_slot(herd->loader, pid);
	cr_expect_eq(told.slot, process->slot);
	cr_expect_neq(told.slot, 0);
	cr_expect_eq(told.exec_id, 5);
	code = herd_code(herd, told.slot);
	cr_expect_eq(code->owner, told.owner);
	cr_expect_neq(code->owner, 0);
	cr_expect_eq(code->len, 3);
	cr_expect_eq(code->ranges[2].begin, 102);
	cr_expect_eq(code->ranges[2].end, 103);
	cr_expect_eq(code->seq, 2, "even, and another one than before");
	helping_end(pid);
	herd_free(herd);
}

Test(processes, that_are_told_again_keep_their_slot)
{
	struct herd *herd = herd_new();
	struct tree_process *met = herd_add(herd, (uint32_t)getpid());
	struct process_code *code;
	struct process *process;
	uint32_t slot;

	cr_assert_eq(herd_look(herd, NOW), 0);
	process = herd_find(herd, met);
	cr_assert_eq(herd_tell(herd, process, 100, CODE_RANGES_MAX), 0);
	slot = process->slot;
	code = plain_at(herd->loader, "process_code", slot);
	code->missed = 1;
	cr_assert_eq(herd_tell(herd, process, 200, 1), 0);
	cr_expect_eq(process->slot, slot);
	cr_expect_eq(code->len, 1);
	cr_expect_eq(code->ranges[0].begin, 200);
	cr_expect_eq(code->seq, 4);
	cr_expect_eq(code->missed, 0);
	herd_free(herd);
}

/* --- a slot while it is written ------------------------------------------------------------- */

static struct {
	const struct process_code *code;
	void *page;
	uint64_t seq;
	size_t faults;
} witness;

/* The ranges are being copied: what a program of the kernel side sees at that moment. */
static void witness_fault(int signal)
{
	(void)signal;
	witness.seq = __atomic_load_n(&witness.code->seq, __ATOMIC_SEQ_CST);
	witness.faults++;
	if (mprotect(witness.page, 4096, PROT_READ))
		_exit(1);
}

Test(processes, a_slot_says_that_it_is_being_written)
{
	struct sigaction action = { .sa_handler = witness_fault };
	struct herd *herd = herd_new();
	struct tree_process *met = herd_add(herd, (uint32_t)getpid());
	struct process *process;

	cr_assert_eq(herd_look(herd, NOW), 0);
	process = herd_find(herd, met);
	cr_assert_eq(herd_tell(herd, process, 100, 1), 0);
	witness.code = herd_code(herd, process->slot);
	witness.page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(witness.page, MAP_FAILED);
	cr_assert_eq(sigaction(SIGSEGV, &action, NULL), 0);
	cr_assert_eq(herd_tell_these(herd, process, witness.page, 2), 0);
	cr_expect_eq(witness.faults, 1);
	cr_expect_eq(witness.seq, 3, "odd");
	cr_expect_eq(witness.code->seq, 4);
	herd_free(herd);
}

/* --- when its code is read ------------------------------------------------------------------ */

Test(processes, are_read_when_they_are_met_and_again_where_that_has_failed)
{
	struct herd *herd = herd_new();
	struct tree_process *met = herd_add(herd, 10);
	struct process *process;

	cr_assert_eq(herd_look(herd, NOW), 0);
	process = herd_find(herd, met);
	cr_expect_eq(processes_next(&herd->processes, NOW), process);
	process->read_ns = NOW;
	cr_expect_null(processes_next(&herd->processes, NOW));
	cr_expect_null(processes_next(&herd->processes, NOW + PROCESS_AGAIN_NS - 1));
	cr_expect_eq(processes_next(&herd->processes, NOW + PROCESS_AGAIN_NS), process);
	cr_assert_eq(herd_look(herd, NOW + 1), 0);
	cr_expect_null(processes_next(&herd->processes, NOW + 1), "it is the same one");
	herd_free(herd);
}

/* A stack went where no range is: what it runs has changed. */
Test(processes, are_read_again_where_they_have_missed_and_not_too_often)
{
	struct herd *herd = herd_new();
	struct tree_process *met = herd_add(herd, (uint32_t)getpid());
	struct process_code *code;
	struct process *process;

	cr_assert_eq(herd_look(herd, NOW), 0);
	process = herd_find(herd, met);
	process->read_ns = NOW;
	cr_assert_eq(herd_tell(herd, process, 100, 1), 0);
	cr_expect_null(processes_next(&herd->processes, NOW + 2 * PROCESS_AGAIN_NS));
	code = plain_at(herd->loader, "process_code", process->slot);
	code->missed = 1;
	cr_expect_null(processes_next(&herd->processes, NOW + PROCESS_READ_NS - 1));
	cr_expect_eq(processes_next(&herd->processes, NOW + PROCESS_READ_NS), process);
	code->missed = 0;
	process->partial = true;
	cr_expect_null(processes_next(&herd->processes, NOW + PROCESS_READ_NS - 1));
	cr_expect_eq(processes_next(&herd->processes, NOW + PROCESS_READ_NS), process);
	cr_expect(processes_lack(&herd->processes));
	process->partial = false;
	cr_expect_not(processes_lack(&herd->processes));
	process->again_ns = NOW + 5;
	cr_expect_null(processes_next(&herd->processes, NOW + 4));
	cr_expect_eq(processes_next(&herd->processes, NOW + 5), process);
	cr_expect(processes_lack(&herd->processes));
	process->deferred = true;
	cr_expect_not(processes_lack(&herd->processes), "it is not wanted");
	process->left_out = true;
	cr_expect_null(processes_next(&herd->processes, NOW + 5));
	herd_free(herd);
}

/* --- what it holds -------------------------------------------------------------------------- */

Test(processes, are_what_runs_under_their_number)
{
	struct herd *herd = herd_new();
	pid_t pid = helping_child();
	struct tree_process *met = herd_add(herd, (uint32_t)pid);
	const struct code_range range = { .begin = 1, .end = 2 };
	struct process *process;
	int pidfd;

	cr_assert_eq(herd_look(herd, NOW), 0);
	process = herd_find(herd, met);
	pidfd = process_open(process);
	cr_assert_geq(pidfd, 0);
	cr_expect_eq(fcntl(pidfd, F_GETFD), FD_CLOEXEC);
	helping_end(pid);
	cr_expect_eq(process_tell(&herd->processes, process, pidfd, &range, 1, NULL, 0), -ESRCH);
	cr_expect_eq(process->slot, 0);
	cr_expect_eq(processes_slots(&herd->processes), 0, "it is given back");
	cr_expect_eq(process_open(process), -ESRCH);
	close(pidfd);
	herd_free(herd);
}

static struct file **files_of(struct files *files, uint64_t inode)
{
	const struct file_key key = { .inode = inode };
	struct file **used = calloc(1, sizeof(struct file *));

	cr_assert_not_null(used);
	*used = files_use(files, &key);
	return used;
}

static uint32_t users_of(const struct files *files, uint64_t inode)
{
	const struct file_key key = { .inode = inode };
	struct file *file;

	HASH_FIND(hh, files->by_key, &key, sizeof(key), file);
	cr_assert_not_null(file);
	return file->users;
}

Test(processes, use_files_until_they_are_told_others_or_end)
{
	struct stored stored = stored_new();
	struct files files = { .store = stored.store };
	struct herd *herd = herd_new();
	struct tree_process *met = herd_add(herd, (uint32_t)getpid());
	int self = (int)syscall(SYS_pidfd_open, getpid(), 0);
	struct process *process;

	cr_assert_eq(herd_look(herd, NOW), 0);
	process = herd_find(herd, met);
	process_tell(&herd->processes, process, self, NULL, 0, files_of(&files, 1), 1);
	cr_expect_eq(users_of(&files, 1), 1);
	process_tell(&herd->processes, process, self, NULL, 0, files_of(&files, 2), 1);
	cr_expect_eq(users_of(&files, 1), 0);
	cr_expect_eq(users_of(&files, 2), 1);
	herd->len = 0;
	cr_assert_eq(herd_look(herd, NOW), 0);
	cr_expect_eq(users_of(&files, 2), 0);
	herd_free(herd);
	files_free(&files);
	close(self);
	unwind_store_free(stored.store);
}

/* A profile that began before has the file in its stacks: it is to be named yet. */
Test(processes, leave_files_to_profiles_that_began_before_they_called_exec)
{
	struct stored stored = stored_new();
	struct files files = { .store = stored.store };
	struct herd *herd = herd_new();
	struct tree_process *met = herd_add(herd, (uint32_t)getpid());
	int self = (int)syscall(SYS_pidfd_open, getpid(), 0);
	struct process *process;

	cr_assert_eq(herd_look(herd, NOW), 0);
	process = herd_find(herd, met);
	process_tell(&herd->processes, process, self, NULL, 0, files_of(&files, 1), 1);
	met->exec_id++;
	cr_assert_eq(herd_look(herd, NOW + SECOND), 0);
	files_sweep(&files, NOW);
	cr_expect_eq(files.len, 1);
	files_sweep(&files, NOW + SECOND + 1);
	cr_expect_eq(files.len, 0);
	herd_free(herd);
	files_free(&files);
	close(self);
	unwind_store_free(stored.store);
}

/* --- forgotten ------------------------------------------------------------------------------ */

/* They live: their slots are given to others, so that they must not have them any more. */
Test(processes, that_are_forgotten_have_no_slot)
{
	struct herd *herd = herd_new();
	pid_t pid = helping_child();
	struct tree_process *met = herd_add(herd, (uint32_t)pid);
	struct process *process;
	uint32_t slot;

	cr_assert_eq(herd_look(herd, NOW), 0);
	process = herd_find(herd, met);
	cr_assert_eq(herd_tell(herd, process, 100, 1), 0);
	slot = process->slot;
	processes_forget(&herd->processes, NOW);
	cr_expect_null(herd_find(herd, met));
	cr_expect_eq(herd_code(herd, slot)->len, 0);
	cr_expect_neq(herd_code(herd, slot)->owner, plain_slot(herd->loader, pid).owner);
	cr_assert_eq(herd_look(herd, NOW), 0);
	cr_assert_eq(herd_tell(herd, herd_find(herd, met), 100, 1), 0);
	cr_expect_eq(herd_code(herd, slot)->owner, plain_slot(herd->loader, pid).owner);
	helping_end(pid);
	herd_free(herd);
}
