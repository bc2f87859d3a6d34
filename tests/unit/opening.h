/* SPDX-License-Identifier: Apache-2.0 */
/* A process that maps files, and the opener's answers about it, asked in the process of the test.
 */
#ifndef TESTS_OPENING_H
#define TESTS_OPENING_H

#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "profiles/opener.h"
#include "security/privileges.h"

#define OPENED_PAGE 4096U

/* A folder of files, and a child that has mapped what a test wants. */
struct opening {
	char folder[32];
	pid_t child;
};

static inline struct opening opening_make(void)
{
	struct opening opening = { .folder = "/tmp/opener-XXXXXX" };

	cr_assert_not_null(mkdtemp(opening.folder));
	return opening;
}

static inline void opening_end_child(struct opening *opening)
{
	if (opening->child) {
		kill(opening->child, SIGKILL);
		waitpid(opening->child, NULL, 0);
	}
	opening->child = 0;
}

static inline void opening_remove(struct opening *opening)
{
	char command[64];

	opening_end_child(opening);
	snprintf(command, sizeof(command), "rm -r %s", opening->folder);
	cr_assert_eq(system(command), 0);
}

/* The path of @name in the folder; static, until the next but three. */
static inline const char *opening_path(const struct opening *opening, const char *name)
{
	static char paths[4][512];
	static size_t next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", opening->folder, name);
	return path;
}

/* A file of four pages. */
static inline int opening_file(const struct opening *opening, const char *name)
{
	int fd = open(opening_path(opening, name), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0755);

	cr_assert_geq(fd, 0, "%s", name);
	cr_assert_eq(ftruncate(fd, 4 * OPENED_PAGE), 0);
	return fd;
}

/* Maps pages of a file to be run; in the child, and at an address that it has from @reserve. */
static inline void opening_map(char *at, int fd, size_t pages, size_t page)
{
	void *mapped = mmap(at, pages * OPENED_PAGE, PROT_READ | PROT_EXEC,
			    MAP_PRIVATE | MAP_FIXED | (fd < 0 ? MAP_ANONYMOUS : 0), fd,
			    (off_t)(page * OPENED_PAGE));

	if (mapped == MAP_FAILED)
		_exit(1);
}

/* Where nothing else is mapped, here and in children: @pages that cannot be used yet. */
static inline char *opening_reserve(size_t pages)
{
	char *place = mmap(NULL, pages * OPENED_PAGE, PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	cr_assert_neq((void *)place, MAP_FAILED);
	return place;
}

/* Starts the child, and waits until it has called @map. */
static inline void opening_start(struct opening *opening, void (*map)(void *arg), void *arg)
{
	int ready[2];
	char byte;

	cr_assert_eq(pipe2(ready, O_CLOEXEC), 0);
	opening->child = fork();
	cr_assert_geq(opening->child, 0);
	if (!opening->child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* also when the test fails */
		map(arg);
		(void)!write(ready[1], "", 1);
		for (;;)
			pause();
	}
	close(ready[1]);
	cr_assert_eq(read(ready[0], &byte, 1), 1);
	close(ready[0]);
}

struct opened {
	int result, fd; /* owned */
	struct opener_answer answer;
	struct opener_shared shared;
};

static inline struct opened opened_of(const char *proc_root, struct opener_question question)
{
	struct opened opened = { .fd = -1 };
	struct helper_work work = {
		.arg = proc_root,
		.shared = &opened.shared,
		.fd = -1,
		.answer_fd = -1,
	};

	opened.result = opener_kind.answer(&work, &question, &opened.answer);
	opened.fd = work.answer_fd;
	if (!opened.result)
		cr_assert(opener_kind.check(&opened.answer));
	else
		cr_assert_eq(opened.fd, -1);
	return opened;
}

/* In a child: exits with the error of the answer, or with 0. */
static inline void opened_as_nobody(const char *proc_root, struct opener_question question,
				    uint64_t capabilities, uint64_t held)
{
	const struct user nobody = { .become = true, .uid = 65534, .gid = 65534 };
	struct helper_work work = { .arg = proc_root, .held = held, .fd = -1, .answer_fd = -1 };
	struct opener_answer answer;
	struct privileges mine = { 0 };
	int r = capabilities_drop(capabilities, held, &nobody);

	if (!r)
		r = opener_kind.answer(&work, &question, &answer);
	if (privileges_read("/proc", &mine) || mine.effective & held)
		r = -EEXIST;
	_exit(-r);
}

/*
 * What is answered to a user that owns nothing, with @capabilities, and with @held to be raised;
 * -EEXIST: those are in effect afterwards. Takes root.
 */
static inline int opened_by_nobody(const char *proc_root, struct opener_question question,
				   uint64_t capabilities, uint64_t held)
{
	pid_t pid = fork();
	int status;

	cr_assert_geq(pid, 0);
	if (!pid)
		opened_as_nobody(proc_root, question, capabilities, held);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status));
	return -WEXITSTATUS(status);
}

static inline struct opened opened_maps(const struct opening *opening)
{
	return opened_of("/proc", (struct opener_question){ OPENER_MAPS, .pid = opening->child });
}

/* For the file of that range. */
static inline struct opener_question opened_question(const struct opening *opening,
						     const struct opener_range *range)
{
	return (struct opener_question){ OPENER_FILE, .pid = opening->child, .begin = range->begin,
					 .inode = range->inode };
}

static inline struct opened opened_file(const struct opening *opening,
					const struct opener_range *range)
{
	return opened_of("/proc", opened_question(opening, range));
}

static inline void opened_close(const struct opened *opened)
{
	if (opened->fd >= 0)
		close(opened->fd);
}

/* The range that begins at @address; NULL. */
static inline const struct opener_range *opened_at(const struct opened *opened, const void *address)
{
	for (uint32_t i = 0; i < opened->answer.len; i++)
		if (opened->shared.ranges[i].begin == (uintptr_t)address)
			return &opened->shared.ranges[i];
	return NULL;
}

#endif
