/* SPDX-License-Identifier: Apache-2.0 */
#include "discovery/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "discovery/cgroup.h"
#include "discovery/proc.h"
#include "discovery/runtime.h"

#define CGROUP_TEXT_LEN 16384
#define COMM_TEXT_LEN 64
#define NS_PER_S 1000000000LL

_Static_assert(IDENTITY_UNIT_LEN >= CGROUP_UNIT_LEN, "a unit's name may be cut");
_Static_assert(IDENTITY_CONTAINER_LEN >= CGROUP_CONTAINER_LEN, "a container's name may be cut");

/* One line of timens_offsets: "boottime  seconds  nanoseconds"; seconds may be negative. */
static int boottime_offset_parse(char *line, void *arg)
{
	int64_t *offset_ns = arg;
	long long seconds, ns;

	if (sscanf(line, "boottime %lld %lld", &seconds, &ns) != 2)
		return 0;
	if (__builtin_mul_overflow(seconds, NS_PER_S, &seconds) ||
	    __builtin_add_overflow(seconds, ns, &seconds))
		return 1;
	*offset_ns = seconds;
	return 1;
}

/* What the reader's time namespace adds to times since boot; 0 where there are none (before 5.6).
 */
static int64_t boottime_offset_read(const char *proc_root)
{
	_cleanup_(cleanup_close) int fd = proc_open_self(proc_root);
	int64_t offset_ns = 0;

	if (fd >= 0)
		proc_lines_read(fd, "timens_offsets", 4096, boottime_offset_parse, &offset_ns);
	return offset_ns;
}

static int identity_check_start(int dir_fd, const char *proc_root, uint64_t start_ns)
{
	long ticks_per_s = sysconf(_SC_CLK_TCK);
	struct proc_stat stat;
	uint64_t shown_ns;
	int r = proc_stat_read(dir_fd, &stat);

	if (r < 0)
		return r;
	if (start_ns == 0 || ticks_per_s <= 0)
		return 0;
	shown_ns = start_ns + (uint64_t)boottime_offset_read(proc_root);
	return stat.start_ticks == shown_ns / (uint64_t)(NS_PER_S / ticks_per_s) ? 0 : -ESRCH;
}

static int identity_read_cgroup(int dir_fd, struct identity *identity)
{
	_cleanup_(cleanup_free) char *text = malloc(CGROUP_TEXT_LEN);
	struct cgroup_place place;
	int r;

	if (!text)
		return -ENOMEM;
	r = proc_cgroup_read(dir_fd, text, CGROUP_TEXT_LEN);
	if (r < 0)
		return r == -ESRCH ? r : 0;
	cgroup_place_parse(text, &place);
	text_copy(identity->unit, sizeof(identity->unit), place.unit);
	text_copy(identity->container, sizeof(identity->container), place.container);
	return 0;
}

static void identity_read_exe(int dir_fd, struct identity *identity)
{
	char path[PROC_PATH_LEN];

	if (proc_exe_read(dir_fd, path, sizeof(path)) < 0)
		path[0] = '\0';
	text_copy(identity->exe, sizeof(identity->exe), path);
	text_copy(identity->name, sizeof(identity->name), text_base_name(path));
	text_copy(identity->runtime, sizeof(identity->runtime),
		  runtime_identify(dir_fd, identity->name));
}

/*
 * One program may have several names (busybox; redis-server is redis-check-rdb in Debian): if what
 * the process calls itself is another name of its executable, beside it, that is the better one.
 */
static void identity_prefer_called(int dir_fd, struct identity *identity)
{
	size_t dir_len = strlen(identity->exe) - strlen(text_base_name(identity->exe));
	char path[sizeof("root") + PROC_PATH_LEN + COMM_TEXT_LEN];
	struct stat exe, called;
	char comm[COMM_TEXT_LEN];

	if (!dir_len || proc_comm_read(dir_fd, comm, sizeof(comm)) < 0 || !comm[0] ||
	    strchr(comm, '/'))
		return;
	snprintf(path, sizeof(path), "root%.*s%s", (int)dir_len, identity->exe, comm);
	if (fstatat(dir_fd, "exe", &exe, 0) || fstatat(dir_fd, path, &called, 0))
		return;
	if (exe.st_dev == called.st_dev && exe.st_ino == called.st_ino)
		text_copy(identity->name, sizeof(identity->name), comm);
}

/* name holds the base name of the executable, if that is known. */
static void identity_choose_name(int dir_fd, const char *comm, struct identity *identity)
{
	if (identity->unit[0])
		cgroup_unit_workload(identity->unit, identity->name, sizeof(identity->name));
	else if (identity->container[0])
		text_copy(identity->name, sizeof(identity->name), identity->container);
	else if (!identity->name[0] && comm && comm[0])
		text_copy(identity->name, sizeof(identity->name), comm);
	else if (!identity->name[0])
		proc_comm_read(dir_fd, identity->name, COMM_TEXT_LEN);
	else
		identity_prefer_called(dir_fd, identity);
	if (!identity->name[0])
		text_copy(identity->name, sizeof(identity->name), "unknown");
}

static int identity_gather(const char *proc_root, pid_t pid, uint64_t start_ns, const char *comm,
			   bool executable, struct identity *out)
{
	_cleanup_(cleanup_close) int dir_fd = proc_open(proc_root, pid);
	struct identity identity = { 0 };
	int r;

	if (dir_fd < 0)
		return dir_fd;
	r = identity_check_start(dir_fd, proc_root, start_ns);
	if (r == 0)
		r = identity_read_cgroup(dir_fd, &identity);
	if (r < 0)
		return r == -ENOENT ? -ESRCH : r;
	if (executable)
		identity_read_exe(dir_fd, &identity);
	else
		text_copy(identity.runtime, sizeof(identity.runtime), "unknown");
	identity_choose_name(dir_fd, comm, &identity);
	*out = identity;
	return 0;
}

int identity_read(const char *proc_root, pid_t pid, uint64_t start_ns, const char *comm,
		  struct identity *out)
{
	return identity_gather(proc_root, pid, start_ns, comm, true, out);
}

int identity_read_public(const char *proc_root, pid_t pid, uint64_t start_ns, const char *comm,
			 struct identity *out)
{
	return identity_gather(proc_root, pid, start_ns, comm, false, out);
}

void identity_from_comm(const char *comm, struct identity *out)
{
	*out = (struct identity){ .runtime = "unknown" };
	text_copy(out->name, sizeof(out->name), comm && comm[0] ? comm : "unknown");
}
