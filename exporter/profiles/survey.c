/* SPDX-License-Identifier: Apache-2.0 */
#include "profiles/survey.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/cleanup.h"
#include "base/units.h"
#include "base/utf8.h"
#include "profiles/generated.h"
#include "profiles/wish.h"

#define VDSO_BYTES 16384U /* as the kernel maps it: two to four pages */
#define FILE_TRIES 5U /* of one at which the opener is late: if it hangs, others wait for that */

/* --- a process is known --------------------------------------------------------------------- */

static void files_release(struct survey *survey, uint64_t now_ns)
{
	for (size_t i = 0; i < survey->ranges_len; i++)
		if (survey->range_files[i])
			file_release(survey->range_files[i], now_ns);
	survey->ranges_len = 0;
}

/* The code of a range; of no file where that cannot be told. */
static struct code_range range_code(const struct survey *survey, size_t i)
{
	const struct opener_range *range = &survey->ranges[i];
	const struct file *file = survey->range_files[i];
	const struct file_mapping mapping = { range->begin, range->end, range->offset };
	struct code_range code = { .begin = range->begin, .end = range->end };
	uint64_t bias;

	if (range->kind == OPENER_RANGE_VDSO) {
		code.file = survey->vdso;
		code.bias = range->begin;
	} else if (file && file->generated) {
		code.file = file->number;
	} else if (file && file->number && file_bias(file, &mapping, &bias)) {
		code.file = file->number;
		code.bias = bias;
	}
	return code;
}

static size_t files_take(struct survey *survey, struct file ***files)
{
	size_t len = 0;

	*files = calloc(survey->ranges_len + 1, sizeof(struct file *));
	if (!*files)
		return 0;
	for (size_t i = 0; i < survey->ranges_len; i++)
		if (survey->range_files[i])
			(*files)[len++] = survey->range_files[i];
	return len;
}

/* When the first of them is to be asked for again; 0: none is. */
static uint64_t files_again_ns(const struct survey *survey)
{
	uint64_t again_ns = 0;

	for (size_t i = 0; i < survey->ranges_len; i++) {
		const struct file *file = survey->range_files[i];

		if (file && file->again_ns && !file->tried &&
		    (!again_ns || file->again_ns < again_ns))
			again_ns = file->again_ns;
	}
	return again_ns;
}

static void process_known(struct survey *survey, uint64_t now_ns)
{
	struct process *process = processes_find(&survey->processes, &survey->process);
	struct code_range ranges[OPENER_RANGES_MAX];
	struct file **files = NULL;
	size_t len;

	survey->step = SURVEY_RESTS;
	generated_take(&survey->files, &survey->process, survey->frame_pointers, survey->ranges,
		       survey->range_files, survey->ranges_len);
	len = process ? files_take(survey, &files) : 0;
	if (!files) {
		files_release(survey, now_ns);
		return;
	}
	for (size_t i = 0; i < survey->ranges_len; i++)
		ranges[i] = range_code(survey, i);
	process->late = 0;
	process->partial = survey->at < survey->ranges_len;
	process->again_ns = files_again_ns(survey);
	process_tell(&survey->processes, process, survey->pidfd, ranges, survey->ranges_len, files,
		     len);
	survey->ranges_len = 0;
}

/* --- questions ------------------------------------------------------------------------------ */

static void maps_ask(struct survey *survey, struct process *process, uint64_t now_ns)
{
	const struct opener_question question = {
		.what = OPENER_MAPS,
		.pid = (int32_t)process->identity.tgid,
		.start_ns = process->identity.start_ns,
	};

	process->read_ns = now_ns;
	process->again_ns = 0;
	survey->process = process->identity;
	cleanup_close(&survey->pidfd);
	survey->pidfd = process_open(process);
	if (survey->pidfd >= 0 && !helper_ask(survey->opener, &question, now_ns + OPENER_NS))
		survey->step = SURVEY_MAPS;
}

static bool file_is_wanted(const struct survey *survey, size_t i, uint64_t now_ns)
{
	const struct file *file = survey->range_files[i];

	return file && !file->tried && now_ns >= file->again_ns;
}

static int range_ask(struct survey *survey, uint64_t now_ns)
{
	const struct opener_question question = {
		.what = OPENER_FILE,
		.pid = (int32_t)survey->process.tgid,
		.start_ns = survey->process.start_ns,
		.begin = survey->ranges[survey->at].begin,
		.inode = survey->ranges[survey->at].inode,
	};

	return helper_ask(survey->opener, &question, now_ns + OPENER_NS);
}

/*
 * Asks for the next file of the process that is not known yet. Without one it is known; for now
 * also while names are wished for, which may be waited for, and while a helper is being replaced.
 */
