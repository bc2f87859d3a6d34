/* SPDX-License-Identifier: Apache-2.0 */
#include "identity/timens.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/units.h"
#include "identity/proc.h"

#define OFFSETS_BYTES 4096
#define LINK_LEN 64
#define INITIAL "time:[4026531834]" /* PROC_TIME_INIT_INO, include/linux/proc_ns.h */

/* A line is "boottime  seconds  nanoseconds"; seconds may be negative. */
static int timens_offset_parse(char *line, void *arg)
{
	struct timens *timens = arg;
	long long seconds, ns;
	char clock[16];

	if (sscanf(line, "%15s %lld %lld", clock, &seconds, &ns) != 3 ||
	    __builtin_mul_overflow(seconds, NS_PER_S, &seconds) ||
	    __builtin_add_overflow(seconds, ns, &seconds))
		return 0;
	if (strcmp(clock, "monotonic") == 0)
		timens->monotonic_ns = seconds;
	else if (strcmp(clock, "boottime") == 0)
		timens->boottime_ns = seconds;
	return 0;
}

static bool timens_is_initial(int dir_fd)
{
	char link[LINK_LEN];
	ssize_t len = readlinkat(dir_fd, "ns/time", link, sizeof(link));

	return len == (ssize_t)strlen(INITIAL) && memcmp(link, INITIAL, strlen(INITIAL)) == 0;
}

void timens_read(const char *proc_root, struct timens *out)
{
	_cleanup_(cleanup_close) int fd = proc_open_self(proc_root);

	*out = (struct timens){ 0 };
	if (fd >= 0 && !timens_is_initial(fd))
		proc_lines_read(fd, "timens_offsets", OFFSETS_BYTES, timens_offset_parse, out);
}
