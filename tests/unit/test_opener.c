/* SPDX-License-Identifier: Apache-2.0 */
/* The opener asked about real processes: what they run, and the files of it. */
#include <criterion/criterion.h>

#include <errno.h>
#include <poll.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "helping.h"
#include "opening.h"

/* --- what is mapped ------------------------------------------------------------------------- */

static void map_nothing(void *arg)
{
	(void)arg;
}

/* The end of the fields of a line, by spaces, and not by their formats. */
static char *field(char **cursor)
{
	char *begin = *cursor + strspn(*cursor, " ");

	*cursor = begin + strcspn(begin, " \n");
	if (**cursor)
		*(*cursor)++ = '\0';
	return begin;
}

static const struct opener_range *range_around(const struct opened *opened, uint64_t address)
{
	for (uint32_t i = 0; i < opened->answer.len; i++)
		if (address >= opened->shared.ranges[i].begin &&
		    address < opened->shared.ranges[i].end)
			return &opened->shared.ranges[i];
	return NULL;
}

/* One line as the kernel tells it lies within one range. Returns its bytes, if it can be run. */
static uint64_t expect_line(const struct opened *opened, char *line)
{
	char *cursor = line, *end, *perms, *device;
	uint64_t begin = strtoull(field(&cursor), &end, 16), last = strtoull(end + 1, NULL, 16);
	uint64_t offset, inode;
	const struct opener_range *range;

	perms = field(&cursor);
	if (perms[2] != 'x' || begin >> 63)
		return 0;
	offset = strtoull(field(&cursor), NULL, 16);
	device = field(&cursor);
	inode = strtoull(field(&cursor), NULL, 10);
	range = range_around(opened, begin);
	cr_assert_not_null(range, "%lx", begin);
	cr_expect_leq(last, range->end);
	cr_expect_eq(inode, range->inode);
	if (inode) {
		cr_expect_eq(offset, range->offset + (begin - range->begin));
		cr_expect_eq(strtoul(device, &end, 16), range->dev_major);
		cr_expect_eq(strtoul(end + 1, NULL, 16), range->dev_minor);
	}
	cr_expect_eq(range->kind == OPENER_RANGE_FILE, inode != 0);
	cr_expect_eq(range->kind == OPENER_RANGE_VDSO, strstr(cursor, "[vdso]") != NULL);
	return last - begin;
}

Test(opener, all_that_can_be_run_is_told_and_nothing_else)
{
	struct opening opening = opening_make();
	uint64_t expected = 0, told = 0;
	struct opened opened;
	char path[32], line[8192];
	FILE *maps;

	opening_start(&opening, map_nothing, NULL);
	opened = opened_maps(&opening);
	cr_assert_eq(opened.result, 0);
	cr_expect_eq(opened.answer.left_out, 0);
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)opening.child);
	maps = fopen(path, "re");
	while (fgets(line, sizeof(line), maps))
		expected += expect_line(&opened, line);
	fclose(maps);
	for (uint32_t i = 0; i < opened.answer.len; i++)
		told += opened.shared.ranges[i].end - opened.shared.ranges[i].begin;
	cr_expect_gt(expected, 0);
	cr_expect_eq(told, expected);
	opening_remove(&opening);
}

struct mapping {
	char *at;
	int fd, other;
};

/* Pages 0 1 of a file, 2 apart for their rights, a gap; then others that do not go on. */
static void map_neighbours(void *arg)
{
	struct mapping *mapping = arg;
	char *at = mapping->at;

	opening_map(at, mapping->fd, 2, 0);
	opening_map(at + 2 * OPENED_PAGE, mapping->fd, 1, 2);
	mprotect(at + 2 * OPENED_PAGE, OPENED_PAGE, PROT_READ | PROT_WRITE | PROT_EXEC);
	opening_map(at + 3 * OPENED_PAGE, mapping->fd, 1, 0); /* another part of the file */
	opening_map(at + 4 * OPENED_PAGE, mapping->other, 1, 1); /* another file */
	opening_map(at + 5 * OPENED_PAGE, -1, 2, 0);
	mprotect(at + 6 * OPENED_PAGE, OPENED_PAGE, PROT_READ | PROT_WRITE | PROT_EXEC);
	opening_map(at + 8 * OPENED_PAGE, mapping->other, 1, 2); /* not a neighbour */
}

