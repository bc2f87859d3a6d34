/* SPDX-License-Identifier: Apache-2.0 */
#include "ours.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/auxv.h>

#include "base/cleanup.h"
#include "kernel_side.h"
#include "profiles/files.h"
#include "profiles/opener.h"
#include "profiles/parsed.h"

#define VDSO_BYTES 16384U

static struct {
	struct files files;
	uint32_t vdso;
	struct opener_shared opened;
	union parser_shared *parsed; /* owned */
} ours;

/* Its rows may be none, as in the exporter. */
static void file_settle(struct file *file, const char *path, const struct unwind_table *table)
{
	static const struct unwind_table none;

	file->tried = true;
	file->path = strdup(path);
	if (files_settle(&ours.files, file, table))
		files_settle(&ours.files, file, &none);
}

static int vdso_settle(void)
{
	const void *image = (const void *)getauxval(AT_SYSINFO_EHDR);
	_cleanup_(unwind_table_free) struct unwind_table table = { 0 };
	static const struct file_key key = { 0 };
	struct file *file = files_use(&ours.files, &key);
	int r = file ? unwind_table_make(image, VDSO_BYTES, &table) : -ENOMEM;

	if (!r) {
		file_settle(file, "[vdso]", &table);
		ours.vdso = file->number;
	}
	return r;
}

int ours_open(void)
{
	const struct unwind_arrays arrays = { kernel_maps.rows, kernel_maps.rules,
					      kernel_maps.pages, kernel_maps.files };
	int r = unwind_store_new(&arrays, &ours.files.store);

	ours.parsed = calloc(1, sizeof(*ours.parsed));
	if (!r && !ours.parsed)
		r = -ENOMEM;
	return r ? r : vdso_settle();
}

void ours_close(void)
{
	files_free(&ours.files);
	if (ours.files.store)
		unwind_store_free(ours.files.store);
	free(ours.parsed);
}

/* --- what a process has mapped ---------------------------------------------------------------- */

static int ask(struct opener_question *question, struct opener_answer *answer, int *fd)
{
	struct helper_work work = {
		.arg = "/proc", .shared = &ours.opened, .fd = -1, .answer_fd = -1
	};
	int r;

	memset(answer, 0, sizeof(*answer));
	r = opener_kind.answer(&work, question, answer);
	*fd = work.answer_fd;
	return r;
}

static void table_read(struct file *file, int fd, const char *path)
{
	const struct parser_question question = { .what = PARSER_TABLE };
	_cleanup_(unwind_table_free) struct unwind_table table = { 0 };
	struct parser_answer answer = { 0 };

	if (!parser_read_file(&question, fd, ours.parsed, &answer)) {
		parsed_table(&answer, ours.parsed, &table);
		file->program = answer.table.program;
	}
	file_settle(file, path, &table);
}

static struct file *file_of(pid_t pid, const struct opener_range *range)
{
	struct opener_question question = {
		.what = OPENER_FILE, .pid = pid, .begin = range->begin, .inode = range->inode
	};
	const struct file_key key = { .inode = range->inode,
				      .path_hash = range->path_hash,
				      .dev_major = range->dev_major,
				      .dev_minor = range->dev_minor };
	struct file *file = files_use(&ours.files, &key);
	struct opener_answer answer;
	int fd;

	if (file && !file->tried && !ask(&question, &answer, &fd)) {
		table_read(file, fd, answer.path);
		close(fd);
	}
	return file;
}

static struct code_range code_of(pid_t pid, const struct opener_range *range)
{
	const struct file_mapping mapping = { range->begin, range->end, range->offset };
	struct code_range code = { .begin = range->begin, .end = range->end };
	struct file *file;
	uint64_t bias;

	if (range->kind == OPENER_RANGE_VDSO) {
		code.file = ours.vdso;
		code.bias = range->begin;
	}
	file = range->kind == OPENER_RANGE_FILE ? file_of(pid, range) : NULL;
	if (file && file->number && file_bias(file, &mapping, &bias)) {
		code.file = file->number;
		code.bias = bias;
	}
	return code;
}

int ours_read(pid_t pid, uint32_t slot)
{
	struct opener_question question = { .what = OPENER_MAPS, .pid = pid };
	struct process_code *code = &kernel_maps.code[slot];
	struct opener_answer answer;
	int fd, r = ask(&question, &answer, &fd);

	if (r)
		return r;
	code->owner = slot;
	code->len = answer.len;
	for (uint32_t i = 0; i < answer.len; i++)
		code->ranges[i] = code_of(pid, &ours.opened.ranges[i]);
	return 0;
}

/* --- a stack --------------------------------------------------------------------------------- */

static enum followed_end end_of(uint32_t end)
{
	switch (end) {
	case STACK_COMPLETE:
		return FOLLOWED_COMPLETE;
	case STACK_TRUNCATED:
		return FOLLOWED_TRUNCATED;
	case STACK_UNREADABLE:
		return FOLLOWED_CUT;
	default:
		return FOLLOWED_UNKNOWN;
	}
}

void ours_follow(const struct sample *sample, uint32_t slot, struct followed *out)
{
	static struct unwinding unwinding;
	struct task_struct task = { .sample = sample };
	const struct code_slot told = { .slot = slot, .owner = slot };

	stack_follow(&unwinding, &task, &told);
	out->len = unwinding.stack.len;
	out->end = end_of(unwinding.stack.end);
	for (size_t i = 0; i < out->len; i++) {
		uint64_t frame = unwinding.stack.frames[i];
		const struct file *file = files_at(&ours.files, frame_file(frame));

		out->frames[i].address = frame_address(frame);
		out->frames[i].path = file && file->path ? file->path : "";
	}
}
