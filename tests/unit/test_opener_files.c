/* SPDX-License-Identifier: Apache-2.0 */
/* The files that the opener opens: those that are mapped, under whatever name, and no others. */
#include <criterion/criterion.h>

#include <errno.h>

#include "opening.h"

struct mapping {
	char *at;
	int fd;
};

static void map_one(void *arg)
{
	struct mapping *mapping = arg;

	opening_map(mapping->at, mapping->fd, 1, 0);
}

/* A child that has mapped a file of this name. */
static struct opening mapped_as(const char *name, struct mapping *mapping)
{
	struct opening opening = opening_make();

	mapping->fd = opening_file(&opening, name);
	mapping->at = opening_reserve(1);
	opening_start(&opening, map_one, mapping);
	return opening;
}

static struct opener_range range_at(const struct opening *opening, const void *at)
{
	struct opened maps = opened_maps(opening);
	const struct opener_range *range = opened_at(&maps, at);

	cr_assert_eq(maps.result, 0);
	cr_assert_not_null(range);
	return *range;
}

static struct opened file_at(const struct opening *opening, const void *at)
{
	struct opener_range range = range_at(opening, at);

	return opened_file(opening, &range);
}

static uint64_t ns_of(const struct timespec *time)
{
	return (uint64_t)time->tv_sec * 1000000000ULL + (uint64_t)time->tv_nsec;
}

static void expect_file(const struct opened *opened, int fd, const char *path)
{
	struct stat right, stat;

	cr_assert_eq(opened->result, 0, "%s: %s", path, strerror(-opened->result));
	cr_assert_eq(fstat(fd, &right), 0);
	cr_assert_eq(fstat(opened->fd, &stat), 0);
	cr_expect_eq(stat.st_ino, right.st_ino);
	cr_expect_eq(stat.st_dev, right.st_dev);
	cr_expect_eq(opened->answer.dev, right.st_dev);
	cr_expect_eq(opened->answer.inode, right.st_ino);
	cr_expect_eq(opened->answer.bytes, (uint64_t)right.st_size);
	cr_expect_eq(opened->answer.mtime_ns, ns_of(&right.st_mtim));
	cr_expect_eq(opened->answer.ctime_ns, ns_of(&right.st_ctim));
	cr_expect_str_eq(opened->answer.path, path);
	cr_expect_eq(fcntl(opened->fd, F_GETFL) & O_ACCMODE, O_RDONLY);
}

Test(opener_files, it_is_opened_under_whatever_name)
{
	static const char *const names[] = {
		"plain",
		"with spaces  in it ",
		"new\nline",
		"\n",
		"as the kernel writes it \\012",
		"\\012",
		"deleted (deleted)",
		" (deleted)",
		"new\nline (deleted)",
		"\xff\t\\ 7f00-7f01 r-xp 0 0:0 1 libc.so.6",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		struct mapping mapping;
		struct opening opening = mapped_as(names[i], &mapping);
		struct opened opened = file_at(&opening, mapping.at);

		expect_file(&opened, mapping.fd, opening_path(&opening, names[i]));
		cr_expect_eq(opened.answer.executable, 0);
		opened_close(&opened);
		close(mapping.fd);
		opening_remove(&opening);
	}
}

struct jailed {
	struct mapping mapping;
	const char *folder;
};

static void map_and_change_root(void *arg)
{
	struct jailed *jailed = arg;

	map_one(&jailed->mapping);
	if (chroot(jailed->folder))
		_exit(1);
}

/* Its path is told from the root of others. */
Test(opener_files, it_is_opened_in_the_root_of_its_process)
{
	struct jailed jailed = { .mapping.at = opening_reserve(1) };
	struct opening opening = opening_make();
	struct opener_range range;
	int r;

	if (geteuid()) {
		opening_remove(&opening);
		cr_skip_test("only root can change its root");
	}
	jailed.folder = opening_path(&opening, "jail"); /* in a folder of mode 0700 */
	cr_assert_eq(mkdir(jailed.folder, 0755), 0);
	jailed.mapping.fd = opening_file(&opening, "jail/file");
	opening_start(&opening, map_and_change_root, &jailed);
	range = range_at(&opening, jailed.mapping.at);
	r = opened_by_nobody("/proc", opened_question(&opening, &range), CAPABILITY(CAP_SYS_PTRACE),
			     0);
	cr_expect_eq(r, 0, "%s", strerror(-r));
	close(jailed.mapping.fd);
	opening_remove(&opening);
}

Test(opener_files, of_a_long_path_the_end_is_told)
{
	struct mapping mapping = { .at = opening_reserve(1) };
	struct opening opening = opening_make();
	char part[201] = "", whole[2048];
	struct opened opened;

	memset(part, 'p', 200);
	cr_assert_eq(chdir(opening.folder), 0);
	for (int i = 0; i < 7; i++) {
		cr_assert_eq(mkdir(part, 0755), 0);
		cr_assert_eq(chdir(part), 0);
	}
	cr_assert_not_null(getcwd(whole, sizeof(whole) - 8));
	memcpy(whole + strlen(whole), "/file", sizeof("/file"));
	mapping.fd = open("file", O_RDWR | O_CREAT | O_CLOEXEC, 0755);
	cr_assert_eq(ftruncate(mapping.fd, OPENED_PAGE), 0);
	opening_start(&opening, map_one, &mapping);
	opened = file_at(&opening, mapping.at);
	expect_file(&opened, mapping.fd, whole + strlen(whole) - (OPENER_PATH_LEN - 1));
	opened_close(&opened);
	cr_assert_eq(chdir("/"), 0);
	opening_remove(&opening);
}

