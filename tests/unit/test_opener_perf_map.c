/* SPDX-License-Identifier: Apache-2.0 */
/* The opener asked for perf maps: in a /proc that is made up, and of a real process. */
#include <criterion/criterion.h>

#include <errno.h>
#include <time.h>

#include "base/cleanup.h"
#include "opening.h"

#define OTHERS 12345U /* a user that is not that of the test */

static void text_add(const struct opening *opening, const char *name, const char *mode,
		     const char *text)
{
	FILE *file = fopen(opening_path(opening, name), mode);

	cr_assert_not_null(file, "%s", name);
	fputs(text, file);
	fclose(file);
}

static void file_write(const struct opening *opening, const char *name, const char *text)
{
	text_add(opening, name, "we", text);
}

static void file_append(const struct opening *opening, const char *name, const char *text)
{
	text_add(opening, name, "ae", text);
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

static int ask_since(const char *proc_root, pid_t pid, uint64_t start_ns)
{
	struct opened opened = opened_of(
		proc_root,
		(struct opener_question){ OPENER_PERF_MAP, .pid = pid, .start_ns = start_ns });

	if (opened.fd >= 0)
		close(opened.fd);
	return opened.result;
}

static int ask_of(const char *proc_root, pid_t pid)
{
	return ask_since(proc_root, pid, 0);
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

/* It would be followed from the opener's root. */
Test(opener_perf_map, is_in_no_folder_that_a_link_leads_to)
{
	struct opening opening = proc_make(getuid(), "NSpid:\t3\n");

	mkdir(opening_path(&opening, "elsewhere"), 0755);
	file_write(&opening, "elsewhere/perf-3.map", "");
	rmdir(opening_path(&opening, "7/root/tmp"));
	cr_expect_eq(ask_of(opening.folder, 7), -ENOENT);
	cr_assert_eq(symlink("../../elsewhere", opening_path(&opening, "7/root/tmp")), 0);
	cr_expect_eq(ask_of(opening.folder, 7), -ENOTDIR);
	opening_remove(&opening);
}

/* As of the process that had the number before in a container that is started again. */
Test(opener_perf_map, is_not_older_than_the_process)
{
	struct opening opening = proc_make(getuid(), "NSpid:\t3\n");
	uint64_t file_ns, process_ns;
	struct timespec now;
	char stat[128];

	file_write(&opening, "7/root/tmp/perf-3.map", "");
	clock_gettime(CLOCK_BOOTTIME, &now);
	file_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	for (int later = -1; later < 2; later += 2) {
		process_ns = file_ns + (uint64_t)later * 500000000;
		process_ns -= process_ns % 10000000;
		snprintf(stat, sizeof(stat),
			 "7 (made up) S 1 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 %llu 6 7 8\n",
			 (unsigned long long)process_ns / 10000000);
		file_write(&opening, "7/stat", stat);
		cr_expect_eq(ask_since(opening.folder, 7, process_ns), later < 0 ? 0 : -ESTALE,
			     "%d", later);
	}
	opening_remove(&opening);
}

/* Its status is long then. */
Test(opener_perf_map, is_found_of_a_process_in_many_groups)
{
	struct opening opening;
	char *status;
	size_t len;
	FILE *out = open_memstream(&status, &len);

	cr_assert_not_null(out);
	fputs("Groups:\t", out);
	for (int i = 0; i < 65536; i++)
		fputs("4294967294 ", out);
	fputs("\nNSpid:\t3\n", out);
	fclose(out);
	opening = proc_make(getuid(), "");
	file_write(&opening, "7/root/tmp/perf-3.map", "");
	cr_expect_eq(ask_of(opening.folder, 7), -EINVAL);
	file_append(&opening, "7/status", status);
	cr_expect_eq(ask_of(opening.folder, 7), 0);
	free(status);
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

static int ask_by_nobody(const struct opening *opening, uint64_t held)
{
	const struct opener_question question = { OPENER_PERF_MAP, .pid = 7 };

	return opened_by_nobody(opening->folder, question, 0, held);
}

/* Of others than the user of the process, one that may not be read may be anything. */
Test(opener_perf_map, that_only_its_owner_may_read_is_opened_where_that_is_asked_for)
{
	struct opening opening = proc_make(OTHERS, "NSpid:\t3\n");
	const char *path = opening_path(&opening, "7/root/tmp/perf-3.map");
	const uint64_t reads = CAPABILITY(CAP_DAC_READ_SEARCH);
	static const struct {
		uint32_t owner, mode;
		int without, with;
	} cases[] = {
		{ OTHERS, 0600, -EACCES, 0 },
		{ OTHERS, 0644, 0, 0 },
		{ 0, 0600, -EACCES, -EACCES },
		{ 0, 0640, -EACCES, -EACCES },
		{ 0, 0644, 0, 0 },
		{ OTHERS + 1, 0600, -EACCES, -EACCES },
		{ OTHERS + 1, 0644, -EPERM, -EPERM },
	};

	if (geteuid()) {
		opening_remove(&opening);
		cr_skip_test("only root can give files away");
	}
	file_write(&opening, "7/root/tmp/perf-3.map", "");
	cr_assert_eq(chmod(opening.folder, 0755), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		cr_assert_eq(chown(path, cases[i].owner, 0), 0);
		cr_assert_eq(chmod(path, cases[i].mode), 0);
		cr_expect_eq(ask_by_nobody(&opening, 0), cases[i].without, "%zu", i);
		cr_expect_eq(ask_by_nobody(&opening, reads), cases[i].with, "%zu", i);
	}
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
