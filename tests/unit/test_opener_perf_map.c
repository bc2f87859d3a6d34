/* SPDX-License-Identifier: Apache-2.0 */
/* The opener asked for perf maps: in a /proc that is made up, and of a real process. */
#include <criterion/criterion.h>

#include <errno.h>

#include "base/cleanup.h"
#include "opening.h"

#define OTHERS 12345U /* a user that is not that of the test */

static void file_write(const struct opening *opening, const char *name, const char *text)
{
	FILE *file = fopen(opening_path(opening, name), "we");

	cr_assert_not_null(file, "%s", name);
	fputs(text, file);
	fclose(file);
}

/* Process 7, which is number 3 in its own pid namespace, of @uid. */
static struct opening proc_make(uint32_t uid, const char *numbers)
{
	struct opening opening = opening_make();
	char status[128];

	mkdir(opening_path(&opening, "7"), 0755);
	mkdir(opening_path(&opening, "7/root"), 0755);
	mkdir(opening_path(&opening, "7/root/tmp"), 0755);
	file_write(&opening, "7/stat",
		   "7 (made up) S 1 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 5 6 7 8\n");
	snprintf(status, sizeof(status), "Name:\tmade up\n%sUid:\t%u\t%u\t%u\t%u\n", numbers, uid,
		 uid, uid, uid);
	file_write(&opening, "7/status", status);
	return opening;
}

static int ask_of(const char *proc_root, pid_t pid)
{
	struct opened opened = opened_of(proc_root,
					 (struct opener_question){ OPENER_PERF_MAP, .pid = pid });

	if (opened.fd >= 0)
		close(opened.fd);
	return opened.result;
}

Test(opener_perf_map, is_called_by_the_number_that_the_process_has_in_its_own_namespace)
{
	struct opening opening = proc_make(getuid(), "NSpid:\t7\t12\t3\n");

	cr_expect_eq(ask_of(opening.folder, 7), -ENOENT);
	file_write(&opening, "7/root/tmp/perf-7.map", "");
	file_write(&opening, "7/root/tmp/perf-12.map", "");
	cr_expect_eq(ask_of(opening.folder, 7), -ENOENT);
	file_write(&opening, "7/root/tmp/perf-3.map", "");
	cr_expect_eq(ask_of(opening.folder, 7), 0);
	cr_expect_eq(ask_of(opening.folder, 8), -ESRCH);
	opening_remove(&opening);
}

Test(opener_perf_map, is_nothing_but_a_file)
{
	struct opening opening = proc_make(getuid(), "NSpid:\t3\n");
	const char *path = opening_path(&opening, "7/root/tmp/perf-3.map");

	file_write(&opening, "file", "");
	cr_assert_eq(symlink(opening_path(&opening, "file"), path), 0);
	cr_expect_eq(ask_of(opening.folder, 7), -ENOENT);
	unlink(path);
	cr_assert_eq(mkfifo(path, 0644), 0);
	cr_expect_eq(ask_of(opening.folder, 7), -ENOENT);
	unlink(path);
	cr_assert_eq(mkdir(path, 0755), 0);
	cr_expect_eq(ask_of(opening.folder, 7), -ENOENT);
	opening_remove(&opening);
}

/* What another user of the machine has put there would name functions as that user likes. */
Test(opener_perf_map, is_of_the_user_that_runs_the_process_or_of_root)
{
	struct opening opening = proc_make(OTHERS, "NSpid:\t3\n");
	const char *path = opening_path(&opening, "7/root/tmp/perf-3.map");

	if (geteuid()) {
		opening_remove(&opening);
		cr_skip_test("only root can give files away");
	}
	file_write(&opening, "7/root/tmp/perf-3.map", "");
	cr_expect_eq(ask_of(opening.folder, 7), 0);
	cr_assert_eq(chown(path, OTHERS, OTHERS), 0);
	cr_expect_eq(ask_of(opening.folder, 7), 0);
	cr_assert_eq(chown(path, OTHERS + 1, OTHERS), 0);
	cr_expect_eq(ask_of(opening.folder, 7), -EPERM);
	opening_remove(&opening);
}

Test(opener_perf_map, is_not_looked_for_without_a_number)
{
	static const char *const numbers[] = { "",
					       "NSpid:\t\n",
					       "NSpid:\tx\n",
					       "NSpid:\t3\t0\n",
					       "NSpid:\t3 \n",
					       "NSpid:\t99999999999\n" };

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		struct opening opening = proc_make(getuid(), numbers[i]);

		file_write(&opening, "7/root/tmp/perf-3.map", "");
		cr_expect_eq(ask_of(opening.folder, 7), -EINVAL, "%s", numbers[i]);
		opening_remove(&opening);
	}
}

Test(opener_perf_map, is_that_of_a_real_process)
{
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	cr_expect_eq(ask_of("/proc", getpid()), -ENOENT);
	file = fopen(path, "we");
	cr_assert_not_null(file);
	fclose(file);
	cr_expect_eq(ask_of("/proc", getpid()), 0);
	unlink(path);
}
