/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A survey with an opener and a parser that are processes of their own, as always, and say what a
 * script in shared memory says: or the real ones.
 */
#ifndef TESTS_SURVEYING_H
#define TESTS_SURVEYING_H

#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "features/features.h"
#include "helping.h"
#include "plain_profiles.h"
#include "profiles/survey.h"
#include "stored.h"

#define SURVEY_WAIT_NS (20 * 1000000000ULL)
#define SURVEY_PROCESSES 4
#define SURVEY_ASKED_MAX 64
#define SURVEY_PAGE 0x1000ULL

/* What a helper does instead of its answer. */
enum script_fault {
	SCRIPT_NONE,
	SCRIPT_REFUSE, /* -EACCES */
	SCRIPT_GONE, /* -ESRCH */
	SCRIPT_HANG,
	SCRIPT_END, /* it crashes */
	SCRIPT_RUBBISH, /* bytes that are no answer */
	SCRIPT_LIE, /* a form that is good, and what is not */
};

struct script_process {
	pid_t pid;
	uint32_t ranges_len;
	struct opener_range ranges[4];
};

#define SCRIPT_PERF_MAP UINT64_MAX

/*
 * What was asked, in this order: an inode; 0: what is mapped; SCRIPT_PERF_MAP. Of the parser: enum
 * parser_what.
 */
struct script_log {
	uint64_t asked[SURVEY_ASKED_MAX];
	pid_t pids[SURVEY_ASKED_MAX];
	volatile size_t len;
};

struct script {
	struct script_process processes[SURVEY_PROCESSES];
	volatile enum script_fault maps, file, table, names;
	volatile uint64_t only; /* inode that `file` is about; 0: all */
	volatile enum generator generator; /* that all files are */
	volatile bool perf_map; /* all processes have one */
	volatile int map_error; /* else: -ENOENT, if 0 */
	volatile bool frame_pointers; /* all processes were told to keep them */
	volatile bool demangles_long; /* the parser hangs when it is to demangle names */
	volatile bool held; /* the parser waits with its answers */
	struct script_log opener, parser;
};

/* --- in the helpers ------------------------------------------------------------------------- */

static inline void script_note(struct script_log *log, uint64_t what, pid_t pid)
{
	if (log->len == SURVEY_ASKED_MAX)
		_exit(1);
	log->asked[log->len] = what;
	log->pids[log->len++] = pid;
}

static inline int script_fault(enum script_fault fault, void *answer, size_t bytes)
{
	switch (fault) {
	case SCRIPT_REFUSE:
		return -EACCES;
	case SCRIPT_GONE:
		return -ESRCH;
	case SCRIPT_HANG:
		for (;;)
			pause();
	case SCRIPT_END:
		raise(SIGKILL);
		return 0;
	default:
		memset(answer, 0xa5, bytes);
		return 0;
	}
}

static inline int script_maps(const struct script_process *process, bool frame_pointers,
			      enum script_fault fault, struct opener_shared *shared,
			      struct opener_answer *answer)
{
	memcpy(shared->ranges, process->ranges, sizeof(process->ranges));
	answer->len = process->ranges_len;
	answer->frame_pointers = frame_pointers;
	if (fault == SCRIPT_LIE)
		shared->ranges[0].end = shared->ranges[0].begin;
	return 0;
}

/* The file of inode N is the one that this process runs, and is called /file/N. */
static inline int script_file(uint64_t inode, struct helper_work *work,
			      struct opener_answer *answer)
{
	snprintf(answer->path, sizeof(answer->path), "/file/%d", (int)inode);
	work->answer_fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	return work->answer_fd < 0 ? -errno : 0;
}

static inline int script_open(struct helper_work *work, void *asked, void *answer)
{
	struct script *script = (struct script *)(uintptr_t)work->arg;
	const struct opener_question *question = asked;
	bool file = question->what == OPENER_FILE;
	enum script_fault fault = file ? script->file : script->maps;

	script_note(&script->opener,
		    question->what == OPENER_PERF_MAP ? SCRIPT_PERF_MAP : question->inode,
		    question->pid);
	if (question->what == OPENER_PERF_MAP)
		return script->file        ? script_fault(script->file, answer, sizeof(*question))
		       : script->perf_map  ? script_file(0, work, answer)
		       : script->map_error ? script->map_error
					   : -ENOENT;
	if (file && script->only && question->inode != script->only)
		fault = SCRIPT_NONE;
	if (fault != SCRIPT_NONE && fault != SCRIPT_LIE)
		return script_fault(fault, answer, sizeof(struct opener_answer));
	for (size_t i = 0; i < SURVEY_PROCESSES; i++) {
		if (script->processes[i].pid != question->pid)
			continue;
		return file ? script_file(question->inode, work, answer)
			    : script_maps(&script->processes[i], script->frame_pointers, fault,
					  work->shared, answer);
	}
	return -ESRCH;
}

