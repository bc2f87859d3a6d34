/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"

#define TEXT_BYTES 8192
#define RETURNED_BYTES (128 << 10) /* what glibc begins with */
#define KEPT_BYTES (32 << 20) /* the most that glibc takes */
#define NO_LIMIT (1ULL << 62) /* version 1 writes the largest number of pages, in bytes */

/* Where a version keeps what. */
struct version {
	const char
		*mounts[3]; /* below the root of cgroups, ends with NULL: the first that is there */
	const char *limit, *used;
};

static const struct version version_1 = {
	{ "memory", NULL },
	"memory.limit_in_bytes",
	"memory.usage_in_bytes",
};
static const struct version version_2 = {
	{ "unified", "", NULL },
	"memory.max",
	"memory.current",
};

static int file_read(const char *path, char *text, size_t size)
{
	_cleanup_(cleanup_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, text, size - 1);
	if (n < 0)
		return -errno;
	text[n] = '\0';
	return 0;
}

/* The number in @folder/@name; "max" is UINT64_MAX. */
static int number_read(const char *folder, const char *name, uint64_t *out)
{
	char path[PATH_MAX], text[64];
	const char *at = text;
	int r;

	if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	r = file_read(path, text, sizeof(text));
	if (r)
		return r;
	if (text_has_prefix(text, "max")) {
		*out = UINT64_MAX;
		return 0;
	}
	return text_parse_u64(&at, out);
}

/* The number that follows @label at the beginning of a line of @text; 0 if there is none. */
static uint64_t labelled(const char *text, const char *label)
{
	uint64_t value = 0;

	for (const char *at = strstr(text, label); at; at = strstr(at + 1, label)) {
		const char *number = at + strlen(label);

		if (at == text || at[-1] == '\n')
			return text_parse_u64(&number, &value) ? 0 : value;
	}
	return 0;
}

/* Of files that are mapped or have been read: they go before anything is refused. */
static uint64_t files_bytes(const char *folder)
{
	char path[PATH_MAX], text[TEXT_BYTES];

	if (snprintf(path, sizeof(path), "%s/memory.stat", folder) >= (int)sizeof(path) ||
	    file_read(path, text, sizeof(text)))
		return 0;
	return labelled(text, "active_file ") + labelled(text, "inactive_file ");
}

static void used_read(const struct version *version, const char *folder, uint64_t *used)
{
	uint64_t files = files_bytes(folder);

	if (number_read(folder, version->used, used))
		*used = 0;
	*used -= files < *used ? files : *used;
}

/* Goes up from the cgroup @path of the hierarchy at @mount. */
static int version_read(const struct version *version, const char *mount, const char *path,
			struct memory_limit *out)
{
	struct memory_limit found = { .limit_bytes = UINT64_MAX };
	char folder[PATH_MAX];
	size_t top = strlen(mount);
	bool any = false;

	if (snprintf(folder, sizeof(folder), "%s%s", mount, path) >= (int)sizeof(folder))
		return -ENAMETOOLONG;
	for (;;) {
		char *slash = strrchr(folder + top, '/');
		uint64_t limit;

		if (!number_read(folder, version->limit, &limit)) {
			if (!any)
				used_read(version, folder, &found.used_bytes);
			any = true;
			if (limit < NO_LIMIT && limit < found.limit_bytes)
				found.limit_bytes = limit;
		}
		if (!slash)
			break;
		*slash = '\0';
	}
	if (!any)
		return -ENOENT;
	*out = found;
	return 0;
}

/* The path in the line of @text that begins as @version's does; NULL if there is none. */
static char *line_path(char *text, bool v1)
{
	char *rest;

	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		char *controllers = strchr(line, ':');
		char *path = controllers ? strchr(controllers + 1, ':') : NULL;

		if (!path)
			continue;
		*path++ = '\0';
		if (v1 ? strcmp(controllers + 1, "memory") == 0 : strcmp(line, "0:") == 0)
			return path;
	}
	return NULL;
}

static int limit_read_as(const struct version *version, bool v1, const char *cgroups,
			 const char *cgroup_root, struct memory_limit *out)
{
	char text[TEXT_BYTES], mount[PATH_MAX];
	const char *path;
	int r = -ENOENT;

	text_copy(text, sizeof(text), cgroups);
	path = line_path(text, v1);
	for (size_t i = 0; r && path && version->mounts[i]; i++) {
		const char *name = version->mounts[i];

		if (snprintf(mount, sizeof(mount), "%s%s%s", cgroup_root, *name ? "/" : "", name) >=
		    (int)sizeof(mount))
			return -ENAMETOOLONG;
		r = version_read(version, mount, path, out);
	}
	return r;
}

int memory_limit_read(const char *proc_root, const char *cgroup_root, struct memory_limit *out)
{
	char path[PATH_MAX], text[TEXT_BYTES];
	int r;

	if (snprintf(path, sizeof(path), "%s/self/cgroup", proc_root) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	r = file_read(path, text, sizeof(text));
	if (r)
		return r;
	/* The controller is in one hierarchy only: version 1's, if that is mounted. */
	r = limit_read_as(&version_1, true, text, cgroup_root, out);
	return r ? limit_read_as(&version_2, false, text, cgroup_root, out) : 0;
}

void memory_return_large_blocks(void)
{
	mallopt(M_MMAP_THRESHOLD, RETURNED_BYTES);
	mallopt(M_TRIM_THRESHOLD, RETURNED_BYTES);
}

void memory_keep_large_blocks(void)
{
	mallopt(M_MMAP_THRESHOLD, KEPT_BYTES);
	mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
}
