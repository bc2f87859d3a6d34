/* SPDX-License-Identifier: Apache-2.0 */
#include "profiles/processes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "abi/profiles.h"
#include "base/clock.h"
#include "kernel/table.h"

/* --- slots ---------------------------------------------------------------------------------- */

/* A program that reads the slot meanwhile sees that, and takes its stack for none. */
static void slot_write(struct processes *processes, uint32_t slot, uint64_t owner,
		       const struct code_range *ranges, size_t len)
{
	struct process_code *code = view_at(&processes->code, slot);
	uint64_t seq = code->seq;

	__atomic_store_n(&code->seq, seq + 1, __ATOMIC_SEQ_CST);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	code->owner = owner;
	code->len = (uint32_t)len;
	if (len)
		memcpy(code->ranges, ranges, len * sizeof(*ranges));
	__atomic_store_n(&code->missed, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&code->seq, seq + 2, __ATOMIC_SEQ_CST);
}

static uint32_t slot_take(struct processes *processes)
{
	for (uint32_t slot = 1; slot < CODE_PROCESSES_MAX; slot++) {
		if (processes->taken[slot])
			continue;
		processes->taken[slot] = true;
		processes->slots_len++;
		return slot;
	}
	return 0;
}

static bool slot_missed(struct processes *processes, uint32_t slot)
{
	const struct process_code *code = view_at(&processes->code, slot);

	return __atomic_load_n(&code->missed, __ATOMIC_RELAXED);
}

/* --- one process ---------------------------------------------------------------------------- */

static void process_let_go(struct process *process, uint64_t now_ns)
{
	for (size_t i = 0; i < process->files_len; i++)
		file_release(process->files[i], now_ns);
	free(process->files);
	process->files = NULL;
	process->files_len = 0;
}

static void slot_give_back(struct processes *processes, uint32_t slot)
{
	slot_write(processes, slot, 0, NULL, 0);
	processes->taken[slot] = false;
	processes->slots_len--;
}

static void process_remove(struct processes *processes, struct process *process, uint64_t now_ns)
{
	if (process->slot)
		slot_give_back(processes, process->slot);
	process_let_go(process, now_ns);
	HASH_DEL(processes->by_tgid, process);
	free(process);
}

/* Takes the slot of one that is deferred, if @process is not. 0: there is none. */
static uint32_t slot_take_over(struct processes *processes, const struct process *process,
			       uint64_t now_ns)
{
	struct process *other, *next;

	HASH_ITER (hh, processes->by_tgid, other, next) {
		if (process->deferred || !other->deferred || !other->slot)
			continue;
		slot_give_back(processes, other->slot);
		other->slot = 0;
		process_let_go(other, now_ns);
		return slot_take(processes);
	}
	return 0;
}

int process_open(const struct process *process)
{
	int pidfd = (int)syscall(SYS_pidfd_open, process->identity.tgid, 0);

	return pidfd < 0 ? -errno : pidfd;
}

int process_tell(struct processes *processes, struct process *process, int pidfd,
		 const struct code_range *ranges, size_t len, struct file **files, size_t files_len)
{
	struct code_slot told = { .exec_id = process->identity.exec_id };
	uint64_t now_ns = clock_monotonic_ns();
	int r;

	process_let_go(process, now_ns); /* samples may have them up to now */
	process->files = files;
	process->files_len = files_len;
	if (process->slot) {
		slot_write(processes, process->slot, process->owner, ranges, len);
		return 0;
	}
	told.slot = slot_take(processes);
	if (!told.slot)
		told.slot = slot_take_over(processes, process, now_ns);
	if (!told.slot)
		return -ENOSPC;
	told.owner = process->owner = ++processes->owners;
	slot_write(processes, told.slot, told.owner, ranges, len);
	r = table_write(processes->slots, &pidfd, &told);
	if (r)
		slot_give_back(processes, told.slot);
	else
		process->slot = told.slot;
	return r;
}

/* --- all of them ---------------------------------------------------------------------------- */

static void process_add(struct processes *processes, const struct tree_process *identity)
{
	struct process *process = calloc(1, sizeof(*process));

	if (!process)
		return; /* it is met again by the next walk */
	process->identity = *identity;
	process->seen = true;
	HASH_ADD(hh, processes->by_tgid, identity.tgid, sizeof(identity->tgid), process);
	if (!process->hh.tbl)
		free(process);
}

