/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process's directory in /proc: the input is the content of stat, cgroup, comm, maps, status and
 * mem, in this order, with bytes 0xff between them, and everything that reads them is run.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "identity/identity.h"
#include "identity/proc.h"
#include "fuzz.h"

#define FILES 6

static const char *const names[FILES] = { "stat", "cgroup", "comm", "maps", "status", "mem" };

struct directory {
	char root[64];
	int fd; /* of root/1 */
	int files[FILES];
};

static void directory_remove(void);
static struct directory directory = { .fd = -1 };

static void directory_make(void)
{
	snprintf(directory.root, sizeof(directory.root), "/dev/shm/fuzz_proc_%d", (int)getpid());
	MUST(mkdir(directory.root, 0700) == 0);
	atexit(directory_remove);
	directory.fd = open(directory.root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	MUST(mkdirat(directory.fd, "1", 0700) == 0);
	close(directory.fd);
	directory.fd = proc_open(directory.root, 1);
	MUST(directory.fd >= 0);
	MUST(symlinkat("/usr/bin/no \"such\"\nfile", directory.fd, "exe") == 0);
	for (int i = 0; i < FILES; i++) {
		directory.files[i] = openat(directory.fd, names[i], O_CREAT | O_RDWR | O_CLOEXEC,
					    0600);
		MUST(directory.files[i] >= 0);
	}
}

static void directory_remove(void)
{
	for (int i = 0; i < FILES; i++)
		unlinkat(directory.fd, names[i], 0);
	unlinkat(directory.fd, "exe", 0);
	unlinkat(directory.fd, "../1", AT_REMOVEDIR);
	rmdir(directory.root);
}

static void directory_fill(const uint8_t *data, size_t len)
{
	for (int i = 0; i < FILES; i++) {
		const uint8_t *end = memchr(data, 0xff, len);
		size_t part = end ? (size_t)(end - data) : len;

		MUST(ftruncate(directory.files[i], 0) == 0);
		MUST(pwrite(directory.files[i], data, part, 0) == (ssize_t)part);
		data += part + (end != NULL);
		len -= part + (end != NULL);
	}
}

static int count_line(char *line, void *arg)
{
	MUST(strlen(line) <= PROC_PATH_LEN + 512);
	++*(size_t *)arg;
	return 0;
}

static void check_identity(const struct identity *identity)
{
	MUST(*identity->name && *identity->runtime);
	MUST(memchr(identity->name, '\0', sizeof(identity->name)));
	MUST(memchr(identity->exe, '\0', sizeof(identity->exe)));
	MUST(memchr(identity->unit, '\0', sizeof(identity->unit)));
	MUST(memchr(identity->container, '\0', sizeof(identity->container)));
	MUST(*identity->user && memchr(identity->user, '\0', sizeof(identity->user)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct identity identity;
	struct proc_stat stat;
	size_t lines = 0, size = 0;
	char text[256];
	unsigned int libraries;

	if (directory.fd < 0)
		directory_make();
	directory_fill(data, len);
	MUST(proc_comm_read(directory.fd, text, sizeof(text)) == 0);
	MUST(proc_cgroup_read(directory.fd, text, sizeof(text)) == 0);
	MUST(proc_file_read(directory.fd, "maps", text, sizeof(text), &size) == 0);
	MUST(size < sizeof(text) && !text[size]);
	MUST(proc_libraries_read(directory.fd, &libraries) == 0);
	MUST(proc_lines_read(directory.fd, "status", 8192, count_line, &lines) == 0);
	MUST(lines <= 8193);
	if (proc_stat_read(directory.fd, &stat) == 0 &&
	    identity_read(directory.root, 1, 0, "thread", &identity) == 0)
		check_identity(&identity);
	return 0;
}
