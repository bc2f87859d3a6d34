/* SPDX-License-Identifier: Apache-2.0 */
#include "profiles/opener.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "base/units.h"
#include "identity/identity.h"
#include "identity/maps.h"
#include "identity/proc.h"
#include "identity/timens.h"
#include "profiles/jvm.h"

/* A process has 65530 mappings at most (vm.max_map_count), unless the machine is told otherwise. */
#define MAPS_LIMIT_BYTES (8U << 20)
#define ADDRESS_MAX INT64_MAX /* above it is the kernel, and [vsyscall] */
#define NAME_LEN (PROC_PATH_LEN + 512) /* of a line of maps */
/* A file has the time of the last tick (fs/inode.c, inode_set_ctime_current). */
#define FILE_CLOCK_NS (10 * NS_PER_MS)

/* FNV-1a, 64 bits. */
static uint64_t text_hash(const char *text)
{
	uint64_t hash = 0xcbf29ce484222325ULL;

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 0x100000001b3ULL;
	return hash;
}

/* --- ranges --------------------------------------------------------------------------------- */

struct ranges {
	struct opener_range *rows;
	uint32_t len, left_out;
	uint64_t end; /* of the mapping before */
	size_t bytes; /* of the lines so far */
	bool jvm; /* one of the files is called as that of a JVM */
};

static struct opener_range range_of(const struct maps_line *line)
{
	struct opener_range range = { .begin = line->begin, .end = line->end };

	if (maps_line_has_path(line)) {
		range.offset = line->offset;
		range.inode = line->inode;
		range.path_hash = text_hash(line->name);
		range.dev_major = line->dev_major;
		range.dev_minor = line->dev_minor;
		range.kind = OPENER_RANGE_FILE;
	} else if (!strcmp(line->name, "[vdso]")) {
		range.kind = OPENER_RANGE_VDSO;
	} else {
		range.kind = OPENER_RANGE_ANONYMOUS;
	}
	return range;
}

/* Whether @next goes on where @range ends; then it is a part of it. */
static bool range_join(struct opener_range *range, const struct opener_range *next)
{
	struct opener_range expected = *range;

	expected.begin = range->end;
	expected.end = next->end;
	if (range->kind == OPENER_RANGE_FILE)
		expected.offset += range->end - range->begin;
	if (memcmp(&expected, next, sizeof(expected)) != 0)
		return false;
	range->end = next->end;
	return true;
}

/* What is generated gives way: it is of few kinds, and often in many parts. */
static bool ranges_make_room(struct ranges *ranges, uint32_t kind)
{
	if (ranges->len < OPENER_RANGES_MAX)
		return true;
	ranges->left_out++;
	for (uint32_t i = ranges->len; kind != OPENER_RANGE_ANONYMOUS && i-- > 0;) {
		struct opener_range *row = &ranges->rows[i];

		if (row->kind != OPENER_RANGE_ANONYMOUS)
			continue;
		memmove(row, row + 1, (--ranges->len - i) * sizeof(*row));
		return true;
	}
	return false;
}

static void ranges_add(struct ranges *ranges, const struct opener_range *range)
{
	if (ranges->len && range_join(&ranges->rows[ranges->len - 1], range))
		return;
	if (ranges_make_room(ranges, range->kind))
		ranges->rows[ranges->len++] = *range;
}

/* Mappings that change while they are read may be told twice (fs/proc/task_mmu.c, m_start). */
static int ranges_line(char *text, void *arg)
{
	struct ranges *ranges = arg;
	struct opener_range range;
	struct maps_line line;

	ranges->bytes += strlen(text) + 1;
	if (ranges->bytes > MAPS_LIMIT_BYTES) {
		ranges->left_out++;
		return 1;
	}
	if (maps_line_split(text, &line) || !line.executable || line.end > ADDRESS_MAX ||
	    line.begin >= line.end)
		return 0;
	if (line.begin < ranges->end) {
		ranges->left_out++;
		return 0;
	}
	ranges->end = line.end;
	ranges->jvm |= text_has_prefix(text_base_name(line.name), "libjvm.so");
	range = range_of(&line);
	ranges_add(ranges, &range);
	return 0;
}

/* The limit is for lines that are longer than what is told of them: others are counted above. */
static int maps_read(int dir_fd, proc_line_fn line, void *arg)
{
	return proc_lines_read(dir_fd, "maps", 2 * MAPS_LIMIT_BYTES, line, arg);
}

static int maps_answer(int dir_fd, struct opener_shared *shared, struct opener_answer *answer)
{
	struct opener_range rows[OPENER_RANGES_MAX];
	struct ranges ranges = { .rows = rows };
	int r = maps_read(dir_fd, ranges_line, &ranges);

	if (r)
		return r;
	if (!ranges.bytes)
		return -ESRCH;
	memcpy(shared->ranges, rows, ranges.len * sizeof(*rows));
	answer->len = ranges.len;
	answer->left_out = ranges.left_out;
	answer->frame_pointers = ranges.jvm && jvm_keeps_frame_pointers(dir_fd);
	return 0;
}

