/* SPDX-License-Identifier: Apache-2.0 */
#include "identity/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "base/units.h"
#include "identity/cgroup.h"
#include "identity/proc.h"
#include "identity/runtime.h"
#include "identity/timens.h"
#include "identity/user.h"

#define CGROUP_TEXT_LEN 16384
#define COMM_TEXT_LEN 64
#define READS_MAX 4 /* of a process that is another program each time */

_Static_assert(IDENTITY_UNIT_LEN >= CGROUP_UNIT_LEN, "a unit's name may be cut");
_Static_assert(IDENTITY_CONTAINER_LEN >= CGROUP_CONTAINER_LEN, "a container's name may be cut");

int identity_check_start(int dir_fd, const char *proc_root, uint64_t start_ns)
{
	long ticks_per_s = sysconf(_SC_CLK_TCK);
	struct proc_stat stat;
	struct timens timens;
	uint64_t shown_ns;
	int r = proc_stat_read(dir_fd, &stat);

	if (r < 0)
		return r;
	if (start_ns == 0 || ticks_per_s <= 0)
		return 0;
	timens_read(proc_root, &timens);
	shown_ns = start_ns + (uint64_t)timens.boottime_ns;
	return stat.start_ticks == shown_ns / (NS_PER_S / (uint64_t)ticks_per_s) ? 0 : -ESRCH;
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

static void identity_set_user(struct identity *identity, uint32_t uid)
{
	snprintf(identity->user, sizeof(identity->user), "%u", uid);
}

/*
 * "" where it cannot be read. -ESRCH for a process that has ended and was not waited for: it has no
 * executable any more.
 */
static int exe_read(int dir_fd, char path[static PROC_PATH_LEN])
{
	int r = proc_exe_read(dir_fd, path, PROC_PATH_LEN);

	if (r < 0)
		path[0] = '\0';
	return r == -ENOENT || r == -ESRCH ? -ESRCH : 0;
}

static void identity_set_exe(int dir_fd, const char *path, struct identity *identity)
{
	text_copy(identity->exe, sizeof(identity->exe), path);
	text_copy(identity->name, sizeof(identity->name), text_base_name(path));
	text_copy(identity->runtime, sizeof(identity->runtime),
		  runtime_identify(dir_fd, identity->name));
}

/* By the descriptor of a file (fexecve(3)): that is no name. */
static bool path_is_descriptor(const char *path)
{
	return text_has_prefix(path, "/dev/fd/") && !strchr(path + strlen("/dev/fd/"), '/');
}

/*
 * One program may have several names (busybox; redis-server is redis-check-rdb in Debian), and the
 * executable of a script is its interpreter: the better name is the one by which it was executed.
 */
static int identity_prefer_executed(int dir_fd, struct identity *identity)
{
	char path[PROC_PATH_LEN];
	int r = proc_executed_read(dir_fd, path, sizeof(path));

	if (r < 0)
		return r;
	if (path_is_descriptor(path) || !*text_base_name(path))
		return -ENODATA;
	text_copy(identity->name, sizeof(identity->name), text_base_name(path));
	return 0;
}

/*
 * Where that cannot be read: if what the process calls itself is another name of its executable,
 * beside it.
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

/* A name that the process has chosen is one of its user's. */
static void identity_qualify(uint32_t uid, struct identity *identity)
{
	if (user_is_login(uid))
		user_qualify(identity->user, identity->name, sizeof(identity->name));
}

/* name holds the base name of the executable, if that is known. 0, or -EBUSY: not all is there. */
static int identity_choose_program(int dir_fd, const char *comm, struct identity *identity)
{
	int r;

	if (!identity->name[0] && comm && comm[0])
		text_copy(identity->name, sizeof(identity->name), comm);
	else if (!identity->name[0])
		proc_comm_read(dir_fd, identity->name, COMM_TEXT_LEN);
	else if ((r = identity_prefer_executed(dir_fd, identity)) == -EBUSY)
		return r;
	else if (r < 0)
		identity_prefer_called(dir_fd, identity);
	if (!identity->name[0])
		text_copy(identity->name, sizeof(identity->name), "unknown");
	return 0;
}

static int identity_choose_name(int dir_fd, const char *comm, uint32_t uid,
				struct identity *identity)
{
	int r = 0;

	identity_set_user(identity, uid);
	if (identity->unit[0]) {
		cgroup_unit_workload(identity->unit, identity->name, sizeof(identity->name));
	} else if (identity->container[0]) {
		text_copy(identity->name, sizeof(identity->name), identity->container);
	} else {
		r = identity_choose_program(dir_fd, comm, identity);
		identity_qualify(uid, identity);
	}
	return r;
}

/*
 * Whether what was read since is of the process that had this executable: a process that ends or
 * becomes another program (execve(2)) loses its memory and its executable at once. -ESRCH: it has
 * ended; -EBUSY: it is another program.
 */
static int identity_check_exe(int dir_fd, const char *exe)
{
	char path[PROC_PATH_LEN];
	int r = exe_read(dir_fd, path);

	return !r && strcmp(path, exe) != 0 ? -EBUSY : r;
}

static int identity_gather(const char *proc_root, pid_t pid, uint64_t start_ns, const char *comm,
			   bool executable, struct identity *out)
{
	_cleanup_(cleanup_close) int dir_fd = proc_open(proc_root, pid);
	struct identity identity = { 0 };
	char exe[PROC_PATH_LEN] = "";
	uint32_t uid;
	int r;

	if (dir_fd < 0)
		return dir_fd;
	r = identity_check_start(dir_fd, proc_root, start_ns);
	if (r == 0)
		r = proc_uid_read(dir_fd, &uid);
	if (r == 0)
		r = identity_read_cgroup(dir_fd, &identity);
	if (r == 0 && executable)
		r = exe_read(dir_fd, exe);
	if (r < 0)
		return r == -ENOENT ? -ESRCH : r;
	if (executable)
		identity_set_exe(dir_fd, exe, &identity);
	else
		text_copy(identity.runtime, sizeof(identity.runtime), "unknown");
	r = identity_choose_name(dir_fd, comm, uid, &identity);
	if (!r && executable)
		r = identity_check_exe(dir_fd, exe);
	if (!r)
		*out = identity;
	return r;
}

int identity_read(const char *proc_root, pid_t pid, uint64_t start_ns, const char *comm,
		  struct identity *out)
{
	int r = -EBUSY;

	for (int i = 0; r == -EBUSY && i < READS_MAX; i++)
		r = identity_gather(proc_root, pid, start_ns, comm, true, out);
	return r;
}

int identity_read_public(const char *proc_root, pid_t pid, uint64_t start_ns, const char *comm,
			 struct identity *out)
{
	return identity_gather(proc_root, pid, start_ns, comm, false, out);
}

void identity_from_comm(const char *comm, uint32_t uid, struct identity *out)
{
	*out = (struct identity){ .runtime = "unknown" };
	text_copy(out->name, sizeof(out->name), comm && comm[0] ? comm : "unknown");
	identity_set_user(out, uid);
	identity_qualify(uid, out);
}
