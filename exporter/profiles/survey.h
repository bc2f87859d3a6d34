/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The survey: finds out which code the processes of workloads run, and tells the kernel side. It
 * asks two helpers, one question after the other: the opener what a process has mapped and for the
 * files of it, the parser for their tables, and for names of functions.
 * What cannot be read is left out: stacks end there, which is counted by the kernel side.
 *
 * Nothing here waits. One thread. Times are CLOCK_MONOTONIC.
 */
#ifndef WORKLOAD_PROFILES_SURVEY_H
#define WORKLOAD_PROFILES_SURVEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "helpers/helper.h"
#include "profiles/files.h"
#include "profiles/opener.h"
#include "profiles/parsed.h"
#include "profiles/processes.h"

enum survey_step {
	SURVEY_RESTS,
	SURVEY_MAPS, /* the opener is asked what a process has mapped, */
	SURVEY_FILE, /* and for a file of that; */
	SURVEY_TABLE, /* the parser is asked for its table, */
	SURVEY_PERF_MAP, /* the opener is asked for the file of names of what a process generates,
			  */
	SURVEY_NAMES, /* and the parser for names */
};

/* Names of functions in a file, or in what a process generates. */
struct survey_wish {
	uint32_t file;
	const uint64_t *frames; /* of that file, which ascend; borrowed until it is done */
	size_t len; /* NAMES_MAX at most are named */
	bool done;
	int result; /* 0 with: */
	struct parsed_names names; /* of the first of them; parsed_names_free() releases */
};

struct survey {
	struct helper *opener, *parser; /* borrowed */
	struct processes processes;
	struct files files;
	enum survey_step step;
	struct tree_process process; /* that is being read, */
	int pidfd; /* and a descriptor of it; owned; -1: none */
	struct opener_range ranges[OPENER_RANGES_MAX]; /* of it */
	struct file *range_files[OPENER_RANGES_MAX]; /* NULL: none, or no room for it */
	size_t ranges_len, at;
	bool frame_pointers; /* of it: it was told to keep them */
	uint32_t vdso; /* number of the file that the kernel maps; 0: none */
	struct survey_wish *wish; /* borrowed; NULL: none */
	struct survey_wish *asked; /* whose names are asked for; NULL: it was given up */
};

/* @store is borrowed, with all of them. 0 or -errno; survey_close() in any case. */
int survey_open(struct survey *survey, struct loader *loader, struct unwind_store *store,
		struct helper *opener, struct helper *parser);
void survey_close(struct survey *survey);

/* Looks which processes there are, and forgets files that nothing has used since @begun_ns. 0 or
 * -errno. */
int survey_walk(struct survey *survey, uint64_t now_ns, uint64_t begun_ns);

/*
 * Takes answers and asks the next question: when a helper's descriptor is readable, or it is due.
 * Whether there was an answer: then what was waited for may be there, and it can go on at once.
 */
bool survey_go_on(struct survey *survey, uint64_t now_ns);

/* Nothing is known any more. */
void survey_forget(struct survey *survey, uint64_t now_ns);

/* When it is to go on although no descriptor is readable; UINT64_MAX: never. */
uint64_t survey_due_ns(const struct survey *survey);

/* Whether the code of all processes that the last walk has met is known, but of deferred ones. */
bool survey_is_done(struct survey *survey, uint64_t now_ns);

/* Whether it then goes on soon with one of them, as a helper was late, or is being replaced. */
bool survey_lacks(const struct survey *survey);

/* Asks for names; survey_go_on() then goes on with that first. One wish at a time. */
void survey_ask(struct survey *survey, struct survey_wish *wish);

/* The wish is given up. */
void survey_give_up(struct survey *survey);

#endif