/* --- files ---------------------------------------------------------------------------------- */

struct sought {
	uint64_t begin, inode;
	bool any; /* is mapped at all */
	bool found;
	char name[NAME_LEN];
};

static int sought_line(char *text, void *arg)
{
	struct sought *sought = arg;
	struct maps_line line;

	sought->any = true;
	if (maps_line_split(text, &line) || line.begin < sought->begin)
		return 0;
	if (line.begin == sought->begin && line.executable && maps_line_has_path(&line) &&
	    line.inode == sought->inode) {
		sought->found = true;
		text_copy(sought->name, sizeof(sought->name), line.name);
	}
	return 1;
}

/* Whether there was a newline to be written as it is. */
static bool name_unescape(const char *name, char out[static NAME_LEN])
{
	bool any = false;
	size_t len = 0;

	while (*name) {
		bool newline = text_has_prefix(name, "\\012");

		out[len++] = *name;
		if (newline)
			out[len - 1] = '\n';
		name += newline ? strlen("\\012") : 1;
		any |= newline;
	}
	out[len] = '\0';
	return any;
}

/* A name may have in it what the kernel writes for a newline: then it is as it is told. */
static int name_open(int dir_fd, char name[static NAME_LEN], uint64_t inode)
{
	char unescaped[NAME_LEN];
	int other, fd = maps_open(dir_fd, name, inode);

	if (fd >= 0 || !name_unescape(name, unescaped))
		return fd;
	other = maps_open(dir_fd, unescaped, inode);
	if (other >= 0)
		text_copy(name, NAME_LEN, unescaped);
	return other >= 0 ? other : fd;
}

/*
 * Also the names of files that are there may end as those of files that are not. What an overlay
 * has unhashed is there as well.
 */
static int file_open(int dir_fd, struct sought *sought)
{
	int fd = name_open(dir_fd, sought->name, sought->inode), executable;

	if (fd < 0 && text_cut_suffix(sought->name, " (deleted)"))
		fd = name_open(dir_fd, sought->name, sought->inode);
	if (fd >= 0)
		return fd;
	executable = maps_open_executable(dir_fd, sought->inode);
	if (executable >= 0)
		return executable;
	return fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP ? -ESTALE : fd;
}

static uint64_t time_number(const struct timespec *time)
{
	return (uint64_t)time->tv_sec * NS_PER_S + (uint64_t)time->tv_nsec;
}

static void path_copy(char out[static OPENER_PATH_LEN], const char *path)
{
	size_t len = strlen(path);

	text_copy(out, OPENER_PATH_LEN,
		  len < OPENER_PATH_LEN ? path : path + len + 1 - OPENER_PATH_LEN);
}

static bool file_is_executable(int dir_fd, const struct stat *file)
{
	struct stat stat;

	return !fstatat(dir_fd, "exe", &stat, 0) && stat.st_dev == file->st_dev &&
	       stat.st_ino == file->st_ino;
}

static int file_answer(int dir_fd, const struct opener_question *question, int *out_fd,
		       struct opener_answer *answer)
{
	struct sought sought = { .begin = question->begin, .inode = question->inode };
	_cleanup_(cleanup_close) int fd = -1;
	struct stat stat;
	int r = maps_read(dir_fd, sought_line, &sought);

	if (r)
		return r;
	if (!sought.found)
		return sought.any ? -ESTALE : -ESRCH;
	fd = file_open(dir_fd, &sought);
	if (fd < 0)
		return fd;
	if (fstat(fd, &stat))
		return -errno;
	answer->executable = file_is_executable(dir_fd, &stat);
	answer->dev = stat.st_dev;
	answer->inode = stat.st_ino;
	answer->bytes = (uint64_t)stat.st_size;
	answer->mtime_ns = time_number(&stat.st_mtim);
	answer->ctime_ns = time_number(&stat.st_ctim);
	path_copy(answer->path, sought.name);
	*out_fd = TAKE_FD(fd);
	return 0;
}

/* --- names of what it generates ------------------------------------------------------------- */

static int64_t clock_number(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (int64_t)time_number(&now);
}

/*
 * Whether it is what another one has left that had the number before, as the process of a container
 * that is started again. Files and processes are told by clocks that differ.
 */
static bool file_is_older(const struct stat *stat, const char *proc_root, uint64_t start_ns)
{
	int64_t changed_ns = clock_number(CLOCK_REALTIME) - (int64_t)time_number(&stat->st_ctim);
	int64_t begun_ns = clock_number(CLOCK_BOOTTIME) - (int64_t)start_ns;
	struct timens timens;

	timens_read(proc_root, &timens);
	return changed_ns > begun_ns - timens.boottime_ns + (int64_t)FILE_CLOCK_NS;
}