/* Its code is in page 1 of the file, and linked one page higher. */
static inline void script_table(struct parser_table *table, union parser_shared *shared)
{
	static const struct program_segment segment = { SURVEY_PAGE, 2 * SURVEY_PAGE, SURVEY_PAGE };

	table->program.segments[0] = segment;
	table->program.segments_len = 1;
	table->program.begin = segment.address;
	table->program.end = segment.address + segment.bytes;
	table->rows = table->rules = 1;
	shared->table.rows[0] = (struct unwind_row){ .address = segment.address };
	shared->table.rules[0] = (struct unwind_rule){ 0 };
}

/* A name says which address was asked. */
static inline void script_names(struct names *names, uint32_t len, struct names_found *found)
{
	uint32_t at = 1;

	for (uint32_t i = 0; i < len; i++) {
		int bytes = snprintf(names->texts + at, 32, "at_%lx", names->addresses[i]);

		names->names[i] = (struct name){ at, (uint32_t)bytes, names->addresses[i] };
		at += (uint32_t)bytes + 1;
	}
	found->texts_bytes = at;
}

static inline int script_parse(struct helper_work *work, void *asked, void *out)
{
	struct script *script = (struct script *)(uintptr_t)work->arg;
	const struct parser_question *question = asked;
	struct parser_answer *answer = out;
	bool names = question->what != PARSER_TABLE;
	enum script_fault fault = names ? script->names : script->table;
	union parser_shared *shared = work->shared;

	script_note(&script->parser, question->what, 0);
	while (script->held)
		poll(NULL, 0, 1);
	if (names && script->demangles_long && !question->quick)
		fault = SCRIPT_HANG;
	if (fault != SCRIPT_NONE && fault != SCRIPT_LIE)
		return script_fault(fault, answer, sizeof(*answer));
	answer->what = names ? PARSER_NAMES : PARSER_TABLE;
	if (names)
		script_names(&shared->names, question->len, &answer->names);
	else
		script_table(&answer->table, shared);
	answer->table.program.generator = names ? GENERATOR_NONE : script->generator;
	if (fault == SCRIPT_LIE && names)
		shared->names.names[0].bytes = NAME_BYTES_MAX;
	else if (fault == SCRIPT_LIE)
		shared->table.rows[0].rule = 7;
	return 0;
}

/* --- for tests ------------------------------------------------------------------------------ */

struct surveying {
	struct loader *loader;
	struct stored stored;
	struct script *script;
	struct helper_kind kinds[2];
	struct helper *opener, *parser;
	struct survey survey;
	struct tree_process met[SURVEY_PROCESSES];
	pid_t children[SURVEY_PROCESSES]; /* 0: it has ended */
	size_t len;
};

