/* SPDX-License-Identifier: Apache-2.0 */
/* The memory limit of the exporter's own cgroup, in hierarchies that are plain folders here. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"

#define PATH_BYTES 256

static char root[] = "/tmp/memory_XXXXXX";

/* Writes @text to the file @path below the root, and makes the folders that it is in. */
static void file_make(const char *path, const char *text)
{
	char full[PATH_BYTES];
	FILE *file;

	snprintf(full, sizeof(full), "%s/%s", root, path);
	for (char *slash = strchr(full + strlen(root) + 1, '/'); slash;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		cr_assert(!mkdir(full, 0700) || errno == EEXIST);
		*slash = '/';
	}
	file = fopen(full, "we");
	cr_assert_not_null(file);
	cr_assert_geq(fputs(text, file), 0);
	fclose(file);
}

static void set_up(void)
{
	cr_assert_not_null(mkdtemp(root));
}

static void tear_down(void)
{
	char command[PATH_BYTES];

	snprintf(command, sizeof(command), "rm -r %s", root);
	cr_expect_eq(system(command), 0);
}

static int limit_read(struct memory_limit *limit)
{
	char proc[PATH_BYTES], cgroup[PATH_BYTES];

	snprintf(proc, sizeof(proc), "%s/proc", root);
	snprintf(cgroup, sizeof(cgroup), "%s/cgroup", root);
	return memory_limit_read(proc, cgroup, limit);
}

static void expect_limit(uint64_t limit_bytes, uint64_t used_bytes)
{
	struct memory_limit limit;

	cr_assert_eq(limit_read(&limit), 0);
	cr_expect_eq(limit.limit_bytes, limit_bytes, "limit %llu",
		     (unsigned long long)limit.limit_bytes);
	cr_expect_eq(limit.used_bytes, used_bytes, "used %llu",
		     (unsigned long long)limit.used_bytes);
}

TestSuite(memory, .init = set_up, .fini = tear_down);

Test(memory, version_2_has_the_limit_of_the_cgroup)
{
	file_make("proc/self/cgroup", "0::/system.slice/x.service\n");
	file_make("cgroup/system.slice/x.service/memory.max", "268435456\n");
	file_make("cgroup/system.slice/x.service/memory.current", "20000000\n");
	expect_limit(268435456, 20000000);
}

/* What those above have in use is other services' as well. */
Test(memory, the_least_limit_of_those_above_counts_and_the_use_of_the_own)
{
	file_make("proc/self/cgroup", "0::/a/b\n");
	file_make("cgroup/a/b/memory.max", "max\n");
	file_make("cgroup/a/b/memory.current", "1000\n");
	file_make("cgroup/a/memory.max", "50000\n");
	file_make("cgroup/a/memory.current", "40000\n");
	expect_limit(50000, 1000);
}

Test(memory, files_that_the_kernel_may_forget_are_not_in_use)
{
	file_make("proc/self/cgroup", "0::/a\n");
	file_make("cgroup/a/memory.max", "50000\n");
	file_make("cgroup/a/memory.current", "9000\n");
	file_make("cgroup/a/memory.stat",
		  "anon 3\ninactive_anon 7\ninactive_file 1000\nactive_file 500\n");
	expect_limit(50000, 7500);
}

Test(memory, version_1_has_a_hierarchy_of_its_own)
{
	file_make("proc/self/cgroup", "5:cpu,cpuacct:/else\n4:memory:/x\n0::/y\n");
	file_make("cgroup/memory/x/memory.limit_in_bytes", "33554432\n");
	file_make("cgroup/memory/x/memory.usage_in_bytes", "2000\n");
	file_make("cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
	file_make("cgroup/unified/y/memory.max", "1\n");
	expect_limit(33554432, 2000);
}

Test(memory, version_1_without_a_limit_writes_a_large_number)
{
	file_make("proc/self/cgroup", "4:memory:/\n");
	file_make("cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
	file_make("cgroup/memory/memory.usage_in_bytes", "2000\n");
	expect_limit(UINT64_MAX, 2000);
}

/* A container may see its own cgroup as the root of the hierarchy, with the path of the host. */
Test(memory, a_path_that_is_not_there_is_passed_over)
{
	file_make("proc/self/cgroup", "4:memory:/docker/0123\n");
	file_make("cgroup/memory/memory.limit_in_bytes", "33554432\n");
	file_make("cgroup/memory/memory.usage_in_bytes", "2000\n");
	expect_limit(33554432, 2000);
}

Test(memory, without_a_controller_nothing_is_known)
{
	struct memory_limit limit = { 1, 2 };

	file_make("proc/self/cgroup", "0::/a\n");
	file_make("cgroup/a/cgroup.procs", "");
	cr_expect_eq(limit_read(&limit), -ENOENT);
	cr_expect_eq(limit.limit_bytes, 1);
}