/* *@denied: it is not ours to read, and was opened all the same. */
static int perf_map_open(struct helper_work *work, int dir_fd, const char *name, bool *denied)
{
	int fd = maps_open_below(dir_fd, "tmp", name);

	*denied = fd == -EACCES && work->held & CAPABILITY(CAP_DAC_READ_SEARCH);
	if (!*denied || capability_raise(CAP_DAC_READ_SEARCH, true))
		return fd;
	fd = maps_open_below(dir_fd, "tmp", name);
	capability_raise(CAP_DAC_READ_SEARCH, false);
	return fd;
}

/*
 * Whether the process has written it, or root for it, and not another user of its machine. What
 * only root may read, the process may have mounted there.
 */
static bool perf_map_is_own(const struct stat *stat, uint32_t uid, bool denied)
{
	return stat->st_uid == uid || (!stat->st_uid && !denied);
}

static int perf_map_answer(struct helper_work *work, int dir_fd,
			   const struct opener_question *question)
{
	_cleanup_(cleanup_close) int fd = -1;
	char name[32];
	struct stat stat;
	bool denied;
	uint32_t uid;
	pid_t pid;
	int r = proc_own_number_read(dir_fd, &pid);

	if (!r)
		r = proc_uid_read(dir_fd, &uid);
	if (r)
		return r;
	snprintf(name, sizeof(name), "perf-%d.map", (int)pid);
	fd = perf_map_open(work, dir_fd, name, &denied);
	if (fd < 0)
		return fd;
	if (fstat(fd, &stat))
		return -errno;
	if (!perf_map_is_own(&stat, uid, denied))
		return denied ? -EACCES : -EPERM;
	if (question->start_ns && file_is_older(&stat, work->arg, question->start_ns))
		return -ESTALE;
	work->answer_fd = TAKE_FD(fd);
	return 0;
}

/* --- the helper ----------------------------------------------------------------------------- */

static int question_answer(struct helper_work *work, void *asked, void *answer)
{
	const struct opener_question *question = asked;
	_cleanup_(cleanup_close) int dir_fd = proc_open(work->arg, question->pid);
	int r = dir_fd < 0 ? dir_fd : identity_check_start(dir_fd, work->arg, question->start_ns);

	if (!r && question->what == OPENER_MAPS)
		r = maps_answer(dir_fd, work->shared, answer);
	else if (!r && question->what == OPENER_FILE)
		r = file_answer(dir_fd, question, &work->answer_fd, answer);
	else if (!r && question->what == OPENER_PERF_MAP)
		return perf_map_answer(work, dir_fd, question);
	else if (!r)
		r = -EINVAL;
	return r == -ENOENT ? -ESRCH : r;
}

static bool answer_check(void *asked)
{
	struct opener_answer *answer = asked;

	answer->path[sizeof(answer->path) - 1] = '\0';
	return answer->len <= OPENER_RANGES_MAX && answer->executable <= 1 &&
	       answer->frame_pointers <= 1;
}

const struct helper_kind opener_kind = {
	.name = "opener",
	.worker = "opener-reader",
	.capabilities = CAPABILITY(CAP_SYS_PTRACE),
	.role = SANDBOX_OPENER,
	.question_bytes = sizeof(struct opener_question),
	.answer_bytes = sizeof(struct opener_answer),
	.shared_bytes = sizeof(struct opener_shared),
	.gives_fd = true,
	.answer = question_answer,
	.check = answer_check,
};
_Static_assert(sizeof(struct opener_answer) <= HELPER_BYTES_MAX, "a path is too long to be told");

/* --- the asking side ------------------------------------------------------------------------ */

static bool range_can_be(const struct opener_range *range, uint64_t from)
{
	bool file = range->kind == OPENER_RANGE_FILE;

	return range->kind < OPENER_RANGE_KINDS && !range->zero && range->dev_major != UINT32_MAX &&
	       range->begin >= from && range->begin < range->end && range->end <= ADDRESS_MAX &&
	       file == !!range->inode;
}

int opener_ranges(const struct helper *opener, const struct opener_answer *answer,
		  struct opener_range out[static OPENER_RANGES_MAX])
{
	const struct opener_shared *shared = helper_shared(opener);
	uint64_t end = 0;

	if (answer->len > OPENER_RANGES_MAX)
		return -EPROTO;
	memcpy(out, shared->ranges, answer->len * sizeof(*out));
	for (uint32_t i = 0; i < answer->len; i++) {
		if (!range_can_be(&out[i], end))
			return -EPROTO;
		end = out[i].end;
	}
	return 0;
}