static inline struct script *script_new(void)
{
	void *script = mmap(NULL, sizeof(struct script), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(script, MAP_FAILED);
	return script;
}

/* Helpers that follow a script, with sizes of the real ones; they are not replaced if @last. */
static inline void script_help(struct script *script, struct helper_kind kinds[static 2], bool last,
			       struct helper **opener, struct helper **parser)
{
	kinds[0] = opener_kind;
	kinds[0].answer = script_open;
	kinds[1] = parser_kind;
	kinds[1].answer = script_parse;
	if (last)
		kinds[0].worker = kinds[1].worker = NULL;
	*opener = helping_start(&kinds[0], script);
	*parser = helping_start(&kinds[1], script);
}

static inline struct loader *surveying_loader(void)
{
	return plain_loader_new(1U << (unsigned int)features_find("profiles") |
					1U << (unsigned int)features_find("discovery"),
				NULL, NULL);
}

static inline void surveying_open(struct surveying *surveying)
{
	surveying->stored = stored_new();
	surveying->loader = surveying_loader();
	cr_assert_eq(survey_open(&surveying->survey, surveying->loader, surveying->stored.store,
				 surveying->opener, surveying->parser),
		     0);
}

static inline struct surveying *surveying_new_with(bool last)
{
	struct surveying *surveying = calloc(1, sizeof(*surveying));

	cr_assert_not_null(surveying);
	surveying->script = script_new();
	script_help(surveying->script, surveying->kinds, last, &surveying->opener,
		    &surveying->parser);
	surveying_open(surveying);
	return surveying;
}

static inline struct surveying *surveying_new(void)
{
	return surveying_new_with(false);
}

static inline struct surveying *surveying_new_real(void)
{
	struct surveying *surveying = calloc(1, sizeof(*surveying));

	cr_assert_not_null(surveying);
	surveying->opener = helping_start(&opener_kind, "/proc");
	surveying->parser = helping_start(&parser_kind, NULL);
	surveying_open(surveying);
	return surveying;
}

static inline void surveying_end(struct surveying *surveying, size_t process)
{
	if (surveying->children[process])
		helping_end(surveying->children[process]);
	surveying->children[process] = 0;
}

/* Also looks that all is given back. */
static inline void surveying_free(struct surveying *surveying)
{
	survey_close(&surveying->survey);
	cr_expect_eq(unwind_store_use(surveying->stored.store).files, 0);
	helper_stop(surveying->opener);
	helper_stop(surveying->parser);
	unwind_store_free(surveying->stored.store);
	plain_loader_free(surveying->loader);
	for (size_t i = 0; i < surveying->len; i++)
		surveying_end(surveying, i);
	free(surveying);
}

/* A process more, which the next walk meets: of a script it maps nothing yet. */
static inline struct tree_process *surveying_add(struct surveying *surveying)
{
	size_t at = surveying->len++;
	pid_t pid = helping_child();

	cr_assert_lt(at, SURVEY_PROCESSES);
	surveying->children[at] = pid;
	surveying->met[at] = (struct tree_process){
		.tgid = (uint32_t)pid,
		.tid = (uint32_t)pid,
		.tree = 1,
	};
	if (surveying->script)
		surveying->script->processes[at].pid = pid;
	return &surveying->met[at];
}

/* It has mapped page 1 and on of a file to @begin. */
static inline void surveying_map(struct surveying *surveying, size_t process, uint64_t begin,
				 uint64_t inode)
{
	struct script_process *script = &surveying->script->processes[process];

	script->ranges[script->ranges_len++] = (struct opener_range){
		.begin = begin,
		.end = begin + SURVEY_PAGE,
		.offset = SURVEY_PAGE,
		.inode = inode,
		.kind = OPENER_RANGE_FILE,
	};
}

static inline void surveying_walk(struct surveying *surveying, uint64_t now_ns)
{
	plain_processes(surveying->loader, surveying->met, surveying->len);
	cr_assert_eq(survey_walk(&surveying->survey, now_ns, now_ns), 0);
}

/* Waits for either helper, as the loop does, and goes on: at the time @ahead_ns from now. */
static inline void surveying_step(struct surveying *surveying, uint64_t ahead_ns)
{
	struct pollfd readable[] = {
		{ .fd = helper_fd(surveying->opener), .events = POLLIN },
		{ .fd = helper_fd(surveying->parser), .events = POLLIN },
	};

	poll(readable, 2, 1);
	survey_go_on(&surveying->survey, clock_monotonic_ns() + ahead_ns);
}

static inline void surveying_run_at(struct surveying *surveying, uint64_t ahead_ns)
{
	uint64_t end_ns = clock_monotonic_ns() + SURVEY_WAIT_NS;

	survey_go_on(&surveying->survey, clock_monotonic_ns() + ahead_ns);
	while (!survey_is_done(&surveying->survey, clock_monotonic_ns() + ahead_ns)) {
		cr_assert_lt(clock_monotonic_ns(), end_ns, "it does not come to an end");
		surveying_step(surveying, ahead_ns);
	}
}

static inline void surveying_run(struct surveying *surveying)
{
	surveying_run_at(surveying, 0);
}

/* What the kernel side was told of a process; the test fails if nothing. */
static inline const struct process_code *surveying_code(struct surveying *surveying, size_t process)
{
	pid_t pid = (pid_t)surveying->met[process].tgid;
	struct code_slot slot = plain_slot(surveying->loader, pid);

	cr_assert_neq(slot.slot, 0, "process %zu was told nothing", process);
	cr_assert_eq(slot.exec_id, surveying->met[process].exec_id);
	return plain_at(surveying->loader, "process_code", slot.slot);
}

/* The file that its range @i is of; NULL: none. */
static inline const struct file *surveying_file(struct surveying *surveying, size_t process,
						size_t i)
{
	const struct process_code *code = surveying_code(surveying, process);

	cr_assert_lt(i, code->len);
	return files_at(&surveying->survey.files, code->ranges[i].file);
}

static inline size_t script_times(const struct script_log *log, uint64_t what)
{
	size_t times = 0;

	for (size_t i = 0; i < log->len; i++)
		times += log->asked[i] == what;
	return times;
}

#endif
