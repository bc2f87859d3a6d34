/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/self.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "base/units.h"
#include "identity/proc.h"

#define LIMITS_BYTES 8192
#define SYSTEM_STAT_BYTES (1U << 20) /* a line per CPU, and one with a number per interrupt */
#define DESCRIPTORS_MAX (1U << 20)

/* The number that follows @label in a line that begins with it. */
struct labelled {
	const char *label;
	uint64_t value;
	bool found;
};

static int labelled_parse(char *line, void *arg)
{
	struct labelled *labelled = arg;
	const char *at;

	if (!text_has_prefix(line, labelled->label))
		return 0;
	at = line + strlen(labelled->label);
	at += strspn(at, " ");
	if (text_has_prefix(at, "unlimited")) {
		labelled->value = UINT64_MAX;
		labelled->found = true;
	} else {
		labelled->found = text_parse_u64(&at, &labelled->value) == 0;
	}
	return 1;
}

static int labelled_read(int dir_fd, const char *name, size_t limit_bytes, const char *label,
			 uint64_t *out)
{
	struct labelled labelled = { .label = label };
	int r = proc_lines_read(dir_fd, name, limit_bytes, labelled_parse, &labelled);

	if (r < 0)
		return r;
	if (!labelled.found)
		return -EINVAL;
	*out = labelled.value;
	return 0;
}

static void cleanup_closedir(DIR **directory)
{
	if (*directory)
		closedir(*directory);
}

static int descriptors_count(int dir_fd, uint64_t *out)
{
	_cleanup_(cleanup_close) int fd = openat(dir_fd, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_(cleanup_closedir) DIR *directory = NULL;
	const struct dirent *entry;
	uint64_t count = 0;

	if (fd < 0)
		return -errno;
	directory = fdopendir(fd);
	if (!directory)
		return -errno;
	fd = -1;
	while (count < DESCRIPTORS_MAX && (entry = readdir(directory)))
		count += entry->d_name[0] != '.';
	*out = count;
	return 0;
}

/* The boot time moves when the clock is set; so does what the other exporters show. */
static int boot_time_read(const char *proc_root, uint64_t *out_s)
{
	_cleanup_(cleanup_close) int fd = open(proc_root, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	return labelled_read(fd, "stat", SYSTEM_STAT_BYTES, "btime ", out_s);
}

int self_read(const char *proc_root, struct process_row *out)
{
	_cleanup_(cleanup_close) int dir_fd = proc_open_self(proc_root);
	long ticks_per_s = sysconf(_SC_CLK_TCK), page_bytes = sysconf(_SC_PAGESIZE);
	struct process_row row = { 0 };
	struct proc_stat stat;
	uint64_t tick_ns, boot_s = 0;
	int r;

	if (dir_fd < 0)
		return dir_fd;
	if (ticks_per_s <= 0 || page_bytes <= 0)
		return -ENOSYS;
	if ((r = proc_stat_read(dir_fd, &stat)) < 0 ||
	    (r = boot_time_read(proc_root, &boot_s)) < 0 ||
	    (r = descriptors_count(dir_fd, &row.open_fds)) < 0 ||
	    (r = labelled_read(dir_fd, "limits", LIMITS_BYTES, "Max open files", &row.max_fds)) < 0)
		return r;
	/* Two of those counted are dir_fd and the directory that was listed. */
	row.open_fds -= row.open_fds < 2 ? row.open_fds : 2;
	tick_ns = NS_PER_S / (uint64_t)ticks_per_s;
	row.cpu_ns = (stat.user_ticks + stat.system_ticks) * tick_ns;
	row.virtual_bytes = stat.virtual_bytes;
	row.resident_bytes = stat.resident_pages * (uint64_t)page_bytes;
	row.start_ns = boot_s * NS_PER_S + stat.start_ticks * tick_ns;
	*out = row;
	return 0;
}