Test(opener, what_goes_on_in_memory_and_in_the_file_is_one_range)
{
	static const struct {
		size_t page, pages, offset;
		uint32_t kind;
	} ranges[] = {
		{ 0, 3, 0, OPENER_RANGE_FILE }, { 3, 1, 0, OPENER_RANGE_FILE },
		{ 4, 1, 1, OPENER_RANGE_FILE }, { 5, 2, 0, OPENER_RANGE_ANONYMOUS },
		{ 8, 1, 2, OPENER_RANGE_FILE },
	};
	struct opening opening = opening_make();
	struct mapping mapping = { opening_reserve(10), opening_file(&opening, "one"),
				   opening_file(&opening, "other") };
	const struct opener_range *found[5];
	struct opened opened;

	opening_start(&opening, map_neighbours, &mapping);
	opened = opened_maps(&opening);
	cr_assert_eq(opened.result, 0);
	for (size_t i = 0; i < sizeof(ranges) / sizeof(*ranges); i++) {
		found[i] = opened_at(&opened, mapping.at + ranges[i].page * OPENED_PAGE);
		cr_assert_not_null(found[i], "range %zu", i);
		cr_expect_eq(found[i]->end - found[i]->begin, ranges[i].pages * OPENED_PAGE);
		cr_expect_eq(found[i]->offset, ranges[i].offset * OPENED_PAGE);
		cr_expect_eq(found[i]->kind, ranges[i].kind);
	}
	cr_expect_eq(found[0]->path_hash, found[1]->path_hash);
	cr_expect_neq(found[0]->path_hash, found[2]->path_hash);
	opening_remove(&opening);
}

#define MANY (2 * OPENER_RANGES_MAX)

/* As a compiler might: many pages with gaps, and a library behind them. */
static void map_many(void *arg)
{
	struct mapping *mapping = arg;

	for (size_t i = 0; i < MANY; i++)
		opening_map(mapping->at + 2 * i * OPENED_PAGE, -1, 1, 0);
	opening_map(mapping->at + (size_t)2 * MANY * OPENED_PAGE, mapping->fd, 1, 0);
}

Test(opener, what_does_not_fit_is_counted_and_files_come_first)
{
	struct opening opening = opening_make();
	struct mapping mapping = { .at = opening_reserve(2 * MANY + 1),
				   .fd = opening_file(&opening, "library") };
	struct opened before, opened;

	opening_start(&opening, map_nothing, NULL);
	before = opened_maps(&opening);
	opening_end_child(&opening);
	opening_start(&opening, map_many, &mapping);
	opened = opened_maps(&opening);
	cr_assert_eq(opened.result, 0);
	cr_expect_eq(opened.answer.len, OPENER_RANGES_MAX);
	cr_expect_eq(opened.answer.left_out, before.answer.len + MANY + 1 - OPENER_RANGES_MAX);
	cr_expect_not_null(opened_at(&opened, mapping.at + (size_t)2 * MANY * OPENED_PAGE));
	for (uint32_t i = 0; i < before.answer.len; i++)
		cr_expect_not_null(
			opened_at(&opened, (void *)(uintptr_t)before.shared.ranges[i].begin));
	opening_remove(&opening);
}

/* --- which process -------------------------------------------------------------------------- */

/* Field 22 of stat, counted from its end: the program's name has neither a space nor a digit. */
static uint64_t started_ns(pid_t pid)
{
	unsigned long long ticks = 0;
	char path[32];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	file = fopen(path, "re");
	cr_assert_not_null(file);
	cr_assert_eq(fscanf(file,
			    "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d "
			    "%*d %*d %*d %*d %*d %llu",
			    &ticks),
		     1);
	fclose(file);
	return ticks * (1000000000ULL / (uint64_t)sysconf(_SC_CLK_TCK));
}

Test(opener, another_process_with_its_number_is_not_taken_for_it)
{
	struct opening opening = opening_make();
	struct opener_question question = { OPENER_MAPS };
	uint64_t tick_ns = 1000000000ULL / (uint64_t)sysconf(_SC_CLK_TCK);

	opening_start(&opening, map_nothing, NULL);
	question.pid = opening.child;
	question.start_ns = started_ns(opening.child) + 1;
	cr_expect_eq(opened_of("/proc", question).result, 0);
	question.start_ns += tick_ns;
	for (question.what = OPENER_MAPS; question.what <= OPENER_FILE; question.what++)
		cr_expect_eq(opened_of("/proc", question).result, -ESRCH);
	opening_remove(&opening);
}

Test(opener, a_process_that_has_ended_has_nothing)
{
	struct opening opening = opening_make();
	struct opener_question question = { OPENER_MAPS };
	siginfo_t info;

	opening_start(&opening, map_nothing, NULL);
	question.pid = opening.child;
	kill(opening.child, SIGKILL);
	waitid(P_PID, (id_t)opening.child, &info, WEXITED | WNOWAIT);
	for (question.what = OPENER_MAPS; question.what <= OPENER_FILE; question.what++)
		cr_expect_eq(opened_of("/proc", question).result, -ESRCH, "not waited for");
	opening_end_child(&opening);
	for (question.what = OPENER_MAPS; question.what <= OPENER_FILE; question.what++)
		cr_expect_eq(opened_of("/proc", question).result, -ESRCH);
	question.pid = -1;
	cr_expect_eq(opened_of("/proc", question).result, -ESRCH);
	opening_remove(&opening);
}