static void file_ask(struct survey *survey, uint64_t now_ns)
{
	while (survey->at < survey->ranges_len && !file_is_wanted(survey, survey->at, now_ns))
		survey->at++;
	if (survey->at == survey->ranges_len || survey->wish || !helper_is_ready(survey->parser) ||
	    range_ask(survey, now_ns)) {
		process_known(survey, now_ns);
		return;
	}
	survey->range_files[survey->at]->tried = true;
	survey->step = SURVEY_FILE;
}

/*
 * Another process may have it where this one has not. An opener that is late has had no CPU, or
 * hangs there, as others would.
 */
static void file_miss(struct survey *survey, int result, uint64_t now_ns)
{
	struct file *file = survey->range_files[survey->at];

	file->late += result == -ETIMEDOUT;
	file->tried = file->late >= FILE_TRIES;
	file->again_ns = result == -ETIMEDOUT ? process_again_ns(file->late, now_ns) : 0;
	survey->at++;
	file_ask(survey, now_ns);
}

/* @table NULL: none. A file for which the store has no room has no number. */
static void file_settle(struct survey *survey, const struct unwind_table *table, uint64_t now_ns)
{
	static const struct unwind_table none;
	struct file *file = survey->range_files[survey->at];

	if (!table || files_settle(&survey->files, file, table))
		files_settle(&survey->files, file, &none);
	file_ask(survey, now_ns);
}

static void table_ask(struct survey *survey, int fd, uint64_t now_ns)
{
	const struct parser_question question = { .what = PARSER_TABLE };

	survey->step = SURVEY_TABLE;
	if (helper_ask_with(survey->parser, &question, fd, now_ns + PARSER_NS))
		file_settle(survey, NULL, now_ns);
}

/* --- answers -------------------------------------------------------------------------------- */

static void maps_miss(struct survey *survey, int result, uint64_t now_ns)
{
	struct process *process = processes_find(&survey->processes, &survey->process);

	survey->step = SURVEY_RESTS;
	if (process && result == -ETIMEDOUT)
		process->again_ns = process_again_ns(++process->late, now_ns);
}

static void maps_take(struct survey *survey, const struct opener_answer *answer, uint64_t now_ns)
{
	survey->ranges_len = 0;
	survey->at = 0;
	if (opener_ranges(survey->opener, answer, survey->ranges)) {
		survey->step = SURVEY_RESTS;
		return;
	}
	survey->ranges_len = answer->len;
	survey->frame_pointers = answer->frame_pointers;
	for (size_t i = 0; i < survey->ranges_len; i++) {
		const struct opener_range *range = &survey->ranges[i];
		const struct file_key key = {
			.inode = range->inode,
			.path_hash = range->path_hash,
			.dev_major = range->dev_major,
			.dev_minor = range->dev_minor,
		};

		survey->range_files[i] = range->kind == OPENER_RANGE_FILE
						 ? files_use(&survey->files, &key)
						 : NULL;
	}
	file_ask(survey, now_ns);
}

static void file_take(struct survey *survey, const struct opener_answer *answer, int fd,
		      uint64_t now_ns)
{
	struct file *file = survey->range_files[survey->at];
	char path[OPENER_PATH_LEN];

	utf8_copy(path, sizeof(path), answer->path); /* formats are of characters */
	file->path = strdup(path);
	file->executable = answer->executable;
	file->fd = fd;
	table_ask(survey, fd, now_ns);
}

static void table_take(struct survey *survey, const struct parser_answer *answer, uint64_t now_ns)
{
	const union parser_shared *shared = helper_shared(survey->parser);
	_cleanup_(unwind_table_free) struct unwind_table table = { 0 };
	int r = parsed_table(answer, shared, &table);

	if (!r || r == -ENODATA)
		survey->range_files[survey->at]->program = answer->table.program;
	helper_shared_clear(survey->parser);
	file_settle(survey, r ? NULL : &table, now_ns);
}

/* Whether there was one, good or bad. */
static bool opener_answered(struct survey *survey, uint64_t now_ns)
{
	_cleanup_(cleanup_close) int fd = -1;
	struct opener_answer answer;
	int r = helper_take_with(survey->opener, now_ns, &answer, &fd);

	if (r == -EAGAIN)
		return false;
	if (survey->step == SURVEY_MAPS && !r)
		maps_take(survey, &answer, now_ns);
	else if (survey->step == SURVEY_MAPS)
		maps_miss(survey, r, now_ns);
	else if (survey->step == SURVEY_FILE && !r && fd >= 0)
		file_take(survey, &answer, TAKE_FD(fd), now_ns);
	else if (survey->step == SURVEY_FILE)
		file_miss(survey, r, now_ns);
	else if (survey->step == SURVEY_PERF_MAP)
		wish_map_take(survey, r ? r : TAKE_FD(fd), now_ns);
	return r != -EPIPE;
}

