/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples of what processes run: registers of user mode and a copy of the stack, by perf events
 * (perf_event_open(2)), also where a thread is in the kernel. One thread.
 */
#ifndef WORKLOAD_TESTS_SAMPLING_H
#define WORKLOAD_TESTS_SAMPLING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

/* Registers are numbered as in DWARF (psABI x86-64, figure 3.36; AADWARF64, 4.1). */
#ifdef __aarch64__
enum { SAMPLE_FP = 29, SAMPLE_LR = 30, SAMPLE_SP = 31, SAMPLE_PC = 32, SAMPLE_REGISTERS };
#else
enum { SAMPLE_FP = 6, SAMPLE_SP = 7, SAMPLE_PC = 16, SAMPLE_REGISTERS };
#endif

#define SAMPLE_RED_ZONE 128 /* bytes that signals leave alone (psABI x86-64, 3.2.2) */

struct sample {
	pid_t pid, tid;
	bool in_kernel; /* the thread was */
	uint64_t registers[SAMPLE_REGISTERS];
	const uint8_t *stack; /* from SAMPLE_SP on; borrowed, valid during the call */
	size_t stack_bytes;
};

static inline uint64_t sample_pc(const struct sample *sample)
{
	return sample->registers[SAMPLE_PC];
}

static inline uint64_t sample_lr(const struct sample *sample)
{
#ifdef __aarch64__
	return sample->registers[SAMPLE_LR];
#else
	(void)sample;
	return 0;
#endif
}

/*
 * The word that was at @address; false: it was not copied. Below the stack pointer nothing is: a
 * function that is about to return has taken registers from there, and its frame information does
 * not say that they are back. Of those a step depends on the frame pointer only.
 */
static inline bool sample_word(const struct sample *sample, uint64_t address, uint64_t *word)
{
	uint64_t sp = sample->registers[SAMPLE_SP], at = address - sp;

	if (address < sp && sp - address <= SAMPLE_RED_ZONE) {
		*word = sample->registers[SAMPLE_FP];
		return true;
	}
	if (at > sample->stack_bytes || sizeof(*word) > sample->stack_bytes - at)
		return false;
	memcpy(word, sample->stack + at, sizeof(*word));
	return true;
}

struct sampling;

/*
 * Of @pids and their descendants. 0 with *@out, which sampling_close() releases: sampling has
 * begun; -ENOSPC: there are too many; -errno.
 */
int sampling_open(const pid_t *pids, size_t len, struct sampling **out);
void sampling_close(struct sampling *sampling);

/* Calls @take with each sample, and @mapped when a process has mapped code. */
struct sampling_calls {
	void (*take)(const struct sample *sample, void *arg);
	void (*mapped)(pid_t pid, void *arg);
	void *arg;
};

/* All that there is by now. */
void sampling_read(struct sampling *sampling, const struct sampling_calls *calls);

/* Samples that there was no room for. */
uint64_t sampling_lost(const struct sampling *sampling);

#endif