Test(opener, what_is_no_question_has_no_answer)
{
	const struct opener_question question = { .what = OPENER_PERF_MAP + 1, .pid = getpid() };

	cr_expect_eq(opened_of("/proc", question).result, -EINVAL);
}

/* --- the helper ----------------------------------------------------------------------------- */

static int told(struct helper *opener, struct opener_question question,
		struct opener_answer *answer, int *fd)
{
	struct pollfd readable = { .fd = helper_fd(opener), .events = POLLIN };

	cr_assert_eq(helper_ask(opener, &question, UINT64_MAX), 0);
	cr_assert_eq(poll(&readable, 1, 10000), 1);
	return helper_take_with(opener, clock_monotonic_ns(), answer, fd);
}

static void expect_same_file(int fd, int other)
{
	struct stat one, two;

	cr_assert_eq(fstat(fd, &one), 0);
	cr_assert_eq(fstat(other, &two), 0);
	cr_expect_eq(one.st_ino, two.st_ino);
	cr_expect_eq(one.st_dev, two.st_dev);
	cr_expect_eq(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
}

static void map_one(void *arg)
{
	struct mapping *mapping = arg;

	opening_map(mapping->at, mapping->fd, 2, 1);
}

Test(opener, a_process_of_its_own_tells_ranges_and_gives_their_files)
{
	_cleanup_(helper_stopp) struct helper *opener = helping_start(&opener_kind, "/proc");
	struct opening opening = opening_make();
	struct mapping mapping = { .at = opening_reserve(2), .fd = opening_file(&opening, "one") };
	struct opened opened = { .fd = -1 };
	struct opener_question question = { OPENER_MAPS };
	const struct opener_range *range;
	int fd;

	opening_start(&opening, map_one, &mapping);
	question.pid = opening.child;
	cr_assert_eq(told(opener, question, &opened.answer, &fd), 0);
	cr_expect_eq(fd, -1);
	cr_assert_eq(opener_ranges(opener, &opened.answer, opened.shared.ranges), 0);
	range = opened_at(&opened, mapping.at);
	cr_assert_not_null(range);
	question = (struct opener_question){ OPENER_FILE, question.pid, 0, range->begin,
					     range->inode };
	cr_assert_eq(told(opener, question, &opened.answer, &fd), 0);
	expect_same_file(fd, mapping.fd);
	close(fd);
	opening_remove(&opening);
}

Test(opener, ranges_that_cannot_be_are_not_taken)
{
	static const struct opener_range good[] = {
		{ .begin = 10, .end = 20, .inode = 3 },
		{ .begin = 20, .end = INT64_MAX, .kind = OPENER_RANGE_ANONYMOUS },
	};
	static const struct opener_range bad[] = {
		{ .begin = 19, .end = 30, .inode = 3 },
		{ .begin = 30, .end = 30, .inode = 3 },
		{ .begin = 30, .end = 29, .inode = 3 },
		{ .begin = 30, .end = INT64_MAX + 1ULL, .inode = 3 },
		{ .begin = 30, .end = 40 },
		{ .begin = 30, .end = 40, .inode = 3, .kind = OPENER_RANGE_VDSO },
		{ .begin = 30, .end = 40, .inode = 3, .zero = 1 },
		{ .begin = 30, .end = 40, .kind = OPENER_RANGE_KINDS },
	};
	_cleanup_(helper_stopp) struct helper *opener = helping_start(&opener_kind, "/proc");
	struct opener_range *shared = helper_shared(opener), out[OPENER_RANGES_MAX];
	struct opener_answer answer = { .len = 2 };

	memcpy(shared, good, sizeof(good));
	cr_expect_eq(opener_ranges(opener, &answer, out), 0);
	cr_expect_eq(memcmp(out, good, sizeof(good)), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		shared[1] = bad[i];
		cr_expect_eq(opener_ranges(opener, &answer, out), -EPROTO, "%zu", i);
	}
	answer.len = OPENER_RANGES_MAX + 1;
	cr_expect_eq(opener_ranges(opener, &answer, out), -EPROTO);
	cr_expect_not(opener_kind.check(&answer));
	answer.len = OPENER_RANGES_MAX;
	answer.executable = 2;
	cr_expect_not(opener_kind.check(&answer));
}

Test(opener, a_path_without_an_end_gets_one)
{
	struct opener_answer answer;

	memset(&answer, 'x', sizeof(answer));
	answer.len = 0;
	answer.executable = 1;
	answer.frame_pointers = 1;
	cr_expect(opener_kind.check(&answer));
	cr_expect_eq(strlen(answer.path), OPENER_PATH_LEN - 1);
}
