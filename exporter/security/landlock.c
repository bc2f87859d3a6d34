/* SPDX-License-Identifier: Apache-2.0 */
#include "security/landlock.h"

#include <errno.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

/* The kernel's include/uapi/linux/landlock.h; the build machine's may be older than the kernel. */
#define QUERY_VERSION 1U
#define FS_EXECUTE 0x1U
#define FS_WRITE_FILE 0x2U
#define FS_REMOVE_AND_MAKE 0x1ff0U
#define FS_REFER 0x2000U /* since version 2 */
#define FS_TRUNCATE 0x4000U /* 3 */
#define FS_IOCTL_DEVICE 0x8000U /* 5 */
#define NET_BIND_AND_CONNECT 0x3U /* 4 */
#define SCOPE_UNIX_AND_SIGNAL 0x3U /* 6 */

struct ruleset {
	uint64_t fs, net,
		scoped; /* what is forbidden unless a rule allows it; there are no rules */
};

static struct ruleset ruleset_for(long version)
{
	return (struct ruleset){
		.fs = FS_EXECUTE | FS_WRITE_FILE | FS_REMOVE_AND_MAKE |
		      (version >= 2 ? FS_REFER : 0) | (version >= 3 ? FS_TRUNCATE : 0) |
		      (version >= 5 ? FS_IOCTL_DEVICE : 0),
		.net = version >= 4 ? NET_BIND_AND_CONNECT : 0,
		.scoped = version >= 6 ? SCOPE_UNIX_AND_SIGNAL : 0,
	};
}

/* Older kernels refuse a structure that has more in it than they know. */
static size_t ruleset_bytes(long version)
{
	return version >= 6   ? 3 * sizeof(uint64_t)
	       : version >= 4 ? 2 * sizeof(uint64_t)
			      : sizeof(uint64_t);
}

int landlock_enter(void)
{
	long version = syscall(SYS_landlock_create_ruleset, NULL, 0, QUERY_VERSION);
	_cleanup_(cleanup_close) int fd = -1;
	struct ruleset ruleset;

	if (version < 1)
		return 0;
	ruleset = ruleset_for(version);
	fd = (int)syscall(SYS_landlock_create_ruleset, &ruleset, ruleset_bytes(version), 0);
	if (fd < 0 || syscall(SYS_landlock_restrict_self, fd, 0))
		return -errno;
	return 0;
}
