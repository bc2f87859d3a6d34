/* SPDX-License-Identifier: Apache-2.0 */
#include "identity/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "base/units.h"

#define LINE_LEN (PROC_PATH_LEN + 512)
#define STAT_LEN 1024
#define FIELD_ENV_START 50
#define FIELD_ENV_END 51 /* of stat */
#define STATUS_LIMIT_BYTES (1U << 20) /* 65536 groups of ten digits come in the middle of it */
#define MAPS_LIMIT_BYTES (2U << 20)

static int proc_directory_open(const char *proc_root, const char *name)
{
	char path[PROC_PATH_LEN];
	int fd, len;

	len = snprintf(path, sizeof(path), "%s/%s", proc_root, name);
	if (len < 0 || (size_t)len >= sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int proc_open(const char *proc_root, pid_t pid)
{
	char name[16];
	int fd;

	if (pid <= 0)
		return -ESRCH;
	snprintf(name, sizeof(name), "%d", (int)pid);
	fd = proc_directory_open(proc_root, name);
	return fd == -ENOENT ? -ESRCH : fd;
}

int proc_open_self(const char *proc_root)
{
	return proc_directory_open(proc_root, "self");
}

static int proc_file_open(int dir_fd, const char *name)
{
	int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	return fd < 0 ? -errno : fd;
}

int proc_file_read(int dir_fd, const char *name, char *out, size_t size, size_t *len)
{
	_cleanup_(cleanup_close) int fd = proc_file_open(dir_fd, name);
	_cleanup_(cleanup_free) char *text = NULL;
	size_t got = 0;

	if (fd < 0)
		return fd;
	text = malloc(size);
	if (!text)
		return -ENOMEM;
	while (got < size - 1) {
		ssize_t n = read(fd, text + got, size - 1 - got);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		got += (size_t)n;
	}
	memcpy(out, text, got);
	out[got] = '\0';
	if (len)
		*len = got;
	return 0;
}

int proc_lines_read(int dir_fd, const char *name, size_t limit_bytes, proc_line_fn line, void *arg)
{
	_cleanup_(cleanup_close) int fd = proc_file_open(dir_fd, name);
	_cleanup_(cleanup_fclose) FILE *file = NULL;
	bool continued = false; /* the rest of a line that was too long is not a line */
	char text[LINE_LEN];

	if (fd < 0)
		return fd;
	file = fdopen(fd, "r");
	if (!file)
		return -errno;
	fd = -1;
	for (size_t total = 0; total < limit_bytes && fgets(text, sizeof(text), file);) {
		size_t len = strlen(text);
		bool whole = len > 0 && text[len - 1] == '\n';

		total += len + 1; /* a line of NULs must not read for ever */
		if (whole)
			text[len - 1] = '\0';
		if (!continued && line(text, arg))
			return 0;
		continued = !whole;
	}
	return ferror(file) ? -EIO : 0;
}

int proc_exe_read(int dir_fd, char *out, size_t size)
{
	char path[PROC_PATH_LEN + 16];
	ssize_t len = readlinkat(dir_fd, "exe", path, sizeof(path) - 1);

	if (len < 0)
		return -errno;
	path[len] = '\0';
	text_cut_suffix(path, " (deleted)");
	if (strlen(path) >= size)
		return -ENAMETOOLONG;
	text_copy(out, size, path);
	return 0;
}

int proc_cmdline_read(int dir_fd, char *out, size_t size, size_t *len)
{
	return proc_file_read(dir_fd, "cmdline", out, size, len);
}

int proc_comm_read(int dir_fd, char *out, size_t size)
{
	int r = proc_file_read(dir_fd, "comm", out, size, NULL);

	if (r == 0)
		text_cut_suffix(out, "\n");
	return r;
}

int proc_cgroup_read(int dir_fd, char *out, size_t size)
{
	size_t len;
	int r = proc_file_read(dir_fd, "cgroup", out, size, &len);

	if (r < 0)
		return r;
	if (len == size - 1) {
		char *newline = strrchr(out, '\n');

		*(newline ? newline : out) = '\0';
	}
	return 0;
}

/* @fields: from field 3 on. The name before them may hold parentheses and spaces. */
static int proc_stat_text(int dir_fd, char text[static STAT_LEN], const char **fields)
{
	int r = proc_file_read(dir_fd, "stat", text, STAT_LEN, NULL);
	const char *name_end;

	if (r < 0)
		return r;
	name_end = strrchr(text, ')');
	if (!name_end || name_end[1] != ' ')
		return -EINVAL;
	*fields = name_end + 2;
	return 0;
}

/* Field @index of /proc/PID/stat, counted as in proc(5), where @fields begins with field 3. */
static int proc_stat_field(const char *fields, int index, uint64_t *out)
{
	for (int i = 3; i < index; i++) {
		fields = strchr(fields, ' ');
		if (!fields)
			return -EINVAL;
		fields++;
	}
	return text_parse_u64(&fields, out);
}

int proc_stat_read(int dir_fd, struct proc_stat *out)
{
	struct proc_stat stat = { 0 };
	char text[STAT_LEN];
	const char *fields;
	int r = proc_stat_text(dir_fd, text, &fields);

	if (r < 0)
		return r;
	if (proc_stat_field(fields, 14, &stat.user_ticks) < 0 ||
	    proc_stat_field(fields, 15, &stat.system_ticks) < 0 ||
	    proc_stat_field(fields, 22, &stat.start_ticks) < 0 ||
	    proc_stat_field(fields, 23, &stat.virtual_bytes) < 0 ||
	    proc_stat_field(fields, 24, &stat.resident_pages) < 0)
		return -EINVAL;
	*out = stat;
	return 0;
}

/* The kernel escapes newlines of the name, which comes first: no process writes such a line. */
static int proc_uid_parse(char *line, void *arg)
{
	const char *cursor = line + strlen("Uid:\t");
	uint64_t *uid = arg;

	if (!text_has_prefix(line, "Uid:\t"))
		return 0;
	if (text_parse_u64(&cursor, uid) < 0 || *cursor != '\t')
		*uid = UINT64_MAX;
	return 1;
}

int proc_uid_read(int dir_fd, uint32_t *uid)
{
	uint64_t found = UINT64_MAX;
	int r = proc_lines_read(dir_fd, "status", STATUS_LIMIT_BYTES, proc_uid_parse, &found);

	if (r < 0)
		return r;
	if (found >= UINT32_MAX)
		return -EINVAL;
	*uid = (uint32_t)found;
	return 0;
}

/* The last of those that it has in each namespace, from the reader's on. */
static int proc_own_number_parse(char *line, void *arg)
{
	const char *cursor = strrchr(line, '\t');
	uint64_t *number = arg;

	if (!text_has_prefix(line, "NSpid:\t"))
		return 0;
	cursor++;
	if (text_parse_u64(&cursor, number) < 0 || *cursor)
		*number = 0;
	return 1;
}

int proc_own_number_read(int dir_fd, pid_t *pid)
{
	uint64_t found = 0;
	int r = proc_lines_read(dir_fd, "status", STATUS_LIMIT_BYTES, proc_own_number_parse,
				&found);

	if (r < 0)
		return r;
	if (!found || found > INT32_MAX)
		return -EINVAL;
	*pid = (pid_t)found;
	return 0;
}

/* Where its environment is in its memory; both 0: not told. */
static int proc_environment_place(int dir_fd, uint64_t *begin, uint64_t *end)
{
	char text[STAT_LEN];
	const char *fields = NULL;
	int r = proc_stat_text(dir_fd, text, &fields);

	if (!r)
		r = proc_stat_field(fields, FIELD_ENV_START, begin);
	if (!r)
		r = proc_stat_field(fields, FIELD_ENV_END, end);
	return r;
}

/*
 * The path lies directly behind the environment (fs/exec.c, fs/binfmt_elf.c: create_elf_tables),
 * the end of which is its begin until the kernel has counted it: *@bare, it is none, or not yet.
 */
static int proc_executed_address(int dir_fd, uint64_t *out, bool *bare)
{
	uint64_t address = 0, start = 0;
	int r = proc_environment_place(dir_fd, &start, &address);

	if (r)
		return r;
	if (!address || address > INT64_MAX)
		return -ENODATA;
	*out = address;
	*bare = address == start;
	return 0;
}

/* The process's number, or -ENODATA where this /proc counts otherwise than system calls do. */
static int proc_number(int dir_fd, pid_t *out)
{
	char self[16] = "", text[STAT_LEN];
	const char *begin = self;
	uint64_t own, number;
	int r = proc_file_read(dir_fd, "stat", text, sizeof(text), NULL);

	if (r)
		return r;
	if (readlinkat(dir_fd, "../self", self, sizeof(self) - 1) <= 0 ||
	    text_parse_u64(&begin, &own) || own != (uint64_t)getpid())
		return -ENODATA;
	begin = text;
	if (text_parse_u64(&begin, &number) || !number || number > INT32_MAX)
		return -EINVAL;
	*out = (pid_t)number;
	return 0;
}

/*
 * By the number: right if the process is still there afterwards. Waits for the lock of its memory
 * whatever signals come (mm/process_vm_access.c), so it is first asked for by a way that SIGKILL
 * ends: a byte of the arguments.
 */
static ssize_t proc_memory_copy(int dir_fd, char *out, size_t size, uint64_t address)
{
	struct iovec own = { .iov_base = out, .iov_len = size },
		     other = { .iov_base = (void *)(uintptr_t)address, .iov_len = size };
	char byte[2];
	ssize_t len;
	pid_t pid;
	int r = proc_number(dir_fd, &pid);

	if (!r)
		r = proc_cmdline_read(dir_fd, byte, sizeof(byte), NULL);
	if (r)
		return r;
	len = process_vm_readv(pid, &own, 1, &other, 1, 0);
	if (len < 0)
		return -errno;
	r = proc_number(dir_fd, &pid);
	return r ? r : len;
}

/*
 * The file is its owner's, whatever CAP_SYS_PTRACE allows: other users take CAP_DAC_READ_SEARCH to
 * open it, which would open every file. The system call asks for CAP_SYS_PTRACE alone.
 */
static ssize_t proc_memory_read(int dir_fd, char *out, size_t size, uint64_t address)
{
	_cleanup_(cleanup_close) int fd = proc_file_open(dir_fd, "mem");
	ssize_t len;

	if (fd == -EACCES)
		return proc_memory_copy(dir_fd, out, size, address);
	if (fd < 0)
		return fd;
	len = pread(fd, out, size, (off_t)address);
	return len < 0 ? -errno : len;
}

int proc_executed_read(int dir_fd, char *out, size_t size)
{
	char path[PROC_PATH_LEN] = "";
	uint64_t address = 0;
	bool bare = false;
	ssize_t len;
	int r = proc_executed_address(dir_fd, &address, &bare);

	if (r < 0)
		return r;
	len = proc_memory_read(dir_fd, path, sizeof(path), address);
	if (len < 0)
		return (int)len;
	if (!memchr(path, '\0', (size_t)len) || !path[0])
		return -ENODATA;
	if (bare && strchr(path, '='))
		return -EBUSY; /* a variable of its environment */
	if (strlen(path) >= size)
		return -ENAMETOOLONG;
	text_copy(out, size, path);
	return 0;
}

int proc_environment_read(int dir_fd, char *out, size_t size, size_t *len)
{
	uint64_t begin = 0, end = 0;
	ssize_t got;
	int r = proc_environment_place(dir_fd, &begin, &end);

	if (r)
		return r;
	if (begin >= end || end > INT64_MAX)
		return -ENODATA;
	got = proc_memory_read(dir_fd, out, end - begin < size ? end - begin : size - 1, begin);
	if (got < 0)
		return (int)got;
	out[got] = '\0';
	*len = (size_t)got;
	return 0;
}

static const struct {
	const char *prefix;
	unsigned int library;
} library_markers[] = {
	{ "libjvm.so", PROC_LIBRARY_JVM },      { "libcoreclr.so", PROC_LIBRARY_CORECLR },
	{ "libpython3.", PROC_LIBRARY_PYTHON }, { "libruby.so", PROC_LIBRARY_RUBY },
	{ "libruby-", PROC_LIBRARY_RUBY },
};

/* A line is "address perms offset dev inode   path"; only the path can hold a slash. */
static int proc_library_match(char *line, void *arg)
{
	unsigned int *libraries = arg;
	const char *path = strchr(line, '/');

	if (!path)
		return 0;
	path = text_base_name(path);
	for (size_t i = 0; i < COUNT(library_markers); i++) {
		if (text_has_prefix(path, library_markers[i].prefix))
			*libraries |= library_markers[i].library;
	}
	return 0;
}

int proc_libraries_read(int dir_fd, unsigned int *libraries)
{
	unsigned int found = 0;
	int r = proc_lines_read(dir_fd, "maps", MAPS_LIMIT_BYTES, proc_library_match, &found);

	if (r == 0)
		*libraries = found;
	return r;
}