Test(opener_files, one_that_was_deleted_is_not_opened)
{
	struct mapping mapping;
	struct opening opening = mapped_as("file", &mapping);

	cr_assert_eq(unlink(opening_path(&opening, "file")), 0);
	cr_expect_eq(file_at(&opening, mapping.at).result, -ESTALE);
	/* Nor another one of the name that the kernel tells now. */
	close(opening_file(&opening, "file (deleted)"));
	cr_expect_eq(file_at(&opening, mapping.at).result, -ESTALE);
	close(opening_file(&opening, "file"));
	cr_expect_eq(file_at(&opening, mapping.at).result, -ESTALE);
	opening_remove(&opening);
}

Test(opener_files, one_that_has_taken_its_name_is_not_opened)
{
	struct mapping mapping;
	struct opening opening = mapped_as("file", &mapping);
	struct opener_range range = range_at(&opening, mapping.at);

	close(opening_file(&opening, "other"));
	cr_assert_eq(rename(opening_path(&opening, "other"), opening_path(&opening, "file")), 0);
	cr_expect_eq(opened_file(&opening, &range).result, -ESTALE);
	opening_remove(&opening);
}

Test(opener_files, what_has_its_name_and_is_no_file_is_not_opened, .timeout = 20)
{
	struct mapping mapping;
	struct opening opening = mapped_as("file", &mapping);
	struct opener_range range = range_at(&opening, mapping.at);
	const char *path = opening_path(&opening, "file");

	cr_assert_eq(link(path, opening_path(&opening, "same")), 0);
	cr_assert_eq(unlink(path), 0);
	cr_assert_eq(mkfifo(opening_path(&opening, "file (deleted)"), 0755), 0);
	cr_assert_eq(symlink("same", path), 0);
	cr_expect_eq(opened_file(&opening, &range).result, -ESTALE);
	opening_remove(&opening);
}

Test(opener_files, a_range_that_was_not_told_has_none)
{
	struct mapping mapping;
	struct opening opening = mapped_as("file", &mapping);
	struct opener_range range = range_at(&opening, mapping.at), wrong = range;

	wrong.inode++;
	cr_expect_eq(opened_file(&opening, &wrong).result, -ESTALE);
	wrong.inode = 0;
	cr_expect_eq(opened_file(&opening, &wrong).result, -ESTALE);
	wrong = range;
	wrong.begin += OPENED_PAGE;
	cr_expect_eq(opened_file(&opening, &wrong).result, -ESTALE);
	wrong.begin = 0;
	cr_expect_eq(opened_file(&opening, &wrong).result, -ESTALE);
	wrong.begin = UINT64_MAX;
	cr_expect_eq(opened_file(&opening, &wrong).result, -ESTALE);
	opening_remove(&opening);
}

/* --- executables ---------------------------------------------------------------------------- */

static char program[256]; /* a signal handler has no argument */

/* A copy of a program of this machine. */
static void program_copy(const struct opening *opening)
{
	char command[512];

	snprintf(program, sizeof(program), "%s/program", opening->folder);
	snprintf(command, sizeof(command), "cp /bin/sleep %s", program);
	cr_assert_eq(system(command), 0);
}

static void program_execute(int signal)
{
	(void)signal;
	execl(program, "sleep", "1000", (char *)NULL);
	_exit(1);
}

static void map_nothing_and_execute_later(void *arg)
{
	(void)arg;
	signal(SIGUSR1, program_execute);
}

static void map_and_execute_later(void *arg)
{
	map_one(arg);
	signal(SIGUSR1, program_execute);
}

static const struct opener_range *range_of(const struct opened *maps, uint64_t inode)
{
	for (uint32_t i = 0; i < maps->answer.len; i++)
		if (maps->shared.ranges[i].inode == inode)
			return &maps->shared.ranges[i];
	return NULL;
}

/* The child executes it. Returns its range, once it is mapped. */
static struct opener_range program_run(const struct opening *opening)
{
	const struct opener_range *range = NULL;
	struct opened maps;
	struct stat file;

	cr_assert_eq(stat(program, &file), 0);
	kill(opening->child, SIGUSR1);
	while (!range) {
		maps = opened_maps(opening);
		range = range_of(&maps, file.st_ino);
	}
	return *range;
}

Test(opener_files, an_executable_is_opened_also_when_its_name_is_gone, .timeout = 20)
{
	struct opening opening = opening_make();
	struct opener_range range;
	struct opened opened;
	int fd;

	program_copy(&opening);
	fd = open(program, O_RDONLY | O_CLOEXEC);
	opening_start(&opening, map_nothing_and_execute_later, NULL);
	range = program_run(&opening);
	opened = opened_file(&opening, &range);
	expect_file(&opened, fd, program);
	cr_expect_eq(opened.answer.executable, 1);
	opened_close(&opened);
	cr_assert_eq(unlink(program), 0);
	program_copy(&opening);
	opened = opened_file(&opening, &range);
	expect_file(&opened, fd, program);
	cr_expect_eq(opened.answer.executable, 1);
	opened_close(&opened);
	close(fd);
	opening_remove(&opening);
}

Test(opener_files, another_program_of_the_process_has_not_what_was_mapped_before, .timeout = 20)
{
	struct opening opening = opening_make();
	struct mapping mapping = { opening_reserve(1), opening_file(&opening, "file") };
	struct opener_range range;
	struct opened maps;

	program_copy(&opening);
	opening_start(&opening, map_and_execute_later, &mapping);
	range = range_at(&opening, mapping.at);
	program_run(&opening);
	cr_expect_eq(opened_file(&opening, &range).result, -ESTALE);
	maps = opened_maps(&opening);
	cr_assert_eq(maps.result, 0);
	cr_expect_null(range_of(&maps, range.inode));
	opening_remove(&opening);
}
