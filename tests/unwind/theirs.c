/* SPDX-License-Identifier: Apache-2.0 */
#include "theirs.h"

#include <elfutils/libdwfl.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define VDSO "[vdso"

struct theirs {
	Dwfl *dwfl;
	const struct sample *sample;
	struct followed *out;
	uint64_t codes[FRAMES_MAX]; /* addresses in the process */
	bool unread; /* on the way out of the last frame something was that was not copied */
};

/* --- what libdwfl asks for -------------------------------------------------------------------- */

static int no_debuginfo(Dwfl_Module *module, void **user, const char *name, Dwarf_Addr base,
			const char *file, const char *link, GElf_Word crc, char **path)
{
	(void)module, (void)user, (void)name, (void)base;
	(void)file, (void)link, (void)crc, (void)path;
	return -1;
}

static const Dwfl_Callbacks callbacks = {
	.find_elf = dwfl_linux_proc_find_elf,
	.find_debuginfo = no_debuginfo,
};

static pid_t next_thread(Dwfl *dwfl, void *arg, void **thread)
{
	(void)dwfl, (void)arg, (void)thread;
	return 0; /* it is asked for one by number only */
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *arg, void **thread)
{
	(void)dwfl, (void)tid;
	*thread = arg;
	return true;
}

static bool memory_read(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *word, void *arg)
{
	struct theirs *theirs = arg;

	(void)dwfl;
	if (sample_word(theirs->sample, address, word))
		return true;
	theirs->unread = true;
	return false;
}

static bool set_registers(Dwfl_Thread *thread, void *arg)
{
	const struct theirs *theirs = arg;
	const uint64_t *registers = theirs->sample->registers;

#ifdef __aarch64__
	dwfl_thread_state_register_pc(thread, sample_pc(theirs->sample));
	return dwfl_thread_state_registers(thread, 0, SAMPLE_PC, registers);
#else
	return dwfl_thread_state_registers(thread, 0, SAMPLE_REGISTERS, registers);
#endif
}

static const Dwfl_Thread_Callbacks thread_callbacks = {
	.next_thread = next_thread,
	.get_thread = get_thread,
	.memory_read = memory_read,
	.set_initial_registers = set_registers,
};

/* --- a process ------------------------------------------------------------------------------- */

static int modules_report(struct theirs *theirs, pid_t pid)
{
	theirs->dwfl = dwfl_begin(&callbacks);
	if (!theirs->dwfl || dwfl_linux_proc_report(theirs->dwfl, pid) ||
	    dwfl_report_end(theirs->dwfl, NULL, NULL) ||
	    !dwfl_attach_state(theirs->dwfl, NULL, pid, &thread_callbacks, theirs))
		return -ESRCH;
	return 0;
}

int theirs_open(pid_t pid, struct theirs **out)
{
	struct theirs *theirs = calloc(1, sizeof(*theirs));
	int r = theirs ? modules_report(theirs, pid) : -ENOMEM;

	if (r)
		theirs_close(theirs);
	else
		*out = theirs;
	return r;
}

void theirs_close(struct theirs *theirs)
{
	if (theirs && theirs->dwfl)
		dwfl_end(theirs->dwfl);
	free(theirs);
}

/* --- a stack --------------------------------------------------------------------------------- */

static struct followed_frame frame_of(Dwfl *dwfl, uint64_t code)
{
	Dwfl_Module *module = dwfl_addrmodule(dwfl, code);
	struct followed_frame frame = { .address = code, .path = "" };
	Dwarf_Addr bias;

	if (!module || !dwfl_module_getelf(module, &bias))
		return frame;
	frame.address -= bias;
	frame.path = dwfl_module_info(module, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
	if (!strncmp(frame.path, VDSO, strlen(VDSO)))
		frame.path = "[vdso]"; /* they add the process */
	return frame;
}

/* What the files tell of @code; NULL: nothing. To be freed. */
static Dwarf_Frame *rule_of(Dwfl *dwfl, uint64_t code)
{
	Dwfl_Module *module = dwfl_addrmodule(dwfl, code);
	Dwarf_Frame *frame = NULL;
	Dwarf_Addr bias = 0;
	Dwarf_CFI *cfi = module ? dwfl_module_eh_cfi(module, &bias) : NULL;

	if (cfi && !dwarf_cfi_addrframe(cfi, code - bias, &frame))
		return frame;
	cfi = module ? dwfl_module_dwarf_cfi(module, &bias) : NULL;
	if (cfi && !dwarf_cfi_addrframe(cfi, code - bias, &frame))
		return frame;
	return NULL;
}

/* libdwfl itself says so also of what the frame behind one is. */
static bool is_signal(Dwfl *dwfl, uint64_t code)
{
	Dwarf_Frame *frame = rule_of(dwfl, code);
	Dwarf_Addr begin, end;
	bool signal = false;

	if (frame)
		dwarf_frame_info(frame, &begin, &end, &signal);
	free(frame);
	return signal;
}

static int frame_take(Dwfl_Frame *state, void *arg)
{
	struct theirs *theirs = arg;
	struct followed *out = theirs->out;
	size_t i = out->len;
	Dwarf_Addr pc;

	if (i == FRAMES_MAX) {
		out->end = FOLLOWED_TRUNCATED;
		return DWARF_CB_ABORT;
	}
	if (!dwfl_frame_pc(state, &pc, NULL))
		return DWARF_CB_ABORT;
	if (i && !is_signal(theirs->dwfl, theirs->codes[i - 1]))
		pc--;
	theirs->unread = false;
	theirs->codes[i] = pc;
	out->frames[out->len++] = frame_of(theirs->dwfl, pc);
	return DWARF_CB_OK;
}

void theirs_follow(struct theirs *theirs, const struct sample *sample, struct followed *out)
{
	int r;

	theirs->sample = sample;
	theirs->out = out;
	out->len = 0;
	out->end = FOLLOWED_UNKNOWN;
	r = dwfl_getthread_frames(theirs->dwfl, sample->tid, frame_take, theirs);
	/* A return address that cannot be read is one that is not there, to libdwfl. */
	if (r != DWARF_CB_ABORT && theirs->unread)
		out->end = FOLLOWED_CUT;
	else if (!r)
		out->end = FOLLOWED_COMPLETE;
}

bool theirs_knows(const struct theirs *theirs, size_t i)
{
	Dwarf_Frame *frame = rule_of(theirs->dwfl, theirs->codes[i]);
	bool knows;
	Dwarf_Op *ops;
	size_t len;

	knows = frame && !dwarf_frame_cfa(frame, &ops, &len);
	free(frame);
	return knows;
}
