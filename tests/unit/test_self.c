/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "collect/self.h"

#define NS_PER_S 1000000000ULL

Test(self, the_numbers_of_a_known_process)
{
	const uint64_t hz = (uint64_t)sysconf(_SC_CLK_TCK);
	struct process_row row;

	cr_assert_eq(self_read("tests/unit/fixtures/proc", &row), 0);
	cr_expect_eq(row.cpu_ns, 300 * NS_PER_S / hz);
	cr_expect_eq(row.open_fds, 3); /* 5, of which the reader took 2 */
	cr_expect_eq(row.max_fds, 1024);
	cr_expect_eq(row.virtual_bytes, 104857600);
	cr_expect_eq(row.resident_bytes, 512 * (uint64_t)sysconf(_SC_PAGESIZE));
	cr_expect_eq(row.start_ns, 1700000000 * NS_PER_S + 1050 * NS_PER_S / hz);
}

Test(self, this_process_has_the_descriptors_it_opened)
{
	struct process_row before, after;
	struct rlimit limit;
	int fds[2];

	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	cr_assert_eq(self_read("/proc", &before), 0);
	cr_assert_eq(pipe(fds), 0);
	cr_assert_eq(self_read("/proc", &after), 0);
	cr_expect_eq(after.open_fds, before.open_fds + 2);
	cr_expect_eq(after.max_fds, limit.rlim_cur);
	cr_expect_gt(after.resident_bytes, 0);
	cr_expect_geq(after.virtual_bytes, after.resident_bytes);
	cr_expect_geq(after.cpu_ns, before.cpu_ns);
	cr_expect_leq(after.start_ns, ((uint64_t)time(NULL) + 1) * NS_PER_S);
	cr_expect_geq(after.start_ns, ((uint64_t)time(NULL) - 600) * NS_PER_S);
}

Test(self, a_root_without_files_is_an_error_and_leaves_the_output_alone)
{
	struct process_row row = { .open_fds = 7 };

	cr_expect_lt(self_read("tests/unit/fixtures/proc_timens", &row), 0);
	cr_expect_lt(self_read("/nonexistent", &row), 0);
	cr_expect_eq(row.open_fds, 7);
}
