// SPDX-License-Identifier: Apache-2.0
/*
 * Many descriptors of one socket: a walk over all descriptors of the machine has to look at each of
 * them. Processes have copies of one table, or share it.
 */
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>

#include "workload.h"

static void descriptors_open(long count)
{
	struct rlimit limit;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit))
		die("limit of descriptors");
	for (long i = 1; i < count; i++)
		if (fd < 0 || dup(fd) < 0)
			die("descriptor");
}

int main(int argc, char **argv)
{
	long port = 0, descriptors = 20000, processes = 300, shared = 0;
	const struct option_row options[] = {
		{ "port", &port, NULL, "of a listener that nobody needs" },
		{ "descriptors", &descriptors, NULL, "of each process" },
		{ "processes", &processes, NULL, "how many" },
		{ "shared", &shared, NULL, "1: they share one table" },
		{ 0 },
	};
	char line[64];

	options_parse(options, argc, argv);
	descriptors_open(descriptors);
	for (long i = 1; i < processes; i++) {
		long pid = syscall(SYS_clone, SIGCHLD | (shared ? CLONE_FILES : 0), NULL, NULL,
				   NULL, NULL);

		if (pid < 0)
			die("clone");
		if (!pid) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (;;)
				pause();
		}
	}
	ready_print(listen_open("127.0.0.1", port, 1));
	while (command_next(line, sizeof(line)) && strcmp(line, "quit"))
		command_done();
	exit(0);
}
