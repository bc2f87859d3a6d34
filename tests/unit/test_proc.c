/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "identity/elf.h"
#include "identity/proc.h"
#include "registry/namer.h"
#include "security/capabilities.h"

#define TEXTS_BYTES (1U << 20) /* of an environment */

#define ROOT "tests/unit/fixtures/proc"
#define ELF "tests/unit/fixtures/elf/"

Test(proc, a_name_with_parentheses_does_not_shift_the_fields)
{
	_cleanup_(cleanup_close) int fd = proc_open(ROOT, 101);
	struct proc_stat stat;
	char comm[32];

	cr_assert_eq(proc_stat_read(fd, &stat), 0);
	cr_expect_eq(stat.start_ticks, 123456);
	cr_expect_eq(stat.user_ticks, 250);
	cr_expect_eq(stat.system_ticks, 50);
	cr_expect_eq(stat.virtual_bytes, 104857600);
	cr_expect_eq(stat.resident_pages, 512);
	cr_assert_eq(proc_comm_read(fd, comm, sizeof(comm)), 0);
	cr_expect_str_eq(comm, "a) R 1 (b");
}

Test(proc, a_process_that_is_not_there_is_ESRCH)
{
	cr_expect_eq(proc_open(ROOT, 999), -ESRCH);
	cr_expect_eq(proc_open(ROOT, 0), -ESRCH);
	cr_expect_eq(proc_open(ROOT, -1), -ESRCH);
}

Test(proc, an_empty_stat_is_refused_and_leaves_the_output_alone)
{
	_cleanup_(cleanup_close) int fd = proc_open(ROOT, 105);
	struct proc_stat stat = { .start_ticks = 7 };

	cr_expect_eq(proc_stat_read(fd, &stat), -EINVAL);
	cr_expect_eq(stat.start_ticks, 7);
}

Test(proc, the_executable_loses_its_deleted_mark)
{
	_cleanup_(cleanup_close) int fd = proc_open(ROOT, 101);
	char path[64], small[8] = "before";

	cr_assert_eq(proc_exe_read(fd, path, sizeof(path)), 0);
	cr_expect_str_eq(path, "/nonexistent/opt/a) b");
	cr_expect_eq(proc_exe_read(fd, small, sizeof(small)), -ENAMETOOLONG);
	cr_expect_str_eq(small, "before");
}

Test(proc, a_missing_executable_is_an_error)
{
	_cleanup_(cleanup_close) int fd = proc_open(ROOT, 104);
	char path[8] = "before";

	cr_expect_eq(proc_exe_read(fd, path, sizeof(path)), -ENOENT);
	cr_expect_str_eq(path, "before");
}

Test(proc, a_huge_command_line_is_cut_and_its_arguments_keep_their_ends)
{
	_cleanup_(cleanup_close) int fd = proc_open(ROOT, 102);
	char text[256];
	size_t len = 0;

	cr_assert_eq(proc_cmdline_read(fd, text, sizeof(text), &len), 0);
	cr_expect_eq(len, sizeof(text) - 1);
	cr_expect_str_eq(text, "java");
	cr_expect_str_eq(text + 5, "-jar");
	cr_expect_eq(text[sizeof(text) - 1], '\0');
}

Test(proc, an_empty_command_line_has_no_arguments)
{
	_cleanup_(cleanup_close) int fd = proc_open(ROOT, 105);
	char text[16];
	size_t len = 9;

	cr_assert_eq(proc_cmdline_read(fd, text, sizeof(text), &len), 0);
	cr_expect_eq(len, 0);
	cr_expect_str_eq(text, "");
}

Test(proc, a_cgroup_file_that_does_not_fit_loses_its_last_line)
{
	_cleanup_(cleanup_close) int fd = proc_open(ROOT, 103);
	char text[100];

	cr_assert_eq(proc_cgroup_read(fd, text, sizeof(text)), 0);
	cr_expect(text_has_prefix(text, "12:pids:/docker/"));
	cr_expect_null(strstr(text, "name=systemd"));
}

Test(proc, mapped_libraries_are_recognised_by_their_whole_base_name)
{
	static const struct {
		pid_t pid;
		unsigned int libraries;
	} cases[] = {
		{ 100, 0 },
		{ 102, PROC_LIBRARY_JVM },
		{ 105, 0 },
		{ 110, PROC_LIBRARY_PYTHON },
		{ 111, PROC_LIBRARY_RUBY },
		{ 112, PROC_LIBRARY_CORECLR },
		{ 113, 0 }, /* look-alikes, and the marker behind a line that is too long */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		_cleanup_(cleanup_close) int fd = proc_open(ROOT, cases[i].pid);
		unsigned int libraries = ~0U;

		cr_assert_eq(proc_libraries_read(fd, &libraries), 0);
		cr_expect_eq(libraries, cases[i].libraries, "pid %d: %u", (int)cases[i].pid,
			     libraries);
	}
}

Test(proc, the_real_proc_of_this_process_is_readable)
{
	_cleanup_(cleanup_close) int fd = proc_open("/proc", getpid());
	struct proc_stat stat;
	unsigned int libraries;
	char text[PROC_PATH_LEN];

	cr_assert_geq(fd, 0);
	cr_expect_eq(proc_stat_read(fd, &stat), 0);
	cr_expect_gt(stat.start_ticks, 0);
	cr_expect_eq(proc_exe_read(fd, text, sizeof(text)), 0);
	cr_expect_eq(proc_cgroup_read(fd, text, sizeof(text)), 0);
	cr_expect_eq(proc_libraries_read(fd, &libraries), 0);
	cr_expect_eq(libraries, 0);
}

