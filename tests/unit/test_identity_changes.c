/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that end, or become other programs, while they are read. */
#include <criterion/criterion.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "identity/identity.h"

Test(identity_changes, a_process_that_ends_meanwhile_is_known_whole_or_not_at_all)
{
	int whole = 0, gone = 0;

	for (unsigned int i = 0; i < 500; i++) {
		struct identity identity;
		pid_t child = fork();
		int r;

		cr_assert_geq(child, 0);
		if (!child) {
			uint64_t end_ns = clock_monotonic_ns() + i * 2000ULL;

			while (clock_monotonic_ns() < end_ns)
				;
			_exit(0);
		}
		r = identity_read("/proc", child, 0, "comm", &identity);
		cr_expect_eq(waitpid(child, NULL, 0), child);
		if (r == -ESRCH) {
			gone++;
			continue;
		}
		cr_assert_eq(r, 0);
		cr_assert_str_eq(identity.runtime, "native");
		cr_assert_str_eq(identity.name, text_base_name(identity.exe));
		whole++;
	}
	cr_expect(whole && gone, "%d were known, %d gone", whole, gone);
}

#define PROGRAMS 50 /* too many to come back to one while it is looked at */
#define BECOME "n=$((($1 + 1) % 50)); exec \"$0/p$n\" -c \"$BECOME\" \"$0\" $n"

/* One of many copies of a shell in @directory, which becomes the next of them at once, again and
 * again. */
static pid_t changer_start(const char *directory)
{
	char command[512];
	pid_t child;

	snprintf(command, sizeof(command),
		 "for n in $(seq 0 %d); do cp /bin/sh %s/p$n || exit 1; done", PROGRAMS - 1,
		 directory);
	cr_assert_eq(system(command), 0);
	child = fork();
	cr_assert_geq(child, 0);
	if (child)
		return child;
	setenv("BECOME", BECOME, 1);
	execl("/bin/sh", "sh", "-c", BECOME, directory, "0", NULL);
	_exit(1);
}

Test(identity_changes, a_process_that_becomes_another_program_is_the_one_or_the_other)
{
	char directory[] = "/tmp/workload-identity-XXXXXX", command[256],
	     last[IDENTITY_NAME_LEN] = "";
	int changes = 0;
	pid_t child;

	cr_assert_not_null(mkdtemp(directory));
	child = changer_start(directory);
	for (int i = 0; i < 3000 || changes < 100; i++) {
		struct identity identity;
		int r = identity_read("/proc", child, 0, "comm", &identity);

		cr_assert(!r || r == -EBUSY, "%s", strerror(-r));
		if (r || !text_has_prefix(identity.exe, directory))
			continue;
		cr_expect_str_eq(identity.name, text_base_name(identity.exe));
		changes += strcmp(identity.name, last) != 0;
		text_copy(last, sizeof(last), identity.name);
	}
	kill(child, SIGKILL);
	cr_expect_eq(waitpid(child, NULL, 0), child);
	snprintf(command, sizeof(command), "rm -r %s", directory);
	cr_expect_eq(system(command), 0);
}