static bool parser_answered(struct survey *survey, uint64_t now_ns)
{
	struct parser_answer answer;
	int r = helper_take(survey->parser, now_ns, &answer);

	if (r == -EAGAIN)
		return false;
	if (r)
		helper_shared_clear(survey->parser); /* what one that was ended has left */
	if (survey->step == SURVEY_TABLE && !r)
		table_take(survey, &answer, now_ns);
	else if (survey->step == SURVEY_TABLE)
		file_settle(survey, NULL, now_ns);
	else if (survey->step == SURVEY_NAMES && !r)
		wish_names_take(survey, &answer);
	else if (survey->step == SURVEY_NAMES)
		wish_names_fail(survey, r, now_ns);
	return r != -EPIPE;
}

/* --- as a whole ----------------------------------------------------------------------------- */

/* Those that have ended since the last walk keep no other one waiting. */
static void next_ask(struct survey *survey, uint64_t now_ns)
{
	struct process *process;

	if (survey->wish) {
		wish_ask(survey, now_ns);
		return;
	}
	while (survey->step == SURVEY_RESTS && helper_is_ready(survey->opener) &&
	       helper_is_ready(survey->parser)) {
		process = processes_next(&survey->processes, now_ns);
		if (!process)
			return;
		maps_ask(survey, process, now_ns);
	}
}

bool survey_go_on(struct survey *survey, uint64_t now_ns)
{
	bool answered = opener_answered(survey, now_ns);

	answered |= parser_answered(survey, now_ns);
	if (survey->step == SURVEY_RESTS)
		next_ask(survey, now_ns);
	return answered;
}

void survey_forget(struct survey *survey, uint64_t now_ns)
{
	processes_forget(&survey->processes, now_ns);
	files_sweep(&survey->files, UINT64_MAX);
}

uint64_t survey_due_ns(const struct survey *survey)
{
	uint64_t opener = helper_due_ns(survey->opener), parser = helper_due_ns(survey->parser);

	return opener < parser ? opener : parser;
}

bool survey_is_done(struct survey *survey, uint64_t now_ns)
{
	const struct process *next = processes_next(&survey->processes, now_ns);
	const struct process *process;

	if (next && !next->deferred)
		return false;
	if (survey->step == SURVEY_RESTS)
		return true;
	process = processes_find(&survey->processes, &survey->process);
	return process && process->deferred;
}

bool survey_lacks(const struct survey *survey)
{
	return processes_lack(&survey->processes);
}

void survey_ask(struct survey *survey, struct survey_wish *wish)
{
	wish->done = false;
	survey->wish = wish;
}

void survey_give_up(struct survey *survey)
{
	survey->wish = NULL;
	survey->asked = NULL;
}

int survey_walk(struct survey *survey, uint64_t now_ns, uint64_t begun_ns)
{
	int r = processes_walk(&survey->processes, now_ns);

	files_sweep(&survey->files, begun_ns);
	return r;
}

/* Its image is the same in every process, and the kernel's: it need not be read elsewhere. */
static void vdso_settle(struct survey *survey)
{
	const void *image = (const void *)getauxval(AT_SYSINFO_EHDR); /* NOLINT: an address */
	_cleanup_(unwind_table_free) struct unwind_table table = { 0 };
	static const struct file_key key = { 0 }; /* no file has inode 0 */
	static const struct unwind_table none;
	struct file *file;
	bool made;

	if (!image)
		return;
	made = !unwind_table_make(image, VDSO_BYTES, &table); /* arm64 gives none (vdso.lds.S) */
	file = files_use(&survey->files, &key);
	if (!file)
		return;
	file->tried = true;
	file->path = strdup("[vdso]");
	if (!files_settle(&survey->files, file, made ? &table : &none))
		survey->vdso = file->number;
}

int survey_open(struct survey *survey, struct loader *loader, struct unwind_store *store,
		struct helper *opener, struct helper *parser)
{
	int r;

	*survey = (struct survey){
		.opener = opener,
		.parser = parser,
		.files.store = store,
		.pidfd = -1,
	};
	r = processes_open(&survey->processes, loader);
	if (!r)
		vdso_settle(survey);
	return r;
}

void survey_close(struct survey *survey)
{
	files_release(survey, 0);
	cleanup_close(&survey->pidfd);
	processes_free(&survey->processes);
	files_free(&survey->files);
}