struct process *processes_find(const struct processes *processes,
			       const struct tree_process *identity)
{
	struct process *process;

	HASH_FIND(hh, processes->by_tgid, &identity->tgid, sizeof(identity->tgid), process);
	return process && walk_process_is(&process->identity, identity) ? process : NULL;
}

struct walk_now {
	struct processes *processes;
	uint64_t now_ns;
};

/* After an exec, and where the number was given anew, it is another process: the old one is not
 * seen, and its slot is not read, as it has another exec_id, or was the task's that has gone. */
static void process_meet(void *arg, const void *row)
{
	const struct tree_process *identity = row;
	const struct walk_now *walk = arg;
	struct processes *processes = walk->processes;
	struct process *process;

	if (identity->tid != identity->tgid)
		return; /* one more thread, or its leader has ended: its code cannot be read */
	HASH_FIND(hh, processes->by_tgid, &identity->tgid, sizeof(identity->tgid), process);
	if (process && !walk_process_is(&process->identity, identity)) {
		process_remove(processes, process, walk->now_ns);
		process = NULL;
	}
	if (process)
		process->seen = true;
	else
		process_add(processes, identity);
}

static void processes_sweep(struct processes *processes, uint64_t now_ns)
{
	struct process *process, *next;

	HASH_ITER (hh, processes->by_tgid, process, next) {
		if (!process->seen)
			process_remove(processes, process, now_ns);
	}
}

int processes_walk(struct processes *processes, uint64_t now_ns)
{
	struct walk_now walk = { processes, now_ns };
	struct process *process, *next;
	int r;

	HASH_ITER (hh, processes->by_tgid, process, next) {
		process->seen = false;
	}
	r = loader_walk_rows(processes->loader, WALK_PROCESSES, process_meet, &walk);
	if (!r)
		processes_sweep(processes, now_ns);
	return r;
}

static bool processes_are_full(const struct processes *processes)
{
	return processes->slots_len == CODE_PROCESSES_MAX - 1;
}

static bool process_is_due(struct processes *processes, const struct process *process,
			   uint64_t now_ns)
{
	uint64_t since_ns = now_ns - process->read_ns;

	if (process->left_out ||
	    (!process->slot && process->deferred && processes_are_full(processes)))
		return false; /* it would be read in vain */
	if (!process->read_ns || (process->again_ns && now_ns >= process->again_ns))
		return true;
	if (!process->slot)
		return since_ns >= PROCESS_AGAIN_NS;
	return since_ns >= PROCESS_READ_NS &&
	       (process->partial || slot_missed(processes, process->slot));
}

uint64_t process_again_ns(unsigned int late, uint64_t now_ns)
{
	uint64_t after_ns = PROCESS_READ_NS / 4;

	for (unsigned int i = 1; i < late && after_ns < PROCESS_AGAIN_NS; i++)
		after_ns *= 4;
	return now_ns + (after_ns < PROCESS_AGAIN_NS ? after_ns : PROCESS_AGAIN_NS);
}

bool processes_lack(const struct processes *processes)
{
	const struct process *process;

	for (process = processes->by_tgid; process; process = process->hh.next)
		if (!process->deferred && (process->partial || process->again_ns))
			return true;
	return false;
}

struct process *processes_next(struct processes *processes, uint64_t now_ns)
{
	struct process *process, *next, *deferred = NULL;

	HASH_ITER (hh, processes->by_tgid, process, next) {
		if (!process_is_due(processes, process, now_ns))
			continue;
		if (!process->deferred)
			return process;
		if (!deferred)
			deferred = process;
	}
	return deferred;
}

size_t processes_slots(const struct processes *processes)
{
	return processes->slots_len;
}

void processes_forget(struct processes *processes, uint64_t now_ns)
{
	while (processes->by_tgid)
		process_remove(processes, processes->by_tgid, now_ns);
}

int processes_open(struct processes *processes, struct loader *loader)
{
	int r;

	*processes = (struct processes){ .loader = loader };
	processes->slots = loader_map_fd(loader, "code_slots");
	if (processes->slots < 0)
		return processes->slots;
	r = view_open(&processes->code, loader, "process_code", sizeof(struct process_code));
	if (!r && !view_at(&processes->code, CODE_PROCESSES_MAX - 1))
		r = -ENOMEM;
	return r;
}

void processes_free(struct processes *processes)
{
	processes_forget(processes, 0);
	view_close(&processes->code);
}
