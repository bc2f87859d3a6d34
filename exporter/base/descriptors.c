/* SPDX-License-Identifier: Apache-2.0 */
#include "base/descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

/* The lowest free number is the one that is closed. O_PATH: where there is no /dev. */
int descriptors_fill_standard(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) >= 0)
			continue;
		if (open("/dev/null", O_RDWR) < 0 && open("/", O_PATH | O_DIRECTORY) < 0)
			return -errno;
	}
	return 0;
}

int descriptors_reserve(unsigned int needed, uint64_t *limit)
{
	struct rlimit now;

	if (getrlimit(RLIMIT_NOFILE, &now))
		return -errno;
	if (now.rlim_cur >= needed)
		return 0;
	*limit = now.rlim_max;
	now.rlim_cur = needed;
	if (now.rlim_max < now.rlim_cur)
		now.rlim_max = now.rlim_cur; /* works with CAP_SYS_RESOURCE */
	return setrlimit(RLIMIT_NOFILE, &now) ? -EMFILE : 0;
}
