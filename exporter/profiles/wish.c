/* SPDX-License-Identifier: Apache-2.0 */
#include "profiles/wish.h"

#include <errno.h>
#include <stdlib.h>

#include "abi/profiles.h"
#include "base/cleanup.h"
#include "base/units.h"
#include "profiles/generated.h"

#define NAMES_NS (10 * NS_PER_S) /* of the CPU a sane file takes less than one */
#define QUICK_NS (600 * NS_PER_S) /* until its names are worth that again */

/* --- questions ------------------------------------------------------------------------------ */

static void wish_end(struct survey *survey, int result)
{
	survey->wish->result = result;
	survey->wish->done = true;
	survey->wish = NULL;
	survey->asked = NULL;
	survey->step = SURVEY_RESTS;
}

/* How many are asked for; where they are is written to @addresses. */
static size_t wish_addresses(const struct survey_wish *wish, uint64_t *addresses)
{
	size_t len = wish->len < NAMES_MAX ? wish->len : NAMES_MAX;

	for (size_t i = 0; i < len; i++)
		addresses[i] = frame_address(wish->frames[i]);
	return len;
}

static void names_ask_of(struct survey *survey, const struct file *file, uint64_t now_ns)
{
	union parser_shared *shared = helper_shared(survey->parser);
	struct survey_wish *wish = survey->wish;
	struct parser_question question = { .what = PARSER_NAMES };
	bool quick;
	int r;

	if (!file || file->fd < 0) {
		wish_end(survey, -ENOENT);
		return;
	}
	if (file->generated)
		question.what = PARSER_PERF_MAP;
	quick = now_ns < file->quick_until_ns;
	question.quick = quick;
	question.len = (uint32_t)wish_addresses(wish, shared->names.addresses);
	survey->step = SURVEY_NAMES;
	survey->asked = wish;
	r = helper_ask_with(survey->parser, &question, file->fd,
			    now_ns + (quick ? PARSER_NS : NAMES_NS));
	if (r == -EBUSY)
		survey->step = SURVEY_RESTS; /* it is being replaced */
	else if (r)
		wish_end(survey, r);
}

/*
 * The file of names may be there only since a moment, or be another one by now. Not asked while
 * one of both is replaced; without an opener, and of what has ended, it is the one there was.
 */
static void perf_map_ask(struct survey *survey, const struct file *file, uint64_t now_ns)
{
	const struct tree_process process = generated_process(file);
	const struct opener_question question = {
		.what = OPENER_PERF_MAP,
		.pid = (int32_t)process.tgid,
		.start_ns = process.start_ns,
	};
	int r = -ESRCH;

	if (helper_alive(survey->parser) && !helper_is_ready(survey->parser))
		return;
	if (processes_find(&survey->processes, &process))
		r = helper_ask(survey->opener, &question, now_ns + OPENER_NS);
	if (r == -EBUSY)
		return;
	if (r) {
		names_ask_of(survey, file, now_ns);
		return;
	}
	survey->step = SURVEY_PERF_MAP;
	survey->asked = survey->wish;
}

void wish_ask(struct survey *survey, uint64_t now_ns)
{
	const struct file *file = files_at(&survey->files, survey->wish->file);

	if (file && file->generated)
		perf_map_ask(survey, file, now_ns);
	else
		names_ask_of(survey, file, now_ns);
}

/* --- answers -------------------------------------------------------------------------------- */

void wish_names_take(struct survey *survey, const struct parser_answer *answer)
{
	struct survey_wish *wish = survey->asked;
	_cleanup_(cleanup_free) uint64_t *addresses = NULL;
	size_t len;
	int r = -ENOMEM;

	survey->step = SURVEY_RESTS;
	if (!wish)
		return; /* it was given up */
	addresses = calloc(NAMES_MAX, sizeof(*addresses));
	if (addresses) {
		len = wish_addresses(wish, addresses);
		r = parsed_names(answer, helper_shared(survey->parser), addresses, len,
				 &wish->names);
	}
	wish_end(survey, r);
}

void wish_names_fail(struct survey *survey, int error, uint64_t now_ns)
{
	struct survey_wish *wish = survey->asked;
	struct file *file = wish ? files_at(&survey->files, wish->file) : NULL;

	survey->step = SURVEY_RESTS;
	if (wish && (error != -ETIMEDOUT || !file || now_ns < file->quick_until_ns)) {
		wish_end(survey, error);
		return;
	}
	if (file)
		file->quick_until_ns = now_ns + QUICK_NS;
	survey->asked = NULL;
}

void wish_map_take(struct survey *survey, int given, uint64_t now_ns)
{
	_cleanup_(cleanup_close) int fd = given < 0 ? -1 : given;
	struct file *file;

	survey->step = SURVEY_RESTS;
	if (!survey->asked || survey->asked != survey->wish)
		return; /* it was given up */
	file = files_at(&survey->files, survey->wish->file);
	if (file)
		file->map_denied = given == -EACCES;
	if (fd >= 0 && file && file->generated) {
		cleanup_close(&file->fd);
		file->fd = TAKE_FD(fd);
	}
	names_ask_of(survey, file, now_ns);
}
