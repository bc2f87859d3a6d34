/* SPDX-License-Identifier: Apache-2.0 */
#include "profiles/page.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "base/units.h"
#include "profiles/folded.h"
#include "profiles/pprof.h"

#define SECONDS_DEFAULT 30U
#define SETTLE_NS (3 * NS_PER_S) /* clients expect an answer soon after what they asked for */

/* What a client wants. */
struct wanted {
	uint64_t seconds;
	enum profile_kind kind;
	const char *workload; /* borrowed from the request */
	bool folded; /* else pprof */
};

/* A client that waits. */
struct waiting {
	struct http_later *later;
	struct profiler_run *run;
	bool folded;
};

/* --- what is asked -------------------------------------------------------------------------- */

static bool seconds_parse(const char *text, uint64_t *seconds)
{
	return !text_parse_u64(&text, seconds) && !*text && *seconds &&
	       *seconds <= PROFILE_SECONDS_MAX;
}

static const char *argument_read(const struct http_argument *argument, struct wanted *wanted)
{
	if (!strcmp(argument->name, "seconds"))
		return seconds_parse(argument->value, &wanted->seconds)
			       ? NULL
			       : "seconds: a whole number from 1 to 60\n";
	if (!strcmp(argument->name, "workload")) {
		wanted->workload = argument->value;
	} else if (!strcmp(argument->name, "format")) {
		wanted->folded = !strcmp(argument->value, "folded");
		if (!wanted->folded && strcmp(argument->value, "pprof") != 0)
			return "format: pprof or folded\n";
	}
	return NULL;
}

/* What is wrong, as a line to be told to the client; NULL: nothing. */
static const char *wanted_read(const struct http_request *request, struct wanted *wanted)
{
	const char *wrong = NULL;

	wanted->seconds = SECONDS_DEFAULT;
	wanted->workload = "";
	for (size_t i = 0; !wrong && i < request->arguments_len; i++)
		wrong = argument_read(&request->arguments[i], wanted);
	return wrong;
}

/* --- what is answered ----------------------------------------------------------------------- */

static void waiting_gone(void *arg)
{
	struct waiting *waiting = arg;

	profiler_give_up(waiting->run);
	free(waiting);
}

static void waiting_answer(void *arg, int error, const struct profile *profile)
{
	_cleanup_(buffer_free) struct buffer out = BUFFER_INIT(PPROF_BYTES_MAX);
	struct waiting *waiting = arg;
	struct http_page page = { 0 };

	if (profile && waiting->folded) {
		folded_write(profile, &out);
		error = out.error;
	} else if (profile) {
		error = pprof_write_gzip(profile, &out);
	}
	if (!error)
		http_page_bytes(&page, 200,
				waiting->folded ? HTTP_CONTENT_TYPE_PLAIN
						: "application/octet-stream",
				&out);
	else if (error == -E2BIG || error == -ENOBUFS)
		http_page_text(&page, 503,
			       "the profile is too large: ask for one workload, or less time\n");
	http_later_answer(waiting->later, page.body ? &page : NULL);
	free(waiting);
}

static int waiting_begin(struct waiting *waiting, struct profiler *profiler,
			 const struct wanted *wanted)
{
	const struct profiler_order order = {
		.kind = wanted->kind,
		.workload = wanted->workload,
		.seconds = wanted->seconds,
		.settle_ns = SETTLE_NS,
		.taken = waiting_answer,
		.arg = waiting,
	};

	waiting->folded = wanted->folded;
	return profiler_begin(profiler, &order, &waiting->run);
}

int profile_page(struct profiler *profiler, enum profile_kind kind,
		 const struct http_request *request, struct http_page *page)
{
	struct wanted wanted = { .kind = kind };
	const char *wrong = wanted_read(request, &wanted);
	struct waiting *waiting;
	int r;

	if (wrong)
		return http_page_text(page, 400, wrong);
	if (*wanted.workload && !profiler_knows(profiler, wanted.workload))
		return http_page_text(page, 404, "no workload has this name: / lists them\n");
	if (!request->later)
		return -EAGAIN;
	waiting = calloc(1, sizeof(*waiting));
	if (!waiting)
		return -ENOMEM;
	r = waiting_begin(waiting, profiler, &wanted);
	if (r) {
		free(waiting);
		return r;
	}
	waiting->later = request->later;
	waiting->later->gone = waiting_gone;
	waiting->later->arg = waiting;
	return HTTP_LATER;
}
