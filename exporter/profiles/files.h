/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files that processes run: their tables in the store, and what it takes to name their
 * functions. A file has one number for as long as a process runs it, or a profile has it in a
 * stack. Files of equal keys are one: what a process has mapped keeps its inode, and an open file
 * does, so neither is given to another file meanwhile.
 *
 * One thread. Times are CLOCK_MONOTONIC.
 */
#ifndef WORKLOAD_PROFILES_FILES_H
#define WORKLOAD_PROFILES_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profiles/program.h"
#include "unwind/store.h"

#define HASH_NONFATAL_OOM 1 /* an element that could not be added has hh.tbl == NULL */
#include <uthash.h>

/* Of files, each of which is open, so that it can be named; and as many of those that stand for
 * code of processes. */
#define FILES_MAX 512U

/* As /proc/PID/maps tells it. */
struct file_key {
	uint64_t inode, path_hash;
	uint32_t dev_major, dev_minor;
};

struct file {
	struct file_key key;
	uint64_t id; /* of no other file, ever */
	uint32_t number; /* in the store; 0: it has not been read */
	int fd; /* owned; -1: it could not be opened */
	char *path; /* owned; NULL as long as it is not known */
	bool executable; /* a process was started from it */
	struct program program; /* of one that has a number; zeros: it could not be read */
	bool tried; /* it was asked for: not again */
	unsigned int late; /* how often the answer was not there in time */
	uint64_t again_ns; /* if it was not the last time: when it may be asked for again */
	uint64_t quick_until_ns; /* its names are asked for so until then: all took too long */
	bool generated; /* it stands for code of a process (profiles/generated.h) */
	bool map_denied; /* then: its names may not be read */
	uint32_t users; /* processes */
	uint64_t released_ns; /* when the last one went */
	UT_hash_handle hh;
};

struct files {
	struct unwind_store *store; /* borrowed */
	struct file *by_key;
	struct file *numbers[UNWIND_FILES_MAX];
	size_t len, generated_len; /* the latter not among the former */
	uint64_t ids; /* that were given */
};

/* One user more of the file with this key, which is made if there is none. NULL: no room for it. */
struct file *files_use(struct files *files, const struct file_key *key);

/* The same of one that stands for code of a process; its key is of no other file. */
struct file *files_use_generated(struct files *files, const struct file_key *key);
void file_release(struct file *file, uint64_t now_ns);

/* @file, which has no number yet, gets one, with its table; rows may be none. 0; as
 * unwind_store_add(). */
int files_settle(struct files *files, struct file *file, const struct unwind_table *table);

/* NULL: there is none. */
struct file *files_at(const struct files *files, uint32_t number);

/* A part of a file, from @offset on, that a process has mapped to @begin up to @end. */
struct file_mapping {
	uint64_t begin, end, offset;
};

/* What is to be added to an address of @file as linked; false: that part is not to be run. */
bool file_bias(const struct file *file, const struct file_mapping *mapping, uint64_t *bias);

/* Removes those that are without users since before @begun_ns. */
void files_sweep(struct files *files, uint64_t begun_ns);

void files_free(struct files *files);

#endif
