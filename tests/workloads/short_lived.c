// SPDX-License-Identifier: Apache-2.0
/*
 * Starts --children processes one after the other that listen, where the kernel likes, and exit at
 * once. It does not listen itself, and ends with the last of them.
 */
#include <sys/wait.h>

#include "workload.h"

static void child_run_to_end(void)
{
	pid_t child = fork();
	int status;

	if (child < 0)
		die("fork");
	if (!child) {
		listen_unbound(1);
		_exit(0);
	}
	if (waitpid(child, &status, 0) != child || status)
		die("a child failed");
}

int main(int argc, char **argv)
{
	long children = 500;
	const struct option_row options[] = {
		{ "children", &children, NULL, "processes that listen" },
		{ 0 },
	};

	options_parse(options, argc, argv);
	while (children--)
		child_run_to_end();
	return 0;
}