Test(elf, go_is_recognised_and_hostile_section_tables_are_not_go)
{
	static const struct {
		const char *file;
		int result;
		bool go;
	} cases[] = {
		{ ELF "go", 0, true },
		{ ELF "go_note", 0, true },
		{ ELF "native", 0, false },
		{ ELF "go_32bit", 0, false },
		{ ELF "go_big_endian", 0, false },
		{ ELF "sections_missing", 0, false },
		{ ELF "sections_wrap", 0, false },
		{ ELF "strings_missing", 0, false },
		{ ELF "names_outside", 0, false },
		{ ELF "sections_many", 0, false },
		{ ELF "name_cut", 0, false },
		{ ELF "script", -ENOEXEC, true },
		{ ELF "short", -ENOEXEC, true },
		{ "/proc/self/exe", 0, false },
		{ "/dev/null", -ENOEXEC, true },
		{ "tests/unit", -ENOEXEC, true },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		_cleanup_(cleanup_close) int fd = open(cases[i].file, O_RDONLY | O_CLOEXEC);
		bool go = true;

		cr_assert_geq(fd, 0, "%s", cases[i].file);
		cr_expect_eq(elf_go_detect(fd, &go), cases[i].result, "%s", cases[i].file);
		cr_expect_eq(go, cases[i].go, "%s", cases[i].file);
	}
}

Test(base_text, copies_are_cut_and_terminated)
{
	char out[4] = "xxx";

	text_copy(out, sizeof(out), "abcdef");
	cr_expect_str_eq(out, "abc");
	text_copy_bytes(out, sizeof(out), "abcdef", 2);
	cr_expect_str_eq(out, "ab");
	text_copy(out, 1, "abcdef");
	cr_expect_str_eq(out, "");
}

Test(base_text, numbers_have_digits_only_and_do_not_wrap)
{
	static const char *const refused[] = { "", "-1", "+1", " 1", "x" };
	const char *cursor = "18446744073709551615 7", *too_large = "18446744073709551616";
	uint64_t value = 3;

	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
		const char *at = refused[i];

		cr_expect_eq(text_parse_u64(&at, &value), -EINVAL);
		cr_expect_eq(at, refused[i]);
	}
	cr_expect_eq(text_parse_u64(&too_large, &value), -ERANGE);
	cr_expect_eq(value, 3);
	cr_expect_eq(text_parse_u64(&cursor, &value), 0);
	cr_expect_eq(value, UINT64_MAX);
	cr_expect_str_eq(cursor, " 7");
}

Test(text, a_release_is_a_version_or_says_that_it_is_none)
{
	cr_expect_eq(text_release_is_since("6.11.0-28-amd64", 6, 11), 1);
	cr_expect_eq(text_release_is_since("6.10.14", 6, 11), 0);
	cr_expect_eq(text_release_is_since("7.0", 6, 11), 1);
	cr_expect_eq(text_release_is_since("5.15.0", 6, 11), 0);
	cr_expect_eq(text_release_is_since("unstable", 6, 11), -EINVAL);
}

/* The path by which @pid was executed, as another user sees it that may trace it, or may not. */
static int executed_as_nobody(pid_t pid, uint64_t keep, char *out, size_t size)
{
	const struct user nobody = { .become = true, .uid = 65534, .gid = 65534 };
	_cleanup_(cleanup_close) int fd = -1;
	int r = capabilities_drop(keep, 0, &nobody);

	if (r)
		return r;
	fd = proc_open("/proc", pid);
	r = proc_file_read(fd, "mem", out, size, NULL);
	return r == -EACCES ? proc_executed_read(fd, out, size) : -EEXIST;
}

static bool environment_has(const char *texts, size_t len, const char *text)
{
	for (size_t at = 0; at < len; at += strlen(texts + at) + 1)
		if (!strcmp(texts + at, text))
			return true;
	return false;
}

Test(proc, an_environment_is_that_of_the_process)
{
	_cleanup_(cleanup_close) int fd = proc_open("/proc", getpid());
	_cleanup_(cleanup_free) char *texts = malloc(TEXTS_BYTES);
	char cut[64];
	size_t len, cut_len;

	cr_assert_not_null(texts);
	for (size_t i = 0; environ[i]; i++) {
		cr_assert_eq(proc_environment_read(fd, texts, TEXTS_BYTES, &len), 0);
		cr_expect(environment_has(texts, len, environ[i]), "%s", environ[i]);
	}
	cr_assert_eq(proc_environment_read(fd, cut, sizeof(cut), &cut_len), 0);
	cr_expect_leq(cut_len, sizeof(cut) - 1);
	cr_expect_arr_eq(cut, texts, cut_len);
	cr_expect_eq(cut[cut_len], '\0');
}

Test(proc, whoever_may_trace_a_process_learns_how_it_was_executed_without_its_files)
{
	const char *own = (const char *)getauxval(AT_EXECFN);
	char path[PROC_PATH_LEN];
	int status;
	pid_t pid;

	if (geteuid())
		cr_skip_test("only root can become another user");
	for (int may = 0; may < 2; may++) {
		pid = fork();
		cr_assert_geq(pid, 0);
		if (!pid) {
			uint64_t keep = may ? namer_kind.capabilities : 0;
			int r = executed_as_nobody(getppid(), keep, path, sizeof(path));

			_exit(r ? -r : strcmp(path, own) != 0);
		}
		cr_assert_eq(waitpid(pid, &status, 0), pid);
		cr_expect(WIFEXITED(status));
		cr_expect_eq(WEXITSTATUS(status), may ? 0 : ENODATA, "%d", WEXITSTATUS(status));
	}
}
